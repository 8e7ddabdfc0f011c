"""The rectangle test: whether single-site conditionals belong to one joint distribution.

x has tokens (a, b) at two sites (i, j), and z is x with (a', b') there. If a joint distribution P has these
conditionals, both ways from x to z give log P(z) / P(x), and their difference

    delta = [log p_i(a'|b) - log p_i(a|b) + log p_j(b'|a') - log p_j(b|a')]
          - [log p_j(b'|a) - log p_j(b|a) + log p_i(a'|b') - log p_i(a|b')]

is zero (in nats; all other sites as in x). It is zero for every rectangle if and only if a joint distribution exists
(Arnold and Press 1989). At temperature tau it is delta / tau, since the normalisers cancel.

i and j may be blocks of sites, such as those of a word of several pieces. A block changes one site after the other,
from the left. By the chain rule its change of log-probability is the sum over its sites of

    log p_k(a'_k | a'_1 .. a'_(k-1), a_(k+1) .. a_K, rest) - log p_k(a_k | the same).

For a joint distribution this sum is log P(a', rest) / P(a, rest), whatever the order, so delta is zero again.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.conditionals import FILL, Conditional, Floats, Ids, stack

Values = NDArray[np.float64]

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Distance from 1 to the next larger number of each number format."""
ULPS = 4
"""Rounding error of a delta, in units in the last place of the sum of |log p|. A table of float64 numbers, which are
rounded when a row is normalised and when its logarithm is taken, stays within it."""
WAYS = 4
"""Number of ways in which a joint distribution scores texts: one padding for each conditional of a rectangle."""
BACKWARDS = (1, 2)
"""The ways that take the states in reverse order, those of the conditionals that delta subtracts: errors that depend on
the place in a batch then add up instead of cancelling."""


class Rectangle(NamedTuple):
    """Sites i and j, their tokens a and b, and the alternatives to_a and to_b."""

    i: int
    j: int
    a: int
    b: int
    to_a: int
    to_b: int


class BlockRectangle(NamedTuple):
    """A rectangle of two blocks: ascending sites, and as many tokens and alternatives as sites."""

    i: tuple[int, ...]
    j: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]
    to_a: tuple[int, ...]
    to_b: tuple[int, ...]


class Ask(NamedTuple):
    """The log-probabilities that a rectangle needs of one conditional: of two tokens at a site of a state."""

    ids: Ids
    site: int
    tokens: tuple[int, int]


class Measured(NamedTuple):
    """R rectangles at temperature tau, in nats.

    logp: (R, 4, 2) log-probabilities of the present token and of the alternative, in the order of `asks`; for a block,
    sums over its sites. delta: (R,). size: (R,) sum of |log p| over all conditionals of the rectangle.
    """

    logp: Values
    delta: Values
    size: Values


class JointLaw(Protocol):
    """A model that gives log P(x) itself, such as a causal language model."""

    def joint(self, ids: Ids, way: int = 0, again: bool = False) -> Values:
        """(B,) log P(x) in nats of B states, computed in one of WAYS ways; with `again` in WAYS other ways."""
        ...


class Answers(Protocol):
    """A source of the conditionals of rectangles."""

    def answer(self, all_asks: Sequence[Ask], tau: float = 1.0, again: bool = False) -> tuple[Values, Values]:
        """((A, 2) log-probabilities at tau = 1, (A,) log of the normaliser of p^(1/tau)), both in nats."""
        ...


def asks(ids: Ids, rectangle: Rectangle | BlockRectangle) -> list[Ask]:
    """The conditionals of a rectangle on x = ids: at i given b and given b', at j given a and given a'.

    Each of these four has one item for a site, and one for each site of a block.
    """
    i, j, a, b, to_a, to_b = (np.atleast_1d(part) for part in rectangle)
    over_b, over_a = ids.copy(), ids.copy()
    over_b[j], over_a[i] = to_b, to_a
    return [*_steps(ids, i, a, to_a), *_steps(over_b, i, a, to_a), *_steps(ids, j, b, to_b),
            *_steps(over_a, j, b, to_b)]


def _steps(ids: Ids, sites: Ids, present: Ids, alternatives: Ids) -> Iterator[Ask]:
    """A block's conditionals: each site given the alternatives at sites to its left and the tokens to its right."""
    for k, site in enumerate(sites.tolist()):
        state = ids.copy()
        state[sites[:k]] = alternatives[:k]
        yield Ask(state, site, (int(present[k]), int(alternatives[k])))


def quarters(rectangle: Rectangle | BlockRectangle) -> tuple[int, int, int, int]:
    """The number of items in a rectangle's `asks` for each of its four conditionals."""
    first, second = np.size(rectangle.i), np.size(rectangle.j)
    return first, first, second, second


def delta(logp: Values) -> Values:
    """(R,) deltas in nats from (R, 4, 2) log-probabilities of the present token and its alternative, see Measured.

    >>> logp = np.log([[[.7, .2], [.2, .5], [.6, .3], [.1, .8]]])  # Table A of the tests
    >>> delta(logp).round(6)
    array([0.603535])
    """
    gain = logp[..., 1] - logp[..., 0]
    return np.asarray((gain[:, 0] + gain[:, 3]) - (gain[:, 2] + gain[:, 1]))


def measure(answers: Answers, all_asks: Sequence[Ask], tau: float = 1.0, again: bool = False,
            counts: Sequence[int] | None = None) -> Measured:
    """Measure rectangles; all_asks: the `asks` of all rectangles, one after the other.

    counts: the `quarters` of all rectangles, one after the other; by default 1 for each conditional.
    """
    base, normaliser = answers.answer(all_asks, tau, again)
    scaled = base / tau - normaliser[:, None]
    starts = np.arange(len(all_asks)) if counts is None else np.cumsum([0, *counts[:-1]])
    with np.errstate(invalid="ignore"):
        summed = np.add.reduceat(base, starts).reshape(-1, 4, 2)
        size = np.add.reduceat(np.abs(base).sum(axis=1), starts[::4]) / tau
        return Measured(np.add.reduceat(scaled, starts).reshape(-1, 4, 2), delta(summed) / tau, size)


def noise(first: Measured, second: Measured) -> Values:
    """(R,) the size in nats of the rounding error of each delta, from two computations of R rectangles.

    With the four gains log p(alternative) - log p(present), it is the root of the sum of the squares of their changes:
    the standard deviation of the difference of the two deltas if errors of gains are independent. The difference of
    the two deltas itself is not used: they may agree by accident, or be mirror images of each other.
    """
    with np.errstate(invalid="ignore"):
        moved = (second.logp[..., 1] - second.logp[..., 0]) - (first.logp[..., 1] - first.logp[..., 0])
    return np.asarray(np.sqrt((moved**2).sum(axis=1)))


def rounding(size: Values, dtype: str) -> Values:
    """(R,) the size in nats of a delta that rounding alone can produce: ULPS units in the last place of `size`.

    dtype: the model's number format; an unknown one counts as float32.
    """
    return ULPS * EPSILON.get(dtype, EPSILON["float32"]) * size


class Rows:
    """Answers rectangles from a model's conditionals; computes each masked context of a call once."""

    def __init__(self, conditional: Conditional, rows: int) -> None:
        self.conditional, self.rows = conditional, rows
        self.computed = 0
        self._kept: dict[tuple[int, bytes], Floats] = {}

    def keep(self, states: Sequence[Ids], sites: Sequence[int]) -> list[Floats]:
        """The rows (V,) of some contexts; they are kept for later calls of `answer`."""
        keys = [_context(ids, site) for ids, site in zip(states, sites, strict=True)]
        new = {key: k for k, key in enumerate(keys) if key not in self._kept}
        for key, row in self._compute(list(new), [states[k] for k in new.values()], self.conditional.log_probs):
            self._kept[key] = row
        return [self._kept[key] for key in keys]

    def answer(self, asked: Sequence[Ask], tau: float = 1.0, again: bool = False) -> tuple[Values, Values]:
        """See Answers. again: kept rows are not used, and rows are computed in another way; ValueError for a
        conditional without one, such as a table."""
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
    """Whether a model can compute its numbers in a second way, which makes rounding errors visible."""
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
    """Answers rectangles from a joint distribution: P(a', b) / [P(a, b) + P(a', b)] for a choice between two tokens.

    Each conditional has two scores of its own. A corner of a rectangle belongs to two conditionals and is scored for
    each of them in another way and at another place of its batch, so that the scores do not cancel by algebra: delta is
    the disagreement of the scores.
    """

    def __init__(self, law: JointLaw) -> None:
        self.law = law

    def answer(self, all_asks: Sequence[Ask], tau: float = 1.0, again: bool = False) -> tuple[Values, Values]:
        """See Answers."""
        scores = np.empty((len(all_asks), 2))
        for way in range(WAYS):
            members = all_asks[way::WAYS]
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
