"""Reads numbers out of records; a ValueError names the field that is missing or not a number."""

from collections.abc import Mapping
from math import isfinite, isnan
from typing import Any

BROKEN = "\ufffd"
"""The character that stands for undecodable bytes in a text; different bytes look the same."""


def number(record: Mapping[str, Any], name: str) -> float:
    """The value of a field, a finite number; ValueError otherwise.

    >>> number({"tau": 1}, "tau")
    1.0
    """
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise ValueError(f'"{name}" is not a number')
    return float(value)


def perhaps(record: Mapping[str, Any], name: str) -> float | None:
    """The value of a field, a finite number, or None where it is null or missing."""
    return None if record.get(name) is None else number(record, name)


def law_of(record: Mapping[str, Any]) -> str:
    """How the chains of a summary were made, as a legend says it: model, scan, restrictions."""
    parts = [str(record["model"])] if record.get("model") is not None else []
    parts += [f"{record['scan']} scan"] if record.get("scan") not in (None, "random") else []
    names = ("allow", "ban", "top_k", "top_p", "min_p", "freeze", "schedule")
    return ", ".join(parts + [f"{key} {record[key]}" for key in names if record.get(key)])


def is_flat(record: Mapping[str, Any]) -> bool:
    """Whether a record has an embedding of two numbers, as a list or as base64 of eight bytes."""
    embedding = record.get("embedding")
    return len(embedding) == {list: 2, str: 12}.get(type(embedding)) if isinstance(embedding, list | str) else False


def with_interval(value: float, low: float, high: float) -> str:
    """A value with its interval as a page shows it; NaN is an open end.

    >>> with_interval(2, 1.25, float("nan")), with_interval(2, float("nan"), float("nan"))
    ('2 [1.25, …]', '2')
    """
    ends = ["…" if isnan(end) else f"{end:.4g}" for end in (low, high)]
    return f"{value:.4g}" + ("" if ends == ["…", "…"] else f" [{', '.join(ends)}]")
