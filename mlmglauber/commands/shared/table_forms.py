"""A table as text for a terminal, as CSV and in Markdown: no figure and no name is ever cut."""

import csv
import io
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from mlmglauber.commands.shared.tables import Cell, Column, Table
from mlmglauber.stream.printable import printable

RULED, SPACED = (3, 1), (2, -2)
"""Cells beside each column, and at the end of a line: with lines between columns, and without."""
NARROWEST = 24
"""Cells that a sentence gets in a table at least; where there are fewer, rows are stacked."""


class _Shown(NamedTuple):
    """A table that is ready to be laid out: what all rows share stands in the title."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


def _ready(table: Table) -> _Shown:
    """Columns that hold one value move into the title; those that hold nothing go."""
    rows = [[cell._replace(text=printable(cell.text)) for cell in row] for row in table.cells()]
    columns = [column._replace(heading=printable(column.heading)) for column in table.columns]
    texts = [{row[k].text for row in rows} for k in range(len(columns))]
    empty = [found == {""} for found in texts]
    same = [len(rows) > 1 and len(found) == 1 and not column.stays
            for found, column in zip(texts, columns, strict=True)]
    if all(same):
        same = [False] * len(columns)
    told = ", ".join(f"{columns[k].heading} {rows[0][k].text}" for k in range(len(columns)) if same[k] and not empty[k])
    kept = [k for k in range(len(columns)) if not same[k] and not empty[k]]
    return _Shown(printable(table.title) + (f" ({told})" if told else ""), [columns[k] for k in kept],
                  [[row[k] for k in kept] for row in rows])


def as_text(tables: Sequence[Table], width: int | None, color: bool) -> str:
    """Tables for a terminal of so many cells, or of any width; a row is stacked, one field a line, where it is wider.

    What stands in them is plain text, whoever wrote it: no markup, and control characters are spelled out.
    """
    from rich.console import Console
    from rich.text import Text

    written = io.StringIO()
    console = Console(file=written, width=1 << 30, force_terminal=color, no_color=not color, highlight=False,
                      legacy_windows=False, markup=False, emoji=False)
    for table in tables:
        if not table.rows:
            continue
        ready = _ready(table)
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


def _laid_out(ready: _Shown, widths: Sequence[int], ruled: bool) -> Any:
    """A table of rich, with lines between its columns or two spaces; these are as wide as they are told to be."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable() if ruled else RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False,
                                               padding=(0, 1, 0, 0))
    for k, (column, size) in enumerate(zip(ready.columns, widths, strict=True)):
        right = all(row[k].figure for row in ready.rows)
        made.add_column(Text(column.heading), justify="right" if right else "left", width=size)
    for row in ready.rows:
        made.add_row(*(Text(cell.text) for cell in row))
    return made


def _widths(ready: _Shown, width: int | None, beside: tuple[int, int]) -> list[int] | None:
    """Cells of each column: enough for all names and figures, and for headings in as few lines as there is room for.

    beside: cells that stand beside each column, and at the end of a line. None where all that is too wide.
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
        found = [max(size, _narrowest(heading, lines)) for size, heading in zip(least, headings, strict=True)]
        spare = width - sum(found) - beside[0] * len(found) - beside[1]
        if spare >= 0:
            for k, size in enumerate(whole):  # sentences take what is left
                more = max(0, min(spare, size - found[k]))
                found[k] += more
                spare -= more
            return found
    return None


def _narrowest(heading: str, lines: int) -> int:
    """The least width at which a heading takes so many lines."""
    from rich.cells import cell_len

    least = _longest_word(heading)
    return next(width for width in range(least, cell_len(heading) + 1) if len(_lines(heading, width)) <= lines)


def _longest_word(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.split()), default=0)


def _stacked(ready: _Shown, width: int) -> list[str]:
    """One field a line, rows with an empty line between them."""
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
    """A text broken between words; a word that is wider stays whole."""
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

    Where a command has several tables, the first column `table` tells them apart, and a row is empty in the others'
    columns.
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
    for found in rows:
        writer.writerow([printable(value) if isinstance(value, str) else value
                         for value in (found.get(field) for field in fields)])
    return text.getvalue()


def as_markdown(tables: Sequence[Table]) -> str:
    """Tables of GitHub's Markdown, each below its title."""
    parts = []
    for table in tables:
        if not table.rows:
            continue
        ready = _ready(table)
        right = [all(row[k].figure for row in ready.rows) for k in range(len(ready.columns))]
        lines = [[_escaped(column.heading) for column in ready.columns], ["---:" if side else "---" for side in right],
                 *([_escaped(cell.text) for cell in row] for row in ready.rows)]
        parts.append(f"{_escaped(ready.title)}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines))
    return "\n".join(parts)


def _escaped(text: str) -> str:
    """A text without meaning to Markdown."""
    return re.sub(r"([\\`*_<>|~&$#]|(?<=\])\()", r"\\\1", text)
