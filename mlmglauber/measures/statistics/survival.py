"""Times that may be censored: how long until something happened, when some were not watched long enough."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import Interval, Statistic, interval, places_of

BLOCK = 1 << 20
"""Numbers worked on at a time."""
HALF = 0.5 + 1e-12
"""A survival of 1/2, rounding allowed for."""


class Survival(NamedTuple):
    """The Kaplan-Meier curve: S(t) just after each time, and its median, None where it does not come down to 1/2."""

    times: NDArray[np.float64]
    survival: NDArray[np.float64]
    median: float | None

    def restricted_mean(self, horizon: float) -> float:
        """Mean of min(T, horizon): the area below the curve from 0 to the horizon."""
        inside = self.times < horizon
        edges = np.concatenate([[0.0], self.times[inside], [horizon]])
        heights = np.concatenate([[1.0], self.survival[inside]])
        return float((np.diff(edges) * heights).sum())


def kaplan_meier(
    times: Sequence[float] | NDArray[np.float64], censored: Sequence[bool] | NDArray[np.bool_]
) -> Survival:
    """Kaplan-Meier estimate by scipy.stats.ecdf. The interval of its median is that of median_interval.

    times: (N,) when it happened or, where censored, until when it was watched. ValueError for no times at all.

    >>> curve = kaplan_meier([5, 9, 20], [False, False, True])
    >>> curve.median, round(curve.restricted_mean(20), 4)
    (9.0, 11.3333)
    """
    from scipy.stats import CensoredData, ecdf

    times, censored = np.asarray(times, dtype=np.float64), np.asarray(censored, dtype=bool)
    if not len(times):
        raise ValueError("no times to estimate from")
    if censored.all():
        return Survival(np.empty(0), np.empty(0), None)
    curve = ecdf(CensoredData(uncensored=times[~censored], right=times[censored])).sf
    found = Survival(curve.quantiles, curve.probabilities, None)
    return found._replace(median=quantile(found, 0.5))


def quantile(curve: Survival, q: float) -> float | None:
    """The first time at which the curve is at 1 - q or below, None where it does not come down so far.

    >>> quantile(kaplan_meier([5, 9, 20], [False, False, True]), 0.25)
    5.0
    """
    below = np.flatnonzero(curve.survival <= 1 - q + 1e-12)
    return float(curve.times[below[0]]) if len(below) else None


def median_interval(times: Sequence[float] | NDArray[np.float64], censored: Sequence[bool] | NDArray[np.bool_],
                    texts: Sequence[Hashable]) -> Interval:
    """The Kaplan-Meier median and its 95 % interval over texts, of each of the N times its own.

    The value is None where the median is not reached; the low end may be known then.

    >>> found = median_interval([5, 9, 20, 7, 8, 30], [False, False, True, False, False, False], "abcdef")
    >>> found.value, round(found.low, 1), found.high
    (8.0, 4.6, None)
    """
    times, censored = np.asarray(times, dtype=np.float64), np.asarray(censored, dtype=bool)
    places, total = places_of(texts)
    return interval(medians(times, censored, places, total), total)


def medians(times: NDArray[np.float64], censored: NDArray[np.bool_], places: NDArray[np.intp],
            total: int) -> Statistic:
    """The Kaplan-Meier medians of (N,) times as a function of how often each of `total` texts is counted.

    places: (N,) the number of each time's text. (R, total) counts give (R,) medians: inf where the curve of the counted
    texts does not come down to 1/2, not-a-number where none of them has a time.
    """
    moments = np.unique(times[~censored])
    events, at_risk = np.zeros((2, total, len(moments)))
    np.add.at(events, (places[~censored], np.searchsorted(moments, times[~censored])), 1.0)
    for place in range(total):
        own = np.sort(times[places == place])
        at_risk[place] = len(own) - np.searchsorted(own, moments, side="left")
    sizes = np.bincount(places, minlength=total).astype(np.float64)
    rows = max(1, BLOCK // max(1, len(moments)))

    def of(counts: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.full(len(counts), np.inf)
        for start in range(0, len(counts), rows):
            block = counts[start : start + rows]
            risk = block @ at_risk
            survival = np.cumprod(1 - (block @ events) / np.where(risk > 0, risk, 1.0), axis=1)
            reached = survival <= HALF
            some = reached.any(axis=1)
            if some.any():
                found[start : start + rows][some] = moments[reached[some].argmax(axis=1)]
        return np.where(counts @ sizes > 0, found, np.nan)

    return of
