"""mlm-couple --summary: reads pair records and writes their summaries."""

from collections.abc import Iterator, Sequence
from typing import Any

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.nullable import nullable
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.measures.meeting.crossover import Crossover, crossovers, trend
from mlmglauber.measures.meeting.summary import GroupMeetings, LagBounds, MeetingScale, of_group, of_temperature
from mlmglauber.measures.meeting.times import Pair, PairKind, grouped
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record, names_of

TOO_FEW = "so few texts, or pairs of one text, leave more than eps open even when all have met"


def summarise_pairs(io: Filter, budgets: list[float], eps: list[float], table: str) -> None:
    """Read all pair records, leave others out, and write their summaries or tables."""
    pairs: dict[Any, Pair] = {}

    def handle(record: Record) -> None:
        progress(1)
        if record.get("type") == "pair":
            key, pair = pair_of(record)
            pairs[key] = pair

    with io.bar("records") as progress:
        io.each(handle)
    if not pairs:
        io.report_missing("pair record", "give what mlm-couple writes without --summary")
    summaries = list(summarise(list(pairs.values()), budgets, eps))
    for summary in summaries:
        if summary.get("lag_to_try") is not None:
            io.reporter.warn(f"tau {summary['tau']:g}, n = {summary['n']}: the bound at t = 0 is "
                             f"{summary['bound'][0]['tv']:.1f}, far above 1; try --lag {summary['lag_to_try']}")
    if shown(io, table):
        from mlmglauber.commands.couple.table import couple_tables

        write_tables(io, table, couple_tables(summaries))
        return
    for summary in summaries:
        io.output.write(summary)


def summarise(pairs: Sequence[Pair], budgets: Sequence[float], eps: Sequence[float]) -> Iterator[Record]:
    """For each kind of pairs: a summary of each (tau, n), of each tau and, for each budget, of each n and of all."""
    for kind, members in grouped(pairs, lambda pair: pair.kind):
        head = {"type": "summary", "of": "pair", **kind._asdict()}
        for (tau, n), group in grouped(members, lambda pair: (pair.tau, pair.n)):
            yield {**head, "over": "group", "tau": tau, "n": n, **group_fields(of_group(group, eps))}
        for tau, group in grouped(members, lambda pair: pair.tau):
            yield {**head, "over": "tau", "tau": tau, **_scale_fields(of_temperature(group))}
        for budget in budgets:
            by_length = crossovers(members, budget)
            for n, crossover in by_length.items():
                yield {**head, "over": "n", "n": n, "budget": budget, **_crossover_fields(crossover)}
            slope = trend(by_length)
            yield {**head, "over": "all", "pairs": len(members), "lengths": list(by_length), "budget": budget,
                   "per_doubling": slope.value, "per_doubling_low": slope.low, "per_doubling_high": slope.high,
                   "trend_reason": slope.reason}


def group_fields(group: GroupMeetings) -> Record:
    """The fields of the pairs of one temperature and length."""
    median = group.median
    return {
        "pairs": group.pairs, "texts": group.texts, "met": group.met, "censored": group.censored,
        "frozen": group.frozen, "median": median.value, "median_low": median.low, "median_high": median.high,
        "median_n_log_n": group.median_n_log_n,
        **nullable("upper_quartile", group.upper_quartile, "over a quarter of the pairs are censored"),
        "reason": "median: over half of the pairs are censored" if median.value is None else median.reason,
        "restricted_mean": group.restricted_mean, "horizon": group.horizon,
        **({} if group.lag is None else _lag_fields(group.lag)),
    }


def _lag_fields(lag: LagBounds) -> Record:
    if lag.bounds is None or lag.mixing is None:
        return {"bound": None, "tmix": None, "bound_reason": lag.reason, "lag_to_try": None}
    return {
        "bound": [{"t": one.t, "tv": one.tv.mean, "tv_error": one.tv.error, "hamming": one.hamming.mean,
                   "hamming_error": one.hamming.error} for one in lag.bounds],
        "tmix": [{"eps": one.eps, "t": one.t, **nullable("t_high", one.t_high, TOO_FEW)} for one in lag.mixing],
        "bound_reason": None, "lag_to_try": lag.lag_to_try,
    }


def _scale_fields(scale: MeetingScale) -> Record:
    growth = scale.growth
    return {"pairs": scale.pairs, "lengths": list(scale.lengths), "c": scale.c.value, "c_low": scale.c.low,
            "c_high": scale.c.high, "c_reason": scale.c.reason, "growth": growth.rate, "growth_low": growth.low,
            "growth_high": growth.high, "growth_p": growth.p, "growth_reason": growth.reason}


def _crossover_fields(crossover: Crossover) -> Record:
    between, interval = crossover.between, crossover.interval()
    return {"crossover": interval.value, "crossover_low": interval.low, "crossover_high": interval.high,
            "crossover_reason": interval.reason, "between": None if between is None else list(between),
            "taus": list(crossover.taus), "late": list(crossover.late)}


def pair_of(record: Record) -> tuple[Any, Pair]:
    """The key of a pair record and its numbers; RecordError for one that mlm-couple did not write."""
    kind = [_need(record, name, of) for name, of in (("model", str), ("coupling", str), ("start", str),
                                                     ("lag", int), ("replicas", int))]
    tau, n = float(_need(record, "tau", (int, float))), _need(record, "n", int)
    run, name, number = names_of(record, "run", "id", "pair")
    lag, limit, changed = kind[3], _need(record, "max_steps", int), _need(record, "last_change", int)
    meeting = record.get("meeting")
    if meeting is None:
        if record.get("censored") is not True:
            raise RecordError('the record has neither "meeting" nor "censored"; give records as mlm-couple wrote them')
    elif not lag <= _need(record, "meeting", int) <= lag + limit:
        raise RecordError(f'"meeting" {meeting} lies outside the steps that were run; give records as mlm-couple '
                          "wrote them")
    sums = record.get("wasserstein")
    if lag and meeting is not None and (not isinstance(sums, list) or not all(type(part) is int for part in sums)):
        raise RecordError('"wasserstein" of a pair with a lag is not a list of integers; give records as mlm-couple '
                          "wrote them")
    steps = None if meeting is None else meeting - lag
    pair = Pair(PairKind(*kind), str(name), tau, n, steps, limit, changed, sums)
    return (run, name, number, tau, n), pair


def _need(record: Record, name: str, kind: Any) -> Any:
    value = record.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise RecordError(f'"{name}" is missing or has another type; give records as mlm-couple wrote them')
    return value
