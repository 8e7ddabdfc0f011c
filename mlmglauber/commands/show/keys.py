"""Reads single keys from the terminal of the user, since standard input is the pipe of the records."""

import os
import re
import select
import signal
import termios
import time
import tty
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

KEYS = {b" ": "pause", b"q": "end", b"\x04": "end", b"\x1b[D": "back", b"\x1bOD": "back", b"\x1b[C": "forward",
        b"\x1bOC": "forward"}
"""What the keys mean; arrows are escape sequences of two forms."""
KEY = re.compile(rb"\x1b[\[O][0-9;]*.|.", re.DOTALL)


class Keys:
    """The keys that are pressed while this context is open, without their echo; none where there is no terminal."""

    def __init__(self, path: str = "/dev/tty") -> None:
        self._path = path
        self._file: int | None = None

    @property
    def available(self) -> bool:
        """Whether there is a terminal to read keys from."""
        return self._file is not None

    def __enter__(self) -> Self:
        with suppress(OSError):
            self._file = os.open(self._path, os.O_RDONLY | os.O_NOCTTY)
        if self._file is not None:
            self._before = termios.tcgetattr(self._file)
            tty.setcbreak(self._file)
            self._on_continue = signal.signal(signal.SIGCONT, self._continue)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._file is not None:
            signal.signal(signal.SIGCONT, self._on_continue)
            with suppress(termios.error):  # the terminal has gone
                termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)
            os.close(self._file)
            self._file = None

    def _continue(self, number: int, frame: FrameType | None) -> None:
        """After Ctrl-Z and fg: read single keys again, which the shell has ended."""
        if self._file is not None:
            tty.setcbreak(self._file)

    def read(self, seconds: float) -> list[str]:
        """What the keys mean that are pressed within this time; waits for the first of them only."""
        if self._file is None:
            time.sleep(seconds)
            return []
        if not select.select([self._file], [], [], seconds)[0]:
            return []
        pressed = os.read(self._file, 256)
        if not pressed:  # the terminal has gone
            self.__exit__(None, None, None)
            return ["end"]
        return [KEYS[key] for key in KEY.findall(pressed) if key in KEYS]
