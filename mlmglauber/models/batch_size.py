"""Chooses how many states go through a model in one call: a given number, or one found by timing calls."""

from typing import Literal

FIRST = 64
"""Number of states in the first calls."""
MOST = 4096
"""Maximum number of states in a call."""
CALLS = 3
"""Number of full calls that are timed at each size; the fastest one counts."""
GAIN = 0.9
"""A doubled size is kept if the time per token falls to at most this share of the time before."""

Rows = int | Literal["auto"]
"""A number of states per call, or "auto" for one that is found by timing calls."""


class BatchSize:
    """The number of states per call, `rows`. "auto" starts at FIRST and doubles it while the time per token falls.

    The timed calls are those of the run itself. On a CPU the time per token is the same with 64 and with 128 states, so
    the size stays; a GPU needs thousands.

    >>> size = BatchSize("auto")
    >>> for _ in range(CALLS): size.observe(64, 32, 0.010)
    >>> size.rows
    128
    >>> for _ in range(CALLS): size.observe(128, 32, 0.019)
    >>> size.rows, size.settled
    (64, True)
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = FIRST if rows == "auto" else rows
        self.settled = rows != "auto"
        self._timed: list[float] = []
        self._before: float | None = None

    def observe(self, rows: int, width: int, seconds: float) -> None:
        """Take note of a call: its number of states, the tokens of each, and its seconds."""
        if self.settled or rows < self.rows:
            return
        self._timed.append(seconds / (rows * width))
        if len(self._timed) < CALLS:
            return
        cost, self._timed = min(self._timed), []
        if self._before is not None and cost > GAIN * self._before:
            self.rows //= 2
            self.settled = True
        elif 2 * self.rows > MOST:
            self.settled = True
        else:
            self._before = cost
            self.rows *= 2

    def shrink(self, rows: int) -> None:
        """Use at most this number of states per call from now on, since memory ran out."""
        self.rows = max(1, min(self.rows, rows))
        self.settled = True
