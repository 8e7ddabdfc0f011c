"""How residence times grow as the temperature falls: as T = exp(a + b / tau) if there is a barrier of b nats.

A state of margin gamma > 0 has an escape probability of about exp(-gamma / tau), so its b tends to gamma as tau -> 0.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import Interval, interval

FEWEST_TAUS = 3
"""Minimum number of temperatures of a fit: any two points lie on a line."""

Values = NDArray[np.float64]


class Fit(NamedTuple):
    """a and b of T = exp(a + b / tau), b in nats with its 95 % interval over texts; slope has the reason for None."""

    intercept: float | None
    slope: Interval


def residence_fit(taus: Sequence[float], steps: Values, exits: Values) -> Fit:
    """The mean time until a trap is left, fitted against 1 / tau.

    taus: (K,) above 0. steps, exits: (T, K) for each text, the steps of its traps after those for which they were
    chosen, and the number of its traps that ended. The mean at tau is sum(steps) / sum(exits), which allows for traps
    that the records cut off. The fit is least squares of its logarithm, with the exits as weights of temperatures.

    >>> taus = [0.5, 1.0, 2.0]
    >>> times = np.exp(1 + 2 / np.array(taus))
    >>> found = residence_fit(taus, np.outer([1, 3, 2, 1], times), np.outer([1, 3, 2, 1], np.ones(3)))
    >>> round(found.intercept, 9), round(found.slope.value, 9)
    (1.0, 2.0)
    """
    seen = int((exits.sum(axis=0) > 0).sum())
    if seen < FEWEST_TAUS:
        return Fit(None, Interval(None, None, None, f"traps were left at {seen} temperatures, a fit needs "
                                  f"{FEWEST_TAUS}"))
    x = 1 / np.asarray(taus, dtype=np.float64)

    def slope(counts: Values) -> Values:
        return _line(x, counts @ steps, counts @ exits)[1]

    whole = np.ones((1, len(steps)))
    return Fit(float(_line(x, whole @ steps, whole @ exits)[0][0]), interval(slope, len(steps), "plain"))


def _line(x: Values, steps: Values, exits: Values) -> tuple[Values, Values]:
    """(R,) intercepts and slopes of log(steps / exits), (R, K), on x, weighted by exits; NaN where there is no line."""
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.where(exits > 0, np.log(steps / exits), 0.0)
        total = exits.sum(axis=1)
        x_mean, y_mean = exits @ x / total, (exits * y).sum(axis=1) / total
        away = x - x_mean[:, None]
        spread = (exits * away**2).sum(axis=1)
        slope = np.where(spread > 0, (exits * away * (y - y_mean[:, None])).sum(axis=1) / spread, np.nan)
    return np.asarray(y_mean - slope * x_mean), np.asarray(slope)


def escape_slopes(taus: Sequence[float], escapes: Values) -> Values:
    """(S,) b of each state: least squares of log(1 / escape) on 1 / tau, inf for a state that is never left.

    escapes: (S, K), exact probabilities; the slopes therefore have no interval.

    >>> escape_slopes([0.5, 1.0, 2.0], np.exp(-3 / np.array([[0.5, 1.0, 2.0]]))).round(9)
    array([3.])
    """
    x = 1 / np.asarray(taus, dtype=np.float64)
    away = x - x.mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = -np.log(escapes) @ away / (away @ away)
    return np.asarray(np.where((escapes > 0).all(axis=1), slopes, np.inf))
