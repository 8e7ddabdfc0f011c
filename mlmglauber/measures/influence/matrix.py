"""Influences: how far one token moves the conditional at another site, and what follows for mixing.

    c_ij(tau) = max over states x, y that differ at site j alone of TV( p_i(. | x), p_i(. | y) )

Where alpha, the largest row sum of C, is below 1, the chain mixes: t_mix(eps) <= ceil( n / (1 - alpha) ln(n / eps) )
(Dobrushin 1970; the largest column sum serves as well, by path coupling: Bubley and Dyer 1997). A spectral radius below
1 makes the law unique and the disagreement fade, but gives this bound only up to a factor.

A maximum over sampled contexts is at most the one over all: sampled influences can refute alpha < 1, never certify it.
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
"""Numbers worked on at a time: they stay in the processor's cache through all passes."""
COLD = 1e-6
"""A temperature below this is no safe divisor in float32."""


def tempered(rows: Floats, tau: float) -> Floats:
    """Rows of p_tau from (B, V) rows of log p at tau = 1, in the rows' own float type; tau = 0 is the argmax."""
    if tau < COLD:
        return np.asarray(np.exp(temper(rows, np.full(len(rows), tau))))
    law = rows - rows.max(axis=1, keepdims=True)
    law /= tau
    np.exp(law, out=law)
    law /= law.sum(axis=1, keepdims=True)
    return np.asarray(law)


def total_variations(base: Floats, rows: Floats, taus: Sequence[float]) -> Matrix:
    """(T, B) TV between one tempered conditional and others: base (V,), rows (B, V), log-probabilities at tau = 1.

    >>> total_variations(np.log([.7, .2, .1]), np.log([[.1, .2, .7]]), [1.0]).round(6)
    array([[0.6]])
    """
    laws = [tempered(base[None], tau) for tau in taus]
    found = np.empty((len(taus), len(rows)))
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        for k, (law, tau) in enumerate(zip(laws, taus, strict=True)):
            other = tempered(block, tau)
            other -= law
            found[k, start : start + step] = np.abs(other, out=other).sum(axis=1) / 2
    return np.minimum(found, 1.0)  # a sum in float32 may be 1 + 1e-7


def oscillations(base: Floats, rows: Floats) -> Matrix:
    """(B,) max_v f(v) - min_v f(v) of f = log p - log p': how far logit differences move; inf where a token is lost.

    base (V,), rows (B, V), both normalised: f then takes both signs, so tokens that neither law holds count as f = 0.
    """
    found = np.empty(len(rows))
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        with np.errstate(invalid="ignore"):  # -inf - -inf, of a token that neither law holds
            moved = rows[start : start + step] - base
        np.copyto(moved, 0, where=np.isnan(moved))
        found[start : start + step] = moved.max(axis=1) - moved.min(axis=1)
    return found


def oscillation_bound(oscillation: float | Matrix, tau: float) -> Matrix:
    """tanh(D / (4 tau)), at least the TV between two tempered laws whose log-ratio oscillates by D at tau = 1.

    >>> float(oscillation_bound(4.0, 2.0).round(6))
    0.462117
    """
    oscillation = np.asarray(oscillation, dtype=np.float64)
    if tau == 0:
        return np.where(oscillation > 0, 1.0, 0.0)
    return np.tanh(oscillation / (4 * tau))


class Alphas(NamedTuple):
    """Three sizes of an influence matrix: largest row sum, largest column sum, spectral radius (below both)."""

    row: float
    column: float
    spectral: float


def alphas(matrix: Matrix) -> Alphas:
    """The three sizes of an (n, n) matrix of influences.

    >>> [round(size, 6) for size in alphas(np.array([[0, .6], [.7, 0]]))]
    [0.7, 0.7, 0.648074]
    """
    row, column = float(matrix.sum(axis=1).max()), float(matrix.sum(axis=0).max())
    radius = float(np.abs(np.linalg.eigvals(matrix)).max())
    return Alphas(row, column, min(radius, row, column))  # its own rounding aside it is never above them


def mixing_bound(alpha: float, n: int, eps: float) -> int | None:
    """ceil( n / (1 - alpha) ln(n / eps) ) >= t_mix(eps) of n free sites, in steps; None where alpha is 1 or above.

    >>> mixing_bound(0.7, 2, 0.25)
    14
    """
    return ceil(n / (1 - alpha) * log(n / eps)) if alpha < 1 else None


def certified_tau(oscillation: float, n: int) -> float:
    """D / (4 artanh(1 / (n - 1))): above it (n - 1) tanh(D / (4 tau)) < 1, and n sites contract whatever the text.

    oscillation: a D that no pair of contexts exceeds. Two sites contract at every tau above 0.

    >>> round(certified_tau(4.0, 3), 6), certified_tau(4.0, 2)
    (1.820478, 0.0)
    """
    if n <= 2 or oscillation == 0:
        return 0.0
    return oscillation / (4 * atanh(1 / (n - 1)))


def certified_alpha(oscillation: float, n: int, tau: float) -> float:
    """(n - 1) tanh(D / (4 tau)), at least alpha (by rows and by columns) of every text of n free sites."""
    bound = tanh(oscillation / (4 * tau)) if tau > 0 else float(oscillation > 0)
    return (n - 1) * bound


def contraction(variation: float, n: int) -> float:
    """1 - 1/n + S/n: the expected Hamming distance, after one coupled step, of two states that differ at one site.

    variation: S = sum over the n - 1 other free sites of TV_i. Exact for the maximal coupling of the two conditionals
    at one uniform site: the site that differs is redrawn from equal laws, the others part with probability TV_i.
    """
    return 1 - 1 / n + variation / n


def mean_over(groups: Sequence[Hashable], values: Sequence[float]) -> tuple[Interval, int]:
    """The mean over groups (texts, chains) of each one's mean value, its 95 % interval, and how many groups there are.

    Values of a group depend on each other, so the group counts once.

    >>> mean_over(["a", "a", "b"], [1.0, 3.0, 4.0])[0].value
    3.0
    """
    places, count = places_of(groups)
    means = np.bincount(places, weights=values) / np.bincount(places)
    return interval(lambda counts: counts @ means / count, count, "plain"), count
