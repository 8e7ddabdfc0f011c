"""A run of mlm-influence: contexts are changed, compared, and written as records or kept for the summary."""

from functools import partial
from typing import Any

import numpy as np

from mlmglauber.commands.influence.options import InfluenceOptions
from mlmglauber.commands.influence.records import InfluenceTally, context_fields
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import Input, Inputs, text_exact
from mlmglauber.commands.shared.progress import Progress
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.dynamics.glauber import NotFiniteError
from mlmglauber.dynamics.randomness import Stream, drawn_seed
from mlmglauber.measures.influence.context import Advance, Compared, ascend, check_rows, compare
from mlmglauber.measures.influence.replacements import Ascent, draw_changes
from mlmglauber.measures.traps.margins import Margins, margins, site_rows
from mlmglauber.models.conditionals import Floats, Ids
from mlmglauber.models.head_bound import HeadBound, head_bound
from mlmglauber.models.words import split_words
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record

BATCH = 16
"""Maximum number of texts that are read together."""


class InfluenceRun:
    """One run of mlm-influence."""

    def __init__(self, io: Filter, options: InfluenceOptions) -> None:
        self.io, self.options = io, options
        self.seed = drawn_seed() if options.seed is None else options.seed
        self.inputs = Inputs(io, options, options.in_run_record(), self.seed, write=self._pass_through)
        self.inputs.summed = options.summary
        self.tally = InfluenceTally(options)
        self.as_table = options.summary and shown(io, options.table)
        self._head: HeadBound | None = None
        self.vectors: Any = None
        self.done = 0.0

    def run(self) -> None:
        """Answer every text; with --summary write the summaries at the end."""
        with self.io.bar("conditionals") as progress:
            for batch in self.inputs.batches(BATCH):
                progress.plan(sum(map(self.most_rows, batch)))
                for text in batch:
                    self.done = 0.0
                    with self.io.guard(text.place):
                        self.answer(text, partial(self._advance, progress))
                    progress(self.most_rows(text) - self.done)  # equal replacements were computed once
                    self.io.output.flush()
        if self.options.summary:
            with self.io.reporter.bar("temperatures") as progress:
                summaries = list(self.tally.summaries(self.inputs.run, self._head, progress))
            if self.as_table:
                from mlmglauber.commands.influence.table import influence_tables

                write_tables(self.io, self.options.table, influence_tables(summaries))
                return
            for record in summaries:
                self.io.output.write(record)

    def _advance(self, progress: Progress, rows: float) -> None:
        self.done += rows
        progress(rows)
        progress.made = (progress.made or 0) + rows

    def most_rows(self, text: Input) -> int:
        """Maximum number of conditionals of one text."""
        n = len(text.ids) - len({*(self.options.freeze or []), *text.chain.law.freeze})
        return int(max(0, n * (1 + (n - 1) * self.options.replacements)))

    def _pass_through(self, record: Record) -> None:
        """Write the run record and records without a text; --summary leaves the latter out."""
        ours = record["type"] == "run" and record.get("run") == self.inputs.run
        if not self.options.summary or (ours and not self.as_table):
            self.io.output.write(record)

    def answer(self, text: Input, progress: Advance) -> None:
        """Answer one text. progress: called with each number of conditionals that are computed."""
        model, options = text.model, self.options
        if model.truncation is not None:
            raise RecordError("the run of the state has --top-k, --top-p or --min-p, but influences are those of whole "
                              "conditionals; give its text alone")
        taus = options.tau or [own_tau(text)]
        ids, sites = np.array(text.ids), np.setdiff1d(np.arange(len(text.ids)), text.frozen(options.freeze))
        try:
            base = site_rows(model, ids, sites)
            check_rows(base)
            progress(len(sites))
            compared = self._compare(text, ids, sites, base, taus, progress)
        except NotFiniteError as error:
            raise RecordError("the model's conditionals are not finite; the text is left out") from error
        self.head()
        for k, tau in enumerate(taus):
            if options.summary:
                self.tally.take(tau, sites, compared, k, text)
                continue
            state = margins(base, ids[sites], tau, int(model.allowed.sum()))
            self.io.output.write(self.record(text, taus, k, sites, compared, state))
        if options.summary:
            self.tally.crossing(text, sites).move(compared.oscillation_matrix())

    def head(self) -> HeadBound:
        """The bound that the model's head gives, computed once; over all tokens, so for fewer tokens too."""
        if self._head is None:
            self._head = head_bound(self.inputs.model)
        return self._head

    def record(self, text: Input, taus: list[float], k: int, sites: Ids, compared: Compared, state: Margins) -> Record:
        """The record of a text at its k-th temperature."""
        model, options = text.model, self.options
        record: Record = {"type": "influence", "run": self.inputs.run, "id": text.name, "tau": taus[k],
                          "n": len(text.ids), **text.chain.law.vocabulary()}
        record |= context_fields(options, taus, sites, compared, k, self.head(), state)
        if options.matrix:
            record |= {"ids": text.ids, "pieces": model.pieces(text.ids)}
            record["words"] = [model.decode([token]) for token in text.ids]
        whole = model.decode(text.ids)
        record |= {"split_words": split_words(model, text.ids), "text": whole, **text_exact(model, whole, text.ids)}
        return text.answer(record)

    def _compare(self, text: Input, ids: Ids, sites: Ids, base: Floats, taus: list[float],
                 progress: Advance) -> Compared:
        model, options, count = text.model, self.options, self.options.replacements
        keep = self.tally.crossing(text, sites).take if options.summary and options.keep_mb else None
        if options.draw == "worst":
            if self.vectors is None:
                self.vectors = model.token_vectors()
            ascent = Ascent(self.vectors, ids[sites], model.allowed, count)
            return ascend(model, ids, sites, base, ascent, taus, keep, progress)
        uniforms = Stream(self.seed, text.name, 0, "replacement").uniforms(0, len(ids) * count)
        changes = draw_changes(options.draw, base, ids[sites], model.allowed,
                               uniforms.reshape(len(ids), count)[sites], taus[0])
        return compare(model, ids, sites, base, changes, taus, keep, progress)


def own_tau(text: Input) -> float:
    """The temperature of the chain of a state; 1 for a text."""
    if "tau" in text.record and text.record["tau"] is None:
        raise RecordError('"tau" is null; correct it, or give --tau')
    tau = text.chain.tau_of(text.record)
    return 1.0 if tau is None else tau
