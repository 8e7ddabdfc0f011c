"""The rectangle test: whether single-site conditionals are those of one joint law.

x has tokens (a, b) at two sites (i, j), z is x with (a', b') there. If a joint law P has these conditionals, both ways
from x to z tell log P(z) / P(x), and their difference

    delta = [log p_i(a'|b) - log p_i(a|b) + log p_j(b'|a') - log p_j(b|a')]
          - [log p_j(b'|a) - log p_j(b|a) + log p_i(a'|b') - log p_i(a|b')]

is zero (nats; all other sites stand as in x). It is zero for every rectangle if and only if a joint exists (Arnold and
Press 1989), and delta at temperature tau is delta / tau, since the normalisers cancel.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.conditionals import FILL, Conditional, Floats, Ids, stack

Values = NDArray[np.float64]


class Rectangle(NamedTuple):
    """Sites i and j, the tokens a and b that stand there, and the alternatives to_a and to_b."""

    i: int
    j: int
    a: int
    b: int
    to_a: int
    to_b: int


class Ask(NamedTuple):
    """A conditional that a rectangle needs: at `site` of `ids`, of two tokens."""

    ids: Ids
    site: int
    tokens: tuple[int, int]


class JointLaw(Protocol):
    """A model that gives log P(x) itself, as a causal one does."""

    def joint(self, ids: Ids, again: bool = False) -> Values:
        """(B,) log P(x) in nats of B states; `again` by another way through the hardware."""
        ...


def asks(ids: Ids, rectangle: Rectangle) -> list[Ask]:
    """The four conditionals of a rectangle on x = ids: i given b, i given b', j given a, j given a'."""
    i, j, a, b, to_a, to_b = rectangle
    over_b, over_a = ids.copy(), ids.copy()
    over_b[j], over_a[i] = to_b, to_a
    return [Ask(ids, i, (a, to_a)), Ask(over_b, i, (a, to_a)), Ask(ids, j, (b, to_b)), Ask(over_a, j, (b, to_b))]


def delta(logp: Values) -> Values:
    """(R,) deltas in nats from (R, 4, 2) log-probabilities: of the present token and its alternative, as `asks` says.

    >>> logp = np.log([[[.7, .2], [.2, .5], [.6, .3], [.1, .8]]])  # Table A of the tests
    >>> delta(logp).round(6)
    array([0.603535])
    """
    gain = logp[..., 1] - logp[..., 0]
    return np.asarray((gain[:, 0] + gain[:, 3]) - (gain[:, 2] + gain[:, 1]))


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
        """((A, 2) log-probabilities at tau = 1, (A,) log of the normaliser of p^(1/tau)), both in nats.

        again: nothing kept is used, and the rows go through the hardware in another order and, where the model can,
        with other padding: the difference is rounding.
        """
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
        # A table has no rounding to measure, and no other way.
        compute = getattr(self.conditional, "log_probs_again", self.conditional.log_probs) if again \
            else self.conditional.log_probs
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


def _context(ids: Ids, site: int) -> tuple[int, bytes]:
    context = ids.copy()
    context[site] = FILL
    return site, context.tobytes()


def _log_normaliser(row: Floats, tau: float) -> float:
    """log sum_v p_v^(1/tau) of a row of log-probabilities."""
    scaled = row.astype(np.float64) / tau
    best = scaled.max()
    return float(best + np.log(np.exp(scaled - best).sum()))


def from_conditionals(rows: Rows, asked: Sequence[Ask], tau: float = 1.0, again: bool = False) -> tuple[Values, Values]:
    """((R, 4, 2) log-probabilities at tau, (R,) deltas at tau) of R rectangles, four asks each."""
    base, normaliser = rows.answer(asked, tau, again)
    logp = (base / tau - normaliser[:, None]).reshape(-1, 4, 2)
    with np.errstate(invalid="ignore"):
        return logp, delta(base.reshape(-1, 4, 2)) / tau


def from_joint(law: JointLaw, asked: Sequence[Ask], tau: float = 1.0, again: bool = False) -> tuple[Values, Values]:
    """The same for a model that gives a joint: p_i(a'|b) / p_i(a|b) = P(a', b) / P(a, b).

    The log-probabilities are those of a choice between the two tokens. The scores of each way from x to z are computed
    apart from the other's, in another order and padding, so that delta is a measured floor and not algebra.
    """
    scores = np.empty((len(asked), 2))
    for path, backwards in (((0, 3), again), ((2, 1), not again)):
        places = [k for k in range(len(asked)) if k % 4 in path]
        states: dict[bytes, Ids] = {}
        names = np.empty((len(places), 2), dtype=object)
        for row, k in enumerate(places):
            for column, token in enumerate(asked[k].tokens):
                state = asked[k].ids.copy()
                state[asked[k].site] = token
                names[row, column] = state.tobytes()
                states[names[row, column]] = state
        found = law.joint(stack(list(states.values())), again=backwards)
        known = dict(zip(states, found.tolist(), strict=True))
        scores[places] = [[known[name] for name in pair] for pair in names]
    scores /= tau
    with np.errstate(invalid="ignore"):
        logp = scores - np.logaddexp(scores[:, 0], scores[:, 1])[:, None]
        return logp.reshape(-1, 4, 2), delta(scores.reshape(-1, 4, 2))
