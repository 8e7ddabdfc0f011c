"""Meeting times of many pairs: survival and lag bounds at one temperature and length, and their scaling with n."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mlmglauber.measures.meeting.lag import Estimate, bound, estimate, geometric_steps, lag_to_try, mixing_time
from mlmglauber.measures.meeting.times import Growth, Pair, c_and_growth, grouped, times_of
from mlmglauber.measures.statistics.intervals import Interval
from mlmglauber.measures.statistics.scaling import Times, n_log_n
from mlmglauber.measures.statistics.survival import kaplan_meier, median_interval, quantile

UPPER = 0.75
"""The quantile of meeting times that is reported beside the median."""


class BoundAt(NamedTuple):
    """Estimated bounds at step t: on the total variation, and on the Wasserstein distance in Hamming distance."""

    t: int
    tv: Estimate
    hamming: Estimate


class MixingEstimate(NamedTuple):
    """Upper estimates of t_mix(eps) in steps; t_high from the upper 95 % end of the bound, None where that is above."""

    eps: float
    t: int
    t_high: int | None


class LagBounds(NamedTuple):
    """L-lag bounds at geometric steps and the mixing times that follow; `reason` says why there are none.

    lag_to_try: a lag that would give a tighter bound, None where this one is good enough.
    """

    bounds: Sequence[BoundAt] | None
    mixing: Sequence[MixingEstimate] | None
    lag_to_try: int | None
    reason: str | None


class GroupMeetings(NamedTuple):
    """Meeting times of the pairs of one temperature and length, in joint steps.

    median: Kaplan-Meier median with its 95 % interval over texts. upper_quartile: the step by which three of four pairs
    have met, None where over a quarter are censored; the median meeting time is not an upper bound of a mixing time.
    frozen: number of pairs that did not meet and of which no state changed in the second half of the time. horizon: the
    step until which all pairs were watched; restricted_mean: mean of min(T, horizon). lag: None for pairs without one.
    """

    pairs: int
    texts: int
    met: int
    frozen: int
    median: Interval
    median_n_log_n: float | None
    upper_quartile: float | None
    restricted_mean: float
    horizon: int
    lag: LagBounds | None

    @property
    def censored(self) -> int:
        """Number of pairs that did not meet."""
        return self.pairs - self.met


class MeetingScale(NamedTuple):
    """C of T = C n ln n over the lengths at one temperature, and whether times grow faster than n ln n."""

    pairs: int
    lengths: Sequence[int]
    c: Interval
    growth: Growth


def of_group(pairs: Sequence[Pair], eps: Sequence[float]) -> GroupMeetings:
    """Meeting times of the pairs of one temperature and length and, with a lag, the bounds; eps: of t_mix(eps)."""
    times, censored = times_of(pairs)
    curve = kaplan_meier(times, censored)
    horizon = min(pair.max_steps for pair in pairs)
    unit = n_log_n(pairs[0].n)
    median = median_interval(times, censored, [pair.text for pair in pairs])
    return GroupMeetings(
        len(pairs), len({pair.text for pair in pairs}), int((~censored).sum()),
        sum(pair.meeting is None and 2 * pair.last_change <= pair.max_steps for pair in pairs), median,
        median.value / unit if median.value is not None and unit else None, quantile(curve, UPPER),
        curve.restricted_mean(horizon), horizon, _lag_bounds(pairs, eps) if pairs[0].kind.lag else None)


def _lag_bounds(pairs: Sequence[Pair], eps: Sequence[float]) -> LagBounds:
    """The bounds of pairs with a lag; none where a pair did not meet."""
    lag, texts = pairs[0].kind.lag, [pair.text for pair in pairs]
    met = [pair.meeting for pair in pairs if pair.meeting is not None]
    if len(met) < len(pairs):
        return LagBounds(None, None, None, f"{len(pairs) - len(met)} of {len(pairs)} pairs did not meet: no bound")
    meetings = np.array(met, dtype=np.int64) + lag
    latest = max(met)
    steps = geometric_steps(2 * latest)
    steps = steps[: 1 + next((k for k, step in enumerate(steps) if step >= latest), 0)]
    bounds = []
    for k, t in enumerate(steps):
        sums = np.array([pair.sums[k] if pair.sums and k < len(pair.sums) else 0 for pair in pairs], dtype=np.float64)
        bounds.append(BoundAt(t, bound(meetings, lag, t, texts), estimate(sums, texts)))
    mixing = [MixingEstimate(level, *mixing_time(meetings, lag, level, texts)) for level in eps]
    return LagBounds(bounds, mixing, lag_to_try(meetings, lag), None)


def of_temperature(pairs: Sequence[Pair]) -> MeetingScale:
    """How meeting times at one temperature scale with n; C is None where they grow faster than n ln n."""
    groups = []
    for n, members in grouped(pairs, lambda pair: pair.n):
        times, censored = times_of(members)
        groups.append(Times(n, times, censored, [pair.text for pair in members]))
    return MeetingScale(len(pairs), [group.n for group in groups], *c_and_growth(groups))
