"""--dry-run: how much work a command has, how long it may take and how much it writes, without doing it.

A command reads its input to the end and counts. It does the first batches of its work, writes nothing of them, and
takes their times. Nothing is written but the estimate.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.line_size import Size
from mlmglauber.commands.shared.progress import clock
from mlmglauber.commands.shared.table_output import write_tables
from mlmglauber.commands.shared.tables import Cell, Column, Table, sentence
from mlmglauber.stream.output import Output

SECONDS = 2.0
"""Time for which a command does its work to measure it."""
MARGIN = 1.5
"""Factor by which a run may be faster than the fastest of the timed batches, and slower than the slowest one, its
start included."""


class Bounds(NamedTuple):
    """A row of the estimate: a quantity of a run, at least and at most, and how it was found."""

    name: str
    least: float
    most: float
    how: str = ""


class CountedOutput(Output):
    """Counts lines and bytes, and writes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = self.bytes = 0

    def write_line(self, line: bytes) -> None:
        self.lines += 1
        self.bytes += len(line)


class Timing:
    """The times of batches. The first batch is left out where there are others, since a model's first call is slower.

    A unit of a text that is longer than those of the batches takes at most as much longer as the text is, since a row
    of a call takes a time a + b n, and n^2 counts little below 512 tokens.
    """

    def __init__(self, io: Filter) -> None:
        self._io = io
        self._batches: list[tuple[float, float]] = []
        self._start: float | None = None

    def batch(self, length: float, work: Callable[[], float]) -> None:
        """Do the work of one batch, on texts of so many tokens on average. work: returns its number of units."""
        begin = perf_counter()
        if self._start is None:
            self._start = begin
        units = work()
        if units:
            self._batches.append(((perf_counter() - begin) / units, max(1.0, length)))

    @property
    def begun(self) -> bool:
        """Whether a batch was timed."""
        return bool(self._batches)

    @property
    def enough(self) -> bool:
        """Whether three batches were timed, and SECONDS have passed."""
        return len(self._batches) > 2 and perf_counter() - (self._start or 0.0) > SECONDS

    def bounds(self, least: "Counter[int]", most: "Counter[int]", unit: str, more: float = 0) -> Bounds:
        """The seconds of a run. least, most: number of units by the length of their text. more: seconds at its end."""
        timed = self._batches[1:] or self._batches or [(0.0, 1.0)]
        low = sum(count * min(price * min(1.0, n / length) for price, length in timed) for n, count in least.items())
        high = sum(count * max(price * max(1.0, n / length) for price, length in timed) for n, count in most.items())
        prices = [1e3 * price for price, _ in timed]
        start = 0.0 if self._start is None else self._start - self._io.began
        how = (f"{start:.1f} s before the first batch; {min(prices):.2g} to {max(prices):.2g} ms a {unit}, batches "
               f"timed: {len(prices)}")
        return Bounds("seconds", (start + low) / MARGIN, (start + high + more) * MARGIN, how)


def output_bounds(other: CountedOutput, records: tuple[int, int], size: Size) -> list[Bounds]:
    """The rows of records and bytes. other: the records besides answers. records, size: of all answers."""
    return [Bounds("records", records[0] + other.lines, records[1] + other.lines),
            Bounds("bytes", size.least + other.bytes, size.most + other.bytes)]


def _cell(name: str, value: float) -> Cell:
    if name == "seconds":
        return Cell(clock(value) if value >= 60 else f"{value:.2g}", (("", value),))
    return Cell(f"{value:,}", (("", value),))


ESTIMATE = Table("Estimate", (
    Column("quantity", "What is counted; seconds are from the start of the command.", lambda row: row.name, stays=True),
    Column("at least", "No run has less.", lambda row: _cell(row.name, row.least), stays=True),
    Column("at most", "No run has more.", lambda row: _cell(row.name, row.most), stays=True),
    Column("how", "How the bounds were found, and what was measured.", lambda row: sentence(row.how), stays=True),
))


def write_estimate(io: Filter, output: Output, form: str, rows: Sequence[Bounds]) -> None:
    """Write the estimate to the output, as a table in the form of --table, --csv or --md."""
    io.output = output
    title = f"Estimate of {io.reporter.command} (--dry-run: nothing else is written)"
    write_tables(io, form, [ESTIMATE._replace(title=title).of(rows)])
