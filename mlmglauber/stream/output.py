"""Where records go: standard output, or a file that appears whole or not at all."""

import os
import sys
import tempfile
from types import TracebackType

from mlmglauber.stream.errors import MlmError, OutputError
from mlmglauber.stream.records import Record, to_line

BUFFER = 1 << 16


class ClosedPipeError(Exception):
    """The reader of our output has gone: stop quietly."""


class Output:
    """A buffered writer of lines. `flush` is called before a filter waits, so that nothing is held back.

    With a path the lines go to a hidden file beside it, which takes the path's name when all went well.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = None if path in (None, "-") else path
        self._buffer = bytearray()
        self._hidden = ""
        if self.path is None:
            self._file = sys.stdout.fileno()
            return
        folder, name = os.path.split(os.path.abspath(self.path))
        try:
            self._file, self._hidden = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
        except OSError as error:
            raise OutputError(f"{self.path}: {error.strerror}; choose a folder that can be written") from error

    def write(self, record: Record) -> None:
        self.write_line(to_line(record))

    def write_line(self, line: bytes) -> None:
        self._buffer += line
        if len(self._buffer) >= BUFFER:
            self.flush()

    def flush(self) -> None:
        """Everything out, in whole lines. An error of the disk is an OSError; a closed pipe is ClosedPipeError."""
        try:
            while self._buffer:
                written = os.write(self._file, self._buffer)
                del self._buffer[:written]
        except BrokenPipeError as error:
            self._buffer.clear()
            raise ClosedPipeError from error

    def finish(self) -> None:
        """Nothing more comes."""

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Whole lines made so far always go out on standard output; a file only appears if there was no error."""
        if self.path is None:
            if kind is None or not issubclass(kind, (ClosedPipeError, OSError)):
                self.flush()
            return
        try:
            if kind is None:
                self.flush()
                os.fsync(self._file)
                mask = os.umask(0)
                os.umask(mask)
                os.fchmod(self._file, 0o666 & ~mask)
                os.replace(self._hidden, self.path)
                self._hidden = ""
        finally:
            os.close(self._file)
            if self._hidden:
                os.unlink(self._hidden)


class Appending(Output):
    """Lines appended to a file that is open already; they are written through as they come."""

    def __init__(self, descriptor: int) -> None:
        self.path = None
        self._buffer = bytearray()
        self._file = descriptor


class Comparing(Output):
    """Nothing is written: each line must be the next one of a file. MlmError names the first that is not."""

    def __init__(self, path: str) -> None:
        self.path = None
        self._buffer = bytearray()
        self._name, self._number = path, 0
        self._there = open(path, "rb")  # noqa: SIM115 - as long as the process

    def write_line(self, line: bytes) -> None:
        self._number += 1
        if self._there.readline() != line:
            raise MlmError(f"{self._name}:{self._number}: not the line that this run gives there; compare model, input "
                           "and versions")

    def flush(self) -> None:
        pass

    def finish(self) -> None:
        """The run is over: the file must be too."""
        if self._there.readline():
            raise MlmError(f"{self._name}:{self._number + 1}: the file has more lines than this run; compare the input")


class InOrder:
    """Several records in work at once, their lines written in the order in which the records came.

    The first one's lines go straight out; those of the others wait in memory, past 1 MiB each in a temporary file.
    """

    HELD = 1 << 20

    def __init__(self, output: Output) -> None:
        self.output = output
        self._waiting: list[Sink] = []

    def open(self) -> "Sink":
        sink = Sink(self)
        self._waiting.append(sink)
        return sink

    def _advance(self) -> None:
        """Write out what the first sinks hold, as far as they are closed."""
        while self._waiting and self._waiting[0].closed:
            self._pour(self._waiting.pop(0))
        if self._waiting:
            self._pour(self._waiting[0])

    def _pour(self, sink: "Sink") -> None:
        if sink.held is None:
            return
        sink.held.seek(0)
        for line in sink.held:
            self.output.write_line(line)
        sink.held.close()
        sink.held = None

    def is_first(self, sink: "Sink") -> bool:
        return self._waiting[0] is sink


class Sink:
    """The lines of one record on their way out."""

    def __init__(self, order: InOrder) -> None:
        self.order = order
        self.closed = False
        self.held: tempfile.SpooledTemporaryFile[bytes] | None = None

    def write(self, record: Record) -> None:
        line = to_line(record)
        if self.order.is_first(self):
            self.order.output.write_line(line)
            return
        if self.held is None:
            self.held = tempfile.SpooledTemporaryFile(max_size=InOrder.HELD)  # noqa: SIM115 - closed by _pour
        self.held.write(line)

    def close(self) -> None:
        self.closed = True
        self.order._advance()
