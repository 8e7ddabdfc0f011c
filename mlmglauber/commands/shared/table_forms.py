"""Writes a table as text for a terminal, as CSV and in Markdown; figures and names are never cut."""

import csv
import io
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from mlmglauber.commands.shared.tables import Cell, Column, Table
from mlmglauber.stream.printable import printable

RULED, SPACED = (3, 1), (2, -2)
"""Cells beside each column, and cells at the end of a line: for tables with lines between columns, and without."""
NARROWEST = 24
"""Minimum number of cells for a sentence in a table; if there are fewer, rows are stacked."""


class TableLayout(NamedTuple):
    """A table before it is drawn: a column in which all rows are equal has moved into the title."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


def layout(table: Table) -> TableLayout:
    """Move columns with one value into the title; drop columns without a value."""
    rows = [[cell._replace(text=printable(cell.text)) for cell in row] for row in table.cells()]
    columns = [column._replace(heading=printable(column.heading)) for column in table.columns]
    texts = [{row[k].text for row in rows} for k in range(len(columns))]
    empty = [values == {""} for values in texts]
    same = [len(rows) > 1 and len(values) == 1 and not column.stays
            for values, column in zip(texts, columns, strict=True)]
    if all(same):
        same = [False] * len(columns)
    shared = ", ".join(f"{columns[k].heading} {rows[0][k].text}" for k in range(len(columns))
                       if same[k] and not empty[k])
    kept = [k for k in range(len(columns)) if not same[k] and not empty[k]]
    return TableLayout(printable(table.title) + (f" ({shared})" if shared else ""), [columns[k] for k in kept],
                  [[row[k] for k in kept] for row in rows])


def as_text(tables: Sequence[Table], width: int | None, color: bool) -> str:
    """Tables for a terminal. width: cells of a line, None for any number; wider rows are stacked, one field a line.

    Texts are written as plain text: markup has no effect, and control characters are spelled out.
    """
    from rich.console import Console
    from rich.text import Text

    written = io.StringIO()
    console = Console(file=written, width=1 << 30, force_terminal=color, no_color=not color, highlight=False,
                      legacy_windows=False, markup=False, emoji=False)
    for table in tables:
        if not table.rows:
            continue
        ready = layout(table)
        for line in _lines(ready.title, width):
            console.print(Text(line, style="bold" if color else ""), soft_wrap=True)
        if not ready.columns:
            continue
        if (widths := _widths(ready, width, RULED)) is not None:
            console.print(_laid_out(ready, widths, ruled=True))
        elif (widths := _widths(ready, width, SPACED)) is not None:
            console.print(_laid_out(ready, widths, ruled=False))
        else:
            console.print(Text("\n".join(_stacked(ready, width or 0))), soft_wrap=True)
    return written.getvalue()


def _laid_out(ready: TableLayout, widths: Sequence[int], ruled: bool) -> Any:
    """A table of rich with columns of these widths. ruled: lines between the columns instead of two spaces."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable() if ruled else RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False,
                                                padding=(0, 1, 0, 0))
    for k, (column, size) in enumerate(zip(ready.columns, widths, strict=True)):
        right = all(row[k].figure for row in ready.rows)
        table.add_column(Text(column.heading), justify="right" if right else "left", width=size)
    for row in ready.rows:
        table.add_row(*(Text(cell.text) for cell in row))
    return table


def _widths(ready: TableLayout, width: int | None, beside: tuple[int, int]) -> list[int] | None:
    """Widths of the columns: all names and figures fit, and headings take as few lines as the width allows.

    beside: cells beside each column, and at the end of a line. None if the table does not fit.
    """
    from rich.cells import cell_len

    whole, least = [], []
    for k in range(len(ready.columns)):
        cells = [row[k] for row in ready.rows]
        whole.append(max(cell_len(cell.text) for cell in cells))
        least.append(max(min(cell_len(cell.text), max(NARROWEST, _longest_word(cell.text))) if cell.broken
                         else cell_len(cell.text) for cell in cells))
    headings = [column.heading for column in ready.columns]
    if width is None:
        return [max(size, cell_len(heading)) for size, heading in zip(whole, headings, strict=True)]
    for lines in range(1, max(len(heading.split()) for heading in headings) + 1):
        widths = [max(size, _narrowest(heading, lines)) for size, heading in zip(least, headings, strict=True)]
        spare = width - sum(widths) - beside[0] * len(widths) - beside[1]
        if spare >= 0:
            for k, size in enumerate(whole):  # sentences take the rest of the line
                more = max(0, min(spare, size - widths[k]))
                widths[k] += more
                spare -= more
            return widths
    return None


def _narrowest(heading: str, lines: int) -> int:
    """The least width at which a heading takes at most `lines` lines."""
    from rich.cells import cell_len

    least = _longest_word(heading)
    return next(width for width in range(least, cell_len(heading) + 1) if len(_lines(heading, width)) <= lines)


def _longest_word(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.split()), default=0)


def _stacked(ready: TableLayout, width: int) -> list[str]:
    """The lines of stacked rows: one field a line, an empty line between rows."""
    from rich.cells import cell_len

    margin = max(cell_len(column.heading) for column in ready.columns) + 2
    lines: list[str] = []
    for row in ready.rows:
        lines.append("")
        for column, cell in zip(ready.columns, row, strict=True):
            if not cell.text:
                continue
            if margin + cell_len(cell.text) <= width:
                lines.append(column.heading + " " * (margin - cell_len(column.heading)) + cell.text)
            else:
                lines.append(column.heading)
                broken = _lines(cell.text, width - 4) if cell.broken else [cell.text]
                lines += ["    " + line for line in broken]
    return [*lines, ""]


def _lines(text: str, width: int | None) -> list[str]:
    """The lines of a text broken between words; a word wider than the line stays whole."""
    from rich.cells import cell_len

    if width is None or cell_len(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def as_csv(tables: Sequence[Table]) -> str:
    """One CSV file: a header, then all rows with all their digits; what is not known is empty.

    Of several tables, the first column `table` holds the name, and a row is empty in the columns of other tables.
    """
    rows: list[dict[str, Any]] = []
    fields: dict[str, None] = {"table": None} if len(tables) > 1 else {}
    for table in tables:
        for row in table.cells():
            values = {"table": re.split("[:,]", table.title)[0]} if len(tables) > 1 else {}
            for column, cell in zip(table.columns, row, strict=True):
                for suffix, value in cell.values:
                    values[f"{column.heading} {suffix}".strip()] = value
            fields |= dict.fromkeys(values)
            rows.append(values)
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([printable(field) for field in fields])
    for row_values in rows:
        writer.writerow([printable(value) if isinstance(value, str) else value
                         for value in (row_values.get(field) for field in fields)])
    return text.getvalue()


def as_markdown(tables: Sequence[Table]) -> str:
    """Tables in GitHub's Markdown, each below its title."""
    parts = []
    for table in tables:
        if not table.rows:
            continue
        ready = layout(table)
        right = [all(row[k].figure for row in ready.rows) for k in range(len(ready.columns))]
        lines = [[_escaped(column.heading) for column in ready.columns], ["---:" if side else "---" for side in right],
                 *([_escaped(cell.text) for cell in row] for row in ready.rows)]
        parts.append(f"{_escaped(ready.title)}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines))
    return "\n".join(parts)


def _escaped(text: str) -> str:
    """A text with the signs of Markdown escaped."""
    return re.sub(r"([\\`*_<>|~&$#]|(?<=\])\()", r"\\\1", text)
