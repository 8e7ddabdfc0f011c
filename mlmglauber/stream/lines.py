"""Bytes to lines: several inputs one after the other, gzip unpacked, other formats turned into JSON Lines."""

import os
import select
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from mlmglauber.stream.errors import InputError, MlmError, RecordError
from mlmglauber.stream.formats import BYTE_ORDER_MARK, MAX_LINE, Format, Line, Reading, format_of

BLOCK = 1 << 18
GZIPPED_BLOCK = 1 << 12
"""Bytes of a gzip stream read at a time: they may hold a thousand times as many."""
GZIP_MARK = b"\x1f\x8b"
PACKED = {b"\x28\xb5\x2f\xfd": "zstd -dc", b"\xfd7zXZ\x00": "xz -dc", b"PK\x03\x04": "unzip -p"} | {
    b"BZh%d1AY&SY" % level: "bzip2 -dc" for level in range(1, 10)}
"""What files of other programs begin with, and what unpacks them."""
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Lines:
    """The lines of several inputs, one after the other; an input that begins like a gzip file is unpacked.

    `before_wait` is called whenever the input has nothing more at hand: a filter writes out there what it holds, so a
    slow producer sees its answers at once and a fast one is served in large writes.

    Where an input cannot be read further, its whole lines before that come first, then the error is raised.
    """

    def __init__(self, paths: Sequence[str], reading: Reading | None = None) -> None:
        self.paths = list(paths) or ["-"]
        for path in self.paths:
            if path != "-" and not os.path.exists(path):
                raise InputError(f"{path}: no such file; check the name")
        self.before_wait: Callable[[], None] = lambda: None
        self._reading = reading
        self._format: Format = format_of("-", reading)
        self._made: deque[Line] = deque()  # what the format has made of the lines so far
        self._open: int | None = None
        self._gzip = False
        self._unzip: zlib._Decompress | None = None  # of the member that is being read
        self._begun = False
        self._pending: list[bytes | None] = []  # whole lines, the next one last; None is the end of the input
        self._rest = bytearray()  # the beginning of a line that is not here whole yet
        self._name, self._number = "", 0
        self._failure: MlmError | None = None

    def next(self, wait: bool = True) -> Line | None:
        """The next line; None at the end, or, without `wait`, when none has arrived yet.

        InputError and RecordError where an input cannot be read further; nothing more comes after that.
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
        return line

    def __iter__(self) -> Iterator[Line]:
        while (line := self.next()) is not None:
            yield line

    def _is_ready(self) -> bool:
        """Whether something of the input that is open is at hand."""
        assert self._open is not None
        return bool(select.select([self._open], [], [], 0)[0])

    def only_json(self) -> None:
        """From here on no line of the input that is open is plain text: one of them was broken JSON."""
        self._format.only_json()

    def _fail(self, error: MlmError) -> None:
        """The input ends here; what was made of its whole lines before is still to come."""
        self._failure, self.paths = error, []
        self._pending.clear()
        self._made.clear()

    def _take(self, content: bytes | None) -> None:
        """Give the next line of the input that is open, or its end, to its format."""
        if content is None:
            self._made.extend(self._format.end())
            return
        self._number += 1
        place = f"{self._name}:{self._number}"
        if self._format.takes_as_it_is(content):  # as nearly every line
            self._made.append(Line(place, content))
            return
        while content.startswith(BYTE_ORDER_MARK):  # also within an input: `cat a b` leaves that of b
            content = content[len(BYTE_ORDER_MARK):]
        if _is_utf_16(content):
            self._fail(RecordError("the input is UTF-16; convert it with iconv -f UTF-16 -t UTF-8", place))
        elif len(content) > MAX_LINE:
            what = f"the line is longer than {MAX_LINE} bytes; split the text"
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
            if os.isatty(self._open):
                print("reading records from the terminal, Ctrl-D ends", file=sys.stderr)
            return True
        try:
            self._open = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; check the name and its permissions") from error
        return True

    def _read(self) -> None:
        """Read some of the input that is open; whoever must wait for it first gets our output."""
        assert self._open is not None
        if not self._is_ready():
            self.before_wait()
        try:
            block = os.read(self._open, GZIPPED_BLOCK if self._gzip else BLOCK)
            while not self._begun and _may_be_marked(block):  # a mark may arrive in pieces
                more = os.read(self._open, BLOCK)
                if not more:
                    break
                block += more
        except OSError as error:
            self._failure = InputError(f"{self._name}: cannot be read after line {self._number + len(self._pending)} "
                                       f"({error.strerror}); give a file or a pipe")
            self.paths = []
            return
        if not self._begun:
            self._begun = True
            self._gzip = block.startswith(GZIP_MARK)
            for mark, program in PACKED.items():
                if block.startswith(mark):
                    self._fail(RecordError(f"the input is packed; unpack it: {program} FILE | ...", f"{self._name}:1"))
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
        """What a block of gzip members holds; zeros between and after them are padding, as on tapes."""
        found = b""
        while block:
            if self._unzip is None:
                block = block.lstrip(b"\0")
                if not block:
                    break
                self._unzip = zlib.decompressobj(wbits=31)
            before = self._unzip.copy()
            try:
                found += self._unzip.decompress(block)
            except zlib.error as error:
                self._break_off(f"the gzip stream is broken ({error})")
                return found + _before_error(before, block)
            block = self._unzip.unused_data
            if self._unzip.eof:
                self._unzip = None
        return found

    def _break_off(self, what: str) -> None:
        """The gzip stream ends with an error after the lines that are here whole."""
        self._failure, self.paths = RecordError(f"{what}; the whole lines before it were read, fetch the file again",
                                                self._name), []

    def _end(self) -> None:
        """The end of the input that is open."""
        if self._unzip is not None:
            self._break_off("the gzip stream ends early")
        else:
            self._pending = [None, bytes(self._rest)] if self._rest else [None]
        self._rest = bytearray()
        if self._name != "stdin" and self._open is not None:
            os.close(self._open)
        self._open = None

    def _split(self, block: bytes) -> None:
        """Take in what was read."""
        *whole, last = block.split(b"\n")
        if whole:
            whole[0] = bytes(self._rest) + whole[0] if len(self._rest) <= MAX_LINE else bytes(self._rest)
            self._pending = list(whole[::-1])
            self._rest = bytearray(last)
        elif len(self._rest) <= MAX_LINE:  # past that the rest of the line is dropped, not held
            self._rest += last


def _before_error(unzip: "zlib._Decompress", block: bytes) -> bytes:
    """What the bytes of a block hold before the one that is wrong."""
    found = b""
    try:
        for k in range(len(block)):
            found += unzip.decompress(block[k : k + 1])
            if unzip.eof:
                break
    except zlib.error:
        pass
    return found


def _may_be_marked(block: bytes) -> bool:
    """Whether a block is the beginning of a mark, and no more."""
    return bool(block) and any(len(block) < len(mark) and mark.startswith(block) for mark in (GZIP_MARK, *PACKED))


def _is_utf_16(line: bytes) -> bool:
    """Whether a line begins with a mark of UTF-16, or with Latin letters that have a zero on one side each."""
    if line.startswith(UTF_16_MARKS):
        return True
    start = line[:32]
    if len(start) < 8 or 0 not in start[:2]:
        return False
    return any(not any(start[k::2]) and all(start[1 - k :: 2]) for k in (0, 1))
