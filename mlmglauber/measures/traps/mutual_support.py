"""Mutual support: by how much each token of a state makes each other one likelier."""

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.traps.margins import site_rows
from mlmglauber.models.conditionals import Conditional, Ids


def mutual_support(conditional: Conditional, ids: Ids, sites: Ids, mask: int, rows: int) -> NDArray[np.float64]:
    """(k, k) S_ij = log p(x_i | x_-i) - log p(x_i | x_-i with site j masked too), in nats at tau = 1.

    ids: (n,) a state; sites: (k,) the sites that are updated; mask: the model's mask token; rows: maximum number of
    conditionals per call. S_ij > 0 says that x_j makes x_i likelier; where S_ij and S_ji are both positive, the two
    tokens support each other. The diagonal is 0. NaN where x_i has probability 0 in both contexts. ValueError for a
    conditional that is not finite. Computes k^2 conditionals.
    """
    count = len(sites)
    alone = site_rows(conditional, ids, sites)
    i, j = (place.ravel() for place in np.indices((count, count)))
    other = i != j
    i, j = i[other], j[other]
    with_masks = np.zeros(len(i))
    for start in range(0, len(i), rows):
        at, by = sites[i[start : start + rows]], sites[j[start : start + rows]]
        states = np.repeat(ids[None], len(at), axis=0)
        states[np.arange(len(at)), by] = mask
        log_probs = conditional.log_probs(states, at)
        if not np.isfinite(log_probs.max(axis=1)).all():
            raise ValueError("a conditional is not finite")
        with_masks[start : start + rows] = log_probs[np.arange(len(at)), ids[at]]
    support = np.zeros((count, count))
    with np.errstate(invalid="ignore"):
        support[i, j] = alone[i, ids[sites[i]]].astype(np.float64) - with_masks
    return support
