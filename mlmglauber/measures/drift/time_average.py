"""Averages over the second half of a chain's time, each state weighted by the steps for which it lasts.

A chain has a record at every change (mlm-sample --on-change) or at regular steps. In the first case a state
lasts until the next record, and its weight is that number of steps; records at equal distances have equal weights.
"""

import numpy as np
from numpy.typing import NDArray

Steps = NDArray[np.int64]
Values = NDArray[np.float64]


def second_half(steps: Steps, shows_all: bool) -> Values:
    """(N,) weights of a chain's records for averages over the second half of its time.

    steps: (N,) of the records; shows_all: whether the records show every change. The weight of a record is the part of
    the second half for which its state lasts: from its record to the next one. The last state lasts for one step; that
    of records at equal distances lasts as long as the others, and the unit is that distance. So the middle one of an
    odd number of such records has weight 1/2, as in the records of every change.

    >>> second_half(np.array([0, 4, 8, 12]), False), second_half(np.array([0, 2, 100]), True)
    (array([0., 0., 1., 1.]), array([ 0. , 49.5,  1. ]))
    >>> second_half(np.array([0, 1, 2]), True)
    array([0. , 0.5, 1. ])
    """
    gaps = np.diff(steps)
    if len(np.unique(gaps)) <= 1 and not (shows_all and len(gaps) and gaps[0] > 1):
        return np.asarray(np.clip(np.arange(1, len(steps) + 1) - len(steps) / 2, 0.0, 1.0))
    starts = (steps - steps[0]).astype(np.float64)
    ends = np.append(starts[1:], starts[-1] + 1)
    return np.asarray(np.maximum(0.0, ends - np.maximum(starts, ends[-1] / 2)))


def mean(values: Values, weights: Values) -> float | None:
    """The weighted mean of the (N,) values that are defined (not NaN); None where none has a weight above 0.

    >>> mean(np.array([9.0, np.nan, 3.0]), np.array([1.0, 1.0, 2.0]))
    5.0
    """
    weights = np.where(np.isnan(values), 0.0, weights)
    total = weights.sum()
    return float((np.where(weights > 0, values, 0.0) * weights).sum() / total) if total > 0 else None


def quartiles(values: Values, weights: Values) -> list[float] | None:
    """The weighted lower quartile, median and upper quartile of the (N,) values that are defined (not NaN).

    The q-quantile is the smallest value such that values at or below it have a share q of the weight. None where no
    defined value has a weight above 0.

    >>> quartiles(np.array([0.1, 0.9, 0.5]), np.array([8.0, 1.0, 1.0]))
    [0.1, 0.1, 0.1]
    """
    known = ~np.isnan(values) & (weights > 0)
    if not known.any():
        return None
    quantiles = np.quantile(values[known], [0.25, 0.5, 0.75], weights=weights[known], method="inverted_cdf")
    return [float(value) for value in quantiles]
