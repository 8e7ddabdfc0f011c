"""Writes tables to the output of a command, in the form of --table, --csv or --md."""

import os
import stat
import sys
from collections.abc import Sequence

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.options import TABLE_FORMS
from mlmglauber.commands.shared.table_forms import as_csv, as_markdown, as_text
from mlmglauber.commands.shared.tables import Table


def shown(io: Filter, form: str) -> bool:
    """Whether a summary is written as a table: if an option asks for it, or the output is a terminal."""
    return form in TABLE_FORMS or (form == "" and io.output.path is None and sys.stdout.isatty())


def write_tables(io: Filter, form: str, tables: Sequence[Table]) -> None:
    """Write tables one below the other; as CSV all in one, with a column for the table. Empty ones are left out."""
    if form == "csv":
        text = as_csv(tables)
    elif form == "md":
        text = as_markdown(tables)
    else:
        terminal = io.output.path is None and sys.stdout.isatty()
        text = as_text(tables, width(io), terminal and io.reporter.color)
    io.output.write_line(text.encode())


def width(io: Filter) -> int | None:
    """Cells of a line: COLUMNS, else those of the terminal; None, for no limit, in a file or a pipe."""
    descriptor = sys.stdout.fileno()
    if io.output.path is not None or stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    return (os.get_terminal_size(descriptor).columns or 80) if sys.stdout.isatty() else None
