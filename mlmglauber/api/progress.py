"""Progress of the functions for Python: a callback, or a bar."""

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
        from rich.console import Console

        from mlmglauber.stream.progress import bar

        # As a Jupyter console, rich draws with ipywidgets only; notebooks show a bar of text without them.
        with bar(Console(stderr=True, force_jupyter=False), description, total, transient=False) as (advance, _):
            yield advance
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
