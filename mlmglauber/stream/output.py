"""Where records go: standard output, or a file that appears whole or not at all."""

import os
import select
import stat
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from errno import EISDIR
from types import TracebackType

from mlmglauber.stream.errors import OutputError
from mlmglauber.stream.interrupts import deferred
from mlmglauber.stream.records import Record, to_line

BUFFER = 1 << 16
"""Number of bytes from which on the buffer is written."""
PIECE = select.PIPE_BUF
"""Maximum number of bytes in one write to a pipe: a pipe that is ready takes that many without blocking."""


class ClosedPipeError(Exception):
    """The reader of the output has gone: the command ends without a message."""


class Output(ABC):
    """Takes the records of a command, one line each.

    path: the file that is written, None where the lines go elsewhere.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path

    def write(self, record: Record) -> None:
        """Write a record as one line of JSON."""
        self.write_line(to_line(record))

    @abstractmethod
    def write_line(self, line: bytes) -> None:
        """Write a whole line, with its end; it may wait in a buffer until `flush`."""

    def flush(self) -> None:  # noqa: B027 - most outputs have no buffer
        """Write what is in the buffer. A command flushes before it waits for input."""

    def finish(self) -> None:  # noqa: B027 - most outputs have nothing to check
        """Check, after the last line, that the output is complete."""


class BufferedOutput(Output):
    """Whole lines written to a file descriptor through a buffer.

    before_write: called before bytes are written, for a progress bar that must leave their terminal.
    clear: written before the lines of each write; it empties the line of a terminal on which another process of the
    pipe may have drawn its progress. Each write then has whole lines.
    """

    def __init__(self, descriptor: int, path: str | None = None) -> None:
        super().__init__(path)
        self.before_write: Callable[[], None] | None = None
        self.clear = b""
        self._file, self._buffer = descriptor, bytearray()
        self._on_disk = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._torn = 0
        """Number of bytes written of the last line, if its end is not written yet."""

    def write_line(self, line: bytes) -> None:
        self._buffer += line
        if len(self._buffer) >= BUFFER:
            self.flush()

    def flush(self) -> None:
        """Write the buffer. A full disk is an OSError, a pipe whose reader has gone a ClosedPipeError."""
        if self._buffer and self.before_write is not None:
            self.before_write()
        try:
            while self._buffer:
                if not self._on_disk:
                    select.select([], [self._file], [])  # wait for the reader here, where a signal can interrupt
                with deferred:
                    self._write()
        except BrokenPipeError as error:
            self._buffer.clear()
            raise ClosedPipeError from error
        except OSError:
            self._cut_torn_line()
            raise

    @property
    def descriptor(self) -> int:
        """The file descriptor that the lines are written to."""
        return self._file

    def _write(self) -> None:
        """Write as many bytes as the file takes at once, and remove these from the buffer."""
        piece = self._buffer if self._on_disk else self._buffer[:PIECE]
        clear = b"" if self._torn else self.clear
        if clear:
            piece = self._buffer[: 1 + max(piece.rfind(b"\n"), self._buffer.find(b"\n"))]
        written = max(0, os.write(self._file, clear + piece) - len(clear))
        line_end = piece.rfind(b"\n", 0, written) + 1
        self._torn = written - line_end if line_end else self._torn + written
        del self._buffer[:written]

    def _cut_torn_line(self) -> None:
        """Remove the part of a line that was written when the disk became full, unless others have written since."""
        if self._on_disk and self._torn:
            with suppress(OSError):
                end = os.lseek(self._file, 0, os.SEEK_CUR)
                if end == os.fstat(self._file).st_size:
                    os.ftruncate(self._file, end - self._torn)


class AppendingOutput(BufferedOutput):
    """Lines appended to a file that --resume has opened and that stays open."""


class StreamOutput(BufferedOutput):
    """Standard output, a device or a named pipe: at the end, also after most errors, all whole lines are written."""

    def __enter__(self) -> "StreamOutput":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if kind is None or not issubclass(kind, (ClosedPipeError, OSError)):
            try:
                self.flush()
            except KeyboardInterrupt:
                self.flush()
                raise


class FileOutput(BufferedOutput):
    """A file that appears whole or not at all: lines go to a hidden file, which gets the name if there is no error."""

    def __init__(self, path: str) -> None:
        try:
            self._target = os.path.realpath(path)  # of a symbolic link, the file that it points to
            folder, name = os.path.split(self._target)
            descriptor, self._hidden = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
        except OSError as error:
            raise _cannot_open(path, error) from error
        super().__init__(descriptor, path)

    def __enter__(self) -> "FileOutput":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        with deferred:
            self._close(keep=kind is None)

    def _close(self, keep: bool) -> None:
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


def open_output(path: str | None) -> StreamOutput | FileOutput:
    """The output of --output: a file, a device or pipe of that name, or standard output for None and "-"."""
    if path in (None, "-"):
        return StreamOutput(sys.stdout.fileno())
    assert path is not None
    try:
        if _is_device(path):
            return StreamOutput(os.open(path, os.O_WRONLY))
    except OSError as error:
        raise _cannot_open(path, error) from error
    return FileOutput(path)


def _cannot_open(path: str, error: OSError) -> OutputError:
    return OutputError(f"{path}: {error.strerror}; choose a place that can be written")


def _is_device(path: str) -> bool:
    """Whether a path exists and is not a regular file; a directory raises IsADirectoryError."""
    if not os.path.exists(path):
        return False
    if os.path.isdir(path):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    return not os.path.isfile(path)


class CollectedOutput(Output):
    """Lines kept in memory, on a worker whose client writes them."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = bytearray()

    def write_line(self, line: bytes) -> None:
        self._lines += line

    def content(self) -> bytes:
        """All lines that were written."""
        return bytes(self._lines)


class InOrder:
    """Writes the answers to several inputs, made at the same time, in the order of the inputs.

    The lines of the first input in work are written at once. Those of the others wait in memory, and above IN_MEMORY
    bytes each in a temporary file.
    """

    IN_MEMORY = 1 << 20

    def __init__(self, output: Output) -> None:
        self.output = output
        self.sinks: list[Sink] = []
        """The sinks of the inputs that are not written to their end yet, in the order of the inputs."""

    def open(self) -> "Sink":
        """A sink for the next input, whose lines follow those of all sinks opened before."""
        sink = Sink(self)
        self.sinks.append(sink)
        return sink

    def advance(self) -> None:
        """Write the waiting lines of the first sinks, up to the first one that is still open."""
        while self.sinks:
            first = self.sinks[0]
            if first.waiting is not None:
                first.waiting.seek(0)
                for line in first.waiting:
                    self.output.write_line(line)
                first.waiting.close()
                first.waiting = None
            if not first.closed:
                return
            self.sinks.pop(0)


class Sink:
    """Takes the lines that answer one input."""

    def __init__(self, order: InOrder) -> None:
        self.order = order
        self.closed = False
        self.waiting: tempfile.SpooledTemporaryFile[bytes] | None = None

    def write(self, record: Record) -> None:
        """Write a record as one line of JSON, now or when the turn of this sink comes."""
        line = to_line(record)
        if self.order.sinks[0] is self:
            self.order.output.write_line(line)
            return
        if self.waiting is None:
            self.waiting = tempfile.SpooledTemporaryFile(max_size=InOrder.IN_MEMORY)  # noqa: SIM115 - closed by advance
        self.waiting.write(line)

    def close(self) -> None:
        """Say that no more lines come."""
        self.closed = True
        self.order.advance()
