"""The influences in one context: rows of changed states against those of the state itself, never all held at once."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.glauber import NotFiniteError
from mlmglauber.measures.influence.matrix import Matrix, contraction, oscillations, total_variations
from mlmglauber.measures.influence.replacements import Ascent, Changes
from mlmglauber.models.conditionals import Conditional, Floats, Ids

SLICE = 1 << 28
"""Bytes of conditionals computed at a time: many forward passes, so that all sites share them."""

Keep = Callable[[Floats, Ids, Ids, Floats], None]
Advance = Callable[[float], None]


class Compared(NamedTuple):
    """What C changes of one state do at its n free sites; 0 at the changed site itself.

    variations: (T, n, C) TV( p_i(.|x), p_i(.|y_c) ) at T temperatures. oscillations: (n, C) of log p - log p' at tau 1.
    """

    changes: Changes
    variations: NDArray[np.float64]
    oscillations: NDArray[np.float64]

    def matrix(self, k: int) -> Matrix:
        """(n, n) the largest TV seen, at the k-th temperature: entry ij is at most c_ij."""
        return _largest(self.variations[k], self.changes.places)

    def oscillation_matrix(self) -> Matrix:
        """(n, n) D_ij, the largest oscillation seen."""
        return _largest(self.oscillations, self.changes.places)

    def mean_contraction(self, k: int) -> float | None:
        """Mean of 1 - 1/n + (1/n) sum_i TV_i over the changes as often as they were drawn; None for none."""
        weights = self.changes.weights
        if not len(weights):
            return None
        moved = self.variations[k].sum(axis=0)
        return contraction(float((weights * moved).sum() / weights.sum()), self.variations.shape[1])


def _largest(values: NDArray[np.float64], places: Ids) -> Matrix:
    found = np.zeros((len(values), len(values)))
    np.maximum.at(found.T, places, values.T)
    return found


def check_rows(rows: Floats) -> None:
    """NotFiniteError for a row that is no law."""
    broken = np.flatnonzero(~np.isfinite(rows.max(axis=1)))
    if len(broken):
        raise NotFiniteError(int(broken[0]))


def compare(conditional: Conditional, ids: Ids, sites: Ids, base: Floats, changes: Changes, taus: Sequence[float],
            keep: Keep | None = None, advance: Advance = lambda rows: None) -> Compared:
    """Influences of one state from the rows of its changed ones: C (n - 1) rows of V log-probabilities.

    ids: (N,) the state. sites: (n,) the free ones. base: (n, V) its own rows. Rows are asked for in slices of SLICE
    bytes, site by site: never (n, n, V). keep: is given (base, i, j, rows) of each slice, (B,) places and (B, V) rows.
    advance: is told how many rows are done.
    """
    n, count = len(sites), len(changes.places)
    variations, moved = np.zeros((len(taus), n, count)), np.zeros((n, count))
    at, which = np.nonzero(np.arange(n)[:, None] != changes.places)  # site by site: a row meets its own base row
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
    """As compare, of the changes that an ascent looks for; what it climbs is sum_i TV_i at the first temperature."""
    rounds = []
    while (changes := ascent.propose()) is not None:
        found = compare(conditional, ids, sites, base, changes, taus, keep, advance)
        ascent.learn(changes, found.variations[0].sum(axis=0))
        rounds.append(found)
    if not rounds:
        none = np.empty(0, dtype=np.int64)
        return compare(conditional, ids, sites, base, Changes(none, none, none), taus)
    changes = Changes(*(np.concatenate(parts) for parts in zip(*(found.changes for found in rounds), strict=True)))
    return Compared(changes, np.concatenate([found.variations for found in rounds], axis=2),
                    np.concatenate([found.oscillations for found in rounds], axis=1))
