"""Couplings: the tokens of several chains at one site drawn together, so that they often agree.

Under every coupling each token has its own conditional as its distribution, and chains with equal conditionals get
equal tokens. Couplings differ in how often tokens of two conditionals p and q agree. maximal: sum_v min(p(v), q(v)),
which is the maximum. race: at least (1 - TV) / (1 + TV), TV the total variation of p and q, for any number of
conditionals at once. quantile: the simple baseline.

As everywhere, two uniforms draw a token (draws.py). A draw that an error of the log-probabilities within the tolerance
could have changed is not certain, and is made again in a better precision.
"""

from collections.abc import Callable, Sequence
from math import exp, inf, isinf
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.token_distribution import TokenDistribution

WORDS = 6
"""Number of planned uniforms of a step: block, token and acceptance of the first chain, then of the second chain."""
TRIALS = 64
"""Maximum number of trials of the second chain's token in a maximal coupling; after them it comes from the residual."""

Side = tuple[float, float]
"""(low, high): the uniforms with low <= u < high."""
ALL: Side = (-inf, inf)

Uniforms = NDArray[np.float64]


class AcceptanceRegion(NamedTuple):
    """A box of uniforms that give the same tokens for certain: low <= u < high for the WORDS uniforms of a step."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def volume(self) -> float:
        """Its probability."""
        return float(np.prod([max(min(high, 1.0) - max(low, 0.0), 0.0)
                              for low, high in zip(self.low, self.high, strict=True)]))


def region(*sides: Side) -> AcceptanceRegion:
    """The region in which the first uniforms lie in these sides, and the others anywhere."""
    low, high = zip(*sides, *[ALL] * (WORDS - len(sides)), strict=True)
    return AcceptanceRegion(low, high)


class JointDraw(NamedTuple):
    """Tokens drawn together, one for each conditional, and whether no error within the tolerances could change one."""

    tokens: tuple[int, ...]
    certain: bool


class Coupling(Protocol):
    """The conditionals of several chains at one site, from which tokens are drawn together."""

    def draw(self, noise: Uniforms, more: Callable[[int], Uniforms]) -> JointDraw:
        """Draw one token for each conditional.

        noise: (WORDS,) uniforms on [0, 1) or, in a race, (V,) standard exponentials. more: gives the three uniforms of
        a later trial, numbered from 1 on; for 0 those of the residual.
        """
        ...

    def acceptance_region(self, tokens: Sequence[int]) -> AcceptanceRegion | None:
        """Uniforms that certainly give these tokens; None where there is no such region."""
        ...


class Uncoupled:
    """The one conditional of chains that have met; the first two uniforms draw from it."""

    def __init__(self, distribution: TokenDistribution) -> None:
        self.distribution = distribution

    def draw(self, noise: Uniforms, more: Callable[[int], Uniforms]) -> JointDraw:
        """See Coupling."""
        token, _, certain = _single(self.distribution, noise[0], noise[1])
        return JointDraw((token,), certain)

    def acceptance_region(self, tokens: Sequence[int]) -> AcceptanceRegion | None:
        """See Coupling."""
        ends = self.distribution.ends(tokens[0])
        return None if ends is None else region(*ends)


class Maximal:
    """P(x = y) = sum_v min(p(v), q(v)); where they differ, x and y are independent draws of the residuals.

    x is drawn from p. y = x when u < q(x) / p(x), which has probability sum_v min(p(v), q(v)). Otherwise y is drawn
    from q again and again until u' q(y) > p(y): that is a draw from (q - p)^+, normalised (Thorisson 2000). A trial
    succeeds with probability TV, the total variation of p and q, so the mean number of trials in a step is at most 1.
    If TRIALS trials fail, y is drawn from the residual (q - p)^+ itself.

    >>> p, q = (TokenDistribution.of_row(np.log(row), 1.0, 0.0, 0) for row in ([.7, .2, .1], [.1, .2, .7]))
    >>> round(sum(Maximal(p, q).acceptance_region((v, v)).volume for v in range(3)), 4)
    0.4
    """

    def __init__(self, p: TokenDistribution, q: TokenDistribution) -> None:
        self.p, self.q, self.shift = p, q, p.shift + q.shift

    def draw(self, noise: Uniforms, more: Callable[[int], Uniforms]) -> JointDraw:
        """See Coupling."""
        x, certain = self._compared(self.p, self.q, *noise[:3].tolist())
        if x is None or not certain[1]:
            return JointDraw((0, 0), False)
        if certain[0]:
            return JointDraw((x, x), True)
        for trial in range(TRIALS):
            y, (common, sure) = self._compared(self.q, self.p, *(more(trial) if trial else noise[3:]).tolist())
            if y is None or not sure:
                return JointDraw((0, 0), False)
            if not common:
                return JointDraw((x, y), True)
        if self.shift:
            return JointDraw((0, 0), False)
        return JointDraw((x, self._residual(float(more(0)[0]), x)), True)

    def _compared(self, p: TokenDistribution, q: TokenDistribution, block: float, token: float,
                  accept: float) -> tuple[int | None, tuple[bool, bool]]:
        """Draw x from p and compare u, the acceptance uniform, with q(x) / p(x).

        Returns (x, (whether u is below the ratio, whether that is certain)); x is None where it is not certain itself.
        """
        drawn, _, certain = _single(p, block, token)
        if not certain:
            return None, (False, False)
        low, high = self._ratio(p, q, drawn)
        return drawn, (accept < low, accept < low or accept >= high)

    def _ratio(self, p: TokenDistribution, q: TokenDistribution, token: int) -> Side:
        """(smallest, largest) value of q(token) / p(token) within the tolerances."""
        if p is q:
            return 1.0, 1.0  # both err in the same way
        ratio = q.share(token) / p.share(token)
        grow = exp(min(self.shift, 700.0))
        return ratio / grow, ratio * grow

    def _residual(self, uniform: float, x: int) -> int:
        """A token of (q - p)^+ by its inverse distribution function; x where p and q are equal."""
        size = 1 + max(self.p.largest, self.q.largest)
        edges = np.cumsum(np.maximum(self.q.whole(size) - self.p.whole(size), 0.0))
        if edges[-1] <= 0:
            return x
        return min(int(edges.searchsorted(uniform * edges[-1], side="right")), size - 1)

    def acceptance_region(self, tokens: Sequence[int]) -> AcceptanceRegion | None:
        """See Coupling. Of two tokens that differ, the region of the first trial."""
        x, y = tokens
        first = self.p.ends(x)
        if first is None:
            return None
        low, high = self._ratio(self.p, self.q, x)
        if x == y:
            return region(*first, (-inf, low))
        second = self.q.ends(y)
        if second is None or high >= 1:
            return None
        other = self._ratio(self.q, self.p, y)[1]
        return None if other >= 1 else region(*first, (high, inf), *second, (other, inf))


class Quantile:
    """Both inverse distribution functions at the same two uniforms; agreement depends on the arbitrary order of ids."""

    def __init__(self, p: TokenDistribution, q: TokenDistribution) -> None:
        self.p, self.q = p, q

    def draw(self, noise: Uniforms, more: Callable[[int], Uniforms]) -> JointDraw:
        """See Coupling."""
        (x, _, sure), (y, _, also) = (_single(each, noise[0], noise[1]) for each in (self.p, self.q))
        return JointDraw((x, y), sure and also)

    def acceptance_region(self, tokens: Sequence[int]) -> AcceptanceRegion | None:
        """See Coupling."""
        ends = [each.ends(token) for each, token in zip((self.p, self.q), tokens, strict=True)]
        if ends[0] is None or ends[1] is None:
            return None
        return region(*((max(a, c), min(b, d)) for (a, b), (c, d) in zip(*ends, strict=True)))


class Race:
    """A shared exponential race: each conditional p takes argmin_v E_v / p(v); all share one exponential E_v a token.

    P(x = y) = sum_v 1 / sum_w max(p(w)/p(v), q(w)/q(v)) >= (1 - TV) / (1 + TV) for any two of the conditionals.
    """

    def __init__(self, distributions: Sequence[TokenDistribution]) -> None:
        self.distributions = distributions

    def draw(self, noise: Uniforms, more: Callable[[int], Uniforms]) -> JointDraw:
        """See Coupling. Certain where log E_v / p(v) of the second is larger by more than twice the tolerance."""
        tokens, certain = [], True
        for each in self.distributions:
            ids, logps = each.support()
            ids, logps = ids[: len(noise)], logps[: len(noise)]  # padding of the last block
            with np.errstate(divide="ignore"):
                arrivals = np.log(noise[ids]) - logps
            winner = int(arrivals.argmin())
            if each.shift:
                lead = float(np.partition(arrivals, 1)[1] - arrivals[winner]) if len(arrivals) > 1 else inf
                certain = certain and lead > 2 * each.shift and not isinf(each.shift)
            tokens.append(int(ids[winner]))
        return JointDraw(tuple(tokens), certain)

    def acceptance_region(self, tokens: Sequence[int]) -> AcceptanceRegion | None:
        """See Coupling. None, unless each conditional has one token only: the winner depends on all exponentials."""
        ends = [each.ends(token) for each, token in zip(self.distributions, tokens, strict=True)]
        return region() if all(each == (ALL, ALL) for each in ends) else None


def _single(distribution: TokenDistribution, block: float, token: float) -> tuple[int, float, bool]:
    """Draw from one complete distribution."""
    drawn = distribution.draw(block, token)
    assert drawn is not None
    return drawn


def coupled(kind: str, distributions: Sequence[TokenDistribution]) -> Coupling:
    """The coupling of a kind: maximal or quantile, of one conditional or two, or race, of any number."""
    if kind == "race":
        return Race(distributions)
    if len(distributions) == 1:
        return Uncoupled(distributions[0])
    p, q = distributions
    return Maximal(p, q) if kind == "maximal" else Quantile(p, q)


def exponentials(uniforms: Uniforms) -> Uniforms:
    """Standard exponentials -log(1 - u) from uniforms u on [0, 1), of the same shape."""
    return -np.log1p(-uniforms)
