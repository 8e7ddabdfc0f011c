"""Progress bars, drawn by rich."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mlmglauber.stream.printable import printable

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def bar(console: "Console", description: str, total: float | None,
        transient: bool) -> Iterator[tuple[Callable[[float], None], Callable[[], None]]]:
    """A progress bar on a console: (the function to call with each advance, the function that ends the bar early).

    transient: the bar goes away at the end.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=transient, redirect_stdout=False) as progress:
        task = progress.add_task(printable(description), total=total)
        yield lambda amount: progress.update(task, advance=amount), progress.stop
