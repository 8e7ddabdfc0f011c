"""The summary records of mlm-basins --summary."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mlmglauber.commands.shared.chain_run import ChainLaw
from mlmglauber.commands.shared.nullable import interval_fields, optional_reason
from mlmglauber.measures.regions.chain_visits import (
    ChainVisits,
    RegionSeries,
    VisitSettings,
    chain_visits,
    region_name,
)
from mlmglauber.measures.regions.summary import (
    Dwell,
    FirstVisit,
    GroupVisits,
    RegionVisits,
    Totals,
    expected_shares,
    of_group,
    of_start,
)
from mlmglauber.measures.statistics.chain_groups import grouped, independent
from mlmglauber.stream.records import Record

NO_BASIN = "the state is in no basin"
NO_VISIT = "no visit"


def summarise(series: Sequence[RegionSeries], settings: VisitSettings) -> Iterator[Record]:
    """A summary for each chain; then, for each (law, tau, n), one for all its chains and one for each start.

    Groups count the first of two coupled chains: once the two have met they are the same chain.
    """
    groups = [(key, [chain_visits(chain, settings) for chain in chains], independent(chains))
              for key, chains in grouped(series, lambda chain: (chain.law, chain.tau, chain.n))]
    for _, every, single in groups:
        totals = Totals(_of(every, single))
        for visits in every:
            yield chain_summary(visits, totals.time_of_others(visits.text), settings)
    for (_, tau, n), every, single in groups:
        members = _of(every, single)
        head = {"tau": tau, "n": n, **_law_fields(members[0])}
        left_out = len(every) - len(members)
        yield group_summary(head, of_group(members, settings), settings) | (
            {"coupled_left_out": left_out} if left_out else {})
        for start in sorted({visits.start for visits in members if visits.start is not None}):
            yield start_summary(head, start, of_start(start, members, settings), settings)


def _of(every: Sequence[ChainVisits], chains: Sequence[RegionSeries]) -> list[ChainVisits]:
    """The visits of some of the chains."""
    wanted = set(map(id, chains))
    return [visits for visits in every if id(visits.series) in wanted]


def _law_fields(visits: ChainVisits) -> Record:
    law = visits.series.law
    return law.fields() if isinstance(law, ChainLaw) else {}


def chain_summary(visits: ChainVisits, others: NDArray[np.int64] | None, settings: VisitSettings) -> Record:
    """Visits of one chain to each basin, the share of its steps there, and where it ended.

    others: (K + 1,) time of the chains of other texts in each basin and, last, in none.
    """
    chain, total = visits.series, int(visits.time.sum())
    expected = expected_shares(others, settings)
    basins = []
    for k, name in enumerate(settings.names):
        stays = [stay for stay in visits.stays if stay.region == k]
        least, most = visits.first_visit(k) or (None, None)
        basins.append({
            "basin": name, "visits": len(stays),
            "visits_expected": None if settings.shortest else float(visits.expected[k]),
            "revisits": max(0, len(stays) - 1), "first_visit": most, "first_visit_at_least": least,
            "longest": max((stay.dwell for stay in stays), default=0),
            "share": float(visits.time[k]) / total, "expected_share": expected.shares[k],
            **optional_reason("first_visit_reason", None if stays else NO_VISIT),
        })
    terminal = region_name(visits.last, settings)
    no_start = "no field names it" if settings.starts_named else NO_BASIN
    return {
        "type": "summary", "of": "basin", "over": "chain", "run": chain.run, "id": chain.text, "chain": chain.chain,
        "tau": chain.tau, "n": chain.n, **_law_fields(visits), "count": len(chain.steps), "steps": total,
        "first_step": chain.steps[0], "start": visits.start, "terminal": terminal,
        "unnamed": float(visits.time[-1]) / total, "expected_from": expected.source, "basins": basins,
        **optional_reason("start_reason", no_start if visits.start is None else None),
        **optional_reason("terminal_reason", NO_BASIN if terminal is None else None),
        **optional_reason("expected_reason", "no other text" if expected.source is None else None),
        **_settings_fields(settings),
    }


def group_summary(head: Record, group: GroupVisits, settings: VisitSettings) -> Record:
    """All chains of a group; head: temperature, length and law."""
    moves = [{"from": settings.names[move.source], "to": settings.names[move.target], "count": move.moves,
              **interval_fields("p", move.share)} for move in group.moves]
    return {"type": "summary", "of": "basin", "over": "group", **_counts(head, group),
            "basins": _basins(group, settings), **_expected(group), **_settings_fields(settings),
            "unnamed": group.unnamed, "transitions": moves}


def start_summary(head: Record, start: str, group: GroupVisits, settings: VisitSettings) -> Record:
    """The chains of a group from one start: a row of the matrix of starts and visited basins."""
    return {"type": "summary", "of": "basin", "over": "start", **_counts(head, group), "start": start,
            "basins": _basins(group, settings), **_expected(group), **_settings_fields(settings),
            "unnamed": group.unnamed, **({} if group.agreeing is None else {"first_agrees": group.agreeing})}


def _counts(head: Record, group: GroupVisits) -> Record:
    return {**head, "chains": group.chains, "texts": group.texts, "count": group.states, "resolution": group.resolution}


def _expected(group: GroupVisits) -> Record:
    return {"expected_from": group.expected_from} | optional_reason(
        "expected_reason", "no other chains" if group.expected_from is None else None)


def _settings_fields(settings: VisitSettings) -> Record:
    return {"visits_expected_reason": "short visits are left out"} if settings.shortest else {}


def _basins(group: GroupVisits, settings: VisitSettings) -> list[Record]:
    return [{"basin": name, **_basin(region, settings)}
            for name, region in zip(settings.names, group.regions, strict=True)]


def _basin(region: RegionVisits, settings: VisitSettings) -> Record:
    record: Record = {"visits": region.visits, "visits_expected": None if settings.shortest else region.expected,
                      "revisits": region.revisits, "expected_share": region.expected_share}
    for name in ("share", "visited", "returned", "terminal", "passed"):
        record |= interval_fields(name, getattr(region, name))
    record |= _first_visit(region.first_visit)
    return record if region.dwell is None else record | _dwell(region.dwell)


def _first_visit(visit: FirstVisit) -> Record:
    reason = NO_VISIT if not visit.visited else "not in half of the chains" if visit.median is None else None
    return {"first_visit": visit.median, "first_visit_at_least": visit.at_least,
            **optional_reason("first_visit_reason", reason)}


def _dwell(dwell: Dwell) -> Record:
    mean: Record = (dict.fromkeys(("dwell_mean", "dwell_mean_low", "dwell_mean_high")) if dwell.mean is None else
                    interval_fields("dwell_mean", dwell.mean))
    reason = None
    if dwell.median is None:
        reason = (NO_VISIT if not dwell.visits else "no visit ended" if not dwell.ended else
                  "median: half of the visits are not known to have ended by any time")
    return {"ended": dwell.ended, "dwell_median": dwell.median, **mean, **optional_reason("dwell_reason", reason)}
