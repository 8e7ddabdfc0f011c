"""Where records go: standard output, or a file that appears whole or not at all."""

import os
import select
import stat
import sys
import tempfile
from contextlib import suppress
from errno import EISDIR
from types import TracebackType

import orjson

from mlmglauber.stream.errors import MlmError, OutputError
from mlmglauber.stream.interrupts import held
from mlmglauber.stream.records import Record, to_line
from mlmglauber.stream.same import differing_fields

BUFFER = 1 << 16
PIECE = select.PIPE_BUF
"""Bytes written to a pipe at a time: a pipe that is ready takes so many at once, and is never waited for in a write."""


class ClosedPipeError(Exception):
    """The reader of our output has gone: stop quietly."""


class Output:
    """A buffered writer of lines. `flush` is called before a filter waits, so that nothing is held back.

    With a path the lines go to a hidden file beside it, which takes the path's name when all went well. A device or a
    named pipe is written to as it is.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = None if path in (None, "-") else path
        self._hidden = self._target = ""
        if self.path is None:
            self._begin(sys.stdout.fileno())
            return
        try:
            if _is_device(self.path):
                self._begin(os.open(self.path, os.O_WRONLY))
                self.path = None
                return
            self._target = os.path.realpath(self.path)  # a link stays one
            folder, name = os.path.split(self._target)
            descriptor, self._hidden = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
        except OSError as error:
            raise OutputError(f"{self.path}: {error.strerror}; choose a place that can be written") from error
        self._begin(descriptor)

    def _begin(self, descriptor: int) -> None:
        self._file, self._buffer = descriptor, bytearray()
        self._on_disk = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._torn = 0
        """Bytes written of a line whose end is still to be written."""

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
                if not self._on_disk:
                    select.select([], [self._file], [])  # while a reader is waited for, signals are heard
                with held:
                    self._write()
        except BrokenPipeError as error:
            self._buffer.clear()
            raise ClosedPipeError from error
        except OSError:
            self._mend()
            raise

    def _write(self) -> None:
        """As much as the file takes at once, gone from the buffer when it is in the file."""
        piece = self._buffer if self._on_disk else self._buffer[:PIECE]
        written = os.write(self._file, piece)
        line_end = piece.rfind(b"\n", 0, written) + 1
        self._torn = written - line_end if line_end else self._torn + written
        del self._buffer[:written]

    def _mend(self) -> None:
        """Cut off the line that a full disk left torn; a file that others write too is left as it is."""
        if self._on_disk and self._torn:
            with suppress(OSError):
                end = os.lseek(self._file, 0, os.SEEK_CUR)
                if end == os.fstat(self._file).st_size:
                    os.ftruncate(self._file, end - self._torn)

    def finish(self) -> None:
        """Nothing more comes."""

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Whole lines made so far always go out on standard output; a file only appears if there was no error."""
        if self.path is not None:
            with held:
                self._close_file(keep=kind is None)
        elif kind is None or not issubclass(kind, (ClosedPipeError, OSError)):
            try:
                self.flush()
            except KeyboardInterrupt:
                self.flush()
                raise

    def _close_file(self, keep: bool) -> None:
        """Give the hidden file its name, or remove it."""
        try:
            if keep:
                self.flush()
                os.fsync(self._file)
                mask = os.umask(0)
                os.umask(mask)
                os.fchmod(self._file, 0o666 & ~mask)
                os.replace(self._hidden, self._target)
                self._hidden = ""
        finally:
            os.close(self._file)
            if self._hidden:
                os.unlink(self._hidden)


def _is_device(path: str) -> bool:
    """Whether a path is there and no regular file; a directory is an IsADirectoryError."""
    if not os.path.exists(path):
        return False
    if os.path.isdir(path):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    return not os.path.isfile(path)


class Appending(Output):
    """Lines appended to a file that is open already; they are written through as they come."""

    def __init__(self, descriptor: int) -> None:
        self.path = None
        self._begin(descriptor)


class Comparing(Output):
    """Nothing is written: each record must be the next one of a file (see same.py). MlmError names the first that is
    not.
    """

    def __init__(self, path: str) -> None:
        self.path = None
        self._buffer = bytearray()
        self._name, self._number = path, 0
        self._there = open(path, "rb")  # noqa: SIM115 - as long as the process

    def write_line(self, line: bytes) -> None:
        self._number += 1
        there = self._there.readline()
        if there == line:
            return
        try:
            differing = differing_fields(orjson.loads(there), orjson.loads(line))
        except (ValueError, AttributeError):
            differing = ["the line"]
        if differing:
            raise MlmError(f"{self._name}:{self._number}: not what this run gives there ({', '.join(differing)}); "
                           "compare model, input and versions")

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
