"""Answers a block of an input on one worker of dask.distributed."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from mlmglauber.commands.shared.filter import Filter, Function
from mlmglauber.commands.shared.options import Options
from mlmglauber.commands.shared.reporter import CollectingReporter
from mlmglauber.stream.errors import MlmError
from mlmglauber.stream.formats import Line
from mlmglauber.stream.lines import Lines
from mlmglauber.stream.output import CollectedOutput
from mlmglauber.stream.records import Record


class Block(NamedTuple):
    """Some consecutive lines of the input.

    before: number of records before them. first: the first record of the whole input. runs: the run records that came
    before, since the lines may hold states of their chains.
    """

    lines: list[Line]
    before: int
    first: Record | None
    runs: tuple[Record, ...] = ()


class Answer(NamedTuple):
    """The output of a block.

    reports: lines for standard error. error: (exit status, message) where the command itself failed. counts: see
    Filter.counts.
    """

    output: bytes
    reports: list[str]
    bad_records: int
    error: tuple[int, str] | None
    counts: tuple[Counter[str], ...]


class _GivenLines(Lines):
    """Lines that were read by another process."""

    def __init__(self, lines: list[Line]) -> None:
        super().__init__(())
        self._lines = iter(lines)

    def next(self, wait: bool = True) -> Line | None:
        return next(self._lines, None)

    def __iter__(self) -> Iterator[Line]:
        return self._lines


def run_block(function: Function, block: Block, options: Options, strict: bool, quiet: bool) -> Answer:
    """Answer a block with the function of a command, on a worker of dask.distributed.

    The worker keeps the models that it opens for its next block.
    """
    from distributed import get_worker

    worker: Any = get_worker()
    if not hasattr(worker, "mlmglauber_opened"):
        worker.mlmglauber_opened = {}
    return answer(function, block, options, strict, quiet, worker.mlmglauber_opened)


def answer(function: Function, block: Block, options: Options, strict: bool, quiet: bool,
           opened: dict[Any, Any]) -> Answer:
    """As run_block; opened: the cache of models that were opened for earlier blocks."""
    reporter, output = CollectingReporter(f"mlm-{function.__name__}", quiet), CollectedOutput()
    io = Filter(reporter, (), strict, output)
    io.part = True
    io.lines, io.count, io.first, io.opened = _GivenLines(block.lines), block.before, block.first, opened
    for run in block.runs:
        io.runs.take(run)
    error = None
    try:
        function(io, options)
        io.conclude()
    except MlmError as caught:
        error = int(caught.status), str(caught)
    except click.UsageError as caught:
        error = 2, caught.format_message()
    return Answer(output.content(), reporter.lines, reporter.bad_records, error, io.counts)
