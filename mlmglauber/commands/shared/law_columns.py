"""The columns of a table that tell which law chains were made by: rows of two laws are never put together."""

from collections.abc import Callable
from typing import Any

from mlmglauber.commands.shared.tables import Column, name
from mlmglauber.stream.records import Record


def law_columns(summary: Callable[[Any], Record]) -> tuple[Column, ...]:
    """Columns for the model and what else the chains were run with; `summary` finds the summary of a row."""
    return (
        Column("model", "Model that the chains are of; a dash where no run record came before them.",
               lambda row: name(summary(row).get("model"))),
        Column("law", "What else the chains were run with: a scan other than random, where they started if not from "
               "texts, words that alone may be drawn, sites that do not move.", lambda row: name(_law(summary(row)))),
    )


def _law(row: Record) -> str:
    parts = [] if row.get("scan") in (None, "random") else [f"{row['scan']} scan"]
    parts += [] if row.get("init") in (None, "text") else [f"start {row['init']}"]
    return ", ".join(parts + [f"{key} {row[key]}" for key in ("allow", "freeze") if key in row])
