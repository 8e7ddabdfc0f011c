"""JSON Lines in and out: bytes split at the line feed alone, strict JSON, one object a record."""

import json
import os
import select
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import orjson

from mlmglauber.stream.errors import InputError, RecordError

SCHEMA = "mlm/1"
MAX_LINE = 16 * 1024 * 1024
"""A longer line is refused before it is held in memory whole."""
BLOCK = 1 << 18
GZIPPED_BLOCK = 1 << 12
"""Bytes of a gzip stream read at a time: they may hold a thousand times as many."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GZIP_MARK = b"\x1f\x8b"

Record = dict[str, Any]


class Line(NamedTuple):
    """One line of input, without its line feed; `content` is None for a line over MAX_LINE."""

    place: str
    content: bytes | None


class Lines:
    """The lines of several inputs, one after the other; an input that begins like a gzip file is unpacked.

    `before_wait` is called whenever the input has nothing more at hand: a filter writes out there what it holds, so a
    slow producer sees its answers at once and a fast one is served in large writes.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = list(paths) or ["-"]
        for path in self.paths:
            if path != "-" and not os.path.exists(path):
                raise InputError(f"{path}: no such file; check the name")
        self.before_wait: Callable[[], None] = lambda: None
        self._open: int | None = None
        self._unzip: zlib._Decompress | None = None
        self._begun = False
        self._pending: list[bytes] = []  # whole lines, the next one last
        self._rest = bytearray()  # the beginning of a line that is not here whole yet
        self._name, self._number = "", 0

    def next(self, wait: bool = True) -> Line | None:
        """The next line; None at the end, or, without `wait`, when none has arrived yet."""
        while True:
            if self._pending:
                self._number += 1
                line = self._pending.pop()
                if self._number == 1:
                    line = line.removeprefix(BYTE_ORDER_MARK)
                place = f"{self._name}:{self._number}"
                return Line(place, None if len(line) > MAX_LINE else line)
            if self._open is None and not self._open_next():
                return None
            assert self._open is not None
            if not select.select([self._open], [], [], 0)[0]:
                if not wait:
                    return None
                self.before_wait()
            self._read()

    def __iter__(self) -> Iterator[Line]:
        while (line := self.next()) is not None:
            yield line

    def _open_next(self) -> bool:
        if not self.paths:
            return False
        path = self.paths.pop(0)
        self._name, self._number = ("stdin" if path == "-" else path), 0
        self._begun, self._unzip = False, None
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

    def _bytes(self, size: int) -> bytes:
        """At most so many bytes of the input that is open; none at its end."""
        assert self._open is not None
        try:
            return os.read(self._open, size)
        except OSError as error:
            what = f"{self._name}: cannot be read after line {self._number} ({error.strerror}); give a file or a pipe"
            raise InputError(what) from error

    def _read(self) -> None:
        """Read some of the input that is open."""
        block = self._bytes(GZIPPED_BLOCK if self._unzip is not None else BLOCK)
        if not self._begun:
            self._begun = True
            if len(block) == 1:  # the mark may arrive in two pieces
                block += self._bytes(BLOCK)
            if block.startswith(GZIP_MARK):
                self._unzip = zlib.decompressobj(wbits=31)
        if self._unzip is None:
            self._fill(block)
            return
        if not block:
            if not self._unzip.eof:
                raise RecordError("the gzip stream ends early; the lines after this are lost, fetch the file again",
                                  f"{self._name}:{self._number + 1}")
            self._fill(b"")
            return
        try:
            self._fill(self._unpacked(block) or None)
        except zlib.error as error:
            raise RecordError(f"the gzip stream is broken ({error}); fetch the file again",
                              f"{self._name}:{self._number + 1}") from error

    def _unpacked(self, block: bytes) -> bytes:
        """What a block holds; a gzip file may be several streams one after the other."""
        assert self._unzip is not None
        found = self._unzip.decompress(block)
        while self._unzip.eof and self._unzip.unused_data:
            rest = self._unzip.unused_data
            self._unzip = zlib.decompressobj(wbits=31)
            found += self._unzip.decompress(rest)
        return found

    def _fill(self, block: bytes | None) -> None:
        """Take in what was read; an empty block is the end of this input, None is nothing yet."""
        if block is None:
            return
        if not block:
            if self._rest:
                self._pending = [bytes(self._rest)]
            self._rest = bytearray()
            if self._name != "stdin" and self._open is not None:
                os.close(self._open)
            self._open = None
            return
        *whole, last = block.split(b"\n")
        if whole:
            whole[0] = bytes(self._rest) + whole[0] if len(self._rest) <= MAX_LINE else bytes(self._rest)
            self._pending = whole[::-1]
            self._rest = bytearray(last)
        elif len(self._rest) <= MAX_LINE:  # past that the rest of the line is dropped, not held
            self._rest += last


def parse(line: Line, plain_text: bool = True) -> Record | None:
    """The record of a line, None for a blank one.

    A line that is no JSON value is plain text, {"text": line}, where that is accepted. A line that starts like an
    object but is none, another JSON value, invalid UTF-8 and a lone surrogate are RecordErrors.
    """
    content = line.content
    if content is None:
        raise RecordError(f"the line is longer than {MAX_LINE} bytes; split the text", line.place)
    content = content.strip(b" \t\r")
    if not content:
        return None
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        return {"text": _plain(content, line.place, str(error), plain_text)}
    if _was_rounded(value):
        value = json.loads(content)  # slower, with integers of any size
    if not isinstance(value, dict):
        kind = {list: "array", str: "string", bool: "truth value", type(None): "null"}.get(type(value), "number")
        raise RecordError(f'a JSON {kind}, not an object; write {{"text": ...}}', line.place)
    return value


LARGEST = 2.0**63
"""orjson reads an integer beyond 64 bits as the nearest float; no float of that size has a fractional part."""
DEEPEST = 200
"""Levels of a value: the writer takes 254."""


def _was_rounded(value: Any, level: int = 0) -> bool:
    """Whether a value may hold an integer that orjson rounded; long lists of numbers are vectors, not keys.

    RecordError for a value of more than DEEPEST levels.
    """
    if type(value) is float:
        return abs(value) >= LARGEST
    if type(value) is dict:
        parts: Iterable[Any] = value.values()
    elif type(value) is list and not (len(value) > 64 and type(value[0]) is type(value[-1]) is float):
        parts = value
    else:
        return False
    if level == DEEPEST:
        raise RecordError(f"values nested in depth beyond {DEEPEST} levels; flatten the record")
    rounded = False
    for part in parts:
        if type(part) in (float, dict, list):
            rounded |= _was_rounded(part, level + 1)
    return rounded


def _plain(content: bytes, place: str, reason: str, accepted: bool) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(f"invalid UTF-8 at byte {error.start + 1}; convert the file with iconv", place) from error
    if content.startswith(b"{") or not accepted:
        raise RecordError(f"not a JSON object ({reason}); mend or remove the line", place)
    return text


def check_schema(record: Record, place: str) -> None:
    """A run record of another major schema is a RecordError: its fields may mean something else."""
    schema = record.get("schema", SCHEMA)
    if record.get("type") == "run" and schema != SCHEMA:
        what = f"records of schema {schema!r}, this program reads {SCHEMA!r}; use the version that wrote them"
        raise RecordError(what, place)


def to_line(record: Record | list[Any]) -> bytes:
    """One line of strict JSON with its line feed; a number that is not finite is our bug, never a silent null."""
    try:
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:  # an integer beyond 64 bits
        whole = json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=lambda array: array.tolist())
        line = whole.encode() + b"\n"
    if b"null" in line:  # orjson writes not-a-number as null: look only where there is a null at all
        _assert_finite(record, "record")
    return line


def _assert_finite(value: Any, where: str) -> None:
    if isinstance(value, float) and not isfinite(value):
        raise AssertionError(f"{where} is {value}: a missing number is written as null with its reason")
    if isinstance(value, dict):
        for key, item in value.items():
            _assert_finite(item, f"{where}.{key}")
    elif isinstance(value, list):
        for k, item in enumerate(value):
            _assert_finite(item, f"{where}[{k}]")
    elif hasattr(value, "dtype") and value.dtype.kind == "f":
        _assert_finite(value.tolist(), where)


SUITE_TYPES = frozenset({"run", "state", "rectangle", "influence", "pair", "trap", "exact", "tokens", "summary"})
"""What `type` may say of a record that a command of the suite wrote; mlm-records(5) tells their fields."""


def is_input(record: Record) -> bool:
    """Whether a record may be the text that a command starts from; what else the suite wrote is passed on as it is."""
    kind = record.get("type")
    return not isinstance(kind, str) or kind not in SUITE_TYPES or kind == "state"


def chain_key(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """What names the chain of a state: run, id and chain."""
    return names_of(record, "run", "id", "chain")


def tau_and_n(record: Record) -> tuple[float | None, int | None]:
    """The temperature and the number of tokens of a state, None for one that it does not tell."""
    tau, n = record.get("tau"), record.get("n")
    if type(tau) not in (int, float, type(None)) or type(n) not in (int, type(None)) or not 0 <= (n or 0) < 1 << 31:
        raise RecordError('"tau" or "n" is no number; these are not state records of mlm-sample')
    return tau, n


def step_of(record: Record, last: int | None) -> int:
    """The step of a chain's next state; without one, the number after `last`."""
    step = record.get("step", 0 if last is None else last + 1)
    if type(step) is not int or not (-1 if last is None else last) < step < 1 << 62:
        raise RecordError(f"step {step!r} does not come after the step before; sort the records of a chain by step")
    return step


def names_of(record: Mapping[str, Any], *fields: str) -> tuple[Any, ...]:
    """The values of fields that name something; RecordError for a value that cannot be a name."""
    for field in fields:
        if not isinstance(record.get(field, ""), (str, int, type(None))):
            raise RecordError(f'"{field}" is a {type(record[field]).__name__}, no name; these are not records of this '
                              "suite")
    return tuple(record.get(field) for field in fields)


def record_id(record: Record, place: int) -> str:
    """The id of an input: its own, a state's whole key, or its place in the input."""
    if record.get("type") == "state":
        return "/".join(str(record.get(key)) for key in ("run", "id", "chain", "step"))
    own = record.get("id", place)
    if isinstance(own, bool) or not isinstance(own, (str, int)):
        raise RecordError('"id" is neither a string nor an integer; correct it')
    return str(own)


def text_or_ids(record: Record) -> tuple[str | None, list[int] | None]:
    """The text or, before it, the token ids of an input record; RecordError when it has neither."""
    ids, text = record.get("ids"), record.get("text")
    if ids is not None:
        if not isinstance(ids, list) or not all(type(token) is int for token in ids):
            raise RecordError('"ids" is not a list of integers; correct it')
        return None, ids
    if text is None:
        raise RecordError('no "text" and no "ids"; add one of them')
    if not isinstance(text, str):
        raise RecordError(f'"text" is a {type(text).__name__}, not a string; write it between quotes')
    return text, None
