"""Drift: how far a chain has gone from its reference in a space of sentence embeddings."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating]


class Reference:
    """The point from which drift is measured; its length is computed once.

    >>> Reference(np.array([1.0, 0.0])).drift(np.array([0.0, 3.0]))
    (1.0, None)
    """

    __slots__ = ("norm", "reason", "vector")

    def __init__(self, vector: Vector) -> None:
        self.vector = vector.astype(np.float64)
        self.norm, self.reason = _norm(self.vector)

    def drift(self, vector: Vector) -> tuple[float | None, str | None]:
        """1 - cosine(reference, vector) in float64, the cosine clipped to [-1, 1]: from 0 to 2.

        Undefined where a vector is zero or not finite: then None and the reason, "zero_norm" or "not_finite".
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
    if 1e-250 < square < 1e250:  # beyond that a square loses digits, or a product of two norms does
        return sqrt(square), None
    # Zero, not finite, or very large or small: tell them apart, and scale where that helps.
    if not np.isfinite(vector).all():
        return 0.0, "not_finite"
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0:
        return 0.0, "zero_norm"
    vector /= largest
    return sqrt(float(vector.dot(vector))), None
