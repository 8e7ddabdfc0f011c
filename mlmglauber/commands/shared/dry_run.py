"""--dry-run: how much work a command has, how long it may take and what it writes, without doing it.

A command reads its input to the end and counts. It does a few batches of the work, into an output that only counts,
and the times of these batches give the time of the whole. Nothing is written but the estimate.
"""

import resource
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.progress import clock, short
from mlmglauber.commands.shared.table_output import write_tables
from mlmglauber.commands.shared.tables import Cell, Column, Table, sentence
from mlmglauber.stream.output import Output

SECONDS = 2.0
"""Time for which a command does its work to measure it."""
PLANNED = 4096
"""Number of steps whose random numbers are drawn to measure what a step that changes nothing costs at least."""


class Bounds(NamedTuple):
    """A quantity of a run: its name, at least, at most, and how it was found. A bound that is not known is None."""

    name: str
    least: float | None
    most: float | None
    how: str = ""


class MeasuredOutput(Output):
    """Counts lines and bytes and writes nothing; those of answers apart from the others.

    kind: the type of the answers; None where they are all records but run records.
    """

    def __init__(self, kind: str | None) -> None:
        super().__init__()
        self._kind, self._named = f'"type":"{kind or "run"}"'.encode(), kind is not None
        self.answers = self.others = self._answer_bytes = self._other_bytes = 0

    def write_line(self, line: bytes) -> None:
        if (self._kind in line[:40]) is self._named:
            self.answers += 1
            self._answer_bytes += len(line)
        else:
            self.others += 1
            self._other_bytes += len(line)

    def bounds(self, least: int, most: int) -> list[Bounds]:
        """The records and bytes of a run with so many answers, at least and at most."""
        each = self._answer_bytes / self.answers if self.answers else 0.0
        return [Bounds("records", least + self.others, most + self.others),
                Bounds("bytes", least * each + self._other_bytes, most * each + self._other_bytes,
                       f"{short(each)} an answer, mean of {self.answers}")]


class Timing:
    """Times of batches: seconds a unit of the fastest and of the slowest one. The first batch warms up."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._begin = perf_counter()

    def batch(self, units: int, work: Callable[[], object]) -> None:
        """Do the work of one batch."""
        begin = perf_counter()
        work()
        if units:
            self._times.append((perf_counter() - begin) / units)

    @property
    def enough(self) -> bool:
        """Whether two batches were timed, and SECONDS have passed."""
        return len(self._times) > 1 and perf_counter() - self._begin > SECONDS

    def bounds(self, least: float, most: float, unit: str) -> Bounds:
        """The seconds of so many units, at least and at most."""
        times = self._times[1:] or self._times or [0.0]
        how = f"{min(times) * 1e3:.2g} to {max(times) * 1e3:.2g} ms a {unit}; batches timed: {len(times)}"
        return Bounds("seconds", least * min(times), most * max(times), how)


def _cell(row: Bounds, value: float | None) -> Cell:
    if value is None:
        return Cell("-", (("", None),))
    if row.name == "seconds":
        return Cell(clock(value) if value >= 60 else f"{value:.2g}", (("", value),))
    return Cell(f"{round(value):,}" if value < 1e6 else short(value), (("", round(value)),))


ESTIMATE = Table("Estimate", (
    Column("quantity", "What is counted.", lambda row: row.name, stays=True),
    Column("at least", "Lower bound.", lambda row: _cell(row, row.least), stays=True),
    Column("at most", "Upper bound.", lambda row: _cell(row, row.most), stays=True),
    Column("how", "How it was found.", lambda row: sentence(row.how), stays=True),
))


def write_estimate(io: Filter, output: Output, form: str, rows: Sequence[Bounds]) -> None:
    """Write the estimate to the output, as a table in the form of --table, --csv or --md."""
    io.output = output
    if io.reporter.nothing_found:
        return
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    memory = Bounds("memory", used, None, "bytes in use so far")
    title = f"Estimate of {io.reporter.command}, by --dry-run: nothing was run or written"
    write_tables(io, form, [ESTIMATE._replace(title=title).of([*rows, memory])])
