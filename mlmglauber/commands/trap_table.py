"""The table of mlm-traps for people."""

from collections.abc import Sequence

from mlmglauber.commands.tables import interval, number, rendered
from mlmglauber.stream.records import Record


def trap_table(groups: Sequence[Record], color: bool) -> bytes:
    """One row for each temperature and length; residences in steps."""
    from rich.table import Table

    table = Table(title="Traps by temperature and length")
    for column in ("tau", "n", "chains", "trapped", "traps", "per 1,000 steps", "time trapped", "median residence",
                   "longest", "perfect", "median margin", "observed / expected", "states", "come again"):
        table.add_column(column, justify="right")
    for group in groups:
        table.add_row(
            number(group["tau"]), number(group["n"], 0), str(group["chains"]), str(group["chains_trapped"]),
            str(group["count"]), number(group["per_1000"]), percent(group["trapped"]),
            number(group["residence"]["0.5"], 0), number(group["longest"], 0), percent(group["perfect"]),
            number(group["margin_median"]), interval(group["ratio"], group["ratio_low"], group["ratio_high"]),
            str(group["distinct"]), str(group["recurring_states"]),
        )
    return rendered(table, color)


def percent(share: float | None) -> str:
    """A share in per cent; what is not known is a dash."""
    return number(None) if share is None else f"{share:.0%}"
