"""A run of mlm-influence: contexts are changed, compared, and written as records or kept for the summary."""

from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from mlmglauber.commands.influence.options import InfluenceOptions
from mlmglauber.commands.influence.records import InfluenceTally, context_fields
from mlmglauber.commands.shared.dry_run import Bounds, MeasuredOutput, Timing, write_estimate
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import Input, Inputs, text_exact
from mlmglauber.commands.shared.progress import Progress
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.dynamics.glauber import NotFiniteError
from mlmglauber.dynamics.randomness import Stream, drawn_seed
from mlmglauber.measures.influence.context import Advance, Compared, ascend, check_rows, compare
from mlmglauber.measures.influence.replacements import Ascent, draw_changes
from mlmglauber.measures.traps.margins import margins, site_rows
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
        self.inputs = Inputs(io, options, options.in_run_record(), self.seed, write=self._pass)
        self.inputs.summed = options.summary
        self.tally = InfluenceTally(options)
        self.as_table = options.summary and shown(io, options.table)
        self.head: HeadBound | None = None
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
                        self._answer(text, partial(self._advance, progress))
                    progress(self.most_rows(text) - self.done)  # equal replacements were computed once
                    self.io.output.flush()
        if self.options.summary:
            with self.io.reporter.bar("temperatures") as progress:
                summaries = list(self.tally.summaries(self.inputs.run, self.head, progress))
            if self.as_table:
                from mlmglauber.commands.influence.table import influence_tables

                write_tables(self.io, self.options.table, influence_tables(summaries))
                return
            for record in summaries:
                self.io.output.write(record)

    def dry_run(self) -> None:
        """Time the conditionals of a few sites of the first texts, count all, and write the estimate."""
        output, timing, options = self.io.output, Timing(), self.options
        self.io.output = measured = MeasuredOutput("influence")
        texts = least = most = records = 0
        for batch in self.inputs.batches(1):
            for text in batch:
                with self.io.guard(text.place):
                    n = len(text.ids) - len(text.frozen(options.freeze))
                    taus = options.tau or [own_tau(text)]
                    if not timing.enough:
                        sites = 1 + isqrt(2 * text.model.rows // options.replacements)  # about two batches
                        few = text._replace(ids=text.ids[: max([2, sites, *(s + 2 for s in options.freeze or [])])])
                        for _ in range(2):
                            self.done = 0.0
                            timing.batch(self.most_rows(few), partial(self._answer, few, lambda rows: None))
                    texts += 1
                    least += n * n
                    most += self.most_rows(text)
                    records += 0 if options.summary else len(taus)
        if texts:
            write_estimate(self.io, output, options.table, [
                Bounds("texts", texts, texts),
                Bounds("conditionals", least, most, "n n, all replacements of a site equal; n (1 + (n - 1) M)"),
                timing.bounds(least, most, "conditional"), *measured.bounds(records, records)])

    def _advance(self, progress: Progress, rows: float) -> None:
        self.done += rows
        progress(rows)
        progress.made = (progress.made or 0) + rows

    def most_rows(self, text: Input) -> int:
        """Maximum number of conditionals of one text."""
        n = len(text.ids) - len(self.options.freeze or [])
        return int(max(0, n * (1 + (n - 1) * self.options.replacements)))

    def _pass(self, record: Record) -> None:
        """Write the run record and records without a text; --summary leaves the latter out."""
        ours = record["type"] == "run" and record.get("run") == self.inputs.run
        if not self.options.summary or (ours and not self.as_table):
            self.io.output.write(record)

    def _answer(self, text: Input, progress: Advance) -> None:
        model, options = text.model, self.options
        taus = options.tau or [own_tau(text)]
        ids, sites = np.array(text.ids), np.setdiff1d(np.arange(len(text.ids)), text.frozen(options.freeze))
        try:
            base = site_rows(model, ids, sites)
            check_rows(base)
            progress(len(sites))
            compared = self._compare(text, ids, sites, base, taus, progress)
        except NotFiniteError as error:
            raise RecordError("the model's conditionals are not finite; the text is left out") from error
        if self.head is None:
            self.head = head_bound(self.inputs.model)  # over all tokens; it bounds the chain's own tokens too
        for k, tau in enumerate(taus):
            if options.summary:
                self.tally.take(tau, sites, compared, k, text)
                continue
            state = margins(base, ids[sites], tau, int(model.allowed.sum()))
            record: Record = {"type": "influence", "run": self.inputs.run, "id": text.name, "tau": tau, "n": len(ids),
                              **text.chain.law.vocabulary()}
            record |= context_fields(options, taus, sites, compared, k, self.head, state)
            if options.matrix:
                record |= {"ids": text.ids, "pieces": model.pieces(text.ids)}
                record["words"] = [model.decode([token]) for token in text.ids]
            whole = model.decode(text.ids)
            record |= {"split_words": split_words(model, text.ids), "text": whole, **text_exact(model, whole, text.ids)}
            self.io.output.write(text.answer(record))
        if options.summary:
            self.tally.crossing(text, sites).move(compared.oscillation_matrix())

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
