"""Reads and writes strict JSON: integers of up to 308 digits, no NaN and no infinity."""

import json
import re
from collections.abc import Iterable
from math import isfinite
from typing import Any

import orjson

from mlmglauber.stream.errors import RecordError

LARGEST = 2.0**63
"""orjson reads integers beyond 64 bits as floats; floats from this size on may come from such an integer."""
DEEPEST = 200
"""Maximum number of nested levels of a value; orjson writes at most 254."""
LONG_INTEGER = re.compile(rb"[0-9]{309}")
"""An integer with more digits than the largest float: orjson cannot read it."""


def loads(content: bytes) -> Any:
    """The value of a JSON text, integers exact.

    orjson.JSONDecodeError for a text that is not JSON; RecordError for more than DEEPEST nested levels, and for an
    integer of more than 308 digits.
    """
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        if content[:1] in (b"{", b"[") and LONG_INTEGER.search(content):
            raise RecordError("an integer of more than 308 digits; write it as a string") from None
        raise
    return json.loads(content) if _was_rounded(value) else value  # the slower json reads integers of any size


def loads_object(content: bytes) -> dict[str, Any] | None:
    """The object of a JSON text; None for other JSON values and for text that is not JSON."""
    try:
        value = loads(content)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _was_rounded(value: Any, level: int = 0) -> bool:
    """Whether a value may hold an integer that orjson rounded; long lists of floats are skipped as embeddings.

    RecordError for more than DEEPEST nested levels.
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
        raise RecordError(f"values are nested in more than {DEEPEST} levels; flatten the record")
    if {float, dict, list}.isdisjoint(map(type, parts)):  # most lists are ids of tokens
        return False
    rounded = False
    for part in parts:
        if type(part) in (float, dict, list):
            rounded |= _was_rounded(part, level + 1)
    return rounded


def dumps(value: Any) -> bytes:
    """Strict JSON of a value, arrays as lists. AssertionError, an internal error, for a number that is not finite."""
    try:
        whole = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:  # a value that holds an integer beyond 64 bits
        whole = _with_long_integers(value)
    if b"null" in whole:  # orjson writes NaN as null: search for one only where there is a null
        _assert_finite(value, "record")
    return whole


def to_line(record: dict[str, Any] | list[Any]) -> bytes:
    """A record as one line of strict JSON, with its line feed."""
    return dumps(record) + b"\n"


def _with_long_integers(value: Any) -> bytes:
    """JSON of a value; the integers beyond 64 bits in it, which orjson cannot write, are written with str."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:
        if isinstance(value, dict):
            return b"{" + b",".join(_with_long_integers(key) + b":" + _with_long_integers(item)
                                    for key, item in value.items()) + b"}"
        if isinstance(value, (list, tuple)):
            return b"[" + b",".join(map(_with_long_integers, value)) + b"]"
        if type(value) is int:
            return str(value).encode()
        raise


def _assert_finite(value: Any, where: str) -> None:
    if isinstance(value, float) and not isfinite(value):
        raise AssertionError(f"{where} is {value}; a number that is missing must be null with a reason")
    if isinstance(value, dict):
        for key, item in value.items():
            _assert_finite(item, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for k, item in enumerate(value):
            _assert_finite(item, f"{where}[{k}]")
    elif hasattr(value, "dtype") and value.dtype.kind == "f":
        _assert_finite(value.tolist(), where)


def as_json(value: Any, longest: int = 60) -> str:
    """A value as JSON, for a message; a long one is truncated.

    >>> as_json(None), as_json("a"), as_json(1.5)
    ('null', '"a"', '1.5')
    """
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= longest else text[:longest] + "..."


def json_kind(value: Any) -> str:
    """The kind of a value in the words of JSON, for a message.

    >>> json_kind(None), json_kind(True), json_kind(7), json_kind("a"), json_kind([]), json_kind({})
    ('null', 'a truth value', 'a number', 'a string', 'an array', 'an object')
    """
    if value is None:
        return "null"
    kinds: list[tuple[Any, str]] = [(bool, "a truth value"), ((int, float), "a number"), (str, "a string"),
                                    (list, "an array")]
    return next((name for kind, name in kinds if isinstance(value, kind)), "an object")
