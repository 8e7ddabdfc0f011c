"""What a command writes to standard error: warnings, errors and progress."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mlmglauber.commands.shared.progress import InputLength, Progress
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.printable import printable

CLEAR = "\r\x1b[2K"
"""Empties the line of the cursor, on which a stage of the pipe may have drawn its progress."""


class Reporter:
    """Writes warnings, errors and progress to standard error, honouring -q and -v."""

    def __init__(self, command: str, quiet: bool, verbose: int, progress: str | None, color: bool) -> None:
        """progress: bar, json or none; None for a bar where stderr is a terminal and -q is not given."""
        self.command, self.quiet, self.verbose, self.color = command, quiet, verbose, color
        self.on_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        """Whether standard error is a terminal on which a line can be emptied and drawn again."""
        self.clear = CLEAR if self.on_terminal else ""
        """What empties the line that a stage of the pipe may have drawn on the terminal."""
        asked = progress or ("bar" if self.on_terminal and not quiet else "none")
        self.progress = {"bar": "terminal" if self.on_terminal else "log", "json": "json"}.get(asked)
        """The form of progress: terminal, log, json; None for no progress."""
        self.typed = False
        """Whether the input is typed on the terminal, where no line may be drawn meanwhile."""
        self.bad_records = 0
        self.limit_exceeded = False
        """Whether --fail-above found a value above its limit: the command then ends with status 1."""
        self._stop: Callable[[], None] | None = None
        """Ends the display of progress; None where there is none."""
        self.nothing_found = False
        """Whether the input had no record that the command reads: it then ends with status 65."""

    def warn(self, text: str) -> None:
        """Write a warning or a count; with -q nothing is written."""
        if not self.quiet:
            self._write(text)

    def relay(self, text: str) -> None:
        """Write a line that another process of this run reported."""
        self._write(text)

    def bad_record(self, error: RecordError) -> None:
        """Report one bad record, also with -q; the command then ends with status 65."""
        self.bad_records += 1
        self._write(str(error))
        if self.verbose:
            self._traceback(error)

    def exceeded(self, text: str) -> None:
        """Report a value above the limit of --fail-above; the output is written to its end."""
        self.limit_exceeded = True
        self._write(text)

    def fail(self, error: BaseException, text: str) -> None:
        """Report the error that ends the command; with -v its traceback follows."""
        self._write(text)
        if self.verbose:
            self._traceback(error)

    def _write(self, text: str) -> None:
        with suppress(OSError):  # if standard error is closed or its disk is full, the records are still written
            print(f"{self.clear}{self.command}: {printable(text)}", file=sys.stderr, flush=True)

    def _traceback(self, error: BaseException) -> None:
        import traceback

        lines = "".join(traceback.format_exception(error)).splitlines()
        with suppress(OSError):
            print(*map(printable, lines), sep="\n", file=sys.stderr, flush=True)

    def end_bar(self) -> None:
        """Leave the terminal to the records that are written to it: end the progress line, and draw none again."""
        if self.progress == "terminal":
            self.progress = None
            if self._stop is not None:
                self._stop()

    @contextmanager
    def bar(self, unit: str, total: float | None = None, label: str = "",
            input_length: Callable[[], InputLength | None] | None = None) -> Iterator[Progress]:
        """The progress of some work, shown as --progress asks: the command sets its counts. See Progress."""
        progress = Progress(unit, label, total, input_length)
        if self.progress is None:
            yield progress
            return
        from mlmglauber.commands.shared import progress_display

        if self.progress == "terminal":
            display = progress_display.show_on_terminal(self.command, progress, self.color, self.typed)
        else:
            show = progress_display.show_json if self.progress == "json" else progress_display.show_log
            display = show(self.command, progress)
        self._stop = display.stop
        try:
            yield progress
        finally:
            self._stop()
            self._stop = None


class CollectingReporter(Reporter):
    """Keeps its lines in a list; the client of a spread run writes them in the order of the input."""

    def __init__(self, command: str, quiet: bool) -> None:
        super().__init__(command, quiet, 0, "none", False)
        self.lines: list[str] = []

    def _write(self, text: str) -> None:
        self.lines.append(text)
