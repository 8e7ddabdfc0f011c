"""Tables for people: a command declares columns and gives rows; table_output.py writes them.

    TABLE = Table("Drift by temperature and length", (
        Column("tau", "Temperature.", lambda group: number(group["tau"])),
        Column("median", "Median hitting time, steps.", lambda group: interval(group["median"], ...)),
    ))

    @table_options(summary=True)
    def drift(io, options):
        if shown(io, options.table):
            write_tables(io, options.table, [TABLE.of(groups)])

The meanings become the section "Tables" of the command's man page (man/build.py).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

NOTHING = "-"


class Cell(NamedTuple):
    """One cell: `text` for people, and `values` for a CSV file, each with a suffix for the heading.

    figure: whether it is a number, which is aligned right. broken: whether the text may be broken between words.
    """

    text: str
    values: tuple[tuple[str, Any], ...]
    figure: bool = True
    broken: bool = False


class Column(NamedTuple):
    """A heading, what it means (for the man page), and the cell of a row: a Cell, a string or a whole number.

    stays: whether the column stays in the table if all rows hold one value.
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
    """The cell of a value: a string is a name, a whole number a count."""
    if isinstance(value, Cell):
        return value
    return name(value) if isinstance(value, str) else count(value)


def number(value: float | None, digits: int = 2) -> Cell:
    """A number with `digits` decimals; None is a dash, and empty in a CSV file."""
    return Cell(_decimal(value, digits), (("", value),))


def count(value: int | None) -> Cell:
    """A whole number."""
    return Cell(NOTHING if value is None else str(value), (("", value),))


def share(value: float | None) -> Cell:
    """A share in per cent; in a CSV file from 0 to 1."""
    return Cell(NOTHING if value is None else f"{value:.0%}", (("", value),))


def ratio(part: int, whole: int) -> Cell:
    """A part of a whole, as in 3/10; in a CSV file two columns."""
    return Cell(f"{part}/{whole}", (("", part), ("of", whole)))


def figure(value: float | None, show: Callable[[float], str]) -> Cell:
    """A number as `show` writes it."""
    return Cell(NOTHING if value is None else show(value), (("", value),))


def interval(value: float | None, low: float | None, high: float | None, digits: int = 2,
             show: Callable[[float], str] | None = None) -> Cell:
    """A value and its 95 % interval; an end that is not known is a dash. In a CSV file three columns."""
    write = show or (lambda end: _decimal(end, digits))
    parts = [NOTHING if part is None else write(part) for part in (value, low, high)]
    text = NOTHING if value is None else f"{parts[0]} [{parts[1]}, {parts[2]}]"
    return Cell(text, (("", value), ("low", low), ("high", high)))


def small(value: float) -> str:
    """A number with three decimals, or as a power of ten if these would be 0."""
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.001 else f"{value:.1e}"


def p_value(p: float) -> str:
    """A p-value with four decimals, or "< 0.0001"."""
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def several(parts: dict[str, Cell]) -> Cell:
    """Several cells side by side in one, each a column of its own in a CSV file, named by its key."""
    values = tuple((f"{key} {suffix}".strip(), value) for key, cell in parts.items() for suffix, value in cell.values)
    return Cell(" ".join(cell.text for cell in parts.values()), values)


def name(text: str | None) -> Cell:
    """A name or another text that is never broken."""
    return Cell(NOTHING if text is None else text, (("", text),), figure=False)


def sentence(text: str | None) -> Cell:
    """A text that may be broken between its words; empty for None."""
    return Cell(text or "", (("", text),), figure=False, broken=True)


def _decimal(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"
