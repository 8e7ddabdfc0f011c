"""Where hot turns cold: the temperature at which the median meeting time passes a budget, and how it moves with n."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf, log
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.measures.drift import RESAMPLES, n_log_n
from mlmglauber.measures.meeting import Pair, Values, grouped

Summary = dict[str, Any]


class Crossover(NamedTuple):
    """Where the median meeting time passes a budget at one length.

    tau: that temperature; -inf where the median is within the budget at every temperature, inf where it is at none,
    None where it cannot be told, and `reason` says why. draws: the same of each resample. taus, late: the temperatures,
    and the share of pairs that took longer than the budget at each.
    """

    tau: float | None
    draws: Values
    taus: Sequence[float]
    late: Sequence[float]
    reason: str | None

    def told(self) -> Summary:
        """As a summary says it: with the interval, and the temperatures between which the crossing was seen."""
        low, high = interval(self.draws)
        between = next(([a, b] for (a, x), (b, y) in pairwise(zip(self.taus, self.late, strict=True))
                        if x > 0.5 >= y), None)
        seen = self.tau is not None and np.isfinite(self.tau)
        reason = self.reason
        if self.tau is not None and not seen:
            reason = "within the budget at every tau" if self.tau == -inf else "above the budget at every tau"
        elif reason is None and (low is None or high is None):
            reason = "interval: an end lies outside the temperatures"
        return {"crossover": self.tau if seen else None, "crossover_low": low, "crossover_high": high,
                "crossover_reason": reason, "between": between if seen else None, "taus": list(self.taus),
                "late": list(self.late)}


def interval(draws: Values) -> tuple[float | None, float | None]:
    """The 95 % percentile interval of a bootstrap; an end that is not finite is None."""
    if not len(draws):
        return None, None
    low, high = np.quantile(draws, [0.025, 0.975], method="inverted_cdf")
    return float(low) if np.isfinite(low) else None, float(high) if np.isfinite(high) else None


def crossovers(pairs: Sequence[Pair], budget: float, seed: int = 0) -> dict[int, Crossover]:
    """tau*(n) of every length: the temperature at which the median meeting time is budget x n ln n.

    The median passes the budget where half of the pairs take longer than it. The share that does is made monotone in
    tau by isotonic regression and joined by monotone cubics (PCHIP). No pair need be watched for longer than the
    budget. One bootstrap over texts for all lengths: a text's pairs at all tau and n depend on each other.
    """
    texts = sorted({pair.text for pair in pairs})
    place = {text: k for k, text in enumerate(texts)}
    generator = np.random.default_rng(seed)
    weights = np.ones((1, len(texts)))
    if len(texts) > 1:
        chance = np.full(len(texts), 1 / len(texts))
        weights = np.vstack([weights, generator.multinomial(len(texts), chance, size=RESAMPLES)])
    found = {}
    for n, members in grouped(pairs, lambda pair: pair.n):
        limit = budget * (n_log_n(n) or 0.0)
        cells = grouped(members, lambda pair: pair.tau)
        taus = [tau for tau, _ in cells]
        late, count = np.zeros((2, len(cells), len(texts)))
        for k, (_, cell) in enumerate(cells):
            for pair in cell:
                late[k, place[pair.text]] += pair.watched > limit or pair.meeting is None
                count[k, place[pair.text]] += 1
        shares = [float(share) for share in late.sum(axis=1) / count.sum(axis=1)]
        reason = _untold(n, taus, members, limit)
        if reason is not None:
            found[n] = Crossover(None, np.empty(0), taus, shares, reason)
            continue
        all_late, counts = weights @ late.T, weights @ count.T
        draws = np.array([_crossing(taus, a, b) for a, b in zip(all_late, counts, strict=True)])
        found[n] = Crossover(float(draws[0]), draws[1:], taus, shares, None if len(texts) > 1 else
                             "interval: one text tells nothing about others")
    return found


def _untold(n: int, taus: Sequence[float], pairs: Sequence[Pair], limit: float) -> str | None:
    if n_log_n(n) is None:
        return "one site has no n ln n"
    if len(taus) < 2:
        return "a crossover needs two temperatures"
    if any(pair.meeting is None and pair.max_steps < limit for pair in pairs):
        return "some pairs were watched for less than the budget"
    return None


def _crossing(taus: Sequence[float], late: Values, count: Values) -> float:
    """The temperature at which a falling share of late pairs comes down to 1/2; inf and -inf where it does not."""
    from scipy.interpolate import PchipInterpolator
    from scipy.optimize import brentq
    from sklearn.isotonic import isotonic_regression

    there = np.flatnonzero(count > 0)  # a resample may have no pair at a temperature
    x = np.asarray(taus)[there]
    share = isotonic_regression(late[there] / count[there], sample_weight=count[there], increasing=False)
    below = np.flatnonzero(share <= 0.5)
    if not len(below):
        return inf
    if below[0] == 0:
        return -inf
    curve = PchipInterpolator(x, share - 0.5)
    return float(brentq(curve, x[below[0] - 1], x[below[0]]))


def trend(found: dict[int, Crossover]) -> Summary:
    """How the crossover moves with n: the slope of tau*(n) against log2 n, by least squares over lengths that have one.

    The interval is of the same bootstrap as the crossovers', over the draws in which all of these have one.
    """
    lengths = [n for n, crossover in found.items() if crossover.tau is not None and np.isfinite(crossover.tau)]
    nothing = {"per_doubling": None, "per_doubling_low": None, "per_doubling_high": None}
    if len(lengths) < 2:
        return {**nothing, "trend_reason": "a trend needs crossovers at two lengths"}
    x = np.array([log(n, 2) for n in lengths])
    x -= x.mean()
    slope = float(x @ np.array([found[n].tau for n in lengths], dtype=np.float64) / (x @ x))
    draws = np.array([found[n].draws for n in lengths])
    whole = np.isfinite(draws).all(axis=0)
    if draws.shape[1] == 0 or whole.mean() < 0.95:
        return {**nothing, "per_doubling": slope,
                "trend_reason": "interval: in over 5 % of draws a length has no crossover"}
    low, high = interval(x @ draws[:, whole] / (x @ x))
    return {"per_doubling": slope, "per_doubling_low": low, "per_doubling_high": high, "trend_reason": None}
