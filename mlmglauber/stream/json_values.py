"""Strict JSON, read and written: integers of any size, no number that is not finite."""

import json
import re
from collections.abc import Iterable
from math import isfinite
from typing import Any

import orjson

from mlmglauber.stream.errors import RecordError

LARGEST = 2.0**63
"""orjson reads an integer beyond 64 bits as the nearest float; no float of that size has a fractional part."""
DEEPEST = 200
"""Levels of a value: the writer takes 254."""
LONG_INTEGER = re.compile(rb"[0-9]{309}")
"""More digits than any float has: the reader takes none of these."""


def loads(content: bytes) -> Any:
    """The value of a JSON text, integers as they are written; orjson.JSONDecodeError for what is none.

    RecordError for a value of more than DEEPEST levels, and for an integer of more than 308 digits.
    """
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        if content[:1] in (b"{", b"[") and LONG_INTEGER.search(content):
            raise RecordError("an integer of more than 308 digits; write it between quotes, or mend the line") from None
        raise
    return json.loads(content) if _was_rounded(value) else value  # the slower one has integers of any size


def loads_object(content: bytes) -> dict[str, Any] | None:
    """The object of a JSON text, None for anything else."""
    try:
        value = loads(content)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


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


def dumps(value: Any) -> bytes:
    """Strict JSON of a value, arrays as lists; a number that is not finite is our bug, never a silent null."""
    whole = _encoded(value)
    if b"null" in whole:  # orjson writes not-a-number as null: look only where there is a null at all
        _assert_finite(value, "record")
    return whole


def to_line(record: dict[str, Any] | list[Any]) -> bytes:
    """One line of strict JSON with its line feed."""
    return dumps(record) + b"\n"


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:  # an integer beyond 64 bits, or what holds one: all else is written as ever
        if isinstance(value, dict):
            return b"{" + b",".join(_encoded(key) + b":" + _encoded(item) for key, item in value.items()) + b"}"
        if isinstance(value, (list, tuple)):
            return b"[" + b",".join(map(_encoded, value)) + b"]"
        if type(value) is int:
            return str(value).encode()
        raise


def _assert_finite(value: Any, where: str) -> None:
    if isinstance(value, float) and not isfinite(value):
        raise AssertionError(f"{where} is {value}: a missing number is written as null with its reason")
    if isinstance(value, dict):
        for key, item in value.items():
            _assert_finite(item, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for k, item in enumerate(value):
            _assert_finite(item, f"{where}[{k}]")
    elif hasattr(value, "dtype") and value.dtype.kind == "f":
        _assert_finite(value.tolist(), where)


def as_json(value: Any, longest: int = 60) -> str:
    """A value as JSON spells it, for a message; a long one is cut.

    >>> as_json(None), as_json("a"), as_json(1.5)
    ('null', '"a"', '1.5')
    """
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= longest else text[:longest] + "..."


def json_kind(value: Any) -> str:
    """What a value is called in JSON: a message does not speak Python.

    >>> json_kind(None), json_kind(True), json_kind(7), json_kind("a"), json_kind([]), json_kind({})
    ('null', 'a truth value', 'a number', 'a string', 'an array', 'an object')
    """
    if value is None:
        return "null"
    kinds: list[tuple[Any, str]] = [(bool, "a truth value"), ((int, float), "a number"), (str, "a string"),
                                    (list, "an array")]
    return next((name for kind, name in kinds if isinstance(value, kind)), "an object")
