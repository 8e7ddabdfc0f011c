"""Entropy production of a chain: what its steps tell of reversibility.

The stationary entropy production per step of the random-scan dynamics is the long-run mean of

    log p_tau(new | rest) - log p_tau(old | rest)

over updates (nats a step; 0 for an update that changes nothing). It is zero if and only if the stationary chain is
reversible (Lebowitz and Spohn 1999), which compatible conditionals force: along a reversible chain the sum telescopes
to log pi(x_T) - log pi(x_0). What a start far from the typical states adds to the sum is left out with the burn-in.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

MIN_BATCHES = 10
"""Fewer batch means give no interval."""


class Production(NamedTuple):
    """Entropy production in nats a step over `steps` steps, with a 95 % interval.

    by: what the interval stands on, "batch_means" of one chain or "chains" that are independent; None with `reason`.
    changes: the updates that changed a token; the others add nothing. mean is None where it is infinite: a token of
    probability 0 was left, as in a text with an unknown token.
    """

    mean: float | None
    low: float | None
    high: float | None
    steps: int
    changes: int
    by: str | None
    reason: str | None


def of_chain(steps: NDArray[np.int64], gains: Values, last: int, burn_in: int) -> Production:
    """Entropy production of one chain after its burn-in.

    steps: (K,) the steps at which a token changed, ascending. gains: (K,) logp_new - logp_old there, +inf where a token
    of probability 0 was left. last: the last step of the chain. The interval is one of non-overlapping batch means,
    sqrt(N) batches of sqrt(N) of the N steps each (Flegal and Jones 2010), with Student's t. ValueError when no step is
    left.

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
    mean = float(gains.sum()) / count
    batches = int(sqrt(count))
    if batches < MIN_BATCHES:
        return Production(mean, None, None, count, changes, None, "too_few_steps")
    if not changes:
        return Production(mean, None, None, count, 0, None, "frozen")
    size = count // batches
    first = count - batches * size  # the steps that fill no batch are the earliest
    places = (steps - first) // size
    sums = np.bincount(places[steps >= first], weights=gains[steps >= first], minlength=batches)
    low, high = _student(sums / size, mean)
    return Production(mean, low, high, count, changes, "batch_means", None)


def of_group(chains: Sequence[Production]) -> Production:
    """The mean over chains, each weighted by its steps; the interval is over chains where there are two or more.

    Chains that sit in different traps differ: only an interval over chains tells that.
    """
    if len(chains) == 1:
        return chains[0]
    steps = np.array([chain.steps for chain in chains], dtype=np.float64)
    changes = sum(chain.changes for chain in chains)
    found = [chain.mean for chain in chains if chain.mean is not None]
    if len(found) < len(chains):
        return Production(None, None, None, int(steps.sum()), changes, None, "zero_probability")
    means = np.array(found)
    mean = float((steps * means).sum() / steps.sum())
    if not changes:
        return Production(mean, None, None, int(steps.sum()), 0, None, "frozen")
    low, high = _student(means * steps * len(chains) / steps.sum(), mean)
    return Production(mean, low, high, int(steps.sum()), changes, "chains", None)


def _student(values: Values, mean: float) -> tuple[float, float]:
    """The 95 % interval of a mean of independent values."""
    from scipy.stats import t

    half = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / sqrt(len(values)))
    return mean - half, mean + half
