"""Glauber dynamics: the tempered conditionals.

A step redraws x_i from p_tau(v | x_-i) = softmax_v(l_i(v; x_-i) / tau), whatever token stands at site i. l_i are the
model's log-probabilities at that site with its token masked, tau is the temperature.
"""

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.conditionals import Floats


class NotFiniteError(ValueError):
    """A row of log-probabilities without a distribution: not-a-number, +inf, or every token at -inf.

    row: its place in the batch.
    """

    def __init__(self, row: int) -> None:
        super().__init__("the model gave a conditional that is not finite")
        self.row = row


def temper(log_probs: Floats, taus: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of log p_tau = log softmax(l / tau) from rows l of log-probabilities at tau = 1, in nats.

    log_probs: (B, V); a constant added to a row changes nothing. taus: (B,), each at least 0. tau = 0 is the limit: the
    likeliest token has probability 1, the one with the lowest id where several are likeliest. Returns (B, V), -inf
    where a token has probability 0. Raises NotFiniteError for a row with not-a-number, +inf or no allowed token.

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
