"""A two-level draw from the block masses of a conditional, and whether a rounding error could have changed it.

The first uniform chooses a block of token ids, the second a token of that block (models/blocks.py). Let F be an edge
between two intervals: the probability of all that lies before it. An error of at most s in the log-odds
log(F / (1 - F)) moves the edge to at most F e^s / (1 - F + F e^s) and to at least F / (F + (1 - F) e^s). Move both ends
of each interval inwards by that much. A draw whose uniforms still lie in their intervals is certain: no error of at
most s could have changed it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.blocks import BLOCK, BlockRows, Ids, choose

Values = NDArray[np.float64]

COMPARABLE = 1e-4
"""Minimum of F (1 - F) for an edge F to be compared: a uniform never comes near other edges."""
NEGLIGIBLE_GAP = 50.0
"""Gap between the two likeliest tokens, in units of tau, from which on all others have at most a share of V e^-50."""


class TokenDraws(NamedTuple):
    """B tokens that were drawn, each from its conditional.

    tokens: (B,). logp_old, logp_new: (B,) log p_tau of the token before and after the draw, in nats. low, high: (B, 2)
    the uniforms that certainly draw the same token from the same conditional: low <= u < high for both uniforms.
    certain: (B,) whether the draw's own uniforms are such. finite: (B,) False for a conditional that is not finite.
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

    uniforms: (B, 2) on [0, 1). taus: (B,). tolerance: the largest error of the log-odds at tau = 1, in nats; the s
    above is tolerance / tau. It is 0 where the conditionals define the chain: every draw is then certain. cold: (B,)
    True where the likeliest token is taken; that draw is certain when the two likeliest tokens are far enough apart.

    >>> from mlmglauber.models.blocks import block_rows
    >>> taus, cold, u = np.ones(1), np.zeros(1, bool), np.array([[0.4, 0.7]])
    >>> drawn = draw(block_rows(np.log([[.5, .3, .2]]), np.array([0]), taus, u[:, 0], cold), u, taus, cold, 0.0)
    >>> drawn.tokens, drawn.low[:, 1], drawn.high[:, 1]
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
        certain &= (rows.gap >= 2 * tolerance + NEGLIGIBLE_GAP * taus) & (rows.slack >= 2 * tolerance)
    else:
        certain = np.ones(len(taus), dtype=bool)
    return TokenDraws(rows.chosen * BLOCK + place, rows.logp_old, logp_new, low, high, certain & rows.finite,
                      rows.finite)


def interval(edges: Values, places: Ids) -> tuple[Values, Values]:
    """(low, high), each (B,), of one interval of each row of running sums, as shares of the row's last sum.

    edges: (B, K) running sums. places: (B,) which interval. The first interval that is not empty begins at -inf, the
    last one ends at +inf: no error moves these ends.
    """
    rows = np.arange(len(edges))
    total = edges[:, -1]
    below = np.where(places > 0, edges[rows, places - 1], 0.0)
    above = edges[rows, places]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, below / total, -np.inf), np.where(above < total, above / total, np.inf)


def narrowed(low: Values, high: Values, shifts: Values) -> tuple[Values, Values]:
    """(low, high) of intervals with each end moved inwards by a shift of its log-odds; infinite ends stay.

    low, high, shifts: of shapes that broadcast.
    """
    grow = np.exp(shifts)
    with np.errstate(invalid="ignore"):
        return (np.where(np.isinf(low), low, low * grow / (1 - low + low * grow)),
                np.where(np.isinf(high), high, high / (high + (1 - high) * grow)))


def discrepancy(fast: BlockRows, exact: BlockRows) -> Values:
    """(B,) the largest difference of log-odds, in nats, between two computations of the same tempered conditionals.

    It is taken over the edges of the blocks and, where both chose the same block, over the edges of its tokens.
    """
    same = fast.chosen == exact.chosen
    inside = _worst_edge(fast.inside, exact.inside)
    return np.maximum(_worst_edge(fast.masses, exact.masses), np.where(same, inside, 0.0))


def _worst_edge(fast: NDArray[np.floating], exact: NDArray[np.floating]) -> Values:
    """(B,) the largest |F' - F| / (F (1 - F)) over the edges: the difference of log-odds to first order."""
    rough, true = (np.cumsum(masses, axis=1, dtype=np.float64) for masses in (fast, exact))
    rough, true = rough / rough[:, -1:], true / true[:, -1:]
    weight = true * (1 - true)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(weight > COMPARABLE, np.abs(rough - true) / weight, 0.0).max(axis=1))
