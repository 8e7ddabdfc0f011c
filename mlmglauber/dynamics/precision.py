"""How far a fast conditional may be off: measured when a model is opened, compared whenever a better one is computed.

A chain is defined by conditionals in float64. Those in float32 are close to them: the log-odds of the edges that a draw
is compared with differ by about 1e-5 / tau (draws.discrepancy). A draw is believed where a difference SAFETY times as
large as the largest one seen could not change it, and computed again in the next better precision elsewhere.
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
"""The tolerance, in units of the largest difference seen."""
NEAR = 0.5
"""Share of the tolerance from which on a difference widens it."""
PROBES = 8
"""Number of conditionals that are computed in all precisions when the tolerance is measured."""
SITES = 16
"""Number of sites of a state that is probed."""
UNIFORMS = (0.03, 0.2, 0.5, 0.8, 0.97)
"""First uniforms of the probes: they choose the blocks whose tokens are compared."""
CHECKED = 1000
"""One draw of so many is computed in the best precision although it is certain."""


class Precision:
    """The tolerance of each level of a model, in nats of log-odds at tau = 1; the last level's is 0.

    checked, differed: draws that were certain and were computed again in the best precision all the same, and those of
    them that gave another token.
    """

    def __init__(self, conditional: Conditional) -> None:
        self.conditional = conditional
        self.tolerances = [0.0] * conditional.levels
        self.measured = conditional.levels == 1
        self.checked = self.differed = 0
        self._warned = False

    def measure(self, taus: Iterable[float]) -> None:
        """Compare the levels on contexts of random tokens, at these temperatures and at 1, unless it has been done.

        A tolerance is rounded up to a power of two, so that it seldom depends on the processor and its threads.
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
            return  # whoever draws there finds out
        old = states[np.arange(PROBES), sites]
        temperatures = {1.0, *(tau for tau in taus if tau > 0)}
        for level in range(last):
            rows = self.conditional.log_probs_at(states, sites, level)
            worst = max((self._worst(rows, exact, old, tau) for tau in temperatures), default=0.0)
            self.tolerances[level] = rounded_up(SAFETY * max(worst, 1e-9))

    @staticmethod
    def _worst(rows: NDArray[np.floating], exact: NDArray[np.floating], old: Ids, tau: float) -> float:
        count = len(old)
        taus, warm = np.full(count, tau), np.zeros(count, dtype=bool)
        found = [discrepancy(*(block_rows(each, old, taus, np.full(count, u), warm) for each in (rows, exact)))
                 for u in UNIFORMS]
        return tau * float(np.max(found))

    def cold(self, taus: Values, level: int) -> NDArray[np.bool_]:
        """(B,) where the argmax is taken: tau = 0, and temperatures at which the tolerance moves log-odds by 1/2."""
        return np.asarray(taus <= 2 * self.tolerances[level])

    def observe(self, level: int, fast: BlockRows, exact: BlockRows, taus: Values) -> None:
        """Widen the tolerance, with one warning, where it comes out that a level was off by more than NEAR of it."""
        warm = ~self.cold(taus, level) & exact.finite & fast.finite
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
        """(B,) which draws are checked: about one of CHECKED, a function of (B, 2) their uniforms alone."""
        return np.asarray((uniforms[:, 1] * 2.0**53).astype(np.int64) % CHECKED == 0)


def rounded_up(tolerance: float) -> float:
    """The power of two that is not below.

    >>> rounded_up(2.1e-5) == 2.0**-15
    True
    """
    return float(2.0 ** ceil(log2(tolerance)))
