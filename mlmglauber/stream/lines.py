"""Reads the lines of several inputs one after the other; decompresses gzip; converts other formats to JSON Lines."""

import os
import select
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from mlmglauber.stream.descriptors import file_size, has_ended, unread
from mlmglauber.stream.errors import InputError, MlmError, RecordError
from mlmglauber.stream.formats import BYTE_ORDER_MARK, MAX_LINE, Format, Line, Reading, format_of, is_utf_16

BLOCK = 1 << 18
"""Maximum number of bytes of one read."""
GZIPPED_BLOCK = 1 << 12
"""Maximum number of bytes of one read of a gzip stream, which may decompress to a thousand times as many."""
GZIP_MARK = b"\x1f\x8b"
PACKED = {b"\x28\xb5\x2f\xfd": "zstd -dc", b"\xfd7zXZ\x00": "xz -dc", b"PK\x03\x04": "unzip -p"} | {
    b"BZh%d1AY&SY" % level: "bzip2 -dc" for level in range(1, 10)}
"""The first bytes of files in other compressed formats, and the command that decompresses them."""


class LineBlock(NamedTuple):
    """Lines that follow each other in one input: its name, the number of the first line, the lines as bytes."""

    name: str
    first: int
    lines: list[bytes]

    def place(self, number: int) -> str:
        """FILE:LINE of a line, counted from 0."""
        return f"{self.name}:{self.first + number}"


class Lines:
    """The lines of several inputs, one after the other; an input that begins like a gzip file is decompressed.

    `before_wait` is called before each wait for input. A filter flushes its output there: a slow producer sees each
    answer at once, a fast one causes few, large writes.

    Where an input cannot be read further, the complete lines before come first, then the error is raised.
    """

    def __init__(self, paths: Sequence[str], reading: Reading | None = None) -> None:
        self.paths = list(paths) or ["-"]
        for path in self.paths:
            if path != "-" and not os.path.exists(path):
                raise InputError(f"{path}: no such file; check the name")
        self.before_wait: Callable[[], None] = lambda: None
        self._reading = reading
        self._format: Format = format_of("-", reading)
        self._made: deque[Line] = deque()  # lines that the format has completed and that next() has not returned
        self._open: int | None = None
        self._gzip = False
        self._unzip: zlib._Decompress | None = None  # the decompressor of the current gzip member
        self._begun = False
        self._pending: list[bytes | None] = []  # complete lines, the next one last; None marks the end of the input
        self._rest = bytearray()  # the beginning of a line whose end was not read yet
        self._name, self._number = "", 0
        self._failure: MlmError | None = None
        self._size: int | None = 0
        """Number of bytes of the open input that are not read, None where it is no file."""
        self._read_bytes = self._split_lines = self._taken = self._returned = 0
        """Numbers of bytes read, of lines that they held, of lines given to the format, of lines returned."""

    def next(self, wait: bool = True) -> Line | None:
        """The next line; None at the end and, without `wait`, where the next line has not arrived yet.

        InputError or RecordError where an input cannot be read further; that ends the lines.
        """
        while not self._made:
            if self._pending:
                self._take(self._pending.pop())
            elif self._failure is not None:
                raise self._failure
            elif self._open is None and not self._open_next():
                return None
            elif wait or self._is_ready():
                self._read()
            else:
                return None
        line = self._made.popleft()
        if line.stop:
            self._fail(RecordError(line.error or "", line.place))
            return self.next(wait)
        self._returned += 1
        return line

    def block(self) -> "LineBlock | None":
        """The whole lines of the open input that have been read, at least one, without taking them; see `skip`.

        None where only `next` knows what comes: at the end of an input, in another format than JSON Lines, before an
        error.
        """
        while not self._made and not self._pending and self._failure is None:
            if self._open is None and not self._open_next():
                return None
            self._read()
        if self._made or self._failure is not None or not self._format.direct:
            return None
        lines = [content for content in reversed(self._pending) if content is not None]
        return LineBlock(self._name, self._number + 1, lines) if lines else None

    def skip(self, count: int) -> None:
        """Take the first `count` lines of `block`."""
        del self._pending[-count:]
        self._number += count
        self._taken += count
        self._returned += count

    def remaining(self) -> int | None:
        """Number of lines to come, estimated from the sizes of files; None where an input that is no file is open.

        Another thread may ask while the lines are read.
        """
        if self._failure is not None:
            return 0
        left, descriptor = self._size, self._open
        if descriptor is None or (left is None and has_ended(descriptor)):
            left = 0
        sizes = [left, *map(file_size, self.paths)]
        if None in sizes:
            return None
        left = sum(size or 0 for size in sizes)
        waiting = len(self._pending) - (self._pending[:1] == [None]) + bool(self._rest)
        waiting += left * self._split_lines // self._read_bytes if self._read_bytes else int(left > 0)
        return len(self._made) + round(waiting * (self._returned / self._taken if self._taken else 1))

    def __iter__(self) -> Iterator[Line]:
        while (line := self.next()) is not None:
            yield line

    def _is_ready(self) -> bool:
        """Whether the open input has bytes to read."""
        assert self._open is not None
        return bool(select.select([self._open], [], [], 0)[0])

    def only_json(self) -> None:
        """From here on no line of the open input is plain text, since one of its lines was broken JSON."""
        self._format.only_json()

    def _fail(self, error: MlmError) -> None:
        """End the input with an error, raised at the next call of next()."""
        self._failure, self.paths = error, []
        self._pending.clear()
        self._made.clear()

    def _take(self, content: bytes | None) -> None:
        """Pass the next line of the open input, or its end, to the format."""
        if content is None:
            self._made.extend(self._format.end())
            return
        self._number += 1
        self._taken += 1
        place = f"{self._name}:{self._number}"
        if self._format.takes_as_it_is(content):  # the common case
            self._made.append(Line(place, content))
            return
        while content.startswith(BYTE_ORDER_MARK):  # also within an input, as after `cat a b`
            content = content[len(BYTE_ORDER_MARK):]
        if is_utf_16(content):
            self._fail(RecordError("the input is UTF-16; convert it with iconv -f UTF-16 -t UTF-8", place))
        elif len(content) > MAX_LINE:
            what = f"the line has more than {MAX_LINE} bytes; split the text"
            self._made.extend(self._format.take(Line(place, None, what)))
        else:
            self._made.extend(self._format.take(Line(place, content)))

    def _open_next(self) -> bool:
        if not self.paths:
            return False
        path = self.paths.pop(0)
        self._name, self._number = ("stdin" if path == "-" else path), 0
        self._begun, self._gzip, self._unzip = False, False, None
        self._format = format_of(path, self._reading)
        if path == "-":
            self._open = sys.stdin.fileno()
            self._size = unread(self._open)
            if os.isatty(self._open):
                print("reading records from the terminal, Ctrl-D ends", file=sys.stderr)
            return True
        try:
            self._open = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; check the name and its permissions") from error
        self._size = unread(self._open)
        return True

    def _read(self) -> None:
        """Read a block of the open input; call `before_wait` if the read has to wait."""
        assert self._open is not None
        if not self._is_ready():
            self.before_wait()
        try:
            block = os.read(self._open, GZIPPED_BLOCK if self._gzip else BLOCK)
            while not self._begun and _may_be_marked(block):  # the first bytes may arrive in pieces
                more = os.read(self._open, BLOCK)
                if not more:
                    break
                block += more
        except OSError as error:
            self._failure = InputError(f"{self._name}: cannot be read after line {self._number + len(self._pending)} "
                                       f"({error.strerror}); give a file or a pipe")
            self.paths = []
            return
        self._read_bytes += len(block)
        if self._size is not None:
            self._size = max(0, self._size - len(block))
        if not self._begun:
            self._begun = True
            self._gzip = block.startswith(GZIP_MARK)
            for mark, program in PACKED.items():
                if block.startswith(mark):
                    self._fail(RecordError(f"the input is compressed; decompress it: {program} FILE | ...",
                                           f"{self._name}:1"))
                    return
        if self._gzip and block:
            block = self._unpacked(block)
            if block:
                self._split(block)
        elif block:
            self._split(block)
        else:
            self._end()

    def _unpacked(self, block: bytes) -> bytes:
        """The decompressed bytes of a block of a gzip stream; zeros between and after its members are padding."""
        content = b""
        while block:
            if self._unzip is None:
                block = block.lstrip(b"\0")
                if not block:
                    break
                self._unzip = zlib.decompressobj(wbits=31)
            before = self._unzip.copy()
            try:
                content += self._unzip.decompress(block)
            except zlib.error as error:
                self._break_off(f"the gzip stream is broken ({error})")
                return content + _before_error(before, block)
            block = self._unzip.unused_data
            if self._unzip.eof:
                self._unzip = None
        return content

    def _break_off(self, what: str) -> None:
        """End the inputs with an error, after the complete lines of the gzip stream so far."""
        self._failure, self.paths = RecordError(f"{what}; the complete lines before were read, fetch the file again",
                                                self._name), []

    def _end(self) -> None:
        """Close the open input; its last line may lack a line feed."""
        if self._unzip is not None:
            self._break_off("the gzip stream ends early")
        else:
            self._pending = [None, bytes(self._rest)] if self._rest else [None]
        self._rest = bytearray()
        if self._name != "stdin" and self._open is not None:
            os.close(self._open)
        self._open = None

    def _split(self, block: bytes) -> None:
        """Split a block into lines; keep the last, incomplete one for the next block."""
        *whole, last = block.split(b"\n")
        self._split_lines += len(whole)
        if whole:
            whole[0] = bytes(self._rest) + whole[0] if len(self._rest) <= MAX_LINE else bytes(self._rest)
            self._pending = list(whole[::-1])
            self._rest = bytearray(last)
        elif len(self._rest) <= MAX_LINE:  # the rest of a longer line is dropped
            self._rest += last


def _before_error(unzip: "zlib._Decompress", block: bytes) -> bytes:
    """The decompressed bytes of a block before the byte that is wrong."""
    content = b""
    try:
        for k in range(len(block)):
            content += unzip.decompress(block[k : k + 1])
            if unzip.eof:
                break
    except zlib.error:
        pass
    return content


def _may_be_marked(block: bytes) -> bool:
    """Whether a block is an incomplete beginning of a compressed file."""
    return bool(block) and any(len(block) < len(mark) and mark.startswith(block) for mark in (GZIP_MARK, *PACKED))
