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
        mean = f"{_nats(group['mean'])} [{_nats(group['mean_low'])}, {_nats(group['mean_high'])}]"
        table.add_row(
            group["model"], number(group["tau"]), str(group["texts"]), str(group["count"]),
            mean, _nats(group["median"]), _nats(group["rms"]), _nats(group["quantiles"]["0.95"]), _nats(floor),
            number(None) if share is None else f"{share:.0%}",
        )
    return rendered(table, color)


def _nats(value: float | None) -> str:
    """Three decimals, or a power of ten where these would be 0."""
    return number(value, 3) if value is None or value == 0 or value >= 0.001 else f"{value:.1e}"


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
