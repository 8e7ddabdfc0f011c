"""Prepares conditionals for two-level draws: the masses of blocks of tokens, and the tokens of one block.

A draw uses two uniforms. The first chooses a block of BLOCK consecutive token ids by the cumulative sums of the block
masses, the second a token of that block by the cumulative sums within it. Compared with one cumulative sum over all V
tokens, a uniform is compared with about 2 sqrt(V) edges instead of V: rounding rarely decides a draw, and no sum over V
is needed.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK = 128
"""Number of consecutive token ids in a block."""

TINY = 1e-30
"""Probabilities below this are computed from logits, since they are close to the smallest number of float32."""

Floats = NDArray[np.floating[Any]]
Ids = NDArray[np.int64]


class BlockRows(NamedTuple):
    """What draws from B conditionals of V tokens need, each at its own temperature; K = ceil(V / BLOCK).

    masses: (B, K) the sum of p_tau over each block. chosen: (B,) the block that the first uniform chooses. inside:
    (B, BLOCK) p_tau of its tokens, 0 beyond the vocabulary. beside: the same for the block of the present token, the
    one at the site. logp_old: (B,) log p_tau of the present token, in nats. gap: (B,) where the draw is an argmax, the
    largest log-probability minus the second largest, at tau = 1; elsewhere inf. finite: (B,) False for a row that is
    not a distribution: NaN, +inf, or no allowed token. slack: (B,) see truncation.Truncated; inf without truncation.
    """

    masses: Floats
    chosen: Ids
    inside: Floats
    beside: Floats
    logp_old: NDArray[np.float64]
    gap: NDArray[np.float64]
    finite: NDArray[np.bool_]
    slack: NDArray[np.float64]

    def row(self, k: int) -> "BlockRows":
        """A copy of the k-th row."""
        columns: list[Any] = [column[k : k + 1].copy() for column in self]
        return BlockRows(*columns)


def tempered_weights(rows: Floats, taus: NDArray[np.float64], cold: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(B, V) p_tau divided by its largest value in each row; where `cold`, 1 at the argmax and 0 elsewhere.

    rows: (B, V) log-probabilities at tau = 1. Ties of an argmax go to the lowest id.
    """
    top = rows.max(axis=1, keepdims=True)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        weights = np.exp((rows.astype(np.float64) - top) / np.where(cold, 1.0, taus)[:, None])
    if cold.any():
        weights[cold] = 0.0
        weights[np.flatnonzero(cold), rows[cold].argmax(axis=1)] = 1.0
    return np.asarray(weights)


def block_rows(rows: Floats, old: Ids, taus: NDArray[np.float64], uniforms: NDArray[np.float64],
               cold: NDArray[np.bool_]) -> BlockRows:
    """The BlockRows of (B, V) log-probabilities at tau = 1, in float64: the reference for device_block_rows.

    old: (B,) the present tokens. uniforms: (B,) the first uniform of each draw. cold: (B,) True where the argmax is
    taken instead of a draw, as at tau = 0.

    >>> rows = block_rows(np.log([[0.5, 0.3, 0.2]]), np.array([1]), np.ones(1), np.zeros(1), np.zeros(1, bool))
    >>> rows.inside[0, :3].round(2), float(rows.logp_old[0].round(4))
    (array([0.5, 0.3, 0.2]), -1.204)
    """
    finite = np.isfinite(rows.max(axis=1))  # the maximum of a row with NaN is NaN
    if not finite.all():
        rows = np.where(finite[:, None], rows, 0.0)
    count, vocab = rows.shape
    weights = tempered_weights(rows, taus, cold)
    totals = weights.sum(axis=1)
    places = np.arange(count)
    top = rows.max(axis=1).astype(np.float64)
    weights /= totals[:, None]
    with np.errstate(divide="ignore", over="ignore"):
        shares = weights[places, old]
        small = (rows[places, old].astype(np.float64) - top) / np.where(taus > 0, taus, 1.0) - np.log(totals)
        logp_old = np.where((taus > 0) & (shares < TINY), small, np.log(shares))  # as in TokenDistribution
    gap = np.full(count, np.inf)
    if vocab > 1 and cold.any():
        best = np.partition(rows[cold], -2, axis=1)[:, -2:].astype(np.float64)
        gap[cold] = best[:, 1] - best[:, 0]
    blocks = np.zeros((count, -(-vocab // BLOCK), BLOCK))
    blocks.reshape(count, -1)[:, :vocab] = weights
    masses = blocks.sum(axis=2)
    chosen = choose(np.cumsum(masses, axis=1), uniforms)
    return BlockRows(masses, chosen, blocks[places, chosen], blocks[places, old // BLOCK], logp_old, gap, finite,
                     np.full(count, np.inf))


def choose(edges: NDArray[np.float64], uniforms: NDArray[np.float64]) -> Ids:
    """(B,) the interval of cumulative sums that contains each uniform: the first k with uniform * total < edges[k].

    edges: (B, K) cumulative sums; the last of a row is its total. A product that rounds up to the total belongs to the
    last interval that is not empty.
    """
    intervals = (edges <= (uniforms * edges[:, -1])[:, None]).sum(axis=1)
    last = (edges < edges[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(intervals, last))
