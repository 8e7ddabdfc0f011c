"""What --of names: a number of each state, taken from a field of its record or from its text."""

import re
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import as_json
from mlmglauber.stream.records import Record

MISSING = object()
"""Stands for a field that a record does not have."""
NUMBERS = frozenset({int, float, bool})


class StateFunction:
    """A number of each state, as --of names it.

    FIELD is a number or a boolean, PATH.FIELD one in nested objects or, with a place from 0 on, in an array.
    FIELD=VALUE is whether a field has this value, words the number of words of the text, and count:WORD how often a
    word stands in it.

    >>> StateFunction("visits.now").of({"visits": {"now": 3}}), StateFunction("basin=war").of({"basin": "war"})
    (3.0, 1.0)
    >>> StateFunction("count:the").of({"text": "The cat, the mat"}), StateFunction("words").of({"text": "a b  c"})
    (2.0, 3.0)
    """

    def __init__(self, name: str) -> None:
        self.name = name
        field, equals, value = name.partition("=")
        self.of: Callable[[Record], float]
        """The number of a state; RecordError for a state without it."""
        if name.startswith("count:"):
            pattern = re.compile(rf"(?<!\w){re.escape(name.removeprefix('count:'))}(?!\w)", re.IGNORECASE)
            self.of = lambda record: float(len(pattern.findall(_text(record))))
        elif equals:
            self.of = lambda record: float(_as_word(_value(record, field)) == value)
        else:
            self.of = self._number
        self._simple = not equals and ":" not in name

    def column(self, records: Sequence[Record]) -> NDArray[np.float64] | None:
        """(J,) the numbers of J states, None where one of them has none."""
        name = self.name
        try:
            if self._simple and all(name in record for record in records):
                values = [record[name] for record in records]
                if not NUMBERS.issuperset(map(type, values)):
                    return None
            else:
                values = [self.of(record) for record in records]
            numbers = np.array(values, dtype=np.float64)
        except (RecordError, OverflowError):
            return None
        return numbers if np.isfinite(numbers).all() else None

    def _number(self, record: Record) -> float:
        name = self.name
        found = _value(record, name) if name != "words" or "words" in record else len(_text(record).split())
        if type(found) not in NUMBERS or abs(found) >= 1e308 or not isfinite(found):
            hint = f"; give --of {name}=VALUE for its share" if isinstance(found, str) else ""
            reason = record.get(f"{name}_reason")
            why = f" ({reason})" if found is None and isinstance(reason, str) else ""
            raise RecordError(f'"{name}" is {as_json(found)}{why}, not a finite number{hint}')
        return float(found)


def _value(record: Record, path: str) -> Any:
    """The value of a field; RecordError if the record lacks it."""
    found: Any = record.get(path, MISSING)
    if found is MISSING:
        found = record
        for part in path.split("."):
            if isinstance(found, dict):
                found = found.get(part, MISSING)
            else:
                whole = isinstance(found, list) and part.isdecimal() and int(part) < len(found)
                found = found[int(part)] if whole else MISSING
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
