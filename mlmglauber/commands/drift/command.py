"""mlm-drift: how far the embeddings of chains move from a reference."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from mlmglauber.commands.drift.options import DriftOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.option_types import Numbers, Real
from mlmglauber.commands.shared.options import summary_option, table_options
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.stream.errors import MixedRecordsError, RecordError
from mlmglauber.stream.printable import counted
from mlmglauber.stream.records import Record, chain_key, has_vector, is_input, names_of, shown_name

if TYPE_CHECKING:
    from mlmglauber.commands.drift.reference import References
    from mlmglauber.commands.drift.series import AllSeries
    from mlmglauber.measures.drift.cosine import Vector

DESCRIPTION = (
    "Replace `embedding` by `drift`, 1 - cosine similarity to the chain's first record.\n\n"
    "Streams; keeps one vector a chain. --summary writes, at the end, one record for each chain, each temperature and "
    "length, and each temperature, and keeps 24 bytes a state."
)

EXAMPLES = """\
  mlm-sample --tau 0.5,1,2 --chains 4 passages.txt | mlm-embed | mlm-drift --summary
  mlm-drift --reference previous embedded.jsonl | jq .drift
  mlm-drift --summary --threshold 0.3,0.5 embedded.jsonl | jq 'select(.over == "group")'"""

GROUPS = (
    Group("Drift", "reference threshold", "target-se"),
)


@click.option("--reference", default="first", show_default=True, metavar="first|previous|FILE",
              help="Drift from the chain's first record, from the record before, or from an embedding in FILE: that "
                   "of the same id, or the only one.")
@summary_option("Write summaries in place of the records.")
@click.option("--threshold", type=Numbers(0, 2), default="0.5", show_default=True, metavar="D[,D]...",
              help="With --summary, write the hitting times of these drifts; a state at D or above is a hit.")
@click.option("--target-se", type=Real(0, min_open=True), metavar="S",
              help="With --summary, write how many steps of each chain bring mcse_mean of the diagnostics down to S.")
@table_options(summary=True)
def drift(io: Filter, options: DriftOptions) -> None:
    """Answer one record after the other. One without an embedding passes unchanged; --summary leaves it out."""
    if options.target_se is not None and not options.summary:
        raise click.UsageError("--target-se needs --summary")
    fixed = None
    if options.reference not in ("first", "previous"):
        from mlmglauber.commands.drift.reference import References

        fixed = References(io, options.reference)
    chains = _Chains(fixed, options.reference == "previous")
    series = _all_series(io, fixed is not None) if options.summary else None

    def handle(record: Record) -> None:
        progress(1)
        chains.count(record)
        if has_vector(record):
            key, vector = chains.replace(record)
            if series is not None:
                series.add(key, record, vector)
        if series is None:
            io.output.write(record)

    with io.bar("records") as progress:
        io.each(handle)
    if not chains.has_vectors:
        io.report_missing("record with an `embedding`", "give what mlm-embed writes", empty=options.summary)
    elif series is not None:
        _write_summary(io, series, options)


def _all_series(io: Filter, fixed: bool) -> "AllSeries":
    from mlmglauber.commands.drift.series import AllSeries

    return AllSeries(io, fixed)


class _Chains:
    """The reference of each chain, and the embedder that all records must share."""

    def __init__(self, fixed: "References | None", previous: bool) -> None:
        from mlmglauber.measures.drift.cosine import Reference
        from mlmglauber.stream.vectors import unpack

        self._reference, self._unpack = Reference, unpack
        self._fixed, self._previous = fixed, previous
        self._references: dict[Any, Reference] = {}
        self._embedder: Any = ()
        self._inputs = -1
        self.has_vectors = False
        """Whether a record had an embedding."""

    def count(self, record: Record) -> None:
        """Count an input; a record without an id is named by its place among the inputs."""
        self._inputs += is_input(record)

    def replace(self, record: Record) -> "tuple[Any, Vector]":
        """Replace the embedding of a record by its drift; the key of its chain, and the embedding."""
        self.has_vectors = True
        (embedder,) = names_of(record, "embedder")
        record.pop("embedder", None)
        if self._embedder == ():
            self._embedder = embedder
        if embedder != self._embedder:
            first = shown_name(self._embedder)
            raise MixedRecordsError(f"embeddings of two models ({first} and {shown_name(embedder)}) cannot be "
                                    "compared; embed all records with one model")
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
            raise RecordError(f"the embedding has {len(vector)} dimensions, its reference has {len(reference.vector)}; "
                              "embed all records with one model")
        drift, reason = reference.drift(vector)
        record["drift"] = drift
        if reason is not None:
            record["drift_reason"] = reason
        return key, vector


def _write_summary(io: Filter, series: "AllSeries", options: DriftOptions) -> None:
    from mlmglauber.commands.drift.summary import summarise

    summaries = _with_warnings(io, summarise(series.all(), options.threshold, options.target_se))
    if shown(io, options.table):
        from mlmglauber.commands.drift.table import drift_tables

        write_tables(io, options.table, drift_tables(list(summaries)))
        return
    for summary in summaries:
        io.output.write(summary)


def _with_warnings(io: Filter, summaries: Iterable[Record]) -> Iterator[Record]:
    """The same summaries; warns of each group in which chains or steps are left out."""
    for summary in summaries:
        if summary["over"] == "group":
            group = f"tau {summary['tau']}, n {summary['n']}: "
            if (cut := summary["diagnostics"].get("cut")) is not None:
                io.reporter.warn(group + cut)
            if (left := summary.get("coupled_left_out")) is not None:
                io.reporter.warn(group + f"{counted(left, 'chain')} left out of the summary: coupled with one that "
                                         "counts")
        yield summary


main = record_command(drift, DriftOptions, DESCRIPTION, EXAMPLES, GROUPS)

if __name__ == "__main__":
    main()
