"""What a command says on standard error: warnings, errors and progress."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.printable import printable


class Words:
    """Writes warnings, errors and progress to standard error, honouring -q and -v."""

    def __init__(self, command: str, quiet: bool, verbose: int, progress: bool | None, color: bool) -> None:
        self.command, self.quiet, self.verbose, self.color = command, quiet, verbose, color
        self.terminal = sys.stderr.isatty()
        self.progress = progress if progress is not None else self.terminal and not quiet
        self.bad_records = 0
        self.found = self.empty = False

    def say(self, text: str) -> None:
        """A warning or a count; not with -q."""
        if not self.quiet:
            self._write(text)

    def heard(self, text: str) -> None:
        """Words of another process of this run, as they are."""
        self._write(text)

    def bad_record(self, error: RecordError) -> None:
        """Report one bad record; the command ends with status 65. Errors are said even with -q."""
        self.bad_records += 1
        self._write(str(error))
        if self.verbose:
            self._traceback(error)

    def finding(self, text: str) -> None:
        """What --fail-above asked to be told of: the output is whole, the command ends with status 1."""
        self.found = True
        self._write(text)

    def fail(self, error: BaseException, text: str) -> None:
        self._write(text)
        if self.verbose:
            self._traceback(error)

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a reader of our words that has gone, or a full disk, costs no record
            print(f"{self.command}: {printable(text)}", file=sys.stderr, flush=True)

    def _traceback(self, error: BaseException) -> None:
        import traceback

        lines = "".join(traceback.format_exception(error)).splitlines()
        with suppress(OSError):
            print(*map(printable, lines), sep="\n", file=sys.stderr, flush=True)

    @contextmanager
    def bar(self, description: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
        """A progress bar: call the yielded function with each advance. Nothing is drawn where none is wanted."""
        if not self.progress:
            yield lambda amount: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True, no_color=not self.color, force_terminal=self.terminal or None)
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
                   TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
            task = progress.add_task(printable(description), total=total)
            yield lambda amount: progress.update(task, advance=amount)
