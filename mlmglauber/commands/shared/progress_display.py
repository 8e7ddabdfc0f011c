"""Shows progress on standard error: a line on a terminal, lines of JSON for other programs, lines in a log file.

A thread of its own reads the counts now and then, so the work does nothing for its display but count.

rich, which draws the tables and the panes of mlm-show, cannot draw this line. The stages of a pipe are processes that
share the last line of one terminal. rich's Live repaints at its own times, knows nothing of the line of another
process, hides the cursor of all, and leaves the cursor at the end of its line, where the output of another stage would
go on. So here a line is drawn in one write that leaves the cursor at its beginning, and the stages draw in turns: the
one whose turn it is holds a lock on the terminal.
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
"""Seconds between two looks at the counts: for a line on a terminal, for JSON, for a log file."""
TURN = 1.2
"""Seconds for which one stage of a pipe draws before it lets the others draw."""
LOG_WIDTH = 200
"""Maximum number of characters of a line in a log file."""


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


def show_json(command: str, progress: Progress) -> Display:
    """Writes one JSON object a line."""
    return Display(lambda _: _write(to_line(progress.as_json(command, progress.state())).decode()), WRITTEN_EVERY)


def show_log(command: str, progress: Progress) -> Display:
    """Writes the line that a terminal would show, one below the other."""
    return Display(lambda _: _write(printable("".join(line(command, progress, progress.state(), LOG_WIDTH))) + "\n"),
                   LOGGED_EVERY)


def show_on_terminal(command: str, progress: Progress, color: bool, typed: bool) -> Display:
    """Draws the last line of the terminal. typed: whether the input is typed on this terminal."""
    terminal_line = TerminalLine(command, progress, color, typed)
    with suppress(OSError):
        terminal_line(False)
    return Display(terminal_line, DRAWN_EVERY)


class TerminalLine:
    """Draws the last line of the terminal, in turns with the other stages of a pipe.

    A stage that waits for its first input draws nothing and leaves its turns to the others. While the input is typed on
    the terminal no stage draws: the one that reads it keeps the turn. A command in the background draws nothing, since
    the line belongs to the shell.
    """

    def __init__(self, command: str, progress: Progress, color: bool, typed: bool) -> None:
        self.command, self.progress, self.color, self.typed = command, progress, color, typed
        self._kept = self._until = 0.0
        self._has_turn = self._drew = False
        self._terminal: int | None = None
        with suppress(OSError):  # an open file of its own, since a lock belongs to the open file
            self._terminal = os.open(os.ttyname(sys.stderr.fileno()), os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)

    def __call__(self, last: bool) -> None:
        """Draw if it is the turn of this stage; at the end empty the line."""
        if last:
            if self._drew and (self._has_turn or self._take_turn()):
                _write(CLEAR)
            if self._terminal is not None:
                os.close(self._terminal)
            return
        now = monotonic()
        keep = now - self._kept >= 1
        self._kept = now if keep else self._kept
        state = self.progress.state(now, keep)
        typing = self.typed and state.input_open
        waiting = state.input_open and not state.seconds and not typing
        if waiting or not self._may_draw(now, typing) or typing:
            return
        cells = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        head, bar, rest = (printable(part) for part in line(self.command, self.progress, state, cells - 1))
        _write(f"{CLEAR}{head}{click.style(bar, fg='cyan') if self.color and bar else bar}{rest}\r")
        self._drew = True

    def _may_draw(self, now: float, typing: bool) -> bool:
        """Whether it is the turn of this stage. After its turn it lets one look pass, in which another stage begins."""
        if self._has_turn and (now >= self._until or not _in_foreground()) and not typing:
            self._end_turn()
            return False
        if not self._has_turn and _in_foreground() and self._take_turn():
            self._until = now + TURN
        return self._has_turn

    def _take_turn(self) -> bool:
        with suppress(OSError):  # the turn of another stage
            if self._terminal is not None:
                fcntl.flock(self._terminal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._has_turn = True
        return self._has_turn

    def _end_turn(self) -> None:
        if self._terminal is not None:
            fcntl.flock(self._terminal, fcntl.LOCK_UN)
        self._has_turn = False


def _in_foreground() -> bool:
    """Whether this process is in the foreground of the terminal, as far as that can be told."""
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except OSError:  # not the terminal that controls this process
        return True


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
