"""What a call of the model costs, learnt as calls are made."""

import numpy as np


class CostModel:
    """A call of R rows takes a + b R seconds, fitted by least squares to the calls so far, old ones fading."""

    FADE = 0.98

    def __init__(self) -> None:
        self._sums = np.zeros(5)

    def observe(self, rows: int, seconds: float) -> None:
        """One call of so many rows took so many seconds."""
        self._sums = self.FADE * self._sums + np.array([1, rows, seconds, rows * rows, rows * seconds])

    def threshold(self, chains: int) -> float:
        """The chance of being used from which on one more row is worth computing now: b / (a / chains + b)."""
        count, r, t, rr, rt = self._sums
        spread = count * rr - r * r
        if count < 3 or spread < 1e-9:
            return 0.3
        b = max((count * rt - r * t) / spread, 1e-12)
        a = max((t - b * r) / count, 0.0)
        return float(min(max(b / (a / chains + b), 0.02), 1.0))
