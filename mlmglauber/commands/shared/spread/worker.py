"""A worker's part of a run: some lines of the input, answered by the command itself, its output in memory."""

from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import click

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.reporter import Words
from mlmglauber.stream.errors import MlmError
from mlmglauber.stream.formats import Line
from mlmglauber.stream.lines import Lines
from mlmglauber.stream.output import Output
from mlmglauber.stream.records import Record


class Block(NamedTuple):
    """Lines of the input: how many records came before them, the first record of the whole input, and the run records
    of the chains whose states may be among the lines."""

    lines: list[Line]
    before: int
    first: Record | None
    runs: tuple[Record, ...] = ()


class Answer(NamedTuple):
    """What a worker made of a block; `error` is (status, message) where the command itself failed.

    counts: what the client adds up for the lines that it says at the end, see Filter.counts.
    """

    output: bytes
    words: list[str]
    bad_records: int
    error: tuple[int, str] | None
    counts: tuple[Counter[str], ...]


class _Given(Lines):
    """Lines that are all here already, in the place of an input."""

    def __init__(self, lines: list[Line]) -> None:
        super().__init__(())
        self._lines = iter(lines)

    def next(self, wait: bool = True) -> Line | None:
        return next(self._lines, None)

    def __iter__(self) -> Iterator[Line]:
        return self._lines


class _Collected(Output):
    """Output that stays in memory."""

    def __init__(self) -> None:
        self.path = None
        self._buffer = bytearray()

    def write_line(self, line: bytes) -> None:
        self._buffer += line

    def flush(self) -> None:
        pass

    def taken(self) -> bytes:
        return bytes(self._buffer)


class _Heard(Words):
    """Words that are kept for the client to say."""

    def __init__(self, command: str, quiet: bool) -> None:
        super().__init__(command, quiet, 0, False, False)
        self.said: list[str] = []

    def _write(self, text: str) -> None:
        self.said.append(text)


def run_block(command: str, block: Block, options: dict[str, Any], strict: bool, quiet: bool) -> Answer:
    """Answer a block with the function of a command, on a worker of dask.distributed.

    The models that it opens are kept for the next block.
    """
    from distributed import get_worker

    worker: Any = get_worker()
    if not hasattr(worker, "mlmglauber_warm"):
        worker.mlmglauber_warm = {}
    return answer(command, block, options, strict, quiet, worker.mlmglauber_warm)


def answer(command: str, block: Block, options: dict[str, Any], strict: bool, quiet: bool,
           warm: dict[Any, Any]) -> Answer:
    """As run_block; warm: what blocks before this one opened."""
    words, output = _Heard(command, quiet), _Collected()
    filter = Filter(words, (), strict, output)
    filter.part = True
    filter.lines, filter.count, filter.first, filter.warm = _Given(block.lines), block.before, block.first, warm
    for run in block.runs:
        filter.runs.take(run)
    error = None
    try:
        import_module(f"mlmglauber.commands.{command.removeprefix('mlm-')}.command").main.function(filter, **options)
        filter.conclude()
    except MlmError as caught:
        error = int(caught.status), str(caught)
    except click.UsageError as caught:
        error = 2, caught.format_message()
    return Answer(output.taken(), words.said, words.bad_records, error, filter.counts)
