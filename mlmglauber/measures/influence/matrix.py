"""Influences: how far a change of one token moves the conditional at another site, and the mixing bounds they give.

    c_ij(tau) = max over states x, y that differ at site j alone of TV( p_i(. | x), p_i(. | y) )

Where alpha, the largest row sum of C, is below 1, t_mix(eps) <= ceil( n / (1 - alpha) ln(n / eps) ) (Dobrushin 1970).
The same holds for the largest column sum, by path coupling (Bubley and Dyer 1997). A spectral radius below 1 makes the
stationary distribution unique and disagreements vanish, but gives this bound only up to a factor.

The maximum over sampled contexts is at most the maximum over all contexts: sampled influences can refute alpha < 1 but
never prove it.
"""

from collections.abc import Hashable, Sequence
from math import atanh, ceil, log, tanh
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.glauber import temper
from mlmglauber.measures.statistics.intervals import Interval, interval, places_of
from mlmglauber.models.conditionals import Floats

Matrix = NDArray[np.float64]

BLOCK = 1 << 18
"""Number of array entries that are processed at a time; they fit into the processor's cache."""
COLD = 1e-6
"""Minimum temperature by which float32 numbers are divided."""


def tempered(rows: Floats, tau: float) -> Floats:
    """(B, V) p_tau from log p at tau = 1, in the rows' own float type; at tau = 0 the argmax has probability 1."""
    if tau < COLD:
        return np.asarray(np.exp(temper(rows, np.full(len(rows), tau))))
    law = rows - rows.max(axis=1, keepdims=True)
    law /= tau
    np.exp(law, out=law)
    law /= law.sum(axis=1, keepdims=True)
    return np.asarray(law)


def total_variations(base: Floats, rows: Floats, taus: Sequence[float]) -> Matrix:
    """(T, B) TV at T temperatures between one conditional, base (V,), and others, rows (B, V); both log p at tau = 1.

    >>> total_variations(np.log([.7, .2, .1]), np.log([[.1, .2, .7]]), [1.0]).round(6)
    array([[0.6]])
    """
    laws = [tempered(base[None], tau) for tau in taus]
    variations = np.empty((len(taus), len(rows)))
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        for k, (law, tau) in enumerate(zip(laws, taus, strict=True)):
            other = tempered(block, tau)
            other -= law
            variations[k, start : start + step] = np.abs(other, out=other).sum(axis=1) / 2
    return np.minimum(variations, 1.0)  # a sum in float32 may be 1 + 1e-7


def oscillations(base: Floats, rows: Floats) -> Matrix:
    """(B,) max_v f(v) - min_v f(v) of f = log p - log p', the change of logit differences, in nats.

    base (V,), rows (B, V): normalised log-probabilities at tau = 1. inf where a token has probability 0 in one of the
    two. Since f takes both signs, tokens with probability 0 in both count as f = 0.
    """
    ranges = np.empty(len(rows))
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        with np.errstate(invalid="ignore"):  # -inf - -inf, of a token with probability 0 in both
            moved = rows[start : start + step] - base
        np.copyto(moved, 0, where=np.isnan(moved))
        ranges[start : start + step] = moved.max(axis=1) - moved.min(axis=1)
    return ranges


def oscillation_bound(oscillation: float | Matrix, tau: float) -> Matrix:
    """tanh(D / (4 tau)), an upper bound of the TV at tau of two conditionals whose oscillation at tau = 1 is D.

    >>> float(oscillation_bound(4.0, 2.0).round(6))
    0.462117
    """
    oscillation = np.asarray(oscillation, dtype=np.float64)
    if tau == 0:
        return np.where(oscillation > 0, 1.0, 0.0)
    return np.tanh(oscillation / (4 * tau))


class Alphas(NamedTuple):
    """Three norms of an influence matrix: largest row sum, largest column sum, spectral radius (at most either)."""

    row: float
    column: float
    spectral: float


def alphas(matrix: Matrix) -> Alphas:
    """The three norms of an (n, n) matrix of influences.

    >>> [round(size, 6) for size in alphas(np.array([[0, .6], [.7, 0]]))]
    [0.7, 0.7, 0.648074]
    """
    row, column = float(matrix.sum(axis=1).max()), float(matrix.sum(axis=0).max())
    radius = float(np.abs(np.linalg.eigvals(matrix)).max())
    return Alphas(row, column, min(radius, row, column))  # the radius exceeds them only by rounding


def mixing_bound(alpha: float, n: int, eps: float) -> int | None:
    """ceil( n / (1 - alpha) ln(n / eps) ) >= t_mix(eps) for n free sites, in steps; None where alpha is 1 or above.

    >>> mixing_bound(0.7, 2, 0.25)
    14
    """
    return ceil(n / (1 - alpha) * log(n / eps)) if alpha < 1 else None


def certified_tau(oscillation: float, n: int) -> float:
    """D / (4 artanh(1 / (n - 1))), the temperature above which alpha < 1 for every text of n free sites.

    oscillation: an upper bound D of the oscillations of all pairs of contexts. The result follows from (n - 1) tanh(D /
    (4 tau)) < 1; it is 0 for two sites.

    >>> round(certified_tau(4.0, 3), 6), certified_tau(4.0, 2)
    (1.820478, 0.0)
    """
    if n <= 2 or oscillation == 0:
        return 0.0
    return oscillation / (4 * atanh(1 / (n - 1)))


def certified_alpha(oscillation: float, n: int, tau: float) -> float:
    """(n - 1) tanh(D / (4 tau)), an upper bound of alpha (by rows and by columns) for every text of n free sites."""
    bound = tanh(oscillation / (4 * tau)) if tau > 0 else float(oscillation > 0)
    return (n - 1) * bound


def contraction(variation: float, n: int) -> float:
    """1 - 1/n + S/n: the expected Hamming distance, after one coupled step, of two states that differ at one site.

    variation: S, the sum of TV_i over the n - 1 other free sites. Exact for a maximal coupling at a uniform site: the
    site that differs is redrawn from equal conditionals, another site becomes different with probability TV_i.
    """
    return 1 - 1 / n + variation / n


def mean_over(groups: Sequence[Hashable], values: Sequence[float]) -> tuple[Interval, int]:
    """The mean over groups (texts or chains) of each group's mean, with its 95 % interval, and the number of groups.

    Values of a group depend on each other, so each group counts once.

    >>> mean_over(["a", "a", "b"], [1.0, 3.0, 4.0])[0].value
    3.0
    """
    places, count = places_of(groups)
    means = np.bincount(places, weights=values) / np.bincount(places)
    return interval(lambda counts: counts @ means / count, count, "plain"), count
