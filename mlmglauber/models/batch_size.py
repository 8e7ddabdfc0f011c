"""How many states go through a model at once: a given number, or one that timed calls find."""

from typing import Literal

FIRST = 64
"""Number of states of the first calls."""
MOST = 4096
"""Maximum number of states of a call."""
CALLS = 3
"""Number of full calls that are timed at each size; the fastest counts."""
GAIN = 0.9
"""A size twice as large is kept if a token costs at most this share of its cost before."""

Given = int | Literal["auto"]


class BatchSize:
    """The number of states a call, `rows`. "auto" doubles it while full calls become cheaper a token, from FIRST on.

    The calls are those that are made anyway. On a CPU a token costs the same in calls of 64 and of 128 states, and the
    size stays; a GPU wants thousands.

    >>> size = BatchSize("auto")
    >>> for _ in range(CALLS): size.observe(64, 32, 0.010)
    >>> size.rows
    128
    >>> for _ in range(CALLS): size.observe(128, 32, 0.019)
    >>> size.rows, size.settled
    (64, True)
    """

    def __init__(self, given: Given) -> None:
        self.rows = FIRST if given == "auto" else given
        self.settled = given != "auto"
        self._timed: list[float] = []
        self._before: float | None = None

    def observe(self, rows: int, width: int, seconds: float) -> None:
        """A call of so many states of so many tokens took so many seconds."""
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
        """Memory was short: from now on at most so many states a call."""
        self.rows = max(1, min(self.rows, rows))
        self.settled = True
