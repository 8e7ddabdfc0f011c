"""L-lag couplings: upper bounds of the distance from stationarity after t steps, from the meeting times of pairs.

X runs L steps from the start distribution, Y_0 is an independent draw from it; then (X_t, Y_{t-L}) move together, and
are equal from tau = min {t > L : X_t = Y_{t-L}} on. For all t >= 0 (Biswas, Jacob and Vanetti 2019; arXiv 1905.09971)

    TV(law of X_t, pi) <= E[ max(0, ceil((tau - L - t) / L)) ],
    W_1(law of X_t, pi) <= E[ sum_{j >= 1} d(X_{t + jL}, Y_{t + (j-1)L}) ],    d the Hamming distance.

Means over pairs estimate these bounds. Meeting times at one lag do not give bounds at another, and there is no bound
where a pair did not meet. Since tau > L, a pair that is equal from the start of the joint steps counts as 1 at t = 0:
the first bound is at least 1 there at every lag, and informative from t = 1 on.
"""

from collections.abc import Callable, Sequence
from math import exp, inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import FEWEST

FAR_ABOVE = 2.0
"""Maximum bound at t = 0 for which no longer lag is recommended; its minimum is 1."""
NEAR = 1.25
"""The bound at t = 0 that a recommended lag aims at."""
GRID = 1000
"""Number of steps at which a bound is computed before the search for the step at which it falls to a level."""


class Estimate(NamedTuple):
    """A mean over pairs and its standard error, None for one pair."""

    mean: float
    error: float | None


def geometric_steps(last: int) -> list[int]:
    """0, 1, 2, 3, 4, 6, 8, 12, 16, ... up to `last`: the steps at which distances are recorded.

    >>> geometric_steps(13)
    [0, 1, 2, 3, 4, 6, 8, 12]
    """
    steps, power = [0, 1], 2
    while power <= last:
        steps += [power, power + power // 2]
        power *= 2
    return [step for step in steps if step <= last]


def distance_at(history: tuple[Sequence[int], Sequence[int]], steps: Sequence[int]) -> NDArray[np.int64]:
    """A distance after the given steps; history: the steps after which it changed (the first is 0), and its values."""
    places = np.searchsorted(np.asarray(history[0]), np.asarray(steps), side="right") - 1
    return np.asarray(history[1], dtype=np.int64)[places]


def distance_sums(history: tuple[Sequence[int], Sequence[int]], lag: int, meeting: int,
                  steps: Sequence[int]) -> list[int]:
    """sum_{j >= 1} d(X_{t + jL}, Y_{t + (j-1)L}) of one pair at each t of `steps`.

    history: of d(X_{s + L}, Y_s) over joint steps s, see distance_at; the distance is 0 from s = meeting on.

    >>> distance_sums(([0, 2, 3], [2, 1, 0]), 1, 3, [0, 1, 2, 3])
    [5, 3, 1, 0]
    """
    distances = distance_at(history, range(meeting + 1))
    return [int(distances[t::lag].sum()) for t in steps]


def overlaps(meetings: NDArray[np.int64], lag: int, t: int) -> NDArray[np.float64]:
    """max(0, ceil((tau - L - t) / L)) of each pair; meetings: (R,) tau > L."""
    after: NDArray[np.int64] = np.maximum(meetings, lag + 1) - lag - t
    return np.maximum(0, -(-after // lag)).astype(np.float64)


def estimate(values: NDArray[np.float64], texts: Sequence[str]) -> Estimate:
    """Mean over pairs; with several texts the standard error is cluster-robust, with texts as the clusters.

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
    """The bound on the total variation after t steps, trivial above 1; meetings: (R,) tau, lag included."""
    return estimate(overlaps(meetings, lag, t), texts)


def mixing_time(meetings: NDArray[np.int64], lag: int, eps: float, texts: Sequence[str]) -> tuple[int, int | None]:
    """Upper estimates of t_mix(eps) in steps: the first t with bound(t) <= eps, and the same for its upper 95 % end.

    The end is bound exp(t(0.975; C - 1) error / bound), as on the log scale of measures/statistics/intervals.py, with C
    texts as clusters; for one text its pairs are the clusters. Where all C clusters have met, the end is 1 -
    0.025^(1/C). The second estimate is None where that value is above eps, or C is below FEWEST.
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
        at_t = bound(meetings, lag, t, texts)
        if at_t.mean == 0 or at_t.error is None:
            return together if at_t.mean == 0 else inf
        return at_t.mean * exp(min(quantile * at_t.error / at_t.mean, 700))

    # The upper end may rise with t: find the last step of the grid at which it is above eps.
    grid = np.unique(np.linspace(0, latest, GRID).astype(np.int64)).tolist()
    above = [t for t in grid if upper(t) > eps]
    start = above[-1] + 1 if above else 0
    return first, _first(start, next((t for t in grid if t >= start), latest), lambda t: upper(t) <= eps)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first t in low ... high at which a monotone condition holds; it holds at high."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def lag_to_try(meetings: NDArray[np.int64], lag: int) -> int | None:
    """A lag at which bound(0) would be about NEAR if pairs took as long to meet as at this lag; two digits, rounded up.

    None where bound(0) is at most FAR_ABOVE; it is at least 1 at every lag.

    >>> lag_to_try(np.array([101, 151, 201]), 1)
    200
    """
    if overlaps(meetings, lag, 0).mean() <= FAR_ABOVE:
        return None
    needed = meetings - lag
    wanted = _first(1, int(needed.max()), lambda other: overlaps(needed + other, other, 0).mean() <= NEAR)
    digit: int = 10 ** max(len(str(wanted)) - 2, 0)
    return max(-(-wanted // digit) * digit, lag + 1)
