"""Random rectangles: draws of pairs of sites, and of alternatives to the tokens there."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.glauber import NotFiniteError
from mlmglauber.measures.rectangle.delta import Rectangle
from mlmglauber.models.conditionals import Floats, Ids


def draw_sites(uniforms: NDArray[np.float64], sites: Ids, gap: int | None = None) -> Ids:
    """(R, 2) pairs i < j among the given sites; uniform over pairs, or over pairs with j = i + gap.

    uniforms: (R, 2) on [0, 1). gap: distance of the two sites. ValueError where there is no such pair.
    """
    if gap is not None:
        starts = np.intersect1d(sites, sites - gap)
        if not len(starts):
            raise ValueError(f"no two sites are {gap} apart")
        first = starts[(uniforms[:, 0] * len(starts)).astype(np.int64)]
        return np.stack([first, first + gap], axis=1)
    if len(sites) < 2:
        raise ValueError("a rectangle needs two sites")
    first_place = (uniforms[:, 0] * len(sites)).astype(np.int64)
    second_place = (first_place + 1 + (uniforms[:, 1] * (len(sites) - 1)).astype(np.int64)) % len(sites)
    return np.sort(sites[np.stack([first_place, second_place], axis=1)], axis=1)


def draw_tokens(how: str, present: int, uniforms: Sequence[float], allowed: NDArray[np.bool_],
                row: Floats | None) -> list[int]:
    """Alternatives to the present token, one for each uniform.

    how: "conditional" draws from the conditional `row` (V,) at tau = 1 without the present token, "uniform" from the
    allowed tokens, and "top" takes the likeliest other token. ValueError where no other token can be drawn.
    """
    if how == "uniform":
        others = np.flatnonzero(allowed)
        others = others[others != present]
        if not len(others):
            raise ValueError("there is no other token to draw")
        return [int(others[int(u * len(others))]) for u in uniforms]
    assert row is not None
    chances = np.exp(row.astype(np.float64))
    chances[present] = 0.0
    if not chances.sum() > 0:
        raise ValueError("no other token has a probability above 0")
    if how == "top":
        return [int(chances.argmax())] * len(uniforms)
    cumulative = np.cumsum(chances)
    # side="right" never selects a token of probability 0; the last cumulative sum is the total itself
    places = np.searchsorted(cumulative, np.asarray(uniforms) * cumulative[-1], side="right")
    last = int(np.flatnonzero(chances)[-1])
    return [min(int(place), last) for place in places]


def draw_rectangles(how: str, ids: Ids, pairs: Ids, uniforms: NDArray[np.float64], allowed: NDArray[np.bool_],
                    rows: Mapping[int, Floats]) -> list[Rectangle]:
    """The rectangles of one state at R pairs of sites, with drawn alternatives.

    ids: (n,). pairs: (R, 2), of `draw_sites`. uniforms: (R, 2) on [0, 1). rows: the conditional (V,) of each site of
    the pairs; none is needed for "uniform". how, allowed: as in `draw_tokens`. NotFiniteError for a row that is not
    finite, ValueError where a site has no alternative.
    """
    tokens = np.empty(pairs.shape, dtype=np.int64)
    for site in np.unique(pairs).tolist():
        row, where = rows.get(site), pairs == site
        if row is not None and not np.isfinite(row.max()):
            raise NotFiniteError(site)
        try:
            tokens[where] = draw_tokens(how, int(ids[site]), uniforms[where].tolist(), allowed, row)
        except ValueError as error:
            raise ValueError(f"no alternative at site {site}: {error}") from error
    present = ids.tolist()
    return [Rectangle(i, j, present[i], present[j], to_a, to_b)
            for i, j, to_a, to_b in np.hstack([pairs, tokens]).tolist()]
