"""The tables of mlm-rect for people."""

from collections.abc import Sequence

from mlmglauber.commands.tables import interval, number, rendered
from mlmglauber.stream.records import Record


def rectangle_table(groups: Sequence[Record], color: bool) -> bytes:
    """One row for each model and temperature; |delta| in nats."""
    from rich.table import Table

    table = Table(title="|delta| of rectangles, nats")
    table.add_column("model")
    for column in ("tau", "texts", "rectangles", "mean", "median", "RMS", "95 %", "noise floor", "above it"):
        table.add_column(column, justify="right")
    for group in groups:
        floor, share = group["noise_floor"], group["above_noise"]
        digits = 3 if group["mean"] >= 0.01 else 7
        table.add_row(
            shown(group["model"]), number(group["tau"]), str(group["texts"]), str(group["count"]),
            interval(group["mean"], group["mean_low"], group["mean_high"], digits), number(group["median"], digits),
            number(group["rms"], digits), number(group["quantiles"]["0.95"], digits),
            number(None) if floor is None else f"{floor:.1e}", number(None) if share is None else f"{share:.0%}",
        )
    return rendered(table, color)


def production_table(groups: Sequence[Record], color: bool) -> bytes:
    """One row for each temperature and length; entropy production in nats a step."""
    from rich.table import Table

    table = Table(title="Entropy production, nats a step")
    for column in ("tau", "n", "chains", "steps", "changes", "entropy production"):
        table.add_column(column, justify="right")
    for group in groups:
        table.add_row(
            number(group["tau"]), number(group["n"], 0), str(group["chains"]), str(group["steps"]),
            str(group["changes"]),
            interval(group["entropy_production"], group["production_low"], group["production_high"], 4),
        )
    return rendered(table, color)


def shown(text: str) -> str:
    """A text as a table may show it: no control characters, no markup of rich."""
    from rich.markup import escape

    return escape("".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text))
