"""The visits of one chain to regions of embedding space, from the region of each of its states."""

from array import array
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.regions.labelling import NO_NAME
from mlmglauber.measures.regions.visits import Visit, by_region, expected_visits, jumps, time_in, visits


@dataclass(slots=True)
class RegionSeries:
    """The states of one chain: step and region of each, NO_NAME for a state in no region. 10 bytes a state.

    start: the name of what the chain started from, where a field of its records gives it. law: equal for chains that
    may be summarised together. shows_all: whether the records show every change. coupled: for a chain of a coupled
    pair, the text that the pair was made from.
    """

    run: str | None
    text: str | None
    chain: int | None
    tau: float | None
    n: int | None
    start: str | None = None
    law: Hashable = None
    shows_all: bool = False
    coupled: str | None = None
    steps: "array[int]" = field(default_factory=lambda: array("q"))
    regions: "array[int]" = field(default_factory=lambda: array("h"))

    def times(self) -> NDArray[np.int64]:
        """(N,) steps of the records."""
        return np.frombuffer(self.steps, dtype=np.int64)


class VisitSettings(NamedTuple):
    """How visits are counted, the same for all chains.

    names: of the K regions. shortest: minimum number of steps of a visit that counts. draws: (K + 1,) numbers of
    independent draws in each region and, last, in none; None without draws. starts_named: whether a field of the
    records names what a chain started from; otherwise its start is the region of its first state.
    """

    names: Sequence[str]
    shortest: int
    draws: NDArray[np.int64] | None
    starts_named: bool


class ChainVisits(NamedTuple):
    """The visits of one chain to K regions.

    stays: its visits in order. time: (K + 1,) steps in each region and, last, in none. visits: (K,) numbers of visits.
    jumps: (K, K) numbers of moves. expected: (K,) visits that the same states would make in random order. first, last:
    regions of the first and the last state, NO_NAME for none.
    """

    series: RegionSeries
    start: str | None
    stays: list[Visit]
    time: NDArray[np.int64]
    visits: NDArray[np.int64]
    jumps: NDArray[np.int64]
    expected: NDArray[np.float64]
    first: int
    last: int

    @property
    def text(self) -> str:
        """The text that the chain depends on: all pairs that are made from one text share it."""
        return str(self.series.text if self.series.coupled is None else self.series.coupled)

    @property
    def resolution(self) -> int:
        """The largest number of steps from one record to the next; 1 where the records show every change."""
        return 1 if self.series.shows_all else int(np.diff(self.series.times()).max(initial=1))

    def first_visit(self, region: int) -> tuple[int, int] | None:
        """Steps from the first record to the first visit, as (at least, at most); None without a visit.

        The chain may have entered the region at any step after the record before the visit.
        """
        visit = next((visit for visit in self.stays if visit.region == region), None)
        if visit is None:
            return None
        steps = self.series.times()
        place = int(np.searchsorted(steps, visit.first))
        most = visit.first - int(steps[0])
        return (most if self.series.shows_all or not place else int(steps[place - 1] - steps[0]) + 1), most


def chain_visits(chain: RegionSeries, settings: VisitSettings) -> ChainVisits:
    """The visits of one chain."""
    steps, count = chain.times(), len(settings.names)
    regions = np.frombuffer(chain.regions, dtype=np.int16).astype(np.int64)
    stays = visits(steps, regions, settings.shortest)
    time = time_in(steps, regions, count)
    first, last = int(regions[0]), int(regions[-1])
    start = chain.start if settings.starts_named else region_name(first, settings)
    return ChainVisits(chain, start, stays, time, by_region(stays, count), jumps(stays, count),
                       expected_visits(steps, regions, count, chain.shows_all), first, last)


def region_name(region: int, settings: VisitSettings) -> str | None:
    """The name of a region; None for NO_NAME."""
    return None if region == NO_NAME else settings.names[region]
