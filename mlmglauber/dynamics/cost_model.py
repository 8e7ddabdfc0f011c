"""The calls of a model: how many there were, how long they took, and what one more row of a call would cost."""

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

import numpy as np

Answer = TypeVar("Answer")


class Counters:
    """What an engine did.

    steps: of all chains. answered: those of them that the model answered when they were due; the other steps changed
    nothing, or found their conditional in the cache. rows, calls: conditionals computed and calls of the model, in its
    fastest precision. seconds: the time that these calls took. again: conditionals computed in a better precision,
    those of checks among them. waited: seconds in which chains waited for the model, its draws included.
    """

    def __init__(self) -> None:
        self.steps = self.answered = self.rows = self.calls = self.again = 0
        self.seconds = self.waited = 0.0


class CostModel:
    """A call of R rows takes a + b R seconds: a and b by least squares over the calls so far, old ones fading.

    counters: the calls that were timed are added to it.
    """

    FADE = 0.98
    """Weight of a call relative to that of the next one."""
    UNKNOWN = 0.3
    """The threshold as long as fewer than three calls, or calls of one size only, were made."""

    def __init__(self) -> None:
        self.counters = Counters()
        self._sums = np.zeros(5)

    def timed(self, rows: int, call: Callable[[], Answer]) -> Answer:
        """Make a call of so many rows, and take its time."""
        begin = perf_counter()
        answer = call()
        seconds = perf_counter() - begin
        self.observe(rows, seconds)
        self.counters.rows += rows
        self.counters.calls += 1
        self.counters.seconds += seconds
        return answer

    def observe(self, rows: int, seconds: float) -> None:
        """Add a call to the fit."""
        self._sums = self.FADE * self._sums + np.array([1, rows, seconds, rows * rows, rows * seconds])

    def threshold(self, rows: int) -> float:
        """The chance of being used from which on one more row is worth computing: b / (a / rows + b).

        rows: number of rows that the next call has anyway. What a row costs as a part of such a call is a / rows + b,
        what it costs as an addition to it is b.
        """
        count, r, t, rr, rt = self._sums
        spread = count * rr - r * r
        if count < 3 or spread < 1e-9:
            return self.UNKNOWN
        b = max((count * rt - r * t) / spread, 1e-12)
        a = max((t - b * r) / count, 0.0)
        return float(min(max(b / (a / rows + b), 0.02), 1.0))
