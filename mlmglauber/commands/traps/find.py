"""mlm-traps --find: where the dynamics at tau = 0 leads from each text, and how many texts lead there."""


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
from mlmglauber.stream.records import Record

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


class _Found:
    """One fixed point or cycle, and the texts that lead there."""

    def __init__(self, ending: Ending, text: Input) -> None:
        self.ending, self.text = ending, text
        self.starts: list[str] = []
        self.sweeps: list[int] = []


class FindRun:
    """One run of --find; holds each different ending, and the ids of the texts that led there, until the end."""

    def __init__(self, io: Filter, options: TrapsOptions) -> None:
        self.table, self.least, self.support = options.table, options.basin, options.support
        self.io, self.taus, self.max_sweeps, self.summary = io, options.tau, options.max_sweeps, options.summary
        self.as_table = options.summary and shown(io, options.table)
        self.inputs = Inputs(io, options, options.of_search(), write=self._pass)
        self.inputs.summed = options.summary
        self.engines: dict[ChainLaw, Engine] = {}
        self.found: dict[tuple[ChainLaw, tuple[bytes, ...]], _Found] = {}
        self.unfinished = 0

    def _pass(self, record: Record) -> None:
        """The run record and records that are no texts; a table has no place for them."""
        if not self.as_table:
            self.io.output.write(record)

    def run(self) -> None:
        """Texts as they come, their endings when all are there."""
        rows = texts_at_once(self.inputs.options)
        with self.io.reporter.bar("records") as progress:
            for batch in self.inputs.batches(rows):
                for law, texts in self._by_law(batch).items():
                    engine = self.engines.setdefault(law, Engine(texts[0].model))
                    endings = descend(engine, [text.ids for text in texts], self.max_sweeps, law.freeze)
                    for text, ending in zip(texts, endings, strict=True):
                        with self.io.guard(text.place):
                            self._keep(text, ending)
                progress(len(batch))
        if self.unfinished:
            self.io.reporter.warn(f"{self.unfinished} texts came to no end in {self.max_sweeps} sweeps; raise "
                                  "--max-sweeps")
        if self.engines:
            self._write()

    def _by_law(self, batch: list[Input]) -> dict[ChainLaw, list[Input]]:
        """The texts, and the states by the law of their chains: what may be drawn, and which sites do not move."""
        found: dict[ChainLaw, list[Input]] = {}
        for text in batch:
            with self.io.guard(text.place):
                text.frozen(None)
                law = ChainLaw(allow=text.chain.law.allow, freeze=text.chain.law.freeze)
                found.setdefault(law, []).append(text)
        return found

    def _keep(self, text: Input, ending: Ending) -> None:
        if ending.kind == "not_finite":
            raise RecordError(f"the model's conditional at site {ending.site} is not finite; the descent ends here")
        if ending.kind == "unfinished":
            self.unfinished += 1
            return
        law = ChainLaw(allow=text.chain.law.allow, freeze=text.chain.law.freeze)
        found = self.found.setdefault((law, tuple(state.tobytes() for state in ending.states)), _Found(ending, text))
        found.starts.append(text.name)
        found.sweeps.append(ending.sweeps)

    def _write(self) -> None:
        ordered = sorted(self.found.values(), key=lambda found: -len(found.starts))
        records = [self._record(found) for found in ordered]
        if self.summary:
            summary = self._summary(records)
            if self.as_table:
                from mlmglauber.commands.traps.table import found_tables

                write_tables(self.io, self.table, found_tables(summary))
            else:
                self.io.output.write(summary)
            return
        for record in records:
            self.io.output.write(record)

    def _record(self, found: _Found) -> Record:
        model, law = found.text.model, found.text.chain.law
        state = tuple(found.ending.states[0].tolist())
        record: Record = {"type": "trap", "run": self.inputs.run, "found": found.ending.kind, "n": len(state),
                          "text": model.decode(state), "ids": list(state), "basin_count": len(found.starts),
                          "starts": found.starts, "sweeps": max(found.sweeps),
                          **law.restrictions()}
        if found.ending.kind == "cycle":
            record |= {"period": len(found.ending.states),
                       "cycle": [model.decode(ids.tolist()) for ids in found.ending.states]}
        free = found.text.chain.free_sites(len(state))
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
