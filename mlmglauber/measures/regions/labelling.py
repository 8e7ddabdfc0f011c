"""Labels embeddings with named regions, which labelled examples define."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float64]

PENALTY = 10.0
"""C of the logistic regression on vectors of length 1. Larger values have a lower log loss on held-out examples at
equal accuracy, but label more texts that belong to no region (examples/topics.jsonl against texts of other topics)."""

WARMTH = 0.07
"""Temperature of the softmax over cosines to centroids, chosen to reject about as many texts as the regression."""

FOLDS = 5
"""Maximum number of folds of the cross-validation."""
NO_NAME = -1
"""The region index of a state in no region."""


class Labeller(NamedTuple):
    """A softmax over K regions, p = softmax(weights u + bias) for a vector u of length 1.

    names: the labels in alphabetical order; weights (K, d); bias (K,).
    """

    names: tuple[str, ...]
    weights: Vectors
    bias: Vectors

    def probabilities(self, units: Vectors) -> Vectors:
        """The probability of each region for vectors of length 1: (..., d) to (..., K)."""
        scores = units @ self.weights.T + self.bias
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def label(self, vector: NDArray[np.floating], reject: float) -> tuple[int, float | None, str | None]:
        """(index of the likeliest region, its probability, None); below `reject` (NO_NAME, probability, reason).

        For a vector that is zero or not finite the probability is None too.
        """
        unit, reason = unit_of(vector)
        if reason is not None:
            return NO_NAME, None, reason
        shares = self.probabilities(unit)
        best = int(shares.argmax())
        p = float(shares[best])
        return (best, p, None) if p >= reject else (NO_NAME, p, "below_threshold")


def unit_of(vector: NDArray[np.floating]) -> tuple[Vectors, str | None]:
    """A vector scaled to length 1, in float64, and None; a vector that is zero or not finite unscaled, and the reason.

    >>> unit_of(np.array([3.0, 4.0]))
    (array([0.6, 0.8]), None)
    """
    result = vector.astype(np.float64)
    largest = float(np.abs(result).max(initial=0.0))
    if not np.isfinite(largest):
        return result, "not_finite"
    if largest == 0:
        return result, "zero_norm"
    result /= largest  # avoids squares that underflow or overflow
    return result / np.sqrt(result @ result), None


def fit(units: Vectors, labels: Sequence[str], method: str) -> Labeller:
    """A labeller from N vectors of length 1 (N, d) and their labels; method "logistic" or "centroid".

    logistic: multinomial logistic regression by scikit-learn. centroid: p is the softmax of the cosines to the
    centroids over WARMTH, so the likeliest region has the nearest centroid. ValueError for fewer than two labels.
    """
    names = tuple(sorted(set(labels)))
    if len(names) < 2:
        raise ValueError(f"{len(names)} label; regions need two labels or more")
    return METHODS[method](units, np.searchsorted(np.array(names), np.array(labels)), names)


def _logistic(units: Vectors, classes: NDArray[np.intp], names: tuple[str, ...]) -> Labeller:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=PENALTY, max_iter=2000).fit(units, classes)
    weights, bias = model.coef_, model.intercept_
    if len(names) == 2:  # for two classes scikit-learn has one row: the scores of the second class
        weights, bias = np.vstack([np.zeros_like(weights), weights]), np.append(0.0, bias)
    return Labeller(names, weights, bias)


def _centroid(units: Vectors, classes: NDArray[np.intp], names: tuple[str, ...]) -> Labeller:
    centroids = [unit_of(units[classes == k].mean(axis=0))[0] for k in range(len(names))]
    return Labeller(names, np.array(centroids) / WARMTH, np.zeros(len(names)))


METHODS: dict[str, Callable[[Vectors, NDArray[np.intp], tuple[str, ...]], Labeller]] = {
    "logistic": _logistic, "centroid": _centroid,
}


class HeldOut(NamedTuple):
    """The accuracy of a labeller on held-out examples; a value that is not known is None, and `reason` says why.

    accuracy: share of all examples whose likeliest label is their own; low, high: its 95 % interval (Wilson).
    named: share of examples at or above the rejection threshold; named_accuracy: share of these with their own label.
    log_loss: mean of -ln p(own label), in nats. confusion: (K, K + 1) counts by own label and given label, the rejected
    ones last. folds: number of folds.
    """

    accuracy: float | None
    low: float | None
    high: float | None
    named: float | None
    named_accuracy: float | None
    log_loss: float | None
    confusion: list[list[int]] | None
    folds: int | None
    reason: str | None


def held_out(units: Vectors, labels: Sequence[str], method: str, reject: float) -> HeldOut:
    """Stratified cross-validation: each example is labelled by a labeller fitted to the other folds.

    The accuracy holds for examples like these, not for states of a chain, which may be shorter and less natural.
    """
    from scipy.stats import binomtest
    from sklearn.model_selection import StratifiedKFold

    names, classes, counts = np.unique(np.array(labels), return_inverse=True, return_counts=True)
    folds = min(FOLDS, int(counts.min()))
    if folds < 2:
        reason = f"one example of {names[counts.argmin()]}: none is left to hold out"
        return HeldOut(None, None, None, None, None, None, None, None, reason)
    shares = np.empty((len(units), len(names)))
    for rest, tested in StratifiedKFold(folds, shuffle=True, random_state=0).split(units, classes):
        shares[tested] = METHODS[method](units[rest], classes[rest], tuple(names)).probabilities(units[tested])
    likeliest = shares.argmax(axis=1)
    right, named = likeliest == classes, shares.max(axis=1) >= reject
    interval = binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
    confusion = np.zeros((len(names), len(names) + 1), dtype=int)
    np.add.at(confusion, (classes, np.where(named, likeliest, len(names))), 1)
    share_of_own = np.maximum(shares[np.arange(len(classes)), classes], np.finfo(float).tiny)
    return HeldOut(float(right.mean()), float(interval.low), float(interval.high), float(named.mean()),
                   float(right[named].mean()) if named.any() else None, float(-np.log(share_of_own).mean()),
                   confusion.tolist(), folds, None if named.any() else "named_accuracy: every example was rejected")
