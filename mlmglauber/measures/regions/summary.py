"""Visits of many chains to regions: shares with intervals over texts, first visits, dwell times and moves."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.regions.chain_visits import ChainVisits, VisitSettings, region_name
from mlmglauber.measures.statistics.intervals import Interval, Ratio, ratio
from mlmglauber.measures.statistics.survival import kaplan_meier


class ExpectedShares(NamedTuple):
    """(K,) the share of each region among independent draws; source: "draws", "others" (chains), None for unknown."""

    shares: Sequence[float | None]
    source: str | None


class FirstVisit(NamedTuple):
    """Kaplan-Meier median, over chains, of the steps from the first record to the first visit, and its lower bound.

    visited: whether any chain visited the region.
    """

    median: float | None
    at_least: float | None
    visited: bool


class Dwell(NamedTuple):
    """Steps of a visit to one region, over `visits` visits, of which `ended` ended before their chain did.

    median: Kaplan-Meier median, None where it is not reached. mean: steps in the region for each visit that ended, with
    its 95 % interval over texts; None where no visit ended.
    """

    visits: int
    ended: int
    median: float | None
    mean: Interval | None


class RegionVisits(NamedTuple):
    """The visits of a group of chains to one region.

    expected: visits that the same states would make in random order. share: of steps. visited, returned, terminal,
    passed: shares of chains that were there, came a second time, ended there, were there but ended elsewhere; each with
    its 95 % interval over texts. dwell: None where it is not asked for.
    """

    visits: int
    expected: float
    revisits: int
    expected_share: float | None
    share: Interval
    visited: Interval
    returned: Interval
    terminal: Interval
    passed: Interval
    first_visit: FirstVisit
    dwell: Dwell | None


class RegionMove(NamedTuple):
    """Moves from one region to another: the two indices, the number of moves, and their share of all from there."""

    source: int
    target: int
    moves: int
    share: Interval


class GroupVisits(NamedTuple):
    """A group of chains: `states` records of `texts` texts; resolution: largest number of steps between two records.

    unnamed: share of the steps in no region. agreeing: share of the chains whose first state is in the region of their
    name; None where starts have no names of their own or the group has several.
    """

    chains: int
    texts: int
    states: int
    resolution: int
    regions: Sequence[RegionVisits]
    expected_from: str | None
    unnamed: float
    moves: Sequence[RegionMove]
    agreeing: float | None = None


def expected_shares(others: NDArray[np.int64] | None, settings: VisitSettings) -> ExpectedShares:
    """What independent draws would have: the draws of the settings or, without any, the time of other chains."""
    counts = settings.draws if settings.draws is not None else others
    if counts is None:
        return ExpectedShares([None] * len(settings.names), None)
    return ExpectedShares([float(part) for part in counts[:-1] / counts.sum()],
                          "draws" if settings.draws is not None else "others")


def of_group(members: Sequence[ChainVisits], settings: VisitSettings) -> GroupVisits:
    """The chains of one law, temperature and length, with dwell times and moves."""
    totals = Totals(members)
    expected = expected_shares(None, settings)
    return _group(totals, _regions(totals, expected, dwells=True), expected, _moves(totals))


def of_start(start: str, members: Sequence[ChainVisits], settings: VisitSettings) -> GroupVisits:
    """The chains of a group from one start; without draws, the chains from other starts give the expected shares."""
    mine = [chain for chain in members if chain.start == start]
    elsewhere = [chain.time for chain in members if chain.start != start]
    expected = expected_shares(np.sum(elsewhere, axis=0) if elsewhere else None, settings)
    totals = Totals(mine)
    group = _group(totals, _regions(totals, expected, dwells=False), expected, ())
    if not settings.starts_named:
        return group
    return group._replace(agreeing=float(np.mean([region_name(chain.first, settings) == start for chain in mine])))


def _group(totals: "Totals", regions: Sequence[RegionVisits], expected: ExpectedShares,
           moves: Sequence[RegionMove]) -> GroupVisits:
    members = totals.members
    return GroupVisits(len(members), totals.texts, sum(len(chain.series.steps) for chain in members),
                       max(chain.resolution for chain in members), regions, expected.source, float(totals.unnamed),
                       moves)


class Totals:
    """Sums over the chains of each text, (T, ...), from which ratios and their intervals over texts are computed."""

    def __init__(self, members: Sequence[ChainVisits]) -> None:
        self._rows = {text: k for k, text in enumerate(dict.fromkeys(chain.text for chain in members))}
        self._row_of = [self._rows[chain.text] for chain in members]
        self.members, self.texts = members, len(self._rows)
        self.chains = self.by_text([np.array([1]) for _ in members])
        self.time = self.by_text([chain.time for chain in members])
        self.steps = self.time.sum(axis=1, keepdims=True)
        self.unnamed = self.time[:, -1].sum() / self.steps.sum()

    def by_text(self, values: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        """(T, ...) sums, over the chains of each text, of one array (...) for each chain."""
        total = np.zeros((self.texts, *values[0].shape), dtype=np.int64)
        np.add.at(total, self._row_of, np.array(values))
        return total

    def time_of_others(self, text: str) -> NDArray[np.int64] | None:
        """(K + 1,) time in each region over the chains of other texts; None where there is no other text."""
        others = np.delete(self.time, self._rows[text], axis=0)
        return others.sum(axis=0) if len(others) else None

    def share_of_chains(self, values: Sequence[NDArray[Any]]) -> Ratio:
        """The share of chains for which (K,) conditions hold, for each region."""
        return ratio(self.by_text(values), self.chains, "share")


def _regions(totals: Totals, expected: ExpectedShares, dwells: bool) -> list[RegionVisits]:
    members, count = totals.members, len(expected.shares)
    last = [np.arange(count) == chain.last for chain in members]
    shares = (
        ratio(totals.time[:, :-1], totals.steps, "share"),
        totals.share_of_chains([chain.visits > 0 for chain in members]),
        totals.share_of_chains([chain.visits > 1 for chain in members]),
        totals.share_of_chains(last),
        totals.share_of_chains([(chain.visits > 0) & ~at for chain, at in zip(members, last, strict=True)]),
    )
    visits = np.sum([chain.visits for chain in members], axis=0)
    expected_visits = np.sum([chain.expected for chain in members], axis=0)
    regions = []
    for k in range(count):
        share, visited, returned, terminal, passed = (part.at(k) for part in shares)
        revisits = int(sum(max(0, chain.visits[k] - 1) for chain in members))
        regions.append(RegionVisits(int(visits[k]), float(expected_visits[k]), revisits, expected.shares[k], share,
                                  visited, returned, terminal, passed, _first_visit(members, k),
                                  _dwell(totals, k) if dwells else None))
    return regions


def _first_visit(members: Sequence[ChainVisits], region: int) -> FirstVisit:
    firsts = [chain.first_visit(region) for chain in members]
    censored = [first is None for first in firsts]
    if all(censored):
        return FirstVisit(None, None, False)
    ends = [first or (chain.series.steps[-1] - chain.series.steps[0],) * 2
            for chain, first in zip(members, firsts, strict=True)]
    least, most = (kaplan_meier([end[k] for end in ends], censored).median for k in (0, 1))
    return FirstVisit(most, least, True)


def _dwell(totals: Totals, region: int) -> Dwell:
    mine = [[visit for visit in chain.stays if visit.region == region] for chain in totals.members]
    every = [visit for stays in mine for visit in stays]
    ended = sum(visit.ended for visit in every)
    if not every:
        return Dwell(0, 0, None, None)
    median = kaplan_meier([visit.dwell for visit in every], [not visit.ended for visit in every]).median
    time = totals.by_text([np.array(sum(visit.dwell for visit in stays)) for stays in mine])
    ends = totals.by_text([np.array(sum(visit.ended for visit in stays)) for stays in mine])
    return Dwell(len(every), ended, median, ratio(time[:, None], ends[:, None]).at(0) if ended else None)


def _moves(totals: Totals) -> list[RegionMove]:
    """The moves from each region that was left to every other region."""
    counts = totals.by_text([chain.jumps for chain in totals.members])
    shares = ratio(counts, counts.sum(axis=2, keepdims=True), "share")
    total = counts.sum(axis=0)
    pairs = np.argwhere(total.any(axis=1)[:, None] & ~np.eye(len(total), dtype=bool)).tolist()
    return [RegionMove(a, b, int(total[a, b]), shares.at((a, b))) for a, b in pairs]
