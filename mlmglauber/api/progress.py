"""Progress of the functions for Python: a callback, or a bar.

rich draws the bar, since one process has the terminal. The commands, which share it with the other stages of a pipe,
draw a line of their own (commands/shared/progress_display.py).
"""

import atexit
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

Progress = Callable[[float], None] | bool | None
"""True draws a bar on standard error, in a terminal or a notebook; a function is called with each advance."""


@contextmanager
def advancing(progress: Progress, description: str, total: float) -> Iterator[Callable[[float], None]]:
    """The function to call with each advance."""
    if callable(progress):
        yield progress
    elif progress:
        from rich import progress as rich
        from rich.console import Console

        columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn(),
                   rich.TimeRemainingColumn())
        # As a Jupyter console, rich draws with ipywidgets only; notebooks show a bar of text without them.
        console = Console(stderr=True, force_jupyter=False)
        with rich.Progress(*columns, console=console, redirect_stdout=False) as bar:
            task = bar.add_task(description, total=total)
            yield lambda amount: bar.update(task, advance=amount)
    else:
        yield lambda amount: None


def close_at_exit(states: Generator[Any]) -> None:
    """Close a generator before the interpreter takes apart what its bar needs, where it is left unfinished."""
    known = ref(states)

    @atexit.register
    def close() -> None:
        if (left := known()) is not None:
            left.close()


@contextmanager
def without_widget_warning() -> Iterator[None]:
    """Import a library that uses tqdm: in a notebook without ipywidgets, tqdm warns that they are missing."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")
        yield
