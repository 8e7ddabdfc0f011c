"""A run of mlm-basins: gives records the region that they lie in, and keeps the regions for --summary."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.commands.basins.examples import Texts, bad, open_embedder, regions
from mlmglauber.commands.basins.options import BasinsOptions
from mlmglauber.commands.basins.summary import summarise
from mlmglauber.commands.shared.chain_run import ChainRun, check_same_tau
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.measures.regions.chain_visits import RegionSeries, VisitSettings
from mlmglauber.measures.regions.labelling import NO_NAME, Labeller
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import json_kind
from mlmglauber.stream.records import Record, chain_key, has_vector, names_of, shown_name, step_of, tau_and_n
from mlmglauber.stream.vectors import unpack


class Job:
    """What naming and clustering share: the embedder of all records, the run record, the series of each chain."""

    def __init__(self, io: Filter, options: BasinsOptions) -> None:
        self.io, self.options = io, options
        self.names: tuple[str, ...] = ()
        self.draws: NDArray[np.int64] | None = None
        self.head: Record = {}
        self.identity: Any = ()
        self._has_vectors = False
        self._series: dict[Any, RegionSeries] = {}
        self._table = options.summary and shown(io, options.table)

    def add(self, record: Record) -> None:
        """Take in the next record."""
        raise NotImplementedError

    def finish(self) -> None:
        """End the input; --summary writes its summaries here."""
        if not self._has_vectors:
            self.io.report_missing("record with an `embedding`", "give what mlm-embed writes", self.options.summary)
        if not self._series:
            return
        settings = VisitSettings(self.names, self.options.min_visit, self.draws, self.options.start is not None)
        summaries = summarise(list(self._series.values()), settings)
        if self._table:
            from mlmglauber.commands.basins.table import basin_tables

            write_tables(self.io, self.options.table, basin_tables(self.head, list(summaries)))
            return
        for summary in summaries:
            self.io.output.write(summary)

    def _write_head(self, head: Record) -> None:
        """Write the run record, unless a table is written; keep it for the table."""
        self.head = head
        if not self._table:
            self.io.output.write(head)

    def _vector(self, record: Record) -> NDArray[np.float32]:
        """The embedding of a record; it is removed from the record unless --keep-embedding is given."""
        self._has_vectors = True
        (embedder,) = names_of(record, "embedder")
        if self.identity == ():
            self.identity = embedder
        if embedder != self.identity:
            raise bad(f"embeddings of two models ({shown_name(self.identity)} and {shown_name(embedder)}) cannot be "
                      "compared; embed all records with one model")
        vector = unpack(record["embedding"])
        if not self.options.keep_embedding:
            del record["embedding"]
            record.pop("embedder", None)
        return vector

    def _answer(self, record: Record, region: int, p: float | None, reason: str | None) -> None:
        """Write the record with its basin, or keep its basin for the summary."""
        for key in ("basin_reason", "basin_p_reason"):
            record.pop(key, None)
        record["basin"] = None if region == NO_NAME else self.names[region]
        record["basin_p"] = p
        if region == NO_NAME:
            record["basin_reason"] = reason
        if p is None:
            record["basin_p_reason"] = reason
        if self.options.summary:
            self._keep(record, region)
        else:
            self.io.output.write(record)

    def _keep(self, record: Record, region: int) -> None:
        """Add a state to the series of its chain."""
        key = chain_key(record)
        series = self._series.get(key)
        if series is None:
            series = _series(record, self.options.start, self.io.runs.of(record))
        check_same_tau(record, series.tau)
        series.steps.append(step_of(record, series.steps[-1] if series.steps else None))
        self._series[key] = series
        series.regions.append(region)


def _series(record: Record, field: str | None, run: ChainRun) -> RegionSeries:
    tau, n = tau_and_n(record)
    if run.law.schedule is not None:
        tau = None  # it changes; the visits are those of the whole chain
    start = None if field is None else record.get(field)
    if start is not None and not isinstance(start, str):
        raise RecordError(f'"{field}" is {json_kind(start)}, not a string; correct it, or leave --start-field out')
    coupled = record.get("coupled")
    return RegionSeries(record.get("run"), record.get("id"), record.get("chain"), tau, n, start, run.law,
                        bool(run.shows_all), None if coupled is None else str(coupled))


class Naming(Job):
    """Regions by labelled examples, embedded when the first record comes."""

    def __init__(self, io: Filter, options: BasinsOptions) -> None:
        super().__init__(io, options)
        self._labeller: Labeller | None = None
        self._embedders: list[Record] = []
        assert options.examples is not None
        self._examples = Texts(io, options.examples, labelled=True)
        self._drawn = Texts(io, options.draws, labelled=False) if options.draws else None

    def add(self, record: Record) -> None:
        if has_vector(record):
            vector = self._vector(record)
            labeller = self._labeller or self._learn()
            if len(vector) != labeller.weights.shape[1]:
                raise RecordError(f"the embedding has {len(vector)} dimensions, the examples have "
                                  f"{labeller.weights.shape[1]}; embed both with one model")
            self._answer(record, *labeller.label(vector, self.options.reject))
            return
        if record.get("type") == "run" and record.get("command") == "mlm-embed":
            self._embedders.append(record)
        if not self.options.summary:
            self.io.output.write(record)

    def _learn(self) -> Labeller:
        files = [texts for texts in (self._examples, self._drawn) if texts is not None]
        plain = next((texts for texts in files if texts.needs_embedder), None)
        embedder = None
        if plain is not None:
            embedder = open_embedder(self.options, self._embedders, self.identity, plain.path)
        labeller, head = regions(*self._examples.units(embedder, self.identity), self.options, self.identity)
        self.names = labeller.names
        if self._drawn is not None:
            _, units = self._drawn.units(embedder, self.identity)
            if units.shape[1] != labeller.weights.shape[1]:
                raise bad(f"{self._drawn.path}: the embeddings have {units.shape[1]} dimensions, the examples have "
                          f"{labeller.weights.shape[1]}; embed both with one model")
            self.draws = _counts((labeller.label(unit, self.options.reject)[0] for unit in units), len(self.names))
            head["draws"] = dict(zip((*self.names, "unnamed"), self.draws.tolist(), strict=True))
        self._labeller = labeller
        self._write_head(head)
        return labeller


def _counts(drawn: Iterable[int], count: int) -> NDArray[np.int64]:
    """(count + 1,): the number of states in each region and, last, in none."""
    return np.bincount([region % (count + 1) for region in drawn], minlength=count + 1)
