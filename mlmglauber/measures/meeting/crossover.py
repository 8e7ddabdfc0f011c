"""The crossover: the temperature at which the median meeting time passes a budget, and how it moves with n.

The temperature depends on the budget: a larger budget is passed at a lower temperature.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf, log
from typing import NamedTuple

import numpy as np

from mlmglauber.measures.meeting.times import Pair, Values, grouped
from mlmglauber.measures.statistics.intervals import NOT_REACHED, Interval, from_draws, places_of, resamples
from mlmglauber.measures.statistics.scaling import n_log_n


class Crossover(NamedTuple):
    """Where the median meeting time passes a budget at one length.

    tau: that temperature; -inf where the median is within the budget at every temperature, inf where it is above the
    budget at every temperature, None where it cannot be estimated, and `reason` says why. draws: tau in each resample
    of `texts` texts. taus, late: the temperatures, and the share of pairs that took longer than the budget at each.
    """

    tau: float | None
    draws: Values
    texts: int
    taus: Sequence[float]
    late: Sequence[float]
    reason: str | None

    @property
    def exists(self) -> bool:
        """Whether there is a crossover between two of the temperatures."""
        return self.tau is not None and bool(np.isfinite(self.tau))

    @property
    def between(self) -> tuple[float, float] | None:
        """The two neighbouring temperatures between which the share of late pairs falls to 1/2."""
        if not self.exists:
            return None
        return next(((a, b) for (a, x), (b, y) in pairwise(zip(self.taus, self.late, strict=True)) if x > 0.5 >= y),
                    None)

    def interval(self) -> Interval:
        """tau with its 95 % interval over texts; None with the reason where tau is not finite.

        Nothing was measured outside the temperatures, so an end that lies there is open.
        """
        if self.tau is None:
            return Interval(None, None, None, self.reason)
        interval = from_draws(self.tau, self.draws, self.texts, "plain")
        low, high = (None if end is None or not self.taus[0] <= end <= self.taus[-1] else end for end in interval[1:3])
        outside = (low, high) != interval[1:3] or (interval.reason or "").endswith(NOT_REACHED)
        reason = ("within the budget at every tau" if self.tau == -inf else
                  "above the budget at every tau" if self.tau == inf else
                  "an end of the interval lies outside the temperatures" if outside else interval.reason)
        return interval._replace(low=low, high=high, reason=reason)


def crossovers(pairs: Sequence[Pair], budget: float, seed: int = 0) -> dict[int, Crossover]:
    """The crossover of every length n: the temperature at which the median meeting time is budget x n ln n.

    The median passes the budget where half of the pairs take longer than the budget. The share of late pairs is made
    monotone in tau by isotonic regression and joined by straight lines, so the crossover never rises with the budget.
    No pair has to be watched for longer than the budget. All temperatures and lengths use the same resamples of texts,
    since the pairs of a text depend on each other.
    """
    places, total = places_of([pair.text for pair in pairs])
    place = dict(zip([pair.text for pair in pairs], places.tolist(), strict=True))
    counts = np.vstack([np.ones((1, total)), resamples(total, seed)])
    by_length = {}
    for n, members in grouped(pairs, lambda pair: pair.n):
        limit = budget * (n_log_n(n) or 0.0)
        cells = grouped(members, lambda pair: pair.tau)
        taus = [tau for tau, _ in cells]
        late, count = np.zeros((2, len(cells), total))
        for k, (_, cell) in enumerate(cells):
            for pair in cell:
                late[k, place[pair.text]] += pair.watched > limit or pair.meeting is None
                count[k, place[pair.text]] += 1
        shares = [float(share) for share in late.sum(axis=1) / count.sum(axis=1)]
        reason = _why_none(n, taus, members, limit)
        texts = min(len({pair.text for pair in cell}) for _, cell in cells)
        if reason is not None:
            by_length[n] = Crossover(None, np.empty(0), texts, taus, shares, reason)
            continue
        draws = np.array([_crossing(taus, a, b) for a, b in zip(counts @ late.T, counts @ count.T, strict=True)])
        by_length[n] = Crossover(float(draws[0]), draws[1:], texts, taus, shares, None)
    return by_length


def _why_none(n: int, taus: Sequence[float], pairs: Sequence[Pair], limit: float) -> str | None:
    """Why a length has no crossover; None where it may have one."""
    if n_log_n(n) is None:
        return "one site has no n ln n"
    if len(taus) < 2:
        return "a crossover needs two temperatures"
    if any(pair.meeting is None and pair.max_steps < limit for pair in pairs):
        return "some pairs were watched for less than the budget"
    return None


def _crossing(taus: Sequence[float], late: Values, count: Values) -> float:
    """Where the share of late pairs, made to fall with tau, reaches 1/2; inf if it stays above, -inf if below."""
    from scipy.optimize import isotonic_regression

    there = np.flatnonzero(count > 0)  # a resample may have no pair at a temperature
    x = np.asarray(taus)[there]
    share = isotonic_regression(late[there] / count[there], weights=count[there], increasing=False).x
    below = np.flatnonzero(share <= 0.5)
    if not len(below):
        return inf
    k = int(below[0])
    if k == 0:
        return -inf
    return float(x[k - 1] + (x[k] - x[k - 1]) * (share[k - 1] - 0.5) / (share[k - 1] - share[k]))


def trend(by_length: dict[int, Crossover]) -> Interval:
    """How much the crossover rises for each doubling of n: the least-squares slope of tau*(n) against log2 n.

    Only lengths that have a crossover count. The interval uses the resamples of the crossovers in which all of these
    lengths have one.
    """
    known = {n: crossover for n, crossover in by_length.items() if crossover.exists}
    if len(known) < 2:
        return Interval(None, None, None, "a trend needs crossovers at two lengths")
    x = np.array([log(n, 2) for n in known])
    x -= x.mean()
    value = x @ np.array([crossover.tau for crossover in known.values()], dtype=np.float64) / (x @ x)
    draws = np.stack([crossover.draws for crossover in known.values()])
    slopes = x @ np.where(np.isfinite(draws), draws, np.nan) / (x @ x)
    return from_draws(float(value), slopes, min(crossover.texts for crossover in known.values()), "plain")
