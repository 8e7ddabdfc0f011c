"""What many chains say together of regions: each chain, each temperature and length, each start in it."""

from array import array
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.regions.labelling import NO_NAME
from mlmglauber.measures.regions.visits import Visit, by_region, expected_visits, holds, jumps, time_in, visits
from mlmglauber.measures.statistics.intervals import Ratio, ratio
from mlmglauber.measures.statistics.survival import kaplan_meier

Summary = dict[str, Any]

NO_BASIN = "the state is in no basin"
NO_VISIT = "no visit"
SHORT = {"visits_expected_reason": "short visits are left out"}


@dataclass(slots=True)
class Series:
    """The regions of one chain: step and region of each record, NO_NAME for none; 10 bytes a state.

    start: what the chain started from, where a field of its records says so. law, told: what chains that are put
    together share, and the fields that tell of it. shows_all: whether the records show every change. coupled: of a pair
    of coupled chains, the start that the pair was made from.
    """

    run: str | None
    text: str | None
    chain: int | None
    tau: float | None
    n: int | None
    start: str | None = None
    law: Hashable = None
    told: Mapping[str, Any] = field(default_factory=dict)
    shows_all: bool = False
    coupled: str | None = None
    steps: "array[int]" = field(default_factory=lambda: array("q"))
    regions: "array[int]" = field(default_factory=lambda: array("h"))


class Plan(NamedTuple):
    """What is asked of all chains: names (K,) of the regions; shortest visit that counts, in steps; draws (K + 1,),
    the regions of independent draws counted, last those in none, or None; whether starts are told by a field.
    """

    names: Sequence[str]
    shortest: int
    draws: NDArray[np.int64] | None
    told: bool


class Stay(NamedTuple):
    """One chain, worked out. time (K + 1,), visits (K,), jumps (K, K), expected visits (K,) or None, first and last
    region.
    """

    series: Series
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
        return str(self.series.text if self.series.coupled is None else self.series.coupled)

    def first_visit(self, region: int) -> tuple[int, int] | None:
        """Steps from the first record to the first visit: at least, at most. Between two records nothing is seen."""
        visit = next((visit for visit in self.stays if visit.region == region), None)
        if visit is None:
            return None
        steps = np.frombuffer(self.series.steps, dtype=np.int64)
        place = int(np.searchsorted(steps, visit.first))
        most = visit.first - int(steps[0])
        return (most if self.series.shows_all or not place else int(steps[place - 1] - steps[0]) + 1), most


def summarise(series: Sequence[Series], plan: Plan) -> Iterator[Summary]:
    """A summary for each chain; then, for each (law, tau, n), one for all its chains and one for each start.

    Of two coupled chains the first one counts in what is said of many: after they meet they are the same chain.
    """
    groups: dict[Any, list[Stay]] = {}
    for chain in series:
        groups.setdefault((chain.law, chain.tau, chain.n), []).append(_worked_out(chain, plan))
    laws = {law: place for place, law in enumerate(dict.fromkeys(law for law, _, _ in groups))}
    ordered = sorted(groups.items(), key=lambda item: (laws[item[0][0]],
                                                       *((part is None, part or 0) for part in item[0][1:])))
    for _, every in ordered:
        texts = Totals(_independent(every))
        for stay in every:
            yield of_chain(stay, texts.time_of_others(stay.text), plan)
    for (_, tau, n), every in ordered:
        members = _independent(every)
        yield of_group(tau, n, members, plan) | (
            {"coupled_left_out": len(every) - len(members)} if len(members) < len(every) else {})
        for start in sorted({stay.start for stay in members if stay.start is not None}):
            yield of_start(tau, n, start, members, plan)


def _independent(stays: Sequence[Stay]) -> list[Stay]:
    """The chains that are independent of each other: of those coupled in a pair, the first."""
    found: dict[Hashable, Stay] = {}
    for place, stay in enumerate(stays):
        chain = stay.series
        found.setdefault(place if chain.coupled is None else (chain.run, chain.text), stay)
    return list(found.values())


def _worked_out(chain: Series, plan: Plan) -> Stay:
    steps = np.frombuffer(chain.steps, dtype=np.int64)
    regions = np.frombuffer(chain.regions, dtype=np.int16).astype(np.int64)
    count = len(plan.names)
    stays = visits(steps, regions, plan.shortest)
    time = time_in(steps, regions, count)
    first, last = int(regions[0]), int(regions[-1])
    start = chain.start if plan.told else _name(first, plan)
    return Stay(chain, start, stays, time, by_region(stays, count), jumps(stays, count),
                expected_visits(steps, time, chain.shows_all), first, last)


def _name(region: int, plan: Plan) -> str | None:
    return None if region == NO_NAME else plan.names[region]


def _expected(others: NDArray[np.int64] | None, plan: Plan) -> tuple[list[float | None], str | None]:
    """The share of each region that independent draws would have, and what these draws are."""
    counts = plan.draws if plan.draws is not None else others
    if counts is None:
        return [None] * len(plan.names), None
    return [float(part) for part in counts[:-1] / counts.sum()], "draws" if plan.draws is not None else "others"


def of_chain(stay: Stay, others: NDArray[np.int64] | None, plan: Plan) -> Summary:
    """Visits of one chain to each region, the share of its steps there, and where it ended."""
    chain, total = stay.series, int(stay.time.sum())
    shares, source = _expected(others, plan)
    regions = []
    for k, name in enumerate(plan.names):
        mine = [visit for visit in stay.stays if visit.region == k]
        least, most = stay.first_visit(k) or (None, None)
        regions.append({
            "basin": name, "visits": len(mine),
            "visits_expected": None if plan.shortest else float(stay.expected[k]),
            "revisits": max(0, len(mine) - 1), "first_visit": most, "first_visit_at_least": least,
            "longest": max((visit.dwell for visit in mine), default=0),
            "share": float(stay.time[k]) / total, "expected_share": shares[k],
        } | ({} if mine else {"first_visit_reason": NO_VISIT}))
    summary: Summary = {
        "type": "summary", "of": "basin", "over": "chain", "run": chain.run, "id": chain.text, "chain": chain.chain,
        "tau": chain.tau, "n": chain.n, **chain.told, "count": len(chain.steps), "steps": total,
        "first_step": chain.steps[0], "start": stay.start,
        "terminal": _name(stay.last, plan), "unnamed": float(stay.time[-1]) / total, "expected_from": source,
        "basins": regions,
    }
    reasons = {
        "start_reason": ("no field names it" if plan.told else NO_BASIN) if stay.start is None else None,
        "terminal_reason": NO_BASIN if stay.last == NO_NAME else None,
        "expected_reason": "no other text" if source is None else None,
    }
    return summary | {key: reason for key, reason in reasons.items() if reason is not None} | _of_plan(plan)


def of_group(tau: float | None, n: int | None, members: Sequence[Stay], plan: Plan) -> Summary:
    """All chains of one temperature and length: shares, dwell times, and where a chain goes from each region."""
    totals = Totals(members)
    return {**_head("group", tau, n, members), "basins": _regions(totals, plan, None, dwells=True),
            **_expected_from(None, plan), **_of_plan(plan), "unnamed": float(totals.unnamed),
            "transitions": _transitions(totals, plan)}


def of_start(tau: float | None, n: int | None, start: str, members: Sequence[Stay], plan: Plan) -> Summary:
    """One row of the start x visited matrix: the chains from one start, against those from the others."""
    mine = [stay for stay in members if stay.start == start]
    elsewhere = [stay.time for stay in members if stay.start != start]
    others = np.sum(elsewhere, axis=0) if elsewhere else None
    totals = Totals(mine)
    summary = {**_head("start", tau, n, mine), "start": start, "basins": _regions(totals, plan, others, dwells=False),
               **_expected_from(others, plan), **_of_plan(plan), "unnamed": float(totals.unnamed)}
    if plan.told:
        agreed = [_name(stay.first, plan) == start for stay in mine]
        summary["first_agrees"] = float(np.mean(agreed))
    return summary


def _of_plan(plan: Plan) -> Summary:
    return SHORT if plan.shortest else {}


def _head(over: str, tau: float | None, n: int | None, members: Sequence[Stay]) -> Summary:
    gaps = [1 if stay.series.shows_all else int(holds(np.frombuffer(stay.series.steps, dtype=np.int64)).max())
            for stay in members]
    return {"type": "summary", "of": "basin", "over": over, "tau": tau, "n": n, **members[0].series.told,
            "chains": len(members),
            "texts": len({stay.text for stay in members}), "count": sum(len(stay.series.steps) for stay in members),
            "resolution": max(gaps)}


def _expected_from(others: NDArray[np.int64] | None, plan: Plan) -> Summary:
    _, source = _expected(others, plan)
    return {"expected_from": source} | ({"expected_reason": "no other chains"} if source is None else {})


class Totals:
    """Sums over the chains of each text, (T, ...): what the ratios and their intervals are made of."""

    def __init__(self, members: Sequence[Stay]) -> None:
        self._texts = {text: k for k, text in enumerate(dict.fromkeys(stay.text for stay in members))}
        self._place = [self._texts[stay.text] for stay in members]
        self.members = members
        self.chains = self.by_text([np.array([1]) for _ in members])
        self.time = self.by_text([stay.time for stay in members])
        self.steps = self.time.sum(axis=1, keepdims=True)
        self.unnamed = self.time[:, -1].sum() / self.steps.sum()

    def by_text(self, values: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        """Sums of what each chain has, (T, ...)."""
        total = np.zeros((len(self._texts), *values[0].shape), dtype=np.int64)
        np.add.at(total, self._place, np.array(values))
        return total

    def time_of_others(self, text: str) -> NDArray[np.int64] | None:
        """Time in each region over the chains of other texts; None where there is no other."""
        others = np.delete(self.time, self._texts[text], axis=0)
        return others.sum(axis=0) if len(others) else None

    def of_chains(self, values: Sequence[NDArray[Any]]) -> Ratio:
        """The share of chains for which something holds, for each region."""
        return ratio(self.by_text(values), self.chains, "share")


def _regions(totals: Totals, plan: Plan, others: NDArray[np.int64] | None, dwells: bool) -> list[Summary]:
    members, count = totals.members, len(plan.names)
    last = [np.arange(count) == stay.last for stay in members]
    figures = {
        "share": ratio(totals.time[:, :-1], totals.steps, "share"),
        "visited": totals.of_chains([stay.visits > 0 for stay in members]),
        "returned": totals.of_chains([stay.visits > 1 for stay in members]),
        "terminal": totals.of_chains(last),
        "passed": totals.of_chains([(stay.visits > 0) & ~at for stay, at in zip(members, last, strict=True)]),
    }
    shares, _ = _expected(others, plan)
    counted = np.sum([stay.visits for stay in members], axis=0)
    expected = np.sum([stay.expected for stay in members], axis=0)
    rows = []
    for k, name in enumerate(plan.names):
        row: Summary = {"basin": name, "visits": int(counted[k]),
                        "visits_expected": None if plan.shortest else float(expected[k]),
                        "revisits": int(sum(max(0, stay.visits[k] - 1) for stay in members)),
                        "expected_share": shares[k]}
        for figure, found in figures.items():
            row |= _interval(figure, found, k)
        row |= _first_visit(members, k)
        rows.append(row | _dwell(totals, k) if dwells else row)
    return rows


def _interval(name: str, found: Ratio, place: Any) -> Summary:
    value, low, high, reason = found.at(place)
    told = {name: value, f"{name}_low": low, f"{name}_high": high}
    return told if reason is None else told | {f"{name}_reason": reason}


def _first_visit(members: Sequence[Stay], region: int) -> Summary:
    """The Kaplan-Meier median, over chains, of the steps from the first record to the first visit, and its least."""
    firsts = [stay.first_visit(region) for stay in members]
    censored = [first is None for first in firsts]
    if all(censored):
        return {"first_visit": None, "first_visit_at_least": None, "first_visit_reason": NO_VISIT}
    ends = [first or (stay.series.steps[-1] - stay.series.steps[0],) * 2
            for stay, first in zip(members, firsts, strict=True)]
    least, most = (kaplan_meier([end[k] for end in ends], censored).median for k in (0, 1))
    told = {"first_visit": most, "first_visit_at_least": least}
    return told | ({"first_visit_reason": "not in half of the chains"} if most is None else {})


def _dwell(totals: Totals, region: int) -> Summary:
    """The Kaplan-Meier median of stays in a region, and their mean: steps there for each stay that ended."""
    mine = [[visit for visit in stay.stays if visit.region == region] for stay in totals.members]
    every = [visit for stays in mine for visit in stays]
    ended = sum(visit.ended for visit in every)
    nothing: Summary = dict.fromkeys(("dwell_mean", "dwell_mean_low", "dwell_mean_high"))
    if not every:
        return {"ended": 0, "dwell_median": None, **nothing, "dwell_reason": NO_VISIT}
    median = kaplan_meier([visit.dwell for visit in every], [not visit.ended for visit in every]).median
    time = totals.by_text([np.array(sum(visit.dwell for visit in stays)) for stays in mine])
    ends = totals.by_text([np.array(sum(visit.ended for visit in stays)) for stays in mine])
    found = ratio(time[:, None], ends[:, None])
    mean = _interval("dwell_mean", found, 0) if ended else nothing
    reason = "no visit ended" if not ended else "median: half of the visits are not known to have ended by any time"
    return {"ended": ended, "dwell_median": median, **mean, **({"dwell_reason": reason} if median is None else {})}


def _transitions(totals: Totals, plan: Plan) -> list[Summary]:
    """Each move from a region that was left: how often, and the share of the moves from there."""
    moves = totals.by_text([stay.jumps for stay in totals.members])
    found = ratio(moves, moves.sum(axis=2, keepdims=True), "share")
    counts = moves.sum(axis=0)
    rows = []
    for a, b in np.argwhere(counts.any(axis=1)[:, None] & ~np.eye(len(counts), dtype=bool)).tolist():
        rows.append({"from": plan.names[a], "to": plan.names[b], "count": int(counts[a, b]),
                     **_interval("p", found, (a, b))})
    return rows
