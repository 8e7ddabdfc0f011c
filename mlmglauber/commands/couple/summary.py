"""mlm-couple --summary: reads pair records and writes their summaries."""

from typing import Any

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.measures.meeting.summary import summarise
from mlmglauber.measures.meeting.times import Kind, Pair
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record, names_of


def summarise_pairs(io: Filter, budgets: list[float], eps: list[float], table: str) -> None:
    """Read all pair records, leave others out, and write their summaries or tables."""
    pairs: dict[Any, Pair] = {}

    def handle(record: Record) -> None:
        progress(1)
        if record.get("type") == "pair":
            key, pair = pair_of(record)
            pairs[key] = pair

    with io.reporter.bar("records") as progress:
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
    pair = Pair(Kind(*kind), str(name), tau, n, steps, limit, changed, sums)
    return (run, name, number, tau, n), pair


def _need(record: Record, name: str, kind: Any) -> Any:
    value = record.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise RecordError(f'"{name}" is missing or has another type; give records as mlm-couple wrote them')
    return value
