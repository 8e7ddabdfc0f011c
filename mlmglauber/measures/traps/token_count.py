"""The number of copies of one token in a state: its drift, and the time until the copies vanish.

Let k(x) be the number of sites of x with token T, and p_i = p_tau(T | x_-i). One random-scan step changes k by

    +1 with probability up(x) = (1/n) sum over sites without T of p_i,
    -1 with probability down(x) = (1/n) sum over sites with T of (1 - p_i),

so its expected change, the drift, is up - down = (1/n) sum_i [p_i - 1{x_i = T}]. For one state this is exact. States
with k copies differ in their drift, and only a sample of them is computed: means over states are estimates.
"""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import student_half_width
from mlmglauber.measures.traps.margins import is_argmax
from mlmglauber.models.conditionals import Floats, Ids

Values = NDArray[np.float64]


def chances(log_probs: Floats, tokens: Ids, tau: float) -> Values:
    """(B,) p_tau(tokens[b]) from (B, V) log-probabilities at tau = 1; tau = 0 takes the argmax, the lowest of ties.

    ValueError for a row without a finite entry.

    >>> chances(np.array([[2.0, 1.0, 0.0]]), np.array([1]), 0.5).round(4)
    array([0.1173])
    """
    rows = np.asarray(log_probs, dtype=np.float64)
    best = rows.max(axis=1)
    if not np.isfinite(best).all():
        raise ValueError("a conditional is not finite")
    if tau == 0:
        return np.asarray(is_argmax(rows, tokens) * 1.0)
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.exp((rows - best[:, None]) / tau)
    return np.asarray(scaled[np.arange(len(rows)), tokens] / scaled.sum(axis=1))


class Change(NamedTuple):
    """Probabilities that one step from a state adds a copy (up) and that it removes one (down)."""

    up: float
    down: float


def change(ids: Ids, token: int, stay: Values) -> Change:
    """The change of a state's number of copies, exact; stay: (n,) p_tau(token | x_-i) at all sites."""
    here = ids == token
    return Change(float(stay[~here].sum() / len(ids)), float((1 - stay[here]).sum() / len(ids)))


class Level(NamedTuple):
    """The drawn states with k copies: mean drift up - down with its 95 % interval (low, high), least and most.

    states: number of different states among the draws. exact: whether there is no other state with k copies, as at k =
    n. up, down: mean probabilities. low and high are None for one draw.
    """

    k: int
    draws: int
    states: int
    exact: bool
    drift: float
    low: float | None
    high: float | None
    least: float
    most: float
    up: float
    down: float


def level(k: int, n: int, changes: Sequence[Change], states: int) -> Level:
    """Means over the draws for one k, of which `states` differ; the interval is Student's."""
    up, down = (np.array([getattr(change, name) for change in changes]) for name in ("up", "down"))
    drift = up - down
    mean, low, high = float(drift.mean()), None, None
    if len(changes) > 1:
        half = student_half_width(drift)
        low, high = mean - half, mean + half
    return Level(k, len(changes), states, k == n, mean, low, high, float(drift.min()), float(drift.max()),
                 float(up.mean()), float(down.mean()))


def growing(drifts: Sequence[float | None]) -> list[tuple[int, int]]:
    """The ranges (first, last) of k in which the drift is above 0; drifts[k] is None where it is not known.

    >>> growing([0.1, -0.1, None, 0.2, 0.3, -0.5])
    [(0, 0), (3, 4)]
    """
    ranges: list[tuple[int, int]] = []
    for k, drift in enumerate(drifts):
        if drift is not None and drift > 0:
            if ranges and ranges[-1][1] == k - 1:
                ranges[-1] = (ranges[-1][0], k)
            else:
                ranges.append((k, k))
    return ranges


class CopyBasin(NamedTuple):
    """A range of k in which copies sustain themselves: the drift is upward there and downward at a k below.

    threshold: the lowest k of the range; with fewer copies they vanish. stable: the k above the range, at which the
    drift turns downward.
    """

    threshold: int
    stable: int


def basin(drifts: Sequence[float | None]) -> CopyBasin | None:
    """The topmost such range; None where the drift leads to one k from everywhere.

    >>> basin([0.1, -0.1, -0.2, 0.2, 0.3, -0.5]), basin([0.1, 0.1, -0.2])
    (CopyBasin(threshold=3, stable=5), None)
    """
    for first, last in reversed(growing(drifts)):
        below = [drift for drift in drifts[:first] if drift is not None]
        if below and below[-1] <= 0:
            return CopyBasin(first, last + 1)
    return None


def fall_time(ups: Sequence[float | None], downs: Sequence[float | None], start: int, end: int) -> float | None:
    """Expected steps from `start` copies down to `end` for a birth-death chain with these probabilities at each k.

    The time from k to k - 1 is h_k = (1 + up_k h_{k+1}) / down_k, with h_n = 1 / down_n. This is the expected time of
    the dynamics where all states with k copies have the same probabilities, otherwise an estimate. None where the time
    is not finite or a probability is not known.

    >>> fall_time([0.1, 0.2, 0.0], [0.0, 0.5, 0.25], 2, 0)
    7.6
    """
    total, above = 0.0, 0.0
    for k in range(len(downs) - 1, end, -1):
        up, down = ups[k], downs[k]
        if up is None or not down:
            return None
        above = (1 + up * above) / down
        total += above if k <= start else 0.0
    return total if isfinite(total) else None
