"""The time at which a series first reaches a threshold, from records that may be some steps apart."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Steps = NDArray[np.int64]
Values = NDArray[np.float64]


class Passage(NamedTuple):
    """The first-passage time in steps, which lies between two records: at_least <= time <= at_most.

    at_least and at_most are None for a series that did not reach the threshold (a censored time). watched: the step, of
    the same count, of the last defined value.
    """

    at_least: int | None
    at_most: int | None
    watched: int


def first_passage(steps: Steps, values: Values, threshold: float, zero: int, shows_all: bool) -> Passage | None:
    """When (N,) values first reach the threshold, in steps after step `zero`; None where no value is defined.

    The time lies after the last record below the threshold and not after the first one at or above it; where the
    records show every change (shows_all), it is the latter. Values that are not defined (NaN) count as not recorded.

    >>> steps = np.array([0, 16, 32, 48])
    >>> first_passage(steps, np.array([0.0, 0.2, 0.7, 0.1]), 0.5, 0, False)
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
