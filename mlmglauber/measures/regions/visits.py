"""Visits of a chain to regions: when each began, how long it lasted, and which region came next."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.regions.labelling import NO_NAME

Steps = NDArray[np.int64]
Regions = NDArray[np.int64]
"""Region of each record, NO_NAME where it has none."""


class Visit(NamedTuple):
    """A visit to one region: its first step, the steps spent there, and whether it ended before the chain did."""

    region: int
    first: int
    dwell: int
    ended: bool


def holds(steps: Steps) -> Steps:
    """(N,) for how many steps each record's state lasts: until the next record; the last one for one step.

    This is exact where the records show every change, otherwise only as exact as their distance.

    >>> holds(np.array([0, 4, 8]))
    array([4, 4, 1])
    """
    return np.diff(steps, append=steps[-1] + 1)


def visits(steps: Steps, regions: Regions, shortest: int = 0) -> list[Visit]:
    """The visits of a chain in order; consecutive ones are to different regions.

    A visit ends with the first record in another region. A state in no region does not end a visit, and its time counts
    for no region: a text that is rejected for a while and then returns has not been elsewhere. Visits of fewer than
    `shortest` steps count as time in no region.

    >>> visits(np.arange(5), np.array([0, 0, -1, 1, 0]))
    [Visit(region=0, first=0, dwell=2, ended=True), Visit(region=1, first=3, dwell=1, ended=True), Visit(region=0, \
first=4, dwell=1, ended=False)]
    """
    times = holds(steps)
    named = np.flatnonzero(regions != NO_NAME)
    stays: list[list[int]] = []  # [region, first, dwell]
    for edges in np.split(named, np.flatnonzero(np.diff(regions[named])) + 1) if len(named) else []:
        region, dwell = int(regions[edges[0]]), int(times[edges].sum())
        if dwell < shortest:
            continue
        if stays and stays[-1][0] == region:  # the visits in between were too short
            stays[-1][2] += dwell
        else:
            stays.append([region, int(steps[edges[0]]), dwell])
    return [Visit(region, first, dwell, k < len(stays) - 1) for k, (region, first, dwell) in enumerate(stays)]


def time_in(steps: Steps, regions: Regions, count: int) -> Steps:
    """(count + 1,) steps spent in each of `count` regions and, last, in none."""
    time = np.zeros(count + 1, dtype=np.int64)
    np.add.at(time, regions, holds(steps))  # NO_NAME is -1, the last place
    return time


def expected_visits(steps: Steps, regions: Regions, count: int, shows_all: bool = False) -> NDArray[np.float64]:
    """Visits to each of `count` regions if the same states came in an order drawn at random: m (M - m + 1) / M.

    m: number of draws in this region, M: in any region. A draw is a record, whatever the distance to the next one;
    where the records show every change, it is a step. This is the mean number of runs of Wald and Wolfowitz (1940): far
    fewer visits than that are the sign of long stays.

    >>> expected_visits(np.array([0, 7, 14, 15]), np.array([0, 1, 0, 1]), 2)
    array([1.5, 1.5])
    """
    draws = time_in(steps, regions, count)[:-1] if shows_all else np.bincount(regions[regions != NO_NAME],
                                                                              minlength=count)
    total = draws.sum()
    return np.asarray(draws * (total - draws + 1) / total if total else np.zeros(count))


def jumps(stays: Sequence[Visit], count: int) -> NDArray[np.int64]:
    """(count, count) number of moves from each region (row) to the next one (column); the diagonal is 0."""
    matrix = np.zeros((count, count), dtype=np.int64)
    for before, after in pairwise(stays):
        matrix[before.region, after.region] += 1
    return matrix


def by_region(stays: Sequence[Visit], count: int) -> NDArray[np.int64]:
    """(count,) number of visits to each region."""
    return np.bincount([stay.region for stay in stays], minlength=count)
