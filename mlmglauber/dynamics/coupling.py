"""Couplings: tokens drawn together, each by its own law, so that two chains at the same site agree when they may.

Every coupling gives each chain its own conditional, and never parts chains whose laws are the same. How often two laws
agree is what tells them apart: maximal, sum_v min(p(v), q(v)), the most there can be; race, at least half as much in
odds but for any number of laws at once; quantile, the baseline that people write first.
"""

from collections.abc import Sequence
from functools import cached_property
from math import inf
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.law import Law

COUPLINGS = ("maximal", "race", "quantile")
WORDS = 3
"""Uniforms that a step of a maximal coupling takes; a race takes one exponential a token."""

Side = tuple[float, float, float]
"""(low, high, total): the uniforms with low <= uniform * total < high."""
FREE: Side = (-inf, inf, 1.0)
NEVER: Side = (inf, inf, 1.0)


class Box(NamedTuple):
    """The uniforms that give certain tokens: a side of the box for each of the WORDS uniforms of a step."""

    first: Side
    second: Side
    third: Side

    @property
    def volume(self) -> float:
        """The probability of these tokens."""
        edges = [(max(low / total, 0.0), min(high / total, 1.0)) for low, high, total in self]
        return float(np.prod([max(high - low, 0.0) for low, high in edges]))


EVERYWHERE, NOWHERE = Box(FREE, FREE, FREE), Box(NEVER, FREE, FREE)


class Coupling(Protocol):
    """The laws of some chains at one site, ready to be drawn together."""

    def draw(self, noise: NDArray[np.float64]) -> tuple[int, ...]:
        """One token for each law, from WORDS uniforms on [0, 1) or, in a race, (V,) exponentials."""
        ...

    def box(self, tokens: Sequence[int]) -> Box:
        """Uniforms that surely give these tokens, NOWHERE where they cannot be told beforehand."""
        ...


class One:
    """One law, as it is left when chains have met: the first uniform draws from it."""

    def __init__(self, law: Law) -> None:
        self.law = law

    def draw(self, noise: NDArray[np.float64]) -> tuple[int, ...]:
        return (self.law.draw(float(noise[0])),)

    def box(self, tokens: Sequence[int]) -> Box:
        return Box(self.law.stretch(tokens[0]), FREE, FREE)


class Maximal:
    """P(x = y) = sum_v min(p(v), q(v)); where they differ, x and y are independent draws of the residuals.

    x is drawn from p by the first uniform. y = x when u_2 p(x) < q(x), which has probability sum_v min(p(v), q(v));
    else y is drawn by u_3 from (q - p)^+, normalised. No loop: three uniforms a step, always.

    >>> from mlmglauber.dynamics.law import laws
    >>> p, q = laws(np.log([[.7, .2, .1], [.1, .2, .7]]), [1.0, 1.0])
    >>> round(sum(Maximal(p, q).box((v, v)).volume for v in range(3)), 4)
    0.4
    """

    def __init__(self, p: Law, q: Law) -> None:
        self.p, self.q = p, q

    def draw(self, noise: NDArray[np.float64]) -> tuple[int, ...]:
        u, accept, other = noise.tolist()
        x = self.p.draw(u)
        if accept * mass(self.p, x) < mass(self.q, x) or self.rest is None:
            return x, x
        return x, self.rest.draw(other)

    def box(self, tokens: Sequence[int]) -> Box:
        x, y = tokens
        mine, other = mass(self.p, x), mass(self.q, x)
        if mine == 0:
            return NOWHERE
        first = self.p.stretch(x)
        if x == y:
            return Box(first, FREE if other >= mine else (-inf, other, mine), FREE)
        if other >= mine or self.rest is None:
            return NOWHERE
        return Box(first, (other, inf, mine), self.rest.stretch(y))

    @cached_property
    def rest(self) -> Law | None:
        """(q - p)^+ as a law; None when nothing is left: p and q are then the same up to rounding."""
        return residual(self.q, self.p)


class Quantile:
    """Both inverse distribution functions at one uniform: the tokens' order, which means nothing, decides."""

    def __init__(self, p: Law, q: Law) -> None:
        self.p, self.q = p, q

    def draw(self, noise: NDArray[np.float64]) -> tuple[int, ...]:
        return self.p.draw(float(noise[0])), self.q.draw(float(noise[1]))

    def box(self, tokens: Sequence[int]) -> Box:
        """The first two uniforms are the same one: the box is met where it is cut by their diagonal."""
        return Box(self.p.stretch(tokens[0]), self.q.stretch(tokens[1]), FREE)


class Race:
    """A shared exponential race: each law takes its argmin_v E_v / p(v), with one E_v for each token, shared by all.

    P(x = y) = sum_v 1 / sum_w max(p(w)/p(v), q(w)/q(v)) >= (1 - TV) / (1 + TV), for every two of any number of laws.
    """

    def __init__(self, laws: Sequence[Law]) -> None:
        self.laws = laws
        # A share that vanished in the running sums arrives last.
        self.means = [1 / np.maximum(_weights(law), 1e-300) for law in laws]

    def draw(self, noise: NDArray[np.float64]) -> tuple[int, ...]:
        return tuple(int(law.tokens[(noise[law.tokens] * means).argmin()])
                     for law, means in zip(self.laws, self.means, strict=True))

    def box(self, tokens: Sequence[int]) -> Box:
        """All or nothing: who wins hangs on all exponentials, unless nobody else runs."""
        certain = all(len(law.tokens) == 1 and law.tokens[0] == token
                      for law, token in zip(self.laws, tokens, strict=True))
        return EVERYWHERE if certain else NOWHERE


def coupled(kind: str, laws: Sequence[Law]) -> Coupling:
    """The coupling of one of COUPLINGS; maximal and quantile take one law or two."""
    if kind == "race":
        return Race(laws)
    if len(laws) == 1:
        return One(laws[0])
    p, q = laws
    return Maximal(p, q) if kind == "maximal" else Quantile(p, q)


def mass(law: Law, token: int) -> float:
    """The share of [0, 1) that draws the token; exactly 0 for one that was left out."""
    low, high, total = law.stretch(token)
    return 0.0 if low == inf else (min(high, total) - low) / total


def shares(law: Law) -> NDArray[np.float64]:
    """(k,) the probabilities of law.tokens, as its draws have them."""
    return np.asarray(_weights(law) / law.cumulative[-1])


def residual(q: Law, p: Law) -> Law | None:
    """(q - p)^+, normalised, as a law at tau = 1; None where it is nothing."""
    more = shares(q)
    if np.array_equal(q.tokens, p.tokens):
        more -= shares(p)
    else:
        places = np.minimum(p.tokens.searchsorted(q.tokens), len(p.tokens) - 1)
        more -= np.where(p.tokens[places] == q.tokens, shares(p)[places], 0.0)
    kept = np.flatnonzero(more > 0)
    if not len(kept):
        return None
    base = np.log(more[kept])
    best = float(base.max())
    return Law(q.tokens[kept], np.cumsum(np.exp(base - best)), base, 1.0, best)


def exponentials(uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard exponentials from uniforms on [0, 1)."""
    return -np.log1p(-uniforms)


def _weights(law: Law) -> NDArray[np.float64]:
    weights = law.cumulative.copy()
    weights[1:] -= law.cumulative[:-1]
    return weights
