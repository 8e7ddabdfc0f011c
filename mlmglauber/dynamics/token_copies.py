"""States with a given number of copies of one token: made of a text, or of copies alone."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.conditionals import Conditional, Floats, Ids


def with_copies(ids: Ids, token: int, k: int, order: Ids) -> Ids | None:
    """The state with k copies of a token, put at the first sites of an order; None if it has more than k already.

    order: (n,) all sites. Copies that stand there count, and stay.

    >>> with_copies(np.array([5, 7, 5, 7]), 5, 3, np.array([3, 2, 1, 0])).tolist()
    [5, 7, 5, 5]
    """
    missing = k - int((ids == token).sum())
    if missing < 0:
        return None
    state = ids.copy()
    others = order[ids[order] != token]
    state[others[:missing]] = token
    return state


def filled(texts: Sequence[Ids], token: int, orders: Ids) -> list[Ids]:
    """For k = 0 ... n the states that with_copies makes of the texts, (C, n) arrays, C as many as there are.

    texts: of n tokens each. orders: (texts, n), an order of the sites for each.
    """
    drawn = [[with_copies(text, token, k, order) for text, order in zip(texts, orders, strict=True)]
             for k in range(orders.shape[1] + 1)]
    return [np.array([state for state in of_k if state is not None]) for of_k in drawn]


def thinned(conditional: Conditional, token: int, tau: float, orders: Ids, uniforms: NDArray[np.float64],
            rows: int) -> list[Ids]:
    """For k = 0 ... n the (C, n) states with k copies on C ways from n copies to none.

    A way gives one site after the other, in its order, a token drawn from the conditional at tau without this one. So
    what stands beside the copies is what the dynamics would put there. orders, uniforms: (C, n). rows: conditionals a
    call. ValueError where a conditional is not finite or no other token can be drawn.
    """
    states = np.full_like(orders, token)
    levels = [states]
    for sites, draws in zip(orders.T, uniforms.T, strict=True):
        states = states.copy()
        for start in range(0, len(states), rows):
            ways = np.arange(start, min(start + rows, len(states)))
            found = conditional.log_probs(states[ways], sites[ways])
            states[ways, sites[ways]] = other_tokens(found, token, tau, draws[ways])
        levels.append(states)
    return levels[::-1]


def other_tokens(log_probs: Floats, token: int, tau: float, uniforms: NDArray[np.float64]) -> Ids:
    """(B,) tokens drawn from (B, V) conditionals at tau without one token. ValueError where no other can be drawn.

    >>> other_tokens(np.log([[0.5, 0.3, 0.2]]), 0, 1.0, np.array([0.7]))
    array([2])
    """
    rows = np.array(log_probs, dtype=np.float64)
    rows[:, token] = -np.inf
    best = rows.max(axis=1)
    if not np.isfinite(best).all():
        raise ValueError("no other token can be drawn")
    if tau == 0:
        return np.asarray(rows.argmax(axis=1))
    with np.errstate(over="ignore", under="ignore"):
        sums = np.exp((rows - best[:, None]) / tau).cumsum(axis=1)
    return np.array([row.searchsorted(u * row[-1], side="right") for row, u in zip(sums, uniforms, strict=True)])
