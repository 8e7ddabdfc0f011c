"""Entropy production of a chain, which is zero for a reversible chain.

The entropy production per step of the random-scan dynamics with positive conditionals is the stationary mean of

    log p_tau(new | rest) - log p_tau(old | rest)

over updates (nats per step; 0 for an update that changes nothing). It is zero if and only if the stationary chain is
reversible (Lebowitz and Spohn 1999), which holds for compatible conditionals. For other scans the stationary
distribution differs, and this mean is not the entropy production.

Along a reversible chain the sum telescopes to log pi(x_T) - log pi(x_0), the boundary term. Its mean is zero in
stationarity; in a chain that still moves away from its start it is not zero and mimics entropy production. Two halves
of a chain share the state x_m in the middle, with opposite signs: Cov(first half, second half) = -Var log pi(x_m) up to
the memory between the halves, so

    B = sqrt(-2 Cov(first half's sum, second half's sum)),  0 where the covariance is positive,

is the standard deviation of a boundary term, and the interval is widened by B / T on either side. Where the two halves
differ in their mean, or in how often they change a token, the chain is not stationary and has no interval.
"""

import warnings
from collections.abc import Hashable, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import FEWEST, places_of, student_half_width

Values = NDArray[np.float64]

MIN_BATCHES = 10
"""Minimum number of batch means for an interval."""
LEVEL = 0.01
"""Probability of rejecting a stationary chain: two tests, of gains and of changes, at half of this level each."""


class Halves(NamedTuple):
    """Sums over the first and second half of a chain, of `steps` steps each: gains in nats, and numbers of changes."""

    steps: int
    gains: tuple[float, float]
    changes: tuple[int, int]


class Production(NamedTuple):
    """Entropy production in nats per step over `steps` steps, with its 95 % interval (low, high).

    by: what the interval is computed from: "batch_means" of one chain, "chains" of one text, or "texts"; None with
    `reason`. changes: number of updates that changed a token; the others add nothing. mean is None where it is
    infinite, since the chain left a token of probability 0, such as the unknown token. boundary: B in nats, which is
    part of the interval. halves: of one chain, for `of_group`; means: the mean of each half.
    """

    mean: float | None
    low: float | None
    high: float | None
    steps: int
    changes: int
    by: str | None
    reason: str | None
    boundary: float | None = None
    means: tuple[float, float] | None = None
    halves: Halves | None = None


def of_chain(steps: NDArray[np.int64], gains: Values, last: int, burn_in: int) -> Production:
    """Entropy production of one chain after its burn-in.

    steps: (K,) the steps at which a token changed, ascending. gains: (K,) logp_new - logp_old there, +inf where the
    chain left a token of probability 0. last: the last step of the chain. The interval is Student's over
    non-overlapping batch means, sqrt(N) batches of sqrt(N) of the N steps each (Flegal and Jones 2010); B is estimated
    from neighbouring batches. ValueError where the burn-in leaves no step.

    >>> of_chain(np.array([1, 3]), np.array([0.5, -0.5]), 4, 0).mean
    0.0
    """
    count = last - burn_in
    if count < 1:
        raise ValueError(f"a burn-in of {burn_in} steps leaves none of {last}")
    kept = (steps > burn_in) & (steps <= last)
    steps, gains = steps[kept] - burn_in - 1, gains[kept]
    changes = len(gains)
    if not np.isfinite(gains).all():
        return Production(None, None, None, count, changes, None, "zero_probability")
    mean, halves = float(gains.sum()) / count, _halves(steps, gains, count)
    plain = Production(mean, None, None, count, changes, None, None, None, _means(halves), halves)
    batches = int(sqrt(count))
    if batches < MIN_BATCHES:
        return plain._replace(reason="too_few_steps")
    if not changes:
        return plain._replace(reason="frozen")
    size = count // batches
    first = count - batches * size  # the steps that fill no batch are the earliest
    late = steps >= first
    places = (steps[late] - first) // size
    sums = np.bincount(places, weights=gains[late], minlength=batches)
    moved = np.bincount(places, minlength=batches).astype(np.float64)
    plain = plain._replace(boundary=_boundary(sums[:-1] - sums.mean(), sums[1:] - sums.mean()))
    middle = batches // 2
    if _differ(sums[:middle], sums[-middle:]) or _differ(moved[:middle], moved[-middle:]):
        return plain._replace(reason="not_stationary")
    return _with_interval(plain, sums / size, count, "batch_means")


def of_group(chains: Sequence[Production], texts: Sequence[Hashable] | None = None) -> Production:
    """The mean over chains, each weighted by its steps.

    texts: the text that each chain started from; the interval is over texts if there are FEWEST or more, or over the
    chains of one text. Only such an interval shows how much chains in different traps differ.
    """
    if len(chains) == 1:
        return chains[0]
    places, total = places_of(texts if texts is not None else range(len(chains)))
    steps = np.array([chain.steps for chain in chains], dtype=np.float64)
    changes = sum(chain.changes for chain in chains)
    halves = [chain.halves for chain in chains if chain.halves is not None]
    if len(halves) < len(chains):
        return Production(None, None, None, int(steps.sum()), changes, None, "zero_probability")
    means = np.array([chain.mean for chain in chains], dtype=np.float64)
    mean = float((steps * means).sum() / steps.sum())
    lengths = np.array([part.steps for part in halves], dtype=np.float64)
    gains, moved = np.array([part.gains for part in halves]), np.array([part.changes for part in halves], np.float64)
    both = Halves(int(lengths.sum()), tuple(gains.sum(axis=0).tolist()), tuple(moved.sum(axis=0).tolist()))
    rest = gains - mean * lengths[:, None]
    plain = Production(mean, None, None, int(steps.sum()), changes, None, None, _boundary(*rest.T), _means(both))
    if not changes:
        return plain._replace(reason="frozen")
    if texts is None or total == 1:
        places, total, by = np.arange(len(chains)), len(chains), "chains"
    elif total < FEWEST:
        return plain._replace(reason="too_few_texts")
    else:
        by = "texts"
    if any(_apart(np.bincount(places, part[:, 0] - part[:, 1])) for part in (gains, moved)):
        return plain._replace(reason="not_stationary")
    weighed = np.bincount(places, means * steps) * total / steps.sum()
    return _with_interval(plain, weighed, float(steps.mean()), by)


def _halves(steps: NDArray[np.int64], gains: Values, count: int) -> Halves:
    """The halves of `count` steps from step 0 on; the middle one of an odd number of steps is left out."""
    size = count // 2
    parts = (steps < size, steps >= count - size)
    first, second = (float(gains[part].sum()) for part in parts)
    return Halves(size, (first, second), (int(parts[0].sum()), int(parts[1].sum())))


def _means(halves: Halves) -> tuple[float, float] | None:
    return (halves.gains[0] / halves.steps, halves.gains[1] / halves.steps) if halves.steps else None


def _boundary(first: Values, second: Values) -> float:
    """B from the centred sums of neighbouring periods."""
    return sqrt(max(0.0, -2 * float((first * second).sum()) / max(1, len(first) - 1)))


def _with_interval(plain: Production, values: Values, steps: float, by: str) -> Production:
    """The 95 % interval of a mean of independent values, and B / steps on either side."""
    assert plain.mean is not None
    assert plain.boundary is not None
    half = student_half_width(values) + plain.boundary / steps
    return plain._replace(low=plain.mean - half, high=plain.mean + half, by=by)


def _differ(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two sets of batches differ in their mean (Welch's test)."""
    from scipy.stats import ttest_ind

    with warnings.catch_warnings(action="ignore"):  # scipy warns of constant values, which do not differ
        return bool(ttest_ind(first, second, equal_var=False).pvalue < LEVEL / 2)


def _apart(differences: NDArray[Any]) -> bool:
    """Whether paired differences have a mean other than zero (Student's test)."""
    from scipy.stats import ttest_1samp

    with warnings.catch_warnings(action="ignore"):
        return bool(ttest_1samp(differences, 0).pvalue < LEVEL / 2)
