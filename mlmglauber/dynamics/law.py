"""A conditional made ready for drawing: the tokens that a 53-bit uniform can reach, and their running sums.

A token of less than 2^-53 of the mass holds no uniform k * 2^-53 of its own, so it is left out. At low temperature few
tokens remain, and a conditional that took a forward pass to compute is kept in a few hundred bytes.
"""

from collections.abc import Sequence
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.conditionals import Floats

SMALLEST = 2.0**-53


class Law:
    """One tempered conditional.

    tokens: (k,) the ids kept, ascending. cumulative: (k,) running sums of exp((l - max l) / tau), not normalised.
    base: (k,) their log-probabilities at tau = 1, in nats, as the model gave them. stood: the token that stood at the
    site when the law was asked for, and its log-probability at tau = 1, wanted even if the token was left out.
    """

    __slots__ = ("base", "best", "cumulative", "log_mass", "stood", "tau", "tokens")

    def __init__(self, tokens: NDArray[np.int32], cumulative: NDArray[np.float64], base: Floats, tau: float,
                 best: float, stood: tuple[int, float] | None = None) -> None:
        self.tokens, self.cumulative, self.base, self.tau, self.stood = tokens, cumulative, base, tau, stood
        self.best, self.log_mass = best, log(cumulative[-1])

    @property
    def nbytes(self) -> int:
        return self.tokens.nbytes + self.cumulative.nbytes + self.base.nbytes

    def draw(self, uniform: float) -> int:
        """Inverse CDF: the token whose stretch of [0, 1) holds the uniform."""
        k = int(self.cumulative.searchsorted(uniform * self.cumulative[-1], side="right"))
        return int(self.tokens[min(k, len(self.tokens) - 1)])  # the product may round up to the total

    def stretch(self, token: int) -> tuple[float, float, float]:
        """(low, high, total): `token` is drawn exactly when low <= uniform * total < high; never: (inf, inf, total)."""
        k = self._place(token)
        total = float(self.cumulative[-1])
        if k is None:
            return inf, inf, total
        return (float(self.cumulative[k - 1]) if k else 0.0,
                float(self.cumulative[k]) if k + 1 < len(self.tokens) else inf, total)

    def logp(self, token: int) -> float | None:
        """log p_tau(token) in nats; None for a token that was left out: all that is known of it is that it is small."""
        base = self.base_logp(token)
        if base is None:
            return -inf if self.tau == 0 else None
        return self.tempered(base)

    def tempered(self, base_logp: float) -> float:
        """log p_tau of a token of this law from its log-probability at tau = 1."""
        if self.tau == 0:
            return 0.0 if base_logp == self.best else -inf
        return (base_logp - self.best) / self.tau - self.log_mass

    def base_logp(self, token: int) -> float | None:
        """log p(token) at tau = 1, None for a token that was left out."""
        k = self._place(token)
        if k is not None:
            return float(self.base[k])
        return self.stood[1] if self.stood is not None and self.stood[0] == token else None

    def _place(self, token: int) -> int | None:
        k = int(self.tokens.searchsorted(token))
        return k if k < len(self.tokens) and self.tokens[k] == token else None


def laws(log_probs: Floats, taus: Sequence[float], stood: Sequence[int] | None = None) -> list[Law | None]:
    """The laws of (B, V) rows of log-probabilities at tau = 1, one temperature each; None for a row that is no law.

    No law: not-a-number, +inf, or no token allowed. tau = 0 is the argmax, ties to the lowest id. stood: the token at
    the site of each row, if its log-probability is to be kept in any case.

    >>> law, = laws(np.array([[2.0, 1.0, 0.0, -900.0]]), [0.5])
    >>> law.tokens.tolist(), [round(law.logp(token), 4) for token in (0, 1, 2)]
    ([0, 1, 2], [-0.1429, -2.1429, -4.1429])
    """
    best = log_probs.max(axis=1)  # not-a-number wins every comparison and is seen here
    everything = np.arange(log_probs.shape[1], dtype=np.int32)  # shared by the hot laws of the batch
    made: list[Law | None] = []
    for k, (row, top, tau) in enumerate(zip(log_probs, best.tolist(), taus, strict=True)):
        if not np.isfinite(top):
            made.append(None)
            continue
        if tau == 0:
            kept = np.array([row.argmax()], dtype=np.int32)
            weights: Floats = np.ones(1)
        else:
            kept, weights = _reachable(row, top, tau, everything)
        base = row.copy() if len(kept) == len(row) else row[kept]  # never a view: it would hold the whole batch
        present = None if stood is None else (stood[k], float(row[stood[k]]))
        made.append(Law(kept, np.cumsum(weights, dtype=np.float64), base, tau, top, present))
    return made


def _reachable(row: Floats, top: float, tau: float, everything: NDArray[np.int32]) -> tuple[NDArray[np.int32], Floats]:
    """The ids whose share of the mass is 2^-53 or more, and their weights exp((l - max l) / tau)."""
    # The mass is at least 1 and at most V: a first sieve on the logits spares most exponentials of a cold law.
    reach = tau * (53 * log(2))
    near = row >= top - reach
    kept, logits = (everything, row) if near.all() else (everything[near], row[near])
    if tau < 1e-6:
        logits = logits.astype(np.float64)  # such a tau is no float32
    weights = np.exp((logits - logits.dtype.type(top)) / tau)
    least = SMALLEST * weights.sum(dtype=np.float64)
    if weights.min() >= least:
        return kept, weights
    heavy = weights >= least
    return kept[heavy], weights[heavy]
