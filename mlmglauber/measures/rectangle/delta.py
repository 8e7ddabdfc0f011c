"""The rectangle test: whether single-site conditionals are those of one joint law.

x has tokens (a, b) at two sites (i, j), z is x with (a', b') there. If a joint law P has these conditionals, both ways
from x to z tell log P(z) / P(x), and their difference

    delta = [log p_i(a'|b) - log p_i(a|b) + log p_j(b'|a') - log p_j(b|a')]
          - [log p_j(b'|a) - log p_j(b|a) + log p_i(a'|b') - log p_i(a|b')]

is zero (nats; all other sites stand as in x). It is zero for every rectangle if and only if a joint exists (Arnold and
Press 1989), and delta at temperature tau is delta / tau, since the normalisers cancel.

i and j may be blocks of sites, as those of a word of several pieces. A block changes one site after the other, from the
left, and by the chain rule its change of log-probability is the sum over its sites of

    log p_k(a'_k | a'_1 .. a'_(k-1), a_(k+1) .. a_K, rest) - log p_k(a_k | the same).

For a joint law that sum is log P(a', rest) / P(a, rest), whatever the order: delta is zero again.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.conditionals import FILL, Conditional, Floats, Ids, stack

Values = NDArray[np.float64]

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Distance from 1 to the next larger number of each format."""
ULPS = 4
"""Rounding of a delta, in units in the last place of the sum of |log p|. A table of float64 numbers, each rounded when
its row was normalised and once more when its logarithm was taken, stays within it."""
WAYS = 4
"""Ways in which a joint law scores texts: paddings, here, one for each of the four conditionals of a rectangle."""


BACKWARDS = (1, 2)
"""Ways that take the states in reverse order: those of the conditionals that delta subtracts. So errors that depend on
the place in a batch add up."""


class Rectangle(NamedTuple):
    """Sites i and j, the tokens a and b that stand there, and the alternatives to_a and to_b."""

    i: int
    j: int
    a: int
    b: int
    to_a: int
    to_b: int


class BlockRectangle(NamedTuple):
    """The same for two blocks of sites: ascending sites, as many tokens, and as many alternatives."""

    i: tuple[int, ...]
    j: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]
    to_a: tuple[int, ...]
    to_b: tuple[int, ...]


class Ask(NamedTuple):
    """A conditional that a rectangle needs: at `site` of `ids`, of two tokens."""

    ids: Ids
    site: int
    tokens: tuple[int, int]


class Measured(NamedTuple):
    """R rectangles at tau, in nats.

    logp: (R, 4, 2) log-probabilities of what stands there and of the alternative, in the order of `asks`; of a block
    their sum over its sites. delta: (R,). size: (R,) the sum of |log p| over all conditionals of the rectangle.
    """

    logp: Values
    delta: Values
    size: Values


class JointLaw(Protocol):
    """A model that gives log P(x) itself, as a causal one does."""

    def joint(self, ids: Ids, way: int = 0, again: bool = False) -> Values:
        """(B,) log P(x) in nats of B states, by one of WAYS ways through the hardware; `again` by others still."""
        ...


class Answers(Protocol):
    """What answers the conditionals of rectangles."""

    def answer(self, asked: Sequence[Ask], tau: float = 1.0, again: bool = False) -> tuple[Values, Values]:
        """((A, 2) log-probabilities at tau = 1, (A,) log of the normaliser of p^(1/tau)), both in nats."""
        ...


def asks(ids: Ids, rectangle: Rectangle | BlockRectangle) -> list[Ask]:
    """The conditionals of a rectangle on x = ids: i given b, i given b', j given a, j given a', one for each site."""
    i, j, a, b, to_a, to_b = (np.atleast_1d(part) for part in rectangle)
    over_b, over_a = ids.copy(), ids.copy()
    over_b[j], over_a[i] = to_b, to_a
    return [*_steps(ids, i, a, to_a), *_steps(over_b, i, a, to_a), *_steps(ids, j, b, to_b),
            *_steps(over_a, j, b, to_b)]


def _steps(ids: Ids, sites: Ids, present: Ids, alternatives: Ids) -> Iterator[Ask]:
    """A block's conditionals: each site given the alternatives on its left and what stands there on its right."""
    for k, site in enumerate(sites.tolist()):
        state = ids.copy()
        state[sites[:k]] = alternatives[:k]
        yield Ask(state, site, (int(present[k]), int(alternatives[k])))


def quarters(rectangle: Rectangle | BlockRectangle) -> tuple[int, int, int, int]:
    """How many of a rectangle's `asks` each of its four conditionals takes."""
    first, second = np.size(rectangle.i), np.size(rectangle.j)
    return first, first, second, second


def delta(logp: Values) -> Values:
    """(R,) deltas in nats from (R, 4, 2) log-probabilities: of the present token and its alternative, as `asks` says.

    >>> logp = np.log([[[.7, .2], [.2, .5], [.6, .3], [.1, .8]]])  # Table A of the tests
    >>> delta(logp).round(6)
    array([0.603535])
    """
    gain = logp[..., 1] - logp[..., 0]
    return np.asarray((gain[:, 0] + gain[:, 3]) - (gain[:, 2] + gain[:, 1]))


def measure(answers: Answers, asked: Sequence[Ask], tau: float = 1.0, again: bool = False,
            counts: Sequence[int] | None = None) -> Measured:
    """Rectangles from their `asks`, one rectangle's after the other's.

    counts: how many asks belong to each quarter of each rectangle; one where it is not given.
    """
    base, normaliser = answers.answer(asked, tau, again)
    scaled = base / tau - normaliser[:, None]
    starts = np.arange(len(asked)) if counts is None else np.cumsum([0, *counts[:-1]])
    with np.errstate(invalid="ignore"):
        summed = np.add.reduceat(base, starts).reshape(-1, 4, 2)
        size = np.add.reduceat(np.abs(base).sum(axis=1), starts[::4]) / tau
        return Measured(np.add.reduceat(scaled, starts).reshape(-1, 4, 2), delta(summed) / tau, size)


def noise(first: Measured, second: Measured) -> Values:
    """(R,) how far rounding moves a delta, in nats: a sample of its scale, from two computations of R rectangles.

    The root of the sum of squares of what the four gains log p(alternative) - log p(present) change by: the standard
    deviation of the difference of two deltas if gains err independently. It is no function of the two deltas, which may
    agree by accident, or differ by their size where one order and padding mirrors the other.
    """
    with np.errstate(invalid="ignore"):
        moved = (second.logp[..., 1] - second.logp[..., 0]) - (first.logp[..., 1] - first.logp[..., 0])
    return np.asarray(np.sqrt((moved**2).sum(axis=1)))


def rounding(size: Values, dtype: str) -> Values:
    """(R,) how large a delta rounding alone may make, in nats, at least: ULPS units in the last place of `size`.

    dtype: the number format of the model; of one that is not known, float32.
    """
    return ULPS * EPSILON.get(dtype, EPSILON["float32"]) * size


class Rows:
    """Conditionals by masked context: rectangles on one pair of sites share them, and none is computed twice."""

    def __init__(self, conditional: Conditional, rows: int) -> None:
        self.conditional, self.rows = conditional, rows
        self.computed = 0
        self._kept: dict[tuple[int, bytes], Floats] = {}

    def keep(self, states: Sequence[Ids], sites: Sequence[int]) -> list[Floats]:
        """The rows of some contexts, held for whoever asks for them later."""
        keys = [_context(ids, site) for ids, site in zip(states, sites, strict=True)]
        new = {key: k for k, key in enumerate(keys) if key not in self._kept}
        for key, row in self._compute(list(new), [states[k] for k in new.values()], self.conditional.log_probs):
            self._kept[key] = row
        return [self._kept[key] for key in keys]

    def answer(self, asked: Sequence[Ask], tau: float = 1.0, again: bool = False) -> tuple[Values, Values]:
        """See Answers. again: nothing kept is used, and the rows go through the hardware by another way; ValueError for
        a conditional that has none, as a table."""
        wanted: dict[tuple[int, bytes], list[int]] = {}
        for k, ask in enumerate(asked):
            wanted.setdefault(_context(ask.ids, ask.site), []).append(k)
        found, normaliser = np.empty((len(asked), 2)), np.zeros(len(asked))

        def take(key: tuple[int, bytes], row: Floats) -> None:
            scale = _log_normaliser(row, tau) if tau != 1 else 0.0
            for k in wanted[key]:
                found[k] = row[list(asked[k].tokens)]
                normaliser[k] = scale

        kept = {} if again else {key: self._kept[key] for key in wanted if key in self._kept}
        for key, row in kept.items():
            take(key, row)
        compute = self.conditional.log_probs
        if again:
            if not has_other_way(self.conditional):
                raise ValueError("this conditional is computed in one way only")
            compute = self.conditional.log_probs_again
        missing = [key for key in wanted if key not in kept]
        for key, row in self._compute(missing, [asked[wanted[key][0]].ids for key in missing], compute):
            take(key, row)
        return found, normaliser

    def _compute(self, keys: Sequence[tuple[int, bytes]], states: Sequence[Ids],
                 compute: Any) -> Iterator[tuple[tuple[int, bytes], Floats]]:
        self.computed += len(keys)
        for start in range(0, len(keys), self.rows):
            batch = keys[start : start + self.rows]
            sites = np.array([site for site, _ in batch])
            rows = compute(stack(states[start : start + self.rows]), sites)
            yield from zip(batch, rows, strict=True)


def has_other_way(model: Any) -> bool:
    """Whether a model can compute its numbers again in another way, so that rounding shows."""
    return bool(model.has_second_way)


def _context(ids: Ids, site: int) -> tuple[int, bytes]:
    context = ids.copy()
    context[site] = FILL
    return site, context.tobytes()


def _log_normaliser(row: Floats, tau: float) -> float:
    """log sum_v p_v^(1/tau) of a row of log-probabilities."""
    from scipy.special import logsumexp

    return float(logsumexp(row.astype(np.float64) / tau))


class JointRows:
    """Conditionals of a model that gives a joint, of a choice between two tokens: P(a', b) / [P(a, b) + P(a', b)].

    Each is made of two scores of its own. A corner of a rectangle belongs to two conditionals and is scored for each of
    them, by another way through the hardware and in another place of its batch, so that nothing cancels by algebra:
    delta is what the scores disagree.
    """

    def __init__(self, law: JointLaw) -> None:
        self.law = law

    def answer(self, asked: Sequence[Ask], tau: float = 1.0, again: bool = False) -> tuple[Values, Values]:
        """See Answers."""
        scores = np.empty((len(asked), 2))
        for way in range(WAYS):
            members = asked[way::WAYS]
            if not members:
                continue
            states = []
            for ask in members:
                for token in ask.tokens:
                    state = ask.ids.copy()
                    state[ask.site] = token
                    states.append(state)
            order = slice(None, None, -1 if way in BACKWARDS else 1)
            scores[way::WAYS] = self.law.joint(stack(states[order]), way, again)[order].reshape(-1, 2)
        base = scores - np.logaddexp(scores[:, 0], scores[:, 1])[:, None]
        return base, np.logaddexp(base[:, 0] / tau, base[:, 1] / tau)
