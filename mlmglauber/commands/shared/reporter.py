"""What a command writes to standard error: warnings, errors and progress."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.printable import printable


class Reporter:
    """Writes warnings, errors and progress to standard error, honouring -q and -v."""

    def __init__(self, command: str, quiet: bool, verbose: int, progress: bool | None, color: bool) -> None:
        self.command, self.quiet, self.verbose, self.color = command, quiet, verbose, color
        self.terminal = sys.stderr.isatty()
        self.progress = progress if progress is not None else self.terminal and not quiet
        self.bad_records = 0
        self.limit_exceeded = False
        """Whether --fail-above found a value above its limit: the command then ends with status 1."""
        self._end_bar: Callable[[], None] | None = None
        """Ends the bar that is drawn now; None where none is."""
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
            print(f"{self.command}: {printable(text)}", file=sys.stderr, flush=True)

    def _traceback(self, error: BaseException) -> None:
        import traceback

        lines = "".join(traceback.format_exception(error)).splitlines()
        with suppress(OSError):
            print(*map(printable, lines), sep="\n", file=sys.stderr, flush=True)

    def end_bar(self) -> None:
        """End the progress bar, and draw none from here on: records are written to the same terminal."""
        self.progress = False
        if self._end_bar is not None:
            self._end_bar()

    @contextmanager
    def bar(self, description: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
        """A progress bar that names the command: call the yielded function with each advance.

        Without --progress, and after `end_bar`, nothing is drawn.
        """
        if not self.progress:
            yield lambda amount: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True, no_color=not self.color, force_terminal=self.terminal or None)
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
                   TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
            task = progress.add_task(printable(f"{self.command}: {description}"), total=total)
            self._end_bar = progress.stop
            yield lambda amount: progress.update(task, advance=amount)
            self._end_bar = None


class CollectingReporter(Reporter):
    """Keeps its lines in a list; the client of a spread run writes them in the order of the input."""

    def __init__(self, command: str, quiet: bool) -> None:
        super().__init__(command, quiet, 0, False, False)
        self.lines: list[str] = []

    def _write(self, text: str) -> None:
        self.lines.append(text)
