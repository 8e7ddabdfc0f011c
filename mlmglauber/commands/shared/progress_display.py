"""Shows progress on standard error: a line on a terminal, lines of JSON for other programs, lines in a log file.

A thread of its own looks at the counts now and then, so the work does nothing for its display but count.

The stages of a pipe share the last line of a terminal. So a line is drawn in one write that leaves the cursor where it
was, at the beginning of the line, and the stages draw in turns: the one whose turn it is holds a lock on the terminal.
"""

import fcntl
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

import click

from mlmglauber.commands.shared.progress import Progress, line
from mlmglauber.stream.printable import printable
from mlmglauber.stream.records import to_line

CLEAR = "\r\x1b[2K"
"""Empties the line of the cursor."""
DRAWN_EVERY, WRITTEN_EVERY, LOGGED_EVERY = 0.2, 1.0, 10.0
"""Seconds between two looks: of a line on a terminal, of JSON, of a log file."""
TURN = 1.2
"""Seconds for which one stage of a pipe draws before it lets the others draw."""


def display(form: str, command: str, progress: Progress, color: bool) -> "Display":
    """The display of some work. form: json, terminal or log."""
    if form == "json":
        return Display(show_json(command, progress), WRITTEN_EVERY)
    if form == "log":
        return Display(show_log(command, progress), LOGGED_EVERY)
    terminal_line = TerminalLine(command, progress, color)
    terminal_line(False)
    return Display(terminal_line, DRAWN_EVERY)


class Display:
    """Calls `show` about every `seconds` until `stop`."""

    def __init__(self, show: Callable[[bool], None], seconds: float) -> None:
        """show: called with whether it is the last time."""
        self._show, self._seconds = show, seconds
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(self._seconds):
            self._once(last=False)

    def _once(self, last: bool) -> None:
        with self._lock, suppress(OSError):  # a standard error that is closed or full ends no run
            if last or not self._end.is_set():
                self._show(last)

    def stop(self) -> None:
        """Show the end, once."""
        if not self._end.is_set():
            self._end.set()
            self._once(last=True)


def show_json(command: str, progress: Progress) -> Callable[[bool], None]:
    """Writes one JSON object a line."""
    def show(last: bool) -> None:
        _write(to_line(progress.as_json(command, progress.look())).decode())

    return show


def show_log(command: str, progress: Progress) -> Callable[[bool], None]:
    """Writes the line that a terminal would show, one below the other."""
    def show(last: bool) -> None:
        _write(printable("".join(line(command, progress, progress.look(), 200))) + "\n")

    return show


class TerminalLine:
    """Draws the last line of the terminal, in turns with the other stages of a pipe."""

    def __init__(self, command: str, progress: Progress, color: bool) -> None:
        self.command, self.progress, self.color = command, progress, color
        self._looked = self._until = 0.0
        self._holds = self._drew = False
        self._terminal = -1
        with suppress(OSError):  # an open file of its own, since a lock belongs to the open file
            self._terminal = os.open(os.ttyname(sys.stderr.fileno()), os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)

    def __call__(self, last: bool) -> None:
        """Draw, or empty the line at the end."""
        if last:
            if self._drew:
                _write(CLEAR)
            if self._terminal >= 0:
                os.close(self._terminal)
            return
        now = monotonic()
        look = self.progress.look(now, keep=now - self._looked >= 1)
        self._looked = now if now - self._looked >= 1 else self._looked
        if not self._may_draw(now):
            return
        cells = 80
        with suppress(OSError):
            cells = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        head, bar, rest = (printable(part) for part in line(self.command, self.progress, look, cells - 1))
        _write(f"{CLEAR}{head}{click.style(bar, fg='cyan') if self.color else bar}{rest}\r")

    def _may_draw(self, now: float) -> bool:
        """Whether it is the turn of this stage. After its turn it lets one look pass, in which another stage begins."""
        if self._terminal < 0:
            self._drew = True
            return True
        if self._holds and now >= self._until:
            fcntl.flock(self._terminal, fcntl.LOCK_UN)
            self._holds = False
            return False
        if not self._holds:
            try:
                fcntl.flock(self._terminal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # the turn of another stage
                return False
            self._holds = self._drew = True
            self._until = now + TURN
        return True


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
