"""The number of copies of one token in a state: which way it drifts, and how long it takes to fall.

Let k(x) be the number of sites of x that hold a token T, p_i = p_tau(T | x_-i). One random-scan step changes k by

    +1 with chance up(x) = (1/n) sum over sites without T of p_i,
    -1 with chance down(x) = (1/n) sum over sites with T of (1 - p_i),

and its expected change is up - down = (1/n) sum_i [p_i - 1{x_i = T}]. For each state this is exact. Among the states
with k copies it differs, and only some of them are looked at: means over them are estimates, and so is all that is made
of means.
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

    ValueError for a row that is no law.

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
    """The chances of one step from one state to one copy more and to one copy less."""

    up: float
    down: float


def change(ids: Ids, token: int, stay: Values) -> Change:
    """Exactly, from p_i = p_tau(token | x_-i) at all n sites."""
    here = ids == token
    return Change(float(stay[~here].sum() / len(ids)), float((1 - stay[here]).sum() / len(ids)))


class Level(NamedTuple):
    """The states with k copies that were drawn: the drift up - down, its mean with a 95 % interval, and its range.

    states: how many of the draws differ. exact: there is no other state with k copies, as at k = n. low and high are
    None for one draw.
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
    """Means over the draws for one k, `states` of which differ; the interval is Student's t."""
    up, down = (np.array([getattr(change, name) for change in changes]) for name in ("up", "down"))
    drift = up - down
    mean, low, high = float(drift.mean()), None, None
    if len(changes) > 1:
        half = student_half_width(drift)
        low, high = mean - half, mean + half
    return Level(k, len(changes), states, k == n, mean, low, high, float(drift.min()), float(drift.max()),
                 float(up.mean()), float(down.mean()))


def growing(drifts: Sequence[float | None]) -> list[tuple[int, int]]:
    """The ranges first ... last of k in which the drift is above 0; drifts[k] is None where it is not known.

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
    """The copies' own basin: a range of k with drift towards more copies above a k with drift towards fewer.

    stable: where the drift turns at its top; threshold: its lowest k, below which the copies fall away.
    """

    threshold: int
    stable: int


def basin(drifts: Sequence[float | None]) -> CopyBasin | None:
    """The topmost such range; None where there is none: then the count is drawn to one place from everywhere.

    >>> basin([0.1, -0.1, -0.2, 0.2, 0.3, -0.5]), basin([0.1, 0.1, -0.2])
    (CopyBasin(threshold=3, stable=5), None)
    """
    for first, last in reversed(growing(drifts)):
        below = [drift for drift in drifts[:first] if drift is not None]
        if below and below[-1] <= 0:
            return CopyBasin(first, last + 1)
    return None


def fall_time(ups: Sequence[float | None], downs: Sequence[float | None], start: int, end: int) -> float | None:
    """Expected steps from `start` copies to `end` of them for a birth-death chain with these chances at each k.

    h_k, the time from k to k - 1, is (1 + up_k h_{k+1}) / down_k, with h_n = 1 / down_n. It is the expected time of
    the dynamics itself where the chances are the same for all states with k copies; otherwise an estimate. None where
    it is not finite, or a chance is not known.

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
