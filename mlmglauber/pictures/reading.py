"""Numbers out of records: what is missing or is no number is a ValueError that names the field."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

BROKEN = "\ufffd"
"""What stands in a text for bytes that are no letter: a piece of one, which other bytes read like."""


def number(record: Mapping[str, Any], name: str) -> float:
    """A finite number.

    >>> number({"tau": 1}, "tau")
    1.0
    """
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise ValueError(f'"{name}" is no number')
    return float(value)


def perhaps(record: Mapping[str, Any], name: str) -> float | None:
    """A finite number, or None where the record says null."""
    return None if record.get(name) is None else number(record, name)


def law_of(record: Mapping[str, Any]) -> str:
    """What the chains of a summary were made by, as a picture of several tells it: model, scan, restrictions."""
    parts = [str(record["model"])] if record.get("model") is not None else []
    parts += [f"{record['scan']} scan"] if record.get("scan") not in (None, "random") else []
    return ", ".join(parts + [f"{key} {record[key]}" for key in ("allow", "freeze") if record.get(key)])


def is_flat(record: Mapping[str, Any]) -> bool:
    """Whether a record has an embedding of two numbers: a list, or base64 of eight bytes."""
    embedding = record.get("embedding")
    return len(embedding) == {list: 2, str: 12}.get(type(embedding)) if isinstance(embedding, list | str) else False
