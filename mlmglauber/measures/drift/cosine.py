"""Drift: the cosine distance between a chain's state and its reference, in a space of sentence embeddings."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating]


class Reference:
    """The embedding from which drift is measured; its norm is computed once.

    >>> Reference(np.array([1.0, 0.0])).drift(np.array([0.0, 3.0]))
    (1.0, None)
    """

    __slots__ = ("norm", "reason", "vector")

    def __init__(self, vector: Vector) -> None:
        self.vector = vector.astype(np.float64)
        self.norm, self.reason = _norm(self.vector)

    def drift(self, vector: Vector) -> tuple[float | None, str | None]:
        """1 - cosine(reference, vector) in float64, from 0 to 2, and None.

        Where one of the two vectors is zero or not finite: None and the reason, "zero_norm" or "not_finite".
        """
        other = vector.astype(np.float64)
        norm, reason = _norm(other)
        reason = self.reason or reason
        if reason is not None:
            return None, reason
        cosine = float(self.vector.dot(other)) / (self.norm * norm)
        return 1.0 - min(1.0, max(-1.0, cosine)), None


def _norm(vector: NDArray[np.float64]) -> tuple[float, str | None]:
    with np.errstate(over="ignore"):
        square = float(vector.dot(vector))
    if 1e-250 < square < 1e250:  # outside this range squares or products of norms lose digits
        return sqrt(square), None
    # The vector is zero, not finite, very large or very small; the last two can be scaled.
    if not np.isfinite(vector).all():
        return 0.0, "not_finite"
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0:
        return 0.0, "zero_norm"
    vector /= largest
    return sqrt(float(vector.dot(vector))), None
