"""A run of chains that --resume can continue: what mlm-sample and mlm-couple share."""

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import TEXTS, report_checks, size_of
from mlmglauber.commands.shared.line_size import Size, StateSizes
from mlmglauber.commands.shared.options import TABLE_FORMS, ChainOptions
from mlmglauber.commands.shared.progress import InputLength, Progress
from mlmglauber.commands.shared.truncation_options import truncation_of
from mlmglauber.commands.shared.word_lists import restricted_model
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.randomness import drawn_seed
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.opening import open_model
from mlmglauber.models.restricted import truncated_model
from mlmglauber.stream import resume
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.output import AppendingOutput, InOrder, Output, Sink
from mlmglauber.stream.records import Record, is_input, record_id, repeated_id

OptionsT = TypeVar("OptionsT", bound=ChainOptions)
JobT = TypeVar("JobT", bound="ChainJob")


class Planned(Protocol):
    """A chain of n sites, or a group of coupled chains, whose steps are planned."""

    sites: int

    def plan(self, start: int, count: int) -> Any:
        """The sites and uniforms of so many steps."""
        ...


class Cost(NamedTuple):
    """What --dry-run adds up over jobs: chains of n sites, steps, records and their size, each at least and at most.

    depth: maximum number of steps that have to wait for each other, those of one chain; its chains make them together.
    """

    n: int
    chains: int
    depth: int
    steps: tuple[int, int]
    records: tuple[int, int]
    size: Size


class ChainJob(Protocol):
    """What a run advances as a whole: the chains of one text, or one pair.

    work: maximum number of steps of its chains. resumed: those that an interrupted run made.
    """

    finished: bool
    work: int
    resumed: int
    sink: Sink

    @property
    def steps(self) -> int:
        """Number of steps that need no more work: `work` at the end, however it ended."""
        ...

    @property
    def depth(self) -> float:
        """Number of steps made that had to wait for each other: those of one chain."""
        ...

    @property
    def planned(self) -> Planned:
        """What draws the random numbers of the steps: a chain, or a group of coupled chains."""
        ...

    def cost(self, sizes: StateSizes) -> Cost:
        """The work for --dry-run."""
        ...


class ResumableRun(ABC, Generic[OptionsT, JobT]):
    """The model of a run, opened when the first record comes, its output, and the ids of its inputs.

    With --resume the output is appended to a file, and what the file holds already is not computed again. The seed is
    that of --seed, else that of the file, else drawn.
    """

    def __init__(self, io: Filter, options: OptionsT) -> None:
        self.io, self.path = io, options.resume
        self.model: TextModel | None = None
        self.ids: set[str] = set()
        """The ids of the inputs so far."""
        self.too_short = self.passed_on = 0
        self.progress = Progress("steps")
        self._finished_work = self._finished = 0
        self.output: Output = io.output
        seed = options.seed
        if self.path is not None:
            self._before = size_of(self.path)
            self.descriptor = resume.open_locked(self.path)
            self.output = AppendingOutput(self.descriptor)
            io.lines.before_wait = self.output.flush
            first = resume.first_record(self.descriptor, self.path)
            if seed is None and first is not None:
                seed = first["seed"]
        self.seed = drawn_seed() if seed is None else seed
        self.options: OptionsT = replace(options, seed=self.seed)
        self.order = InOrder(self.output)
        self.passed = self.order
        """Where records that are passed on stand among the answers; --dry-run counts them apart."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.report_left_out(complete=kind is None)
        if self.model is not None and kind is None:
            report_checks(self.io, self.engine)
        if self.path is not None:
            if kind is None or not issubclass(kind, OSError):
                self.output.flush()
            os.close(self.descriptor)
        if kind is not None:
            return
        if not self.ids and not self.too_short:
            self.io.report_missing(*TEXTS[:2], empty=self.options.table in TABLE_FORMS)
        if self.path is not None and self._before and size_of(self.path) == self._before:
            self.io.reporter.warn(f"{self.path}: the run was complete already; nothing was added")

    @abstractmethod
    def report_left_out(self, complete: bool) -> None:
        """Report the inputs that made no chain. complete: whether the run reached the end of the input."""

    @abstractmethod
    def start(self, first: Record) -> None:
        """Open the model with `open_chains` and write the run records; first: the first record of the input."""

    @abstractmethod
    def next_job(self, wait: bool) -> JobT | None:
        """The next job; None at the end of the input, or when `wait` is off and no input for it has arrived."""

    @abstractmethod
    def has_room(self, jobs: Collection[JobT]) -> bool:
        """Whether another job may join: the batch is not full, and few enough jobs wait to be written."""

    @abstractmethod
    def step(self, jobs: Collection[JobT]) -> None:
        """Advance every job in work and write the records that are due."""

    jobs_name: str
    """What the jobs are called in the progress: texts or pairs."""
    counts = True
    """Whether the engine counts its steps: the plain one does not."""

    def input_length(self) -> InputLength | None:
        """How long the input is; None while that is not known."""
        return self.io.input_length()

    def run_jobs(self, progress: Progress) -> None:
        """Run the jobs of the whole input, as many together as have room; count their steps in `progress`."""
        self.progress, progress.input_length, progress.finished = progress, self.input_length, (0, self.jobs_name)
        in_work: deque[JobT] = deque()
        while self.admit(in_work, lambda job: progress.plan(job.work, job.resumed)):
            self.step(in_work)
            self.retire(in_work)
            self._count(in_work)

    def admit(self, in_work: deque[JobT], begin: Callable[[JobT], None], wait: bool = False) -> bool:
        """Add jobs while they have room; whether any is in work.

        begin: called with each job that is added. wait: whether to wait for input also while jobs are in work.
        """
        while self.has_room(in_work) and (job := self.next_job(wait or not in_work)) is not None:
            begin(job)
            in_work.append(job)
        return bool(in_work)

    def retire(self, in_work: deque[JobT]) -> None:
        """Remove the first jobs, as far as they are finished."""
        while in_work and in_work[0].finished:
            self._end(in_work.popleft().work)

    def skip_job(self, work: int) -> None:
        """Count a job that the resumed file holds."""
        self.progress.plan(work, work)
        self._end(work)

    def _end(self, work: int) -> None:
        self._finished_work += work
        self._finished += 1
        self.progress.finished = self._finished, self.jobs_name

    def _count(self, in_work: Collection[JobT]) -> None:
        """Tell the progress what is done. The engine counts steps, and those that the model answered."""
        self.progress.done = self._finished_work + sum(job.steps for job in in_work)
        counters = self.engine.counters
        if counters.steps:
            self.progress.made = counters.steps
            self.progress.from_memory = 1 - counters.answered / counters.steps

    def open_chains(self, exact_width: bool) -> tuple[TextModel, dict[str, Any]]:
        """Open the model, restrict it to the tokens of --allow, make the engine; the model and its description."""
        options = self.options
        opening = {"exact_width": exact_width, **options.opening}
        model: TextModel = self.io.once(("model", options.model, *opening.values()),
                                        lambda: open_model(options.model, **opening))
        model = truncated_model(restricted_model(model, options.allow, options.allow_file, options.ban_file),
                                truncation_of(options))
        self.engine = Engine(model, memory=options.cache_mb << 20)
        self.engine.precision.measure(options.taus)
        self.model = model
        return model, model.describe()

    def new_input(self, record: Record, write: bool = True) -> str | None:
        """The id of an input; None for a record that is passed on or left out, RecordError for an id that is not new.

        write: whether records that are passed on are written.
        """
        if self.model is None:
            self.start(record)
        if not is_input(record):
            self.passed_on += 1
            self.io.pass_on(record)
            if write and self.passed_on > self.passed_on_before:
                sink = self.passed.open()
                sink.write(record)
                sink.close()
            return None
        if self.io.leaves_out(record):
            return None
        name = record_id(record, self.io.count - 1)
        if name in self.ids:
            raise RecordError(repeated_id(name))
        return name

    @property
    @abstractmethod
    def passed_on_before(self) -> int:
        """Number of records that the interrupted run passed on into the resumed file."""
