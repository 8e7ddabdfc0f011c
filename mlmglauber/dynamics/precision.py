"""The error of conditionals in a fast precision: measured at the start, compared whenever a better one is computed.

Conditionals in float64 define a chain. Those in float32 are close to them: the log-odds of the edges that a draw is
compared with differ by about 1e-5 / tau (draws.discrepancy). A draw counts as certain where a difference SAFETY times
as large as the largest one seen could not change it. Any other draw is made again in the next better precision.
"""

import warnings
from collections.abc import Iterable
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.draws import Values, discrepancy
from mlmglauber.models.blocks import BlockRows, block_rows
from mlmglauber.models.conditionals import Conditional, Ids
from mlmglauber.stream.errors import MlmWarning

SAFETY = 4.0
"""The tolerance in units of the largest difference seen."""
NEAR = 0.5
"""Maximum share of the tolerance that a difference may have without widening it."""
PROBES = 8
"""Number of conditionals that are computed in all precisions to measure the tolerance."""
SITES = 16
"""Number of sites of the states of these conditionals."""
UNIFORMS = (0.03, 0.2, 0.5, 0.8, 0.97)
"""First uniforms of the probes; they choose the blocks whose tokens are compared."""
CHECKED = 1000
"""Number of certain draws of which one is made again in the best precision, as a check."""


class Precision:
    """The tolerance of each level of precision of a model, in nats of log-odds at tau = 1; the last level's is 0.

    checked: number of certain draws that were made again in the best precision. differed: number of those that gave
    another token.
    """

    def __init__(self, conditional: Conditional) -> None:
        self.conditional = conditional
        self.tolerances = [0.0] * conditional.levels
        self.measured = conditional.levels == 1
        self.checked = self.differed = 0
        self._warned = False

    def measure(self, taus: Iterable[float]) -> None:
        """Measure the tolerances once: compare the levels on random contexts, at these temperatures and at 1.

        A tolerance is rounded up to a power of two, so that it seldom depends on the processor and its threads. It
        stays 0 where a probe is not finite.
        """
        if self.measured:
            return
        self.measured = True
        generator = np.random.default_rng(0)
        tokens = np.flatnonzero(self.conditional.allowed)
        states = generator.choice(tokens, (PROBES, SITES))
        sites = generator.permutation(SITES)[:PROBES]
        last = self.conditional.levels - 1
        exact = self.conditional.log_probs_at(states, sites, last)
        if not np.isfinite(exact.max(axis=1)).all():
            return  # the chain that draws there reports it
        old = states[np.arange(PROBES), sites]
        temperatures = {1.0, *(tau for tau in taus if tau > 0)}
        for level in range(last):
            rows = self.conditional.log_probs_at(states, sites, level)
            worst = max((self._worst(rows, exact, old, tau) for tau in temperatures), default=0.0)
            if self.conditional.truncation is not None:
                worst = max(worst, _spread(rows, exact))
            self.tolerances[level] = rounded_up(SAFETY * max(worst, 1e-9))

    @staticmethod
    def _worst(rows: NDArray[np.floating], exact: NDArray[np.floating], old: Ids, tau: float) -> float:
        """The largest difference of log-odds between rows of two precisions, in nats at tau = 1."""
        count = len(old)
        taus, warm = np.full(count, tau), np.zeros(count, dtype=bool)
        differences = [discrepancy(*(block_rows(each, old, taus, np.full(count, u), warm) for each in (rows, exact)))
                 for u in UNIFORMS]
        return tau * float(np.max(differences))

    def cold(self, taus: Values, level: int) -> NDArray[np.bool_]:
        """(B,) where the likeliest token is taken: at tau = 0, and where the tolerance is 1/2 or more in log-odds."""
        return np.asarray(taus <= 2 * self.tolerances[level])

    def observe(self, level: int, fast: BlockRows, exact: BlockRows, taus: Values) -> None:
        """Widen the tolerance of a level, with one warning, where its error was more than NEAR of the tolerance.

        fast, exact: the same conditionals in this level and in a better one. taus: (B,) their temperatures.
        """
        warm = ~self.cold(taus, level) & exact.finite & fast.finite & (fast.slack >= 2 * self.tolerances[level])
        if not warm.any():
            return
        worst = float((discrepancy(fast, exact) * taus)[warm].max())
        if worst > NEAR * self.tolerances[level]:
            before = self.tolerances[level]
            self.tolerances[level] = rounded_up(SAFETY * worst)
            if not self._warned:
                self._warned = True
                warnings.warn(f"rounding errors are larger than those measured at the start: the tolerance of draws "
                              f"goes from {before:.1e} to {self.tolerances[level]:.1e} nats", MlmWarning, stacklevel=2)

    @staticmethod
    def to_check(uniforms: Values) -> NDArray[np.bool_]:
        """(B,) which draws are checked, about one of CHECKED; a function of their (B, 2) uniforms alone."""
        return np.asarray((uniforms[:, 1] * 2.0**53).astype(np.int64) % CHECKED == 0)


def _spread(rows: NDArray[np.floating], exact: NDArray[np.floating]) -> float:
    """The largest error, in nats, of a difference of two log-probabilities of one row: what a truncation compares."""
    errors = [row[known] - true[known] for row, true in zip(rows, exact, strict=True)
              for known in [np.isfinite(row) & np.isfinite(true)]]
    return max(float(np.ptp(each)) for each in errors)


def rounded_up(tolerance: float) -> float:
    """The smallest power of two that is not below the tolerance.

    >>> rounded_up(2.1e-5) == 2.0**-15
    True
    """
    return float(2.0 ** ceil(log2(tolerance)))
