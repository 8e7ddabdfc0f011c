"""Times that may be censored: how long until something happened, when some were not watched long enough."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Survival(NamedTuple):
    """The Kaplan-Meier curve: S(t) just after each time, and its median with a 95 % interval.

    median, low and high are None where the curve, or its band, does not come down to 1/2.
    """

    times: NDArray[np.float64]
    survival: NDArray[np.float64]
    median: float | None
    low: float | None
    high: float | None

    def restricted_mean(self, horizon: float) -> float:
        """Mean of min(T, horizon): the area below the curve from 0 to the horizon."""
        inside = self.times < horizon
        edges = np.concatenate([[0.0], self.times[inside], [horizon]])
        heights = np.concatenate([[1.0], self.survival[inside]])
        return float((np.diff(edges) * heights).sum())


def kaplan_meier(
    times: Sequence[float] | NDArray[np.float64], censored: Sequence[bool] | NDArray[np.bool_]
) -> Survival:
    """Kaplan-Meier estimate by scipy.stats.ecdf; the band is the exponential Greenwood (log-log) one, at 95 %.

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
        return Survival(np.empty(0), np.empty(0), None, None, None)
    curve = ecdf(CensoredData(uncensored=times[~censored], right=times[censored])).sf
    low = high = None
    if len(times) > 1:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # the band is undefined where S is 0 or 1: _first_below_half knows
            band: Any = curve.confidence_interval(0.95, method="log-log")
        low = _first_below_half(band.low.quantiles, band.low.probabilities)
        high = _first_below_half(band.high.quantiles, band.high.probabilities)
    return Survival(curve.quantiles, curve.probabilities, _first_below_half(curve.quantiles, curve.probabilities),
                    low, high)


def _first_below_half(times: NDArray[np.float64], survival: NDArray[np.float64]) -> float | None:
    """The first time at which a falling curve is at 1/2 or below; not-a-number is not below."""
    with np.errstate(invalid="ignore"):
        below = np.flatnonzero(survival <= 0.5 + 1e-12)
    return float(times[below[0]]) if len(below) else None
