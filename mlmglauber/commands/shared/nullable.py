"""Record fields that may be null, each with the field that says why."""

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from mlmglauber.stream.records import Record

if TYPE_CHECKING:
    from mlmglauber.measures.statistics.intervals import Interval


def nullable(name: str, value: Any, reason: str | None) -> Record:
    """The field NAME. A value of None, or a number that is not finite, becomes null with the reason in NAME_reason.

    >>> nullable("median", 3.0, "too few pairs met"), nullable("median", None, "too few pairs met")
    ({'median': 3.0}, {'median': None, 'median_reason': 'too few pairs met'})
    """
    if value is not None and not (isinstance(value, float) and not isfinite(value)):
        return {name: value}
    return {name: None, f"{name}_reason": reason}


def with_reasons(record: Record, reasons: Mapping[str, str | None]) -> Record:
    """The record, followed by NAME_reason for each NAME of `reasons` that is null in it.

    >>> with_reasons({"a": None, "b": 1}, {"a": "not measured", "b": "not measured"})
    {'a': None, 'b': 1, 'a_reason': 'not measured'}
    """
    return record | {f"{name}_reason": reason for name, reason in reasons.items() if name in record
                     and record[name] is None}


def optional_reason(name: str, reason: str | None) -> Record:
    """The field NAME if there is a reason, else nothing.

    >>> optional_reason("reason", None)
    {}
    """
    return {} if reason is None else {name: reason}


def interval_fields(name: str, interval: "Interval") -> Record:
    """NAME, NAME_low and NAME_high and, where one of them is null for a reason, NAME_reason."""
    return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high,
            **optional_reason(f"{name}_reason", interval.reason)}
