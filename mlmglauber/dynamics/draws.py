"""A two-level draw from the block masses of a conditional, and whether a rounding error could have changed it.

The first uniform chooses a block of token ids, the second a token of it (models/blocks.py). Let F be an edge between
two intervals, the probability of everything before it. An error of the log-odds log(F / (1 - F)) of at most s moves the
edge to at most F e^s / (1 - F + F e^s) and to at least F / (F + (1 - F) e^s). A draw whose uniforms lie in their
intervals even when both ends are moved inwards by that much is certain: no smaller error could have changed it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.blocks import BLOCK, BlockRows, Ids, choose

Values = NDArray[np.float64]

TELLING = 1e-4
"""Edges with F (1 - F) below this are not compared: a uniform never comes near them."""
NOTHING_ELSE = 50.0
"""Gap between the two best tokens, in units of tau, at which the others have a share of less than V e^-50."""


class TokenDraws(NamedTuple):
    """B draws.

    tokens: (B,). logp_old, logp_new: (B,) log p_tau of the token before and after, in nats. low, high: (B, 2) the
    uniforms that certainly draw the same token from the same conditional, low <= u < high for both. certain: (B,)
    whether the draw's own uniforms are such. finite: (B,) False for a row that is no law.
    """

    tokens: Ids
    logp_old: Values
    logp_new: Values
    low: Values
    high: Values
    certain: NDArray[np.bool_]
    finite: NDArray[np.bool_]


def draw(rows: BlockRows, uniforms: Values, taus: Values, cold: NDArray[np.bool_], tolerance: float) -> TokenDraws:
    """Draw one token from each conditional.

    uniforms: (B, 2) on [0, 1). tolerance: the largest error of a log-odds at tau = 1, in nats; divided by tau it is s
    above. 0 where the conditionals define the chain: every draw is then certain. cold: (B,) where the argmax is taken;
    it is certain when the two best tokens are far enough apart.

    >>> from mlmglauber.models.blocks import block_rows
    >>> taus, cold, u = np.ones(1), np.zeros(1, bool), np.array([[0.4, 0.7]])
    >>> found = draw(block_rows(np.log([[.5, .3, .2]]), np.array([0]), taus, u[:, 0], cold), u, taus, cold, 0.0)
    >>> found.tokens, found.low[:, 1], found.high[:, 1]
    (array([1]), array([0.5]), array([0.8]))
    """
    places = np.arange(len(taus))
    edges = np.cumsum(rows.masses, axis=1, dtype=np.float64)
    inner = np.cumsum(rows.inside, axis=1, dtype=np.float64)
    place = choose(inner, uniforms[:, 1])
    ends = [interval(edges, rows.chosen), interval(inner, place)]
    low, high = (np.stack(column, axis=1) for column in zip(*ends, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        logp_new = np.log(rows.inside[places, place].astype(np.float64))
    if tolerance > 0:
        shifts = np.where(cold, 0.0, tolerance / np.where(cold, 1.0, taus))[:, None]
        low, high = narrowed(low, high, shifts)
        certain = ((low <= uniforms) & (uniforms < high)).all(axis=1)
        certain &= rows.gap >= 2 * tolerance + NOTHING_ELSE * taus
    else:
        certain = np.ones(len(taus), dtype=bool)
    return TokenDraws(rows.chosen * BLOCK + place, rows.logp_old, logp_new, low, high, certain & rows.finite,
                      rows.finite)


def interval(edges: Values, places: Ids) -> tuple[Values, Values]:
    """(low, high) of the interval `places` of (B, K) running sums, each (B,), as shares of the last sum.

    An interval with nothing below it begins at -inf, one with nothing above it ends at +inf: no error moves these ends.
    """
    rows = np.arange(len(edges))
    total = edges[:, -1]
    below = np.where(places > 0, edges[rows, places - 1], 0.0)
    above = edges[rows, places]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, below / total, -np.inf), np.where(above < total, above / total, np.inf)


def narrowed(low: Values, high: Values, shifts: Values) -> tuple[Values, Values]:
    """The ends of intervals, each moved inwards by a shift of its log-odds; infinite ends stay."""
    grow = np.exp(shifts)
    with np.errstate(invalid="ignore"):
        return (np.where(np.isinf(low), low, low * grow / (1 - low + low * grow)),
                np.where(np.isinf(high), high, high / (high + (1 - high) * grow)))


def discrepancy(fast: BlockRows, exact: BlockRows) -> Values:
    """(B,) the largest difference of a log-odds between two ways to the same conditionals, at their temperatures.

    Over the edges of blocks and, where both chose the same block, over the edges of its tokens.
    """
    same = fast.chosen == exact.chosen
    inside = _worst_edge(fast.inside, exact.inside)
    return np.maximum(_worst_edge(fast.masses, exact.masses), np.where(same, inside, 0.0))


def _worst_edge(fast: NDArray[np.floating], exact: NDArray[np.floating]) -> Values:
    ours, true = (np.cumsum(masses, axis=1, dtype=np.float64) for masses in (fast, exact))
    ours, true = ours / ours[:, -1:], true / true[:, -1:]
    weight = true * (1 - true)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(weight > TELLING, np.abs(ours - true) / weight, 0.0).max(axis=1))
