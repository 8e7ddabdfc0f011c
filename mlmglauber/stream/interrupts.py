"""Signals that end a run are handled between two writes, so that no line is written in part or twice."""

import os
import signal
from time import monotonic
from types import FrameType, TracebackType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
AGAIN = 1.0
"""Seconds within which a second signal counts as the same one: timeout(1) and terminals send two."""


class TerminatedError(KeyboardInterrupt):
    """SIGTERM or SIGHUP: the command ends as after Ctrl-C, with whole lines and no temporary file left behind."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Interrupts:
    """The handler of these signals. As a context manager it defers them to the end of the context."""

    def __init__(self) -> None:
        self._depth = 0
        self._waiting: KeyboardInterrupt | None = None
        self._first: float | None = None

    def listen(self) -> None:
        """Make a signal raise KeyboardInterrupt or TerminatedError; an ignored signal stays ignored (nohup).

        A second signal, more than AGAIN seconds later, ends the process at once.
        """
        self._depth, self._waiting, self._first = 0, None, None
        for number in ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
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


deferred = Interrupts()
"""The handler of this process: no signal interrupts the body of `with deferred`."""
