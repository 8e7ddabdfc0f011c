"""The columns of a table for the law of the chains; rows of two laws are never pooled."""

from collections.abc import Callable
from typing import Any

from mlmglauber.commands.shared.tables import Column, name
from mlmglauber.stream.records import Record


def law_columns(summary: Callable[[Any], Record]) -> tuple[Column, ...]:
    """Columns for the model and the other settings of the chains. summary: the function from a row to its summary."""
    return (
        Column("model", "Model of the chains; a dash where no run record came before them.",
               lambda row: name(summary(row).get("model"))),
        Column("law", "Other settings of the chains: a scan other than random, a start other than texts, the only "
               "words that may be drawn, the sites that stay fixed, a schedule of temperatures and the number of its "
               "piece, from 0 on.", lambda row: name(_law(summary(row)))),
    )


def _law(row: Record) -> str:
    parts = [] if row.get("scan") in (None, "random") else [f"{row['scan']} scan"]
    parts += [] if row.get("init") in (None, "text") else [f"start {row['init']}"]
    names = ("allow", "ban", "top_k", "top_p", "min_p", "freeze", "schedule", "piece")
    return ", ".join(parts + [f"{key} {row[key]}" for key in names if key in row])
