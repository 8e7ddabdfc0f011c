"""A run of mlm-couple: texts become pairs of chains, their meetings become pair records."""

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import orjson

from mlmglauber.commands.couple.options import CoupleOptions
from mlmglauber.commands.couple.pair import PairJob, PairPlan, StartText
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import chain_fields, chain_run_id, shard_field, tally_unknown, token_ids
from mlmglauber.commands.shared.progress import InputLength
from mlmglauber.commands.shared.resumable import ResumableRun
from mlmglauber.commands.shared.site_allow import checked_choices, site_allow
from mlmglauber.dynamics.chain import Choices
from mlmglauber.dynamics.coupled_engine import CoupledEngine
from mlmglauber.stream import resume
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.printable import counted, were
from mlmglauber.stream.records import SCHEMA, Record

WAITING = 4
"""Maximum number of pairs that are in work or wait to be written, in multiples of the batch size."""


class CoupleRun(ResumableRun[CoupleOptions, PairJob]):
    """One run of mlm-couple: its run record and its pairs."""

    def __init__(self, io: Filter, options: CoupleOptions) -> None:
        super().__init__(io, options)
        self.jobs_name = "pairs"
        self.shard, io.shard = io.shard, None  # a shard answers every Nth pair, which may take two inputs
        self.lengths: Sequence[int | None] = options.lengths or [None]
        self.takes_pairs = options.start == "pair"
        """Whether the chains of a pair start from two or more consecutive inputs."""
        self.reports = self.shard is None or self.shard[0] == 0
        """Whether this shard reports for all shards: bad inputs, and records that are passed on."""
        self.planned = self.unused = self._passed_on_before = 0
        self.done: set[tuple[Any, ...]] = set()
        self._plans: Iterator[PairPlan] = iter(())
        self._gathered: list[StartText] = []
        self._made: dict[int | None, int] = {}
        """Number of pairs of --start pair so far, by length."""

    @property
    def passed_on_before(self) -> int:
        """Number of records that the interrupted run passed on into the resumed file."""
        return self._passed_on_before

    def report_left_out(self, complete: bool) -> None:
        """Report the texts that are too short or that made no pair."""
        if self.too_short:
            self._warn(f"{counted(self.too_short, 'start')} with fewer tokens than --length "
                       f"{were(self.too_short)} skipped")
        if self.unused:
            self._warn(f"{counted(self.unused, 'text')} unused: --pairs {self.options.pairs} was reached")
        if self._gathered and complete:
            self._warn(f"{counted(len(self._gathered), 'text')} at the end of the input unused: too few for a pair")

    def _warn(self, text: str) -> None:
        if self.reports:
            self.io.reporter.warn(text)

    def start(self, first: Record) -> None:
        """Open the model and write the run record, or continue the file of an interrupted run."""
        options = self.options
        _, described = self.open_chains(exact_width=options.lengths is not None)
        self.coupled = CoupledEngine(self.engine)
        self.name = described["model"]
        recorded = options.in_run_record()
        self.run = chain_run_id(described, ["mlm-couple", self.seed, recorded, self.io.first or first])
        head: Record = {"type": "run", "schema": SCHEMA, "run": self.run, "command": "mlm-couple", "seed": self.seed,
                        **described, **chain_fields(self.engine.precision.tolerances),
                        "options": recorded | {"batch_size": options.batch_size}, **shard_field(self.shard, self.path)}
        if self.path is not None:
            self._continue(self.path, head)
        else:
            self.output.write(head)

    def next_job(self, wait: bool) -> PairJob | None:
        """The next pair to run; None at the end of the input, or when `wait` is off and no input has arrived."""
        while True:
            for plan in self._plans:
                self.planned += 1
                others = self.shard is not None and (self.planned - 1) % self.shard[1] != self.shard[0]
                if others:
                    continue
                if plan.key in self.done:
                    self.skip_job(self.options.steps_of(len(plan.ids[0])))
                    continue
                with self.io.guard(plan.texts[-1].place):
                    assert self.model is not None
                    return PairJob(plan, self.model, self.name, self.run, self.options, self.seed, self.order)
            self.io.mute = not self.reports
            record = self.io.read(plain_text=True, wait=wait)
            if record is not None:
                with self.io.guard(self.io.place):
                    self._take(record)
            self.io.mute = False
            if record is None:
                return None

    def _take(self, record: Record) -> None:
        """Gather inputs until they make a pair; pass other records on in their place."""
        name = self.new_input(record, write=self.reports)
        if name is None:
            return
        assert self.model is not None
        text = StartText(self.io.place, name, record)
        lengths = self.options.lengths
        ids = token_ids(self.model, record, min(lengths) if lengths else None)
        if ids is None:
            self.too_short += 1  # for every length
            return
        tally_unknown(self.io, record, ids)
        self.ids.add(text.name)
        if not self.takes_pairs:
            self._plans = self._plan([text])
        elif self._complete():
            self.unused += 1
        else:
            self._gathered.append(text)
            if len(self._gathered) == self.options.replicas:
                self._plans, self._gathered = self._plan(self._gathered), []

    def _complete(self) -> bool:
        """Whether --start pair has made as many pairs as --pairs asks for."""
        pairs = self.options.pairs
        return self.takes_pairs and pairs is not None and all(self._made.get(length, 0) >= pairs
                                                              for length in self.lengths)

    def input_length(self) -> InputLength | None:
        """See ResumableRun; inputs after the last pair of --start pair are no work."""
        return InputLength(1, True) if self._complete() else super().input_length()

    def _plan(self, texts: Sequence[StartText]) -> Iterator[PairPlan]:
        """The pairs of these texts: every length, temperature and number."""
        assert self.model is not None
        options = self.options
        name = "+".join(text.name for text in texts)
        for length in self.lengths:
            tokens: list[list[int] | None] = []
            for text in texts:
                with self.io.guard(text.place):
                    tokens.append(token_ids(self.model, text.record, length))
            whole = [ids for ids in tokens if ids is not None]
            if len(tokens) < len(texts) or (self.takes_pairs and self._made.get(length, 0) == options.pairs):
                continue
            if len(whole) < len(texts):
                self.too_short += 1
                continue
            self._made[length] = self._made.get(length, 0) + 1
            shortest = min(map(len, whole))
            choices = self._choices(texts, shortest)
            if choices is None:
                continue
            ids = [each[:shortest] for each in whole]
            for tau in options.tau:
                for number in range(1 if self.takes_pairs else options.pairs or 1):
                    yield PairPlan(name, texts, ids, tau, number, choices)

    def _choices(self, texts: Sequence[StartText], n: int) -> Choices | None:
        """The tokens of the sites that the `allow` of the texts names; None, with a report, where it is not sound."""
        assert self.model is not None
        with self.io.guard(texts[0].place):
            choices = checked_choices(self.model, texts[0].record, n, [])
            if len({site_allow(text.record) for text in texts}) > 1:
                raise RecordError("the texts of the pair have different `allow`, but coupled chains have one law; give "
                                  "both the same")
            return choices
        return None

    def _continue(self, path: str, head: Record) -> None:
        """Read the file of an interrupted run: note its pairs, which are not run again; cut off an incomplete one."""
        resume.continue_file(self.descriptor, path, [head])
        end = size = 0
        with open(path, "rb") as file:
            for line in file:
                size += len(line)
                record = orjson.loads(line)
                of_this_run = record.get("run") == self.run
                if of_this_run and record["type"] == "state":
                    continue
                end = size
                if of_this_run and record["type"] == "pair":
                    self.done.add((record["id"], record["pair"], record["tau"], record["n"]))
                elif not of_this_run:
                    self._passed_on_before += 1
        os.ftruncate(self.descriptor, end)
        os.lseek(self.descriptor, 0, os.SEEK_END)

    def has_room(self, jobs: Collection[PairJob]) -> bool:
        rows = self.engine.rows if self.model is not None else 1
        distinct = sum(pair.group.distinct for pair in jobs if not pair.finished)
        return distinct < 2 * rows and len(jobs) < WAITING * rows

    def step(self, jobs: Collection[PairJob]) -> None:
        working = [pair for pair in jobs if not pair.finished]
        self.coupled.advance([pair.group for pair in working])
        for pair in working:
            with self.io.guard(pair.plan.texts[-1].place):
                pair.write_records()
        self.output.flush()
