"""mlm-drift: how far chains have gone from where they started."""

from collections.abc import Callable
from math import nan
from typing import TYPE_CHECKING, Any

import click

from mlmglauber.commands.base import Filter, filter_command
from mlmglauber.commands.options import Numbers
from mlmglauber.commands.tables import shown, table_options, write_tables
from mlmglauber.stream.errors import ExitStatus, MlmError, RecordError
from mlmglauber.stream.records import Record, chain_key, names_of, step_of, tau_and_n

if TYPE_CHECKING:
    from mlmglauber.measures.drift import Reference
    from mlmglauber.measures.drift_summary import Series

EXAMPLES = """\
  mlm-sample --tau 0.5,1,2 --chains 4 passages.txt | mlm-embed | mlm-drift --summary
  mlm-drift --reference previous embedded.jsonl | jq .drift
  mlm-drift --summary --threshold 0.3,0.5 embedded.jsonl | jq 'select(.over == "group")'"""


@filter_command(
    "mlm-drift",
    "Replace `embedding` by `drift`, 1 - cosine similarity to the chain's first record.\n\n"
    "Streams; holds one vector a chain. --summary writes, at the end, one record for each chain, each temperature and "
    "length, and each temperature, and holds 16 bytes a state.",
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
    chains = _Chains(_fixed_references(filter, reference), reference == "previous")
    kept: dict[Any, Series] = {}

    def handle(record: Record) -> None:
        progress(1)
        if "embedding" in record:
            key = chains.replace(record)
            if summary:
                _keep(kept, key, record)
        if not summary:
            filter.output.write(record)

    with filter.words.bar("records") as progress:
        filter.each(handle)
    if kept:
        _write_summary(filter, list(kept.values()), threshold, table)
    elif summary and filter.count:
        filter.words.say("no record has an embedding, which --summary needs; give it what mlm-embed writes")


class _Chains:
    """The reference of each chain, and the one embedder that all records must share."""

    def __init__(self, fixed: "Callable[[Record], Reference] | None", previous: bool) -> None:
        from mlmglauber.measures.drift import Reference
        from mlmglauber.stream.vectors import unpack

        self._reference, self._unpack = Reference, unpack
        self._fixed, self._previous = fixed, previous
        self._references: dict[Any, Reference] = {}
        self._embedder: Any = ()

    def replace(self, record: Record) -> Any:
        """Put drift in the place of a record's embedding; the key of its chain."""
        (embedder,) = names_of(record, "embedder")
        record.pop("embedder", None)
        if self._embedder == ():
            self._embedder = embedder
        if embedder != self._embedder:
            error = MlmError(f"embeddings of two models ({self._embedder} and {embedder}) have no distance; embed all "
                             "records with one model")
            error.status = ExitStatus.BAD_RECORD
            raise error
        vector = self._unpack(record.pop("embedding"))
        key = chain_key(record)
        if self._fixed is not None:
            reference = self._fixed(record)
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
        return key


def _fixed_references(filter: Filter, source: str) -> "Callable[[Record], Reference] | None":
    """The reference of a record by its id, read from a file of embedded records; None for first and previous."""
    if source in ("first", "previous"):
        return None
    from mlmglauber.measures.drift import Reference
    from mlmglauber.stream.vectors import unpack

    references = {}
    other = Filter(filter.words, (source,), filter.strict, filter.output)
    for record in other.records():
        if "embedding" in record:
            with other.guard(other.place):
                references[record.get("id")] = Reference(unpack(record["embedding"]))
    if not references:
        raise MlmError(f"{source}: no record with an embedding; embed the references with mlm-embed")
    only = next(iter(references.values())) if len(references) == 1 else None

    def find(record: Record) -> Reference:
        reference = only or references.get(record.get("id"))
        if reference is None:
            raise RecordError(f"{source} has no reference for the id {record.get('id')!r}; add one")
        return reference

    return find


def _keep(kept: "dict[Any, Series]", key: Any, record: Record) -> None:
    """One state of a chain's series."""
    series = kept.get(key)
    if series is None:
        from mlmglauber.measures.drift_summary import Series

        series = Series(key[0], key[1], key[2], *tau_and_n(record))
    series.steps.append(step_of(record, series.steps[-1] if series.steps else None))
    kept[key] = series
    series.drifts.append(nan if record["drift"] is None else record["drift"])
    series.truncated += bool(record.get("truncated"))


def _write_summary(filter: Filter, series: "list[Series]", thresholds: list[float], table: str) -> None:
    from mlmglauber.measures.drift_summary import summarise

    summaries = summarise(series, thresholds)
    if shown(filter, table):
        from mlmglauber.commands.drift_table import drift_tables

        write_tables(filter, table, drift_tables(list(summaries)))
        return
    for summary in summaries:
        filter.output.write(summary)


if __name__ == "__main__":
    main()
