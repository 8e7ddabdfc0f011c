"""States with a given number of copies of one token, made from a text or from copies alone."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.conditionals import Conditional, Floats, Ids


def with_copies(ids: Ids, token: int, k: int, order: Ids) -> Ids | None:
    """The (n,) state with k copies of a token, put at the first sites of an order; None if it has more than k already.

    ids: (n,) the text. order: (n,) all sites. Copies that stand in the text count, and stay where they are.

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
    """For k = 0 ... n the states that with_copies makes of the texts: (C, n), C the number of texts that allow k.

    texts: (n,) token ids each. orders: (texts, n), an order of the sites for each text.
    """
    by_count = [[with_copies(text, token, k, order) for text, order in zip(texts, orders, strict=True)]
                for k in range(orders.shape[1] + 1)]
    return [np.array([state for state in states if state is not None]) for states in by_count]


def thinned(conditional: Conditional, token: int, tau: float, orders: Ids, uniforms: NDArray[np.float64],
            rows: int) -> list[Ids]:
    """For k = 0 ... n the (C, n) states with k copies on C ways from n copies to none.

    A way takes the sites in its order and gives each a token drawn from the conditional at tau without the copied
    token. So the tokens beside the copies are such as the dynamics would put there. orders, uniforms: (C, n). rows:
    maximum number of conditionals in a call. Raises ValueError where a conditional is not finite or no other token can
    be drawn.
    """
    states = np.full_like(orders, token)
    by_missing = [states]
    for sites, draws in zip(orders.T, uniforms.T, strict=True):
        states = states.copy()
        for start in range(0, len(states), rows):
            ways = np.arange(start, min(start + rows, len(states)))
            log_probs = conditional.log_probs(states[ways], sites[ways])
            states[ways, sites[ways]] = other_tokens(log_probs, token, tau, draws[ways])
        by_missing.append(states)
    return by_missing[::-1]


def other_tokens(log_probs: Floats, token: int, tau: float, uniforms: NDArray[np.float64]) -> Ids:
    """(B,) tokens drawn from conditionals at tau without one token, that is, renormalised over the others.

    log_probs: (B, V) at tau = 1, in nats. uniforms: (B,) on [0, 1). Raises ValueError where no other token can be drawn
    or a row is not finite.

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
