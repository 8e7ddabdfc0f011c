"""Glauber dynamics: the tempered conditionals, and the sites of the steps.

x_i is redrawn from p_tau(v | x_-i) = softmax_v(l_i(v; x_-i) / tau), whatever token stood there.
"""

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.randomness import Stream
from mlmglauber.models.conditionals import Floats, Ids

SCANS = ("random", "permutation", "systematic")


class NotFiniteError(ValueError):
    """A conditional that is no law: not-a-number, +inf, or no token left. `row` is its place in the batch."""

    def __init__(self, row: int) -> None:
        super().__init__("the model gave a conditional that is not finite")
        self.row = row


def temper(log_probs: Floats, taus: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of log p_tau = log softmax(l / tau) from rows of log p at tau = 1; tau = 0 is the limit, the argmax.

    log_probs: (B, V), a constant added to a row changes nothing. taus: (B,), each >= 0. Ties at tau = 0 go to the
    lowest id. A row that is no law (not-a-number, +inf, no token allowed) raises NotFiniteError.

    >>> np.exp(temper(np.array([[2., 1., 0.]]), np.array([0.5]))).round(4)
    array([[0.8668, 0.1173, 0.0159]])
    """
    rows = np.array(log_probs, dtype=np.float64)
    best = rows.max(axis=1)  # not-a-number wins every comparison and is seen here
    broken = ~np.isfinite(best)
    if broken.any():
        raise NotFiniteError(int(np.flatnonzero(broken)[0]))
    rows -= best[:, None]  # before the division: a tiny tau then gives 0 and -inf, never inf - inf
    cold = taus == 0
    with np.errstate(over="ignore"):
        rows /= np.where(cold, 1.0, taus)[:, None]
    if cold.any():
        winners = rows[cold].argmax(axis=1)
        rows[cold] = -np.inf
        rows[np.flatnonzero(cold), winners] = 0.0
    rows -= np.log(np.exp(rows).sum(axis=1, keepdims=True))
    return rows


def scan_sites(scan: str, stream: Stream, start: int, count: int, free: Ids) -> Ids:
    """The sites of steps start ... start + count - 1 among the `free` ones.

    random: each uniform and independent. permutation: a fresh uniform order every sweep of len(free) steps.
    systematic: left to right, again and again.
    """
    n = len(free)
    steps = np.arange(start, start + count)
    if scan == "systematic":
        return free[steps % n]
    if scan == "random":
        return free[(stream.uniforms(start, count) * n).astype(np.int64)]
    if scan == "permutation":
        first, last = start // n, (start + count - 1) // n + 1
        orders = stream.uniforms(first * n, (last - first) * n).reshape(-1, n).argsort(axis=1, kind="stable")
        return free[orders.ravel()[start - first * n :][:count]]
    raise ValueError(f"scan {scan!r} is none of {', '.join(SCANS)}")
