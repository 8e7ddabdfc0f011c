"""mlm-drift: how far chains have gone from where they started."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from mlmglauber.commands.shared.filter import Filter, filter_command
from mlmglauber.commands.shared.options import Numbers
from mlmglauber.commands.shared.tables import shown, table_options, write_tables
from mlmglauber.stream.errors import MixedRecordsError, RecordError
from mlmglauber.stream.printable import counted
from mlmglauber.stream.records import Record, chain_key, has_vector, is_input, names_of, told

if TYPE_CHECKING:
    from mlmglauber.commands.drift.reference import References
    from mlmglauber.commands.drift.series import AllSeries
    from mlmglauber.measures.drift.cosine import Vector

EXAMPLES = """\
  mlm-sample --tau 0.5,1,2 --chains 4 passages.txt | mlm-embed | mlm-drift --summary
  mlm-drift --reference previous embedded.jsonl | jq .drift
  mlm-drift --summary --threshold 0.3,0.5 embedded.jsonl | jq 'select(.over == "group")'"""


@filter_command(
    "mlm-drift",
    "Replace `embedding` by `drift`, 1 - cosine similarity to the chain's first record.\n\n"
    "Streams; holds one vector a chain. --summary writes, at the end, one record for each chain, each temperature and "
    "length, and each temperature, and holds 24 bytes a state.",
    EXAMPLES,
)
@click.option("--reference", default="first", show_default=True, metavar="first|previous|FILE",
              help="Drift from the chain's first record, from the one before, or from the embeddings in FILE: "
                   "by id, or for all when there is one.")
@click.option("--summary", is_flag=True, help="Summaries in the place of the records.")
@click.option("--threshold", type=Numbers(0, 2), default="0.5", show_default=True, metavar="D[,D]...",
              help="Drifts whose hitting times the summary tells; a state at D or above is a hit.")
@table_options("summary")
def main(filter: Filter, reference: str, summary: bool, threshold: list[float], table: str) -> None:
    """Records pass one at a time; a record without an embedding passes as it is, or not at all under --summary."""
    fixed = None
    if reference not in ("first", "previous"):
        from mlmglauber.commands.drift.reference import References

        fixed = References(filter, reference)
    chains = _Chains(fixed, reference == "previous")
    kept = _all_series(filter, fixed is not None) if summary else None

    def handle(record: Record) -> None:
        progress(1)
        chains.see(record)
        if has_vector(record):
            key, vector = chains.replace(record)
            if kept is not None:
                kept.add(key, record, vector)
        if kept is None:
            filter.output.write(record)

    with filter.words.bar("records") as progress:
        filter.each(handle)
    if not chains.found:
        filter.lacks("record with an `embedding`", "give what mlm-embed writes", empty=summary)
    elif kept is not None:
        _write_summary(filter, kept, threshold, table)


def _all_series(filter: Filter, fixed: bool) -> "AllSeries":
    from mlmglauber.commands.drift.series import AllSeries

    return AllSeries(filter, fixed)


class _Chains:
    """The reference of each chain, and the one embedder that all records must share."""

    def __init__(self, fixed: "References | None", previous: bool) -> None:
        from mlmglauber.measures.drift.cosine import Reference
        from mlmglauber.stream.vectors import unpack

        self._reference, self._unpack = Reference, unpack
        self._fixed, self._previous = fixed, previous
        self._references: dict[Any, Reference] = {}
        self._embedder: Any = ()
        self._inputs = -1
        self.found = False
        """Whether a record had an embedding."""

    def see(self, record: Record) -> None:
        """Count an input: what has no id is called by its place among them."""
        self._inputs += is_input(record)

    def replace(self, record: Record) -> "tuple[Any, Vector]":
        """Put drift in the place of a record's embedding; the key of its chain, and the embedding."""
        self.found = True
        (embedder,) = names_of(record, "embedder")
        record.pop("embedder", None)
        if self._embedder == ():
            self._embedder = embedder
        if embedder != self._embedder:
            raise MixedRecordsError(f"embeddings of two models ({told(self._embedder)} and {told(embedder)}) have no "
                                    "distance; embed all records with one model")
        vector = self._unpack(record.pop("embedding"))
        key = chain_key(record)
        if self._fixed is not None:
            reference = self._fixed.find(record, self._inputs, embedder)
        else:
            known = self._references.get(key)
            reference = known if known is not None else self._reference(vector)
            if known is None:
                self._references[key] = reference
            elif self._previous:
                self._references[key] = self._reference(vector)
        if len(vector) != len(reference.vector):
            raise RecordError(f"an embedding of {len(vector)} dimensions, its reference has {len(reference.vector)}; "
                              "embed all records with one model")
        drift, reason = reference.drift(vector)
        record["drift"] = drift
        if reason is not None:
            record["drift_reason"] = reason
        return key, vector


def _write_summary(filter: Filter, series: "AllSeries", thresholds: list[float], table: str) -> None:
    from mlmglauber.measures.drift.summary import summarise

    summaries = _watched(filter, summarise(series.all(), thresholds))
    if shown(filter, table):
        from mlmglauber.commands.drift.table import drift_tables

        write_tables(filter, table, drift_tables(list(summaries)))
        return
    for summary in summaries:
        filter.output.write(summary)


def _watched(filter: Filter, summaries: Iterable[Record]) -> Iterator[Record]:
    """The same summaries; a line on standard error for each group whose chains do not all count."""
    for summary in summaries:
        if summary["over"] == "group":
            group = f"tau {summary['tau']}, n {summary['n']}: "
            if (cut := summary["diagnostics"].get("cut")) is not None:
                filter.words.say(group + cut)
            if (left := summary.get("coupled_left_out")) is not None:
                filter.words.say(group + f"{counted(left, 'chain')} left out, coupled with one that counts")
        yield summary


if __name__ == "__main__":
    main()
