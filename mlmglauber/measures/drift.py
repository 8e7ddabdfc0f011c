"""Drift: how far a chain has gone from its reference in a space of sentence embeddings."""

from collections.abc import Sequence
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.survival import kaplan_meier

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


def hitting_time(steps: Sequence[int] | NDArray[np.int64], drifts: Sequence[float] | NDArray[np.float64],
                 threshold: float) -> int | None:
    """The first step with drift >= threshold, None when there is none; an undefined drift (not-a-number) is no hit.

    >>> hitting_time([0, 10, 20], [0.0, 0.5, 0.7], 0.5)
    10
    """
    hits = np.flatnonzero(np.asarray(drifts, dtype=np.float64) >= threshold)
    return int(np.asarray(steps)[hits[0]]) if len(hits) else None


def plateau(drifts: Sequence[float] | NDArray[np.float64]) -> float | None:
    """Mean drift over the second half of a series; undefined values (not-a-number) are left out, None if all are."""
    half = np.asarray(drifts, dtype=np.float64)[len(drifts) // 2 :]
    half = half[~np.isnan(half)]
    return float(half.mean()) if len(half) else None


def n_log_n(n: int) -> float | None:
    """n ln n, the unit of time in which hot chains mix; one site has none."""
    return n * log(n) if n > 1 else None


class Fit(NamedTuple):
    """T = c n ln n with a 95 % interval; what cannot be told is None, and `reason` says why."""

    c: float | None
    low: float | None
    high: float | None
    reason: str | None


class Times(NamedTuple):
    """Hitting times at one n: the time of each chain or, where censored, how long it was watched; and its text."""

    n: int
    times: NDArray[np.float64]
    censored: NDArray[np.bool_]
    texts: Sequence[str]


RESAMPLES = 400


def fit_c(groups: Sequence[Times], seed: int = 0) -> Fit:
    """C in T = C n ln n, from the Kaplan-Meier median hitting time at each n.

    Least squares through the origin, each n weighted by its number of chains; with one n it is median / (n ln n).
    The interval is a percentile bootstrap over texts, whose chains depend on each other. None where a median was not
    reached, since more than half of the chains are censored there: C is then larger than could be seen.
    """
    groups = [group for group in groups if n_log_n(group.n) is not None]
    if not groups:
        return Fit(None, None, None, "one site has no n ln n")
    c = _least_squares(groups)
    if c is None:
        return Fit(None, None, None, "median_not_reached")
    if min(len(set(group.texts)) for group in groups) < 2:
        return Fit(c, None, None, "interval: one text tells nothing about others")
    generator = np.random.default_rng(seed)
    draws = [_least_squares([_resampled(group, generator) for group in groups]) for _ in range(RESAMPLES)]
    known = np.array([np.inf if draw is None else draw for draw in draws])
    low, high = np.quantile(known, [0.025, 0.975], method="inverted_cdf")
    if not np.isfinite(high):
        return Fit(c, float(low) if np.isfinite(low) else None, None, "high: median_not_reached in over 2.5 % of draws")
    return Fit(c, float(low), float(high), None)


def _least_squares(groups: Sequence[Times]) -> float | None:
    units = np.array([n_log_n(group.n) for group in groups], dtype=np.float64)
    medians = [kaplan_meier(group.times, group.censored).median for group in groups]
    if any(median is None for median in medians):
        return None
    weights = np.array([len(group.times) for group in groups], dtype=np.float64)
    return float((weights * units * np.array(medians, dtype=np.float64)).sum() / (weights * units * units).sum())


def _resampled(group: Times, generator: np.random.Generator) -> Times:
    names, places = np.unique(np.asarray(group.texts), return_inverse=True)
    chosen = generator.integers(0, len(names), len(names))
    rows = np.concatenate([np.flatnonzero(places == k) for k in chosen])
    return Times(group.n, group.times[rows], group.censored[rows], [group.texts[k] for k in rows])
