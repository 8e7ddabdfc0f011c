"""Which tokens of a state hold each other: what the model knows of one token only by another."""

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.traps.margins import site_rows
from mlmglauber.models.conditionals import Conditional, Ids


def mutual_support(conditional: Conditional, ids: Ids, sites: Ids, mask: int, rows: int) -> NDArray[np.float64]:
    """(k, k) S_ij = log p(x_i | x_-i) - log p(x_i | x_-i with site j masked too), in nats at tau = 1.

    ids: (n,) a state; sites: (k,) the sites that are drawn at; mask: the model's mask token; rows: conditionals a call.
    Row i: the token that is held, column j: the one that holds it; the diagonal is 0. Above 0, x_j makes x_i likelier:
    where S_ij and S_ji both are, the two hold each other. -inf + inf is not-a-number: a token that is never drawn.
    ValueError for a conditional that is not finite. Costs k^2 conditionals.
    """
    count = len(sites)
    alone = site_rows(conditional, ids, sites)
    i, j = (place.ravel() for place in np.indices((count, count)))
    other = i != j
    i, j = i[other], j[other]
    found = np.zeros(len(i))
    for start in range(0, len(i), rows):
        at, by = sites[i[start : start + rows]], sites[j[start : start + rows]]
        states = np.repeat(ids[None], len(at), axis=0)
        states[np.arange(len(at)), by] = mask
        asked = conditional.log_probs(states, at)
        if not np.isfinite(asked.max(axis=1)).all():
            raise ValueError("a conditional is not finite")
        found[start : start + rows] = asked[np.arange(len(at)), ids[at]]
    support = np.zeros((count, count))
    with np.errstate(invalid="ignore"):
        support[i, j] = alone[i, ids[sites[i]]].astype(np.float64) - found
    return support
