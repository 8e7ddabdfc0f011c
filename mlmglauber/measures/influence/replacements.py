"""Replacements of tokens, whose effect on other sites is measured: drawn at random, chosen, or searched for."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.glauber import NotFiniteError, temper
from mlmglauber.measures.rectangle.draw import draw_tokens
from mlmglauber.models.conditionals import Floats, Ids

TYPICAL = ("conditional", "uniform")
"""Draws whose mean describes typical pairs; the others select replacements."""
ROUNDS = 3
"""Number of rounds of an ascent after the first one, which takes half of the candidates."""


class Changes(NamedTuple):
    """C states that differ from one state x at one site each.

    places: (C,) index of the changed site among the free sites. tokens: (C,) the new tokens. weights: (C,) how often
    each change was drawn.
    """

    places: Ids
    tokens: Ids
    weights: Ids


def draw_changes(how: str, base: Floats, present: Ids, allowed: NDArray[np.bool_], uniforms: NDArray[np.float64],
                 tau: float) -> Changes:
    """M replacements at each of n free sites, equal ones merged.

    base: (n, V) conditionals at tau = 1. present: (n,) the tokens of the state. uniforms: (n, M) on [0, 1). how:
    "conditional" draws from p_tau without the present token; "uniform" draws any other token, or takes each of them
    once where there are at most M; "top" takes the M likeliest others. A site without another token has no replacement.
    """
    count = uniforms.shape[1]
    places, tokens, weights = [], [], []
    for place, (row, token) in enumerate(zip(base, present.tolist(), strict=True)):
        others = _others(allowed, token)
        if how == "top":
            order = np.argsort(-row[others], kind="stable")[:count]
            drawn_tokens, times = others[order], np.ones(min(count, len(others)), dtype=np.int64)
        elif how == "uniform" and count >= len(others):
            drawn_tokens, times = others, np.ones(len(others), dtype=np.int64)
        else:
            law = _law_of_others(row, token, tau) if how == "conditional" else None
            if how == "conditional" and law is None:
                continue
            drawn = draw_tokens(how, token, uniforms[place].tolist(), allowed, law)
            drawn_tokens, times = np.unique(np.array(drawn, dtype=np.int64), return_counts=True)
        places.append(np.full(len(drawn_tokens), place))
        tokens.append(drawn_tokens)
        weights.append(times)
    return _joined(places, tokens, weights)


def _others(allowed: NDArray[np.bool_], token: int) -> Ids:
    others = np.flatnonzero(allowed)
    return np.asarray(others[others != token])


def _law_of_others(row: Floats, token: int, tau: float) -> Floats | None:
    """Normalised log p_tau of the other tokens, however likely the present one is; None where there is no other."""
    others = row.astype(np.float64)
    others[token] = -np.inf
    try:
        return np.asarray(temper(others[None], np.array([tau]))[0])
    except NotFiniteError:
        return None


def _joined(places: Sequence[Ids], tokens: Sequence[Ids], weights: Sequence[Ids]) -> Changes:
    none = [np.empty(0, dtype=np.int64)]
    return Changes(*(np.concatenate([*none, *parts]).astype(np.int64) for parts in (places, tokens, weights)))


class Ascent:
    """A search for the replacements that move the other sites most, at all free sites in parallel.

    It starts with the tokens farthest from the present one, then tries the nearest neighbours of the best one so far.
    It finds a large influence, but not always the largest. vectors: (V, d) token vectors. budget: maximum number of
    candidates for each site.
    """

    def __init__(self, vectors: NDArray[np.floating], present: Ids, allowed: NDArray[np.bool_], budget: int) -> None:
        self.vectors, self.squares = vectors, (vectors.astype(np.float64) ** 2).sum(axis=1)
        self.left = [min(budget, int(allowed.sum()) - int(allowed[token])) for token in present.tolist()]
        self.open = np.repeat(allowed[None], len(present), axis=0)
        self.open[np.arange(len(present)), present] = False
        self.present = present
        self.best = np.full(len(present), -1.0)
        self.best_token = present.copy()
        self.first, self.width = True, 1

    def propose(self) -> Changes | None:
        """The candidates of the next round; None when the budget is spent."""
        places, tokens = [], []
        for place, left in enumerate(self.left):
            if not left:
                continue
            start = int(self.present[place] if self.first else self.best_token[place])
            distances = self.squares - 2 * (self.vectors @ self.vectors[start])  # up to a constant
            candidates = np.flatnonzero(self.open[place])
            order = np.argsort((-1 if self.first else 1) * distances[candidates], kind="stable")
            chosen = candidates[order[: self._share(left)]]
            self.open[place, chosen] = False
            self.left[place] -= len(chosen)
            places.append(np.full(len(chosen), place))
            tokens.append(chosen)
        if not places:
            return None
        if self.first:
            self.width = max(1, -(-max(self.left) // ROUNDS))
        self.first = False
        return _joined(places, tokens, [np.ones(len(part), dtype=np.int64) for part in places])

    def _share(self, left: int) -> int:
        return -(-left // 2) if self.first else min(left, self.width)

    def learn(self, changes: Changes, moved: NDArray[np.float64]) -> None:
        """Record how far each proposed change moved the other sites; moved: (C,)."""
        for place, token, size in zip(changes.places.tolist(), changes.tokens.tolist(), moved.tolist(), strict=True):
            if size > self.best[place]:
                self.best[place], self.best_token[place] = size, token
