"""L-lag couplings: how far from stationarity a chain is after t steps, bounded from above by pairs that meet.

X runs L steps from the start law, Y_0 is an independent draw of it; then (X_t, Y_{t-L}) move together, for ever equal
from tau = min {t > L : X_t = Y_{t-L}} on. For all t >= 0 (Biswas, Jacob and Vanetti 2019; arXiv 1905.09971)

    TV(law of X_t, pi) <= E[ max(0, ceil((tau - L - t) / L)) ],
    W_1(law of X_t, pi) <= E[ sum_{j >= 1} d(X_{t + jL}, Y_{t + (j-1)L}) ],    d the Hamming distance.

The means over pairs estimate these bounds. Meeting times at one lag say nothing of another, and a pair that was not
seen to meet leaves no bound at all. Since tau > L, a pair that is together from the start of the joint steps counts
as 1 at t = 0: the first bound is at least 1 there at every lag, and says something from t = 1 on.
"""

from collections.abc import Callable, Sequence
from math import exp, inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import FEWEST

FAR_ABOVE = 2.0
"""A bound on a total variation at t = 0 above this says that the lag is too short to be worth much; 1 is the least."""
NEAR = 1.25
"""What a better lag is to bring it to."""
GRID = 1000
"""Number of steps at which a bound is looked at before the step is found at which it comes down to a level."""


class Estimate(NamedTuple):
    """A mean over pairs and its standard error, None where one pair, or one text, tells of no other."""

    mean: float
    error: float | None


def geometric_steps(last: int) -> list[int]:
    """0, 1, 2, 3, 4, 6, 8, 12, 16, ... as far as `last`: the steps at which distances are told.

    >>> geometric_steps(13)
    [0, 1, 2, 3, 4, 6, 8, 12]
    """
    steps, power = [0, 1], 2
    while power <= last:
        steps += [power, power + power // 2]
        power *= 2
    return [step for step in steps if step <= last]


def distance_at(history: tuple[Sequence[int], Sequence[int]], steps: Sequence[int]) -> NDArray[np.int64]:
    """A distance after the given steps, from the steps after which it changed (the first is 0) and what it became."""
    places = np.searchsorted(np.asarray(history[0]), np.asarray(steps), side="right") - 1
    return np.asarray(history[1], dtype=np.int64)[places]


def distance_sums(history: tuple[Sequence[int], Sequence[int]], lag: int, meeting: int,
                  steps: Sequence[int]) -> list[int]:
    """sum_{j >= 1} d(X_{t + jL}, Y_{t + (j-1)L}) of one pair at each t of `steps`.

    history: of d(X_{s + L}, Y_s) over joint steps s; it is 0 from s = meeting on.

    >>> distance_sums(([0, 2, 3], [2, 1, 0]), 1, 3, [0, 1, 2, 3])
    [5, 3, 1, 0]
    """
    distances = distance_at(history, range(meeting + 1))
    return [int(distances[t::lag].sum()) for t in steps]


def overlaps(meetings: NDArray[np.int64], lag: int, t: int) -> NDArray[np.float64]:
    """max(0, ceil((tau - L - t) / L)) of each pair, tau > L."""
    after: NDArray[np.int64] = np.maximum(meetings, lag + 1) - lag - t
    return np.maximum(0, -(-after // lag)).astype(np.float64)


def estimate(values: NDArray[np.float64], texts: Sequence[str]) -> Estimate:
    """Mean over pairs; with several texts the error takes the pairs of one for dependent (cluster-robust).

    >>> estimate(np.array([1.0, 2.0, 3.0]), ["0", "0", "0"])
    Estimate(mean=2.0, error=0.5773502691896258)
    """
    count, mean = len(values), float(values.mean())
    names, places = np.unique(np.asarray(texts), return_inverse=True)
    if len(names) == 1:
        return Estimate(mean, float(values.std(ddof=1)) / sqrt(count) if count > 1 else None)
    sums = np.bincount(places, weights=values - mean)
    return Estimate(mean, sqrt(float((sums**2).sum()) * len(names) / (len(names) - 1)) / count)


def bound(meetings: NDArray[np.int64], lag: int, t: int, texts: Sequence[str]) -> Estimate:
    """The bound on the total variation after t steps; above 1 it says nothing. meetings: (R,) tau, lag included."""
    return estimate(overlaps(meetings, lag, t), texts)


def mixing_time(meetings: NDArray[np.int64], lag: int, eps: float, texts: Sequence[str]) -> tuple[int, int | None]:
    """Upper estimates of t_mix(eps): the first t with bound(t) <= eps, and with the upper 95 % end of bound(t) there.

    The end is that of measures/statistics/intervals.py on the log scale, bound exp(t(0.975; C - 1) error / bound)
    with C texts, which are the clusters; of one text its pairs are. C clusters that are all together still leave
    1 - 0.025^(1/C).
    The second is None where that is above eps.
    """
    from scipy.stats import t as student

    latest = int(meetings.max())
    first = _first(0, latest, lambda t: bound(meetings, lag, t, texts).mean <= eps)
    clusters = len(set(texts)) if len(set(texts)) > 1 else len(meetings)
    together = 1 - 0.025 ** (1 / clusters)
    if clusters < FEWEST or together > eps:
        return first, None
    quantile = float(student.ppf(0.975, clusters - 1))

    def upper(t: int) -> float:
        found = bound(meetings, lag, t, texts)
        if found.mean == 0 or found.error is None:
            return together if found.mean == 0 else inf
        return found.mean * exp(min(quantile * found.error / found.mean, 700))

    # The end need not fall with t: look for the last place at which it is above eps.
    grid = np.unique(np.linspace(0, latest, GRID).astype(np.int64)).tolist()
    above = [t for t in grid if upper(t) > eps]
    start = above[-1] + 1 if above else 0
    return first, _first(start, next((t for t in grid if t >= start), latest), lambda t: upper(t) <= eps)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first t in low ... high at which a condition holds that holds from there on, high included."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def lag_to_try(meetings: NDArray[np.int64], lag: int) -> int | None:
    """A lag at which bound(0) would be about NEAR, were pairs to take as long as at this one; two digits, rounded up.

    None where bound(0) is not far above 1, which it is at least at every lag.

    >>> lag_to_try(np.array([101, 151, 201]), 1)
    200
    """
    if overlaps(meetings, lag, 0).mean() <= FAR_ABOVE:
        return None
    needed = meetings - lag
    wanted = _first(1, int(needed.max()), lambda other: overlaps(needed + other, other, 0).mean() <= NEAR)
    digit: int = 10 ** max(len(str(wanted)) - 2, 0)
    return max(-(-wanted // digit) * digit, lag + 1)
