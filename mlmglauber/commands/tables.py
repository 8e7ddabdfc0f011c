"""Tables for people, made of summary records."""

import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

from mlmglauber.stream.printable import printable
from mlmglauber.stream.records import Record

NOTHING = "-"


def number(value: Any, digits: int = 2) -> str:
    """A number as a table shows it; what is not known is a dash."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def interval(value: Any, low: Any, high: Any, digits: int = 2) -> str:
    """A value and its 95 % interval; an end that is not known is left open."""
    if value is None:
        return NOTHING
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


def drift_table(groups: Sequence[Record], color: bool) -> bytes:
    """One row for each temperature, length and threshold."""
    from rich.table import Table

    table = Table(title="Drift by temperature and length")
    for column in ("tau", "n", "chains", "frozen", "plateau drift", "threshold", "hits", "median hitting time",
                   "C = T / (n ln n)", "R-hat", "ESS"):
        table.add_column(column, justify="right")
    for group in groups:
        for hitting in group["hitting"]:
            diagnostics = group["diagnostics"]
            table.add_row(
                number(group["tau"]), str(group["n"]), str(group["chains"]), str(group["frozen_chains"]),
                number(group["plateau"]), number(hitting["threshold"]),
                f"{hitting['hits']}/{group['chains']}",
                interval(hitting["median"], hitting["median_low"], hitting["median_high"], 0),
                interval(hitting["c"], hitting["c_low"], hitting["c_high"]),
                number(diagnostics.get("rhat_rank")), number(diagnostics.get("ess_bulk"), 0),
            )
    return rendered(table, color)


def rendered(table: "Table", color: bool) -> bytes:
    """A table as bytes, as wide as the terminal or, where there is none, as it needs; colours only on a terminal.

    What stands in it is plain text, whoever wrote it: no markup, and control characters are spelled out.
    """
    from rich.console import Console

    class Plain(Console):
        def render_str(self, text: str, **how: Any) -> Any:
            return super().render_str(printable(text), **how)

    terminal = sys.stdout.isatty()
    width = os.get_terminal_size(sys.stdout.fileno()).columns if terminal else 200
    text = io.StringIO()
    console = Plain(file=text, width=width or 80, force_terminal=terminal and color, no_color=not color,
                    highlight=False, legacy_windows=False, markup=False, emoji=False)
    console.print(table)
    return text.getvalue().encode()
