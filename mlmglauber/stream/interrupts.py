"""Signals that end a run: heard between two writes, never in the midst of one, so that no line is torn or doubled."""

import os
import signal
from time import monotonic
from types import FrameType, TracebackType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
AGAIN = 1.0
"""Seconds within which signals are one: timeout(1) and terminals send two, to a process and to its group."""


class TerminatedError(KeyboardInterrupt):
    """SIGTERM or SIGHUP: end as at Ctrl-C, with whole lines and no hidden file left behind."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Interrupts:
    """The handler of these signals, and a context in which they wait for its end."""

    def __init__(self) -> None:
        self._depth = 0
        self._waiting: KeyboardInterrupt | None = None
        self._first: float | None = None

    def heed(self) -> None:
        """From now on a signal raises KeyboardInterrupt or TerminatedError; one that is ignored stays ignored (nohup).

        A second one, of somebody who means it, ends the process at once.
        """
        self._depth, self._waiting, self._first = 0, None, None
        for number in ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._hear)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._first is not None:
            if monotonic() - self._first > AGAIN:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            return
        self._first = monotonic()
        error = KeyboardInterrupt() if number == signal.SIGINT else TerminatedError(number)
        if not self._depth:
            raise error
        self._waiting = error

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._depth -= 1
        if not self._depth and self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            raise waiting


held = Interrupts()
"""`with held:` is done whole: a process has one set of signals."""
