"""How long each state of a record holds: the time by which the second half of a chain is averaged.

The records of a chain stand at every change (mlm-sample --on-change), or at looks some steps apart. At every change a
state holds until the next record, and so it counts; looks at equal distances count alike.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Steps = NDArray[np.int64]
Values = NDArray[np.float64]


def second_half(steps: Steps, shows_all: bool) -> Values:
    """(N,) weights of the records of a chain in the second half of its time.

    steps: (N,) of the records; shows_all: whether they show every change. Looks at equal distances: 0 in the first half
    of them, 1 in the second, where the middle one of an odd number is. Else the steps of the second half of the time
    that each state holds, from its record to the next one, the last one for its own step.

    >>> second_half(np.array([0, 4, 8, 12]), False), second_half(np.array([0, 2, 100]), True)
    (array([0., 0., 1., 1.]), array([ 0. , 49.5,  1. ]))
    """
    gaps = np.diff(steps)
    if len(np.unique(gaps)) <= 1 and not (shows_all and len(gaps) and gaps[0] > 1):
        return np.asarray(np.arange(len(steps)) >= len(steps) // 2, dtype=np.float64)
    starts = (steps - steps[0]).astype(np.float64)
    ends = np.append(starts[1:], starts[-1] + 1)
    return np.asarray(np.maximum(0.0, ends - np.maximum(starts, ends[-1] / 2)))


def mean(values: Values, weights: Values) -> float | None:
    """The weighted mean of (N,) values; undefined ones (not-a-number) are left out, None if nothing is left.

    >>> mean(np.array([9.0, np.nan, 3.0]), np.array([1.0, 1.0, 2.0]))
    5.0
    """
    weights = np.where(np.isnan(values), 0.0, weights)
    total = weights.sum()
    return float((np.where(weights > 0, values, 0.0) * weights).sum() / total) if total > 0 else None


def quartiles(values: Values, weights: Values) -> list[float] | None:
    """Lower quartile, median and upper quartile: the least of (N,) values that has 1/4, 1/2, 3/4 of the weight at or
    below it. Undefined values are left out; None if nothing is left.

    >>> quartiles(np.array([0.1, 0.9, 0.5]), np.array([8.0, 1.0, 1.0]))
    [0.1, 0.1, 0.1]
    """
    known = ~np.isnan(values) & (weights > 0)
    if not known.any():
        return None
    found = np.quantile(values[known], [0.25, 0.5, 0.75], weights=weights[known], method="inverted_cdf")
    return [float(value) for value in found]


class Passage(NamedTuple):
    """When a series first reached a threshold, in steps since its zero: at_least <= time <= at_most.

    Where it did not, it is censored: at_least and at_most are None, and watched says until when it was seen below.
    """

    at_least: int | None
    at_most: int | None
    watched: int


def first_passage(steps: Steps, values: Values, threshold: float, zero: int, shows_all: bool) -> Passage | None:
    """When (N,) values first reach the threshold; None for a series without a defined value.

    What happened between two looks is not seen: the time is in (last look below, first look at or above]. Where the
    records show every change, it is the latter. A value that is not defined (not-a-number) is no look: a series that is
    undefined from some step on was watched to its last defined value.

    >>> looks = np.array([0, 16, 32, 48])
    >>> first_passage(looks, np.array([0.0, 0.2, 0.7, 0.1]), 0.5, 0, False)
    Passage(at_least=17, at_most=32, watched=48)
    """
    defined = np.flatnonzero(~np.isnan(values))
    if not len(defined):
        return None
    watched = int(steps[defined[-1]]) - zero
    above = np.flatnonzero(values[defined] >= threshold)
    if not len(above):
        return Passage(None, None, watched)
    at_most = int(steps[defined[above[0]]]) - zero
    if above[0] == 0:
        return Passage(0, at_most, watched)
    return Passage(at_most if shows_all else int(steps[defined[above[0] - 1]]) - zero + 1, at_most, watched)
