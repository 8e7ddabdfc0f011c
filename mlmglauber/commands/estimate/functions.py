"""What --of names: a number of each state, taken from a field of its record or from its text."""

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import as_json
from mlmglauber.stream.records import Record

MISSING = object()
"""Stands for a field that a record does not have."""


def function_of(name: str) -> Callable[[Record], float]:
    """The function that --of names; it raises RecordError for a state without a number.

    FIELD is a number or a boolean, PATH.FIELD one in nested objects, FIELD=VALUE whether a field has this value,
    words the number of words of the text, and count:WORD how often a word stands in it.

    >>> function_of("visits.now")({"visits": {"now": 3}}), function_of("basin=politics")({"basin": "politics"})
    (3.0, 1.0)
    >>> function_of("count:the")({"text": "The cat, the mat; there"}), function_of("words")({"text": "a b  c"})
    (2.0, 3.0)
    """
    if name.startswith("count:"):
        pattern = re.compile(rf"(?<!\w){re.escape(name.removeprefix('count:'))}(?!\w)", re.IGNORECASE)
        return lambda record: float(len(pattern.findall(_text(record))))
    field, equals, value = name.partition("=")
    if equals:
        return lambda record: float(_as_word(_value(record, field)) == value)

    def number(record: Record) -> float:
        found = _value(record, name) if name != "words" or "words" in record else len(_text(record).split())
        if not isinstance(found, (int, float)) or not isfinite(found):
            hint = f"; give --of {name}=VALUE for its share" if isinstance(found, str) else ""
            raise RecordError(f'"{name}" is {as_json(found)}, not a number{hint}')
        return float(found)

    return number


def _value(record: Record, path: str) -> Any:
    """The value of a field; RecordError if the record lacks it."""
    found: Any = record.get(path, MISSING)
    if found is MISSING:
        found = record
        for part in path.split("."):
            found = found.get(part, MISSING) if isinstance(found, dict) else MISSING
    if found is MISSING:
        raise RecordError(f'the state has no field "{path}"; put the filter that writes it before mlm-estimate')
    return found


def _as_word(value: Any) -> str:
    """A value as --of FIELD=VALUE spells it: strings as they are, others as JSON."""
    return value if isinstance(value, str) else as_json(value)


def _text(record: Record) -> str:
    text = record.get("text")
    if not isinstance(text, str):
        raise RecordError('the state has no "text"')
    return text
