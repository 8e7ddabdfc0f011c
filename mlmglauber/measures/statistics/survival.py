"""Survival analysis of times that may be censored: Kaplan-Meier curves, their quantiles and intervals of medians."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import Interval, Statistic, interval, places_of

BLOCK = 1 << 20
"""Number of array entries that are processed at a time."""
HALF = 0.5 + 1e-12
"""1/2 with a margin for rounding."""


class Survival(NamedTuple):
    """The Kaplan-Meier curve: S(t) just after each time, and its median, None where S stays above 1/2."""

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
    """Kaplan-Meier estimate by scipy.stats.ecdf; median_interval gives the interval of its median.

    times: (N,) the time of the event or, where censored, the time until which it was watched. ValueError for no times.

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
    survival = Survival(curve.quantiles, curve.probabilities, None)
    return survival._replace(median=quantile(survival, 0.5))


def quantile(curve: Survival, q: float) -> float | None:
    """The first time at which the curve is at 1 - q or below; None where it stays above.

    >>> quantile(kaplan_meier([5, 9, 20], [False, False, True]), 0.25)
    5.0
    """
    below = np.flatnonzero(curve.survival <= 1 - q + 1e-12)
    return float(curve.times[below[0]]) if len(below) else None


def median_interval(times: Sequence[float] | NDArray[np.float64], censored: Sequence[bool] | NDArray[np.bool_],
                    texts: Sequence[Hashable]) -> Interval:
    """The Kaplan-Meier median of N times and its 95 % interval over texts; texts: (N,) the text of each time.

    The value is None where the median is not reached; the low end may still be known.

    >>> found = median_interval([5, 9, 20, 7, 8, 30], [False, False, True, False, False, False], "abcdef")
    >>> found.value, round(found.low, 1), found.high
    (8.0, 4.6, None)
    """
    times, censored = np.asarray(times, dtype=np.float64), np.asarray(censored, dtype=bool)
    places, total = places_of(texts)
    return interval(medians(times, censored, places, total), total)


def medians(times: NDArray[np.float64], censored: NDArray[np.bool_], places: NDArray[np.intp],
            total: int) -> Statistic:
    """The Kaplan-Meier median of (N,) times as a function of how often each of `total` texts is counted.

    places: (N,) the index of each time's text. The function takes (R, total) counts and returns (R,) medians: inf where
    the curve of the counted texts stays above 1/2, NaN where none of them has a time.
    """
    moments = np.unique(times[~censored])
    events, at_risk = np.zeros((2, total, len(moments)))
    np.add.at(events, (places[~censored], np.searchsorted(moments, times[~censored])), 1.0)
    for place in range(total):
        times_there = np.sort(times[places == place])
        at_risk[place] = len(times_there) - np.searchsorted(times_there, moments, side="left")
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
