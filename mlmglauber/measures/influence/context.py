"""The influences in one context: conditionals of changed states, computed in slices, against those of the state."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.glauber import NotFiniteError
from mlmglauber.measures.influence.matrix import Matrix, contraction, oscillations, total_variations
from mlmglauber.measures.influence.replacements import Ascent, Changes
from mlmglauber.models.conditionals import Conditional, Floats, Ids

SLICE = 1 << 28
"""Number of bytes of conditionals that are computed at a time; a slice covers many forward passes."""

Keep = Callable[[Floats, Ids, Ids, Floats], None]
Advance = Callable[[float], None]


class Compared(NamedTuple):
    """The effect of C changes of one state x at its n free sites; 0 at the changed site itself.

    variations: (T, n, C) TV( p_i(.|x), p_i(.|y_c) ) at T temperatures. oscillations: (n, C) of log p - log p' at tau =
    1, in nats.
    """

    changes: Changes
    variations: NDArray[np.float64]
    oscillations: NDArray[np.float64]

    def matrix(self, k: int) -> Matrix:
        """(n, n) largest TV over the changes at the k-th temperature: entry ij is a lower bound of c_ij."""
        return _largest(self.variations[k], self.changes.places)

    def oscillation_matrix(self) -> Matrix:
        """(n, n) D_ij, the largest oscillation over the changes."""
        return _largest(self.oscillations, self.changes.places)

    def mean_contraction(self, k: int) -> float | None:
        """Mean of 1 - 1/n + (1/n) sum_i TV_i over the draws of changes; None where there is no change."""
        weights = self.changes.weights
        if not len(weights):
            return None
        moved = self.variations[k].sum(axis=0)
        return contraction(float((weights * moved).sum() / weights.sum()), self.variations.shape[1])


def _largest(values: NDArray[np.float64], places: Ids) -> Matrix:
    largest = np.zeros((len(values), len(values)))
    np.maximum.at(largest.T, places, values.T)
    return largest


def check_rows(rows: Floats) -> None:
    """Raise NotFiniteError for a row without a finite entry."""
    broken = np.flatnonzero(~np.isfinite(rows.max(axis=1)))
    if len(broken):
        raise NotFiniteError(int(broken[0]))


def compare(conditional: Conditional, ids: Ids, sites: Ids, base: Floats, changes: Changes, taus: Sequence[float],
            keep: Keep | None = None, advance: Advance = lambda rows: None) -> Compared:
    """Influences of one state, from C (n - 1) conditionals (rows of V log-probabilities) of its changed states.

    ids: (N,) the state. sites: (n,) the free ones. base: (n, V) the state's own rows. Rows are computed in slices of
    SLICE bytes, site by site, so that no (n, n, V) array exists. keep: called with (base, i, j, rows) for each slice:
    (B,) places of the conditionals, (B,) places of the changes, (B, V) rows. advance: called with the number of rows
    that are done.
    """
    n, count = len(sites), len(changes.places)
    variations, moved = np.zeros((len(taus), n, count)), np.zeros((n, count))
    at, which = np.nonzero(np.arange(n)[:, None] != changes.places)  # site by site
    step = max(1, SLICE // (4 * conditional.vocab_size))
    for start in range(0, len(at), step):
        i, c = at[start : start + step], which[start : start + step]
        states = np.repeat(ids[None], len(i), axis=0)
        states[np.arange(len(i)), sites[changes.places[c]]] = changes.tokens[c]
        rows = conditional.log_probs(states, sites[i])
        check_rows(rows)
        for site in np.unique(i).tolist():
            here = slice(*np.searchsorted(i, [site, site + 1]))
            variations[:, site, c[here]] = total_variations(base[site], rows[here], taus)
            moved[site, c[here]] = oscillations(base[site], rows[here])
        if keep is not None:
            keep(base, i, changes.places[c], rows)
        advance(len(i))
    return Compared(changes, variations, moved)


def ascend(conditional: Conditional, ids: Ids, sites: Ids, base: Floats, ascent: Ascent, taus: Sequence[float],
           keep: Keep | None = None, advance: Advance = lambda rows: None) -> Compared:
    """As compare, for the changes that an ascent proposes; it maximises sum_i TV_i at the first temperature."""
    rounds = []
    while (changes := ascent.propose()) is not None:
        compared = compare(conditional, ids, sites, base, changes, taus, keep, advance)
        ascent.learn(changes, compared.variations[0].sum(axis=0))
        rounds.append(compared)
    if not rounds:
        none = np.empty(0, dtype=np.int64)
        return compare(conditional, ids, sites, base, Changes(none, none, none), taus)
    changes = Changes(*(np.concatenate(parts) for parts in zip(*(each.changes for each in rounds), strict=True)))
    return Compared(changes, np.concatenate([each.variations for each in rounds], axis=2),
                    np.concatenate([each.oscillations for each in rounds], axis=1))
