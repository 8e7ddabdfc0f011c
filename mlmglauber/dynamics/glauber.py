"""Glauber dynamics: one step at one site, for a batch of independent chains.

x_i is redrawn from p_tau(v | x_-i) = softmax_v(l_i(v; x_-i) / tau), whatever token stood there.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.law import laws
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.models.conditionals import Conditional, Floats, Ids

SCANS = ("random", "permutation", "systematic")


class NotFiniteError(ValueError):
    """A conditional that is no law: not-a-number, +inf, or no token left. `row` is its place in the batch."""

    def __init__(self, row: int) -> None:
        super().__init__("the model gave a conditional that is not finite")
        self.row = row


class Update(NamedTuple):
    """What one step did to each of B chains: sites, tokens before and after, their log-probabilities in nats."""

    sites: Ids
    old: Ids
    new: Ids
    logp_old: NDArray[np.float64]
    logp_new: NDArray[np.float64]


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


def step(
    conditional: Conditional, ids: Ids, sites: Ids, uniforms: NDArray[np.float64], taus: NDArray[np.float64]
) -> tuple[Ids, Update]:
    """One update of B independent chains.

    ids: (B, n) states. sites: (B,). uniforms: (B,) on [0, 1). taus: (B,). Returns the new states and what happened.

    >>> from mlmglauber.models.conditionals import TableConditional
    >>> table = TableConditional([[[.8, .2], [.3, .7]], [[.6, .4], [.5, .5]]])
    >>> after, update = step(table, np.array([[0, 1]]), np.array([0]), np.array([.9]), np.array([1.]))
    >>> after, update.logp_new.round(4)
    (array([[1, 1]]), array([-0.3567]))
    """
    after, columns = ids.copy(), []
    log_probs = conditional.log_probs(ids, sites)
    for k, law in enumerate(laws(log_probs, taus.tolist())):
        if law is None:
            raise NotFiniteError(k)
        old, new = int(ids[k, sites[k]]), law.draw(float(uniforms[k]))
        after[k, sites[k]] = new
        columns.append((sites[k], old, new, law.tempered(float(log_probs[k, old])),
                        law.tempered(float(log_probs[k, new]))))
    return after, Update(*map(np.array, zip(*columns, strict=True)))
