"""mlm-traps find: where the dynamics at tau = 0 leads from each text, and how many texts lead there."""

import numpy as np

from mlmglauber.commands.shared.chain_run import ChainLaw
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import Input, Inputs, texts_at_once
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.commands.traps.margins import (
    basin_fields,
    escape_fields,
    margin_fields,
    repetition_fields,
    state_margins,
    support_fields,
)
from mlmglauber.commands.traps.options import TrapsOptions
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.fixed_points import Ending, descend
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.printable import counted
from mlmglauber.stream.records import Record

Drawn = tuple[ChainLaw, str | None]
"""See ChainRun.drawn."""
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


class _Attractor:
    """One fixed point or cycle, and the texts that lead there."""

    def __init__(self, ending: Ending, text: Input) -> None:
        self.ending, self.text = ending, text
        self.starts: list[str] = []
        self.sweeps: list[int] = []


class FindRun:
    """One run of find; keeps each different attractor and the ids of the texts that lead there until the end."""

    def __init__(self, io: Filter, options: TrapsOptions) -> None:
        self.table, self.least, self.support = options.table, options.basin, options.support
        self.io, self.taus, self.max_sweeps, self.summary = io, options.tau, options.max_sweeps, options.summary
        self.as_table = options.summary and shown(io, options.table)
        self.inputs = Inputs(io, options, options.of_search(), write=self._pass_through)
        self.inputs.summed = options.summary
        self.engines: dict[Drawn, Engine] = {}
        self.attractors: dict[tuple[Drawn, tuple[bytes, ...]], _Attractor] = {}
        self.unfinished = 0

    def _pass_through(self, record: Record) -> None:
        """Write the run record or a record without a text, unless a table is written."""
        if not self.as_table:
            self.io.output.write(record)

    def run(self) -> None:
        """Follow the texts as they arrive; write the attractors at the end of the input."""
        rows = texts_at_once(self.inputs.options)
        with self.io.bar("records") as progress:
            for batch in self.inputs.batches(rows):
                progress.plan(len(batch))
                for drawn, texts in self._by_law(batch).items():
                    engine = self.engines.setdefault(drawn, Engine(texts[0].model))
                    endings = descend(engine, [text.ids for text in texts], self.max_sweeps, drawn[0].freeze)
                    for text, ending in zip(texts, endings, strict=True):
                        with self.io.guard(text.place):
                            self._keep(text, ending)
                progress(len(batch))
        if self.unfinished:
            self.io.reporter.warn(f"{counted(self.unfinished, 'text')} reached no attractor in {self.max_sweeps} "
                                  "sweeps; raise --max-sweeps")
        if self.engines:
            self._write()

    def _by_law(self, batch: list[Input]) -> dict[Drawn, list[Input]]:
        """The texts by what their chains may draw and which sites stay fixed; RecordErrors are reported."""
        groups: dict[Drawn, list[Input]] = {}
        for text in batch:
            with self.io.guard(text.place):
                text.frozen(None)
                groups.setdefault(text.chain.drawn, []).append(text)
        return groups

    def _keep(self, text: Input, ending: Ending) -> None:
        if ending.kind == "not_finite":
            raise RecordError(f"the model's conditional at site {ending.site} is not finite; the text is left out")
        if ending.kind == "unfinished":
            self.unfinished += 1
            return
        key = text.chain.drawn, tuple(state.tobytes() for state in ending.states)
        attractor = self.attractors.setdefault(key, _Attractor(ending, text))
        attractor.starts.append(text.name)
        attractor.sweeps.append(ending.sweeps)

    def _write(self) -> None:
        ordered = sorted(self.attractors.values(), key=lambda attractor: -len(attractor.starts))
        records = [self._record(attractor) for attractor in ordered]
        if self.summary:
            summary = self._summary(records)
            if self.as_table:
                from mlmglauber.commands.traps.table import attractor_tables

                write_tables(self.io, self.table, attractor_tables(summary))
            else:
                self.io.output.write(summary)
            return
        for record in records:
            self.io.output.write(record)

    def _record(self, attractor: _Attractor) -> Record:
        model, law = attractor.text.model, attractor.text.chain.law
        state = tuple(attractor.ending.states[0].tolist())
        record: Record = {"type": "trap", "run": self.inputs.run, "found": attractor.ending.kind, "n": len(state),
                          "text": model.decode(state), "ids": list(state), "basin_count": len(attractor.starts),
                          "starts": attractor.starts, "sweeps": max(attractor.sweeps),
                          **law.restrictions()}
        if attractor.ending.kind == "cycle":
            record |= {"period": len(attractor.ending.states),
                       "cycle": [model.decode(ids.tolist()) for ids in attractor.ending.states]}
        free = attractor.text.chain.free_sites(len(state))
        first, *_ = measured = [state_margins(model, state, tau, free) for tau in self.taus]
        at: list[Record] = [{"tau": tau} | escape_fields(one) for tau, one in zip(self.taus, measured, strict=True)]
        if self.least is not None:
            for one in at:
                one["basin"] = basin_fields(model, state, one["tau"], self.least, free)
        if self.support:
            record |= support_fields(model, state, free, model.rows)
        return record | margin_fields(first) | repetition_fields(state) | {"at": at}

    def _summary(self, records: list[Record]) -> Record:
        kinds = [record["found"] for record in records]
        starts = [record["basin_count"] for record in records]
        known = [r["margin"] for r in records if r["found"] == "fixed_point" and r["margin"] is not None]
        return {"type": "summary", "of": "trap", "over": "starts", "run": self.inputs.run,
                "count": sum(starts) + self.unfinished, "unfinished": self.unfinished,
                "fixed_points": kinds.count("fixed_point"), "cycles": kinds.count("cycle"),
                "largest_basin": max(starts, default=None), "sweeps": max((r["sweeps"] for r in records), default=None),
                "margin": {f"{q:g}": float(np.quantile(known, q)) if known else None for q in QUANTILES}}
