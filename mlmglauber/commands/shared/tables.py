"""Tables for people: a command declares columns and gives rows; how they are shown is decided here and in table_forms.

    TABLE = Table("Drift by temperature and length", (
        Column("tau", "Temperature.", lambda group: number(group["tau"])),
        Column("median", "Median hitting time, steps.", lambda group: interval(group["median"], ...)),
    ))

    @table_options("summary")
    def main(filter, table, ...):
        if shown(filter, table):
            write_tables(filter, table, [TABLE.of(groups)])

The meanings become the section "Tables" of the command's man page (man/build.py).
"""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import click

from mlmglauber.commands.shared.filter import Filter

NOTHING = "-"
FORMS = ("text", "csv", "md")
"""What a table that is asked for is written as."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Cell(NamedTuple):
    """What stands in a table: `text` for people, `values` for a CSV file, each with what it adds to the heading.

    figure: figures stand at the right of their column, words at the left. broken: may be broken between words.
    """

    text: str
    values: tuple[tuple[str, Any], ...]
    figure: bool = True
    broken: bool = False


class Column(NamedTuple):
    """A heading, what it means (for the man page), and the cell of a row: a Cell, a string or a whole number.

    stays: in its place also where all rows hold one value.
    """

    heading: str
    meaning: str
    cell: Callable[[Any], "Cell | str | int"]
    stays: bool = False


class Table(NamedTuple):
    """A title, columns, and rows of any kind that the columns' functions take."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Any] = ()

    def of(self, rows: Iterable[Any]) -> "Table":
        """This table with rows."""
        return self._replace(rows=list(rows))

    def cells(self) -> list[list[Cell]]:
        """The cells of each row."""
        return [[as_cell(column.cell(row)) for column in self.columns] for row in self.rows]


def as_cell(value: "Cell | str | int") -> Cell:
    """A string is a name, a whole number a count."""
    if isinstance(value, Cell):
        return value
    return name(value) if isinstance(value, str) else count(value)


def number(value: float | None, digits: int = 2) -> Cell:
    """A number with so many decimals; what is not known is a dash, and empty in a CSV file."""
    return Cell(_decimal(value, digits), (("", value),))


def count(value: int | None) -> Cell:
    """A whole number."""
    return Cell(NOTHING if value is None else str(value), (("", value),))


def share(value: float | None) -> Cell:
    """A share in per cent; in a CSV file from 0 to 1."""
    return Cell(NOTHING if value is None else f"{value:.0%}", (("", value),))


def ratio(part: int, whole: int) -> Cell:
    """So many of so many; in a CSV file two columns."""
    return Cell(f"{part}/{whole}", (("", part), ("of", whole)))


def figure(value: float | None, show: Callable[[float], str]) -> Cell:
    """A number as `show` writes it."""
    return Cell(NOTHING if value is None else show(value), (("", value),))


def interval(value: float | None, low: float | None, high: float | None, digits: int = 2,
             show: Callable[[float], str] | None = None) -> Cell:
    """A value and its 95 % interval; an end that is not known is left open. In a CSV file three columns."""
    told = show or (lambda known: _decimal(known, digits))
    parts = [NOTHING if part is None else told(part) for part in (value, low, high)]
    text = NOTHING if value is None else f"{parts[0]} [{parts[1]}, {parts[2]}]"
    return Cell(text, (("", value), ("low", low), ("high", high)))


def several(parts: dict[str, Cell]) -> Cell:
    """Several cells side by side in one, each a column of its own in a CSV file, named by its key."""
    values = tuple((f"{key} {suffix}".strip(), value) for key, cell in parts.items() for suffix, value in cell.values)
    return Cell(" ".join(cell.text for cell in parts.values()), values)


def name(text: str | None) -> Cell:
    """A name or another text that stays in one piece."""
    return Cell(NOTHING if text is None else text, (("", text),), figure=False)


def sentence(text: str | None) -> Cell:
    """A text that may be broken between its words; empty where there is none."""
    return Cell(text or "", (("", text),), figure=False, broken=True)


def _decimal(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def table_options(implied: str | None = None, by_default: bool = True) -> Decorator:
    """--table, --csv and --md, of which one may be given; the command's function gets `table`: which, "" for none.

    implied: the option that any of them turns on, a summary. by_default: whether that gives a table on a terminal.
    """
    what = "A table for people instead of records" + ("; by default a summary is one on a terminal." if by_default
                                                       else ".")
    options = [
        click.option("--table/--no-table", default=None, help=what + (f" Implies --{implied}." if implied else "")),
        click.option("--csv", is_flag=True, help="The table as CSV, with all digits."),
        click.option("--md", is_flag=True, help="The table in Markdown."),
    ]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def main(filter: Filter, table: bool | None = None, csv: bool = False, md: bool = False,
                 **others: Any) -> Any:
            if (table is True) + csv + md > 1:
                raise click.UsageError("--table, --csv and --md exclude each other; run the command for each")
            form = "csv" if csv else "md" if md else {True: "text", False: "records", None: ""}[table]
            if implied is not None and form in FORMS:
                others[implied] = True
            return function(filter, table=form, **others)

        decorated: Callable[..., Any] = main
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def shown(filter: Filter, form: str) -> bool:
    """Whether a summary is written as a table: when it is asked for, or goes to a terminal."""
    return form in FORMS or (form == "" and filter.output.path is None and sys.stdout.isatty())


def write_tables(filter: Filter, form: str, tables: Sequence[Table]) -> None:
    """Write tables one below the other; as CSV all in one, told apart by a column. Empty ones are left out."""
    from mlmglauber.commands.shared.table_forms import as_csv, as_markdown, as_text

    if form == "csv":
        text = as_csv(tables)
    elif form == "md":
        text = as_markdown(tables)
    else:
        terminal = filter.output.path is None and sys.stdout.isatty()
        text = as_text(tables, width(filter), terminal and filter.words.color)
    filter.output.write_line(text.encode())


def width(filter: Filter) -> int | None:
    """Cells that a line may take: COLUMNS, else those of the terminal; None, without limit, in a file or a pipe."""
    descriptor = sys.stdout.fileno()
    if filter.output.path is not None or stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    asked = os.environ.get("COLUMNS", "")
    if asked.isascii() and asked.isdigit() and int(asked) > 0:
        return int(asked)
    return (os.get_terminal_size(descriptor).columns or 80) if sys.stdout.isatty() else None
