"""What many pairs say together: of each temperature and length, each temperature, each length, and all."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlmglauber.measures.meeting.crossover import crossovers, trend
from mlmglauber.measures.meeting.lag import bound, estimate, geometric_steps, lag_to_try, mixing_time
from mlmglauber.measures.meeting.times import Pair, c_and_growth, grouped, times_of
from mlmglauber.measures.statistics.scaling import Times, n_log_n
from mlmglauber.measures.statistics.survival import kaplan_meier, median_interval, quantile

Summary = dict[str, Any]

TOO_FEW_TO_TELL = "so few texts, or pairs of one text, leave more than eps open even when all have met"
UPPER = 0.75
"""The quantile of meeting times that is told beside the median."""


def summarise(pairs: Sequence[Pair], budgets: Sequence[float], eps: Sequence[float]) -> Iterator[Summary]:
    """For each kind: a summary of each (tau, n), of each tau and, for each budget, of each n and one of all."""
    for kind, members in grouped(pairs, lambda pair: pair.kind):
        told = {"type": "summary", "of": "pair", **kind._asdict()}
        groups = grouped(members, lambda pair: (pair.tau, pair.n))
        for (tau, n), group in groups:
            yield {**told, "over": "group", "tau": tau, "n": n, **of_group(group, eps)}
        for tau, group in grouped(members, lambda pair: pair.tau):
            yield {**told, "over": "tau", "tau": tau, **of_temperature(group)}
        for budget in budgets:
            found = crossovers(members, budget)
            for n, crossover in found.items():
                yield {**told, "over": "n", "n": n, "budget": budget, **crossover.told()}
            yield {**told, "over": "all", "pairs": len(members), "lengths": list(found), "budget": budget,
                   **trend(found)}


def of_group(pairs: Sequence[Pair], eps: Sequence[float]) -> Summary:
    """Survival of the pairs of one temperature and length and, with a lag, the bounds. Times are joint steps.

    upper_quartile: by then three of four pairs have met; the median of meeting times bounds no mixing time from above.
    frozen: pairs not met of which no state changed in the second half of the time. horizon: until when all were
    watched, that of the restricted mean.
    """
    times, censored = times_of(pairs)
    curve = kaplan_meier(times, censored)
    horizon = min(pair.max_steps for pair in pairs)
    unit = n_log_n(pairs[0].n)
    median = median_interval(times, censored, [pair.text for pair in pairs])
    upper = quantile(curve, UPPER)
    return {
        "pairs": len(pairs), "texts": len({pair.text for pair in pairs}), "met": int((~censored).sum()),
        "censored": int(censored.sum()),
        "frozen": sum(pair.meeting is None and 2 * pair.last_change <= pair.max_steps for pair in pairs),
        "median": median.value, "median_low": median.low, "median_high": median.high,
        "median_n_log_n": median.value / unit if median.value is not None and unit else None,
        "upper_quartile": upper,
        **({} if upper is not None else {"upper_quartile_reason": "over a quarter of the pairs are censored"}),
        "reason": "median: over half of the pairs are censored" if median.value is None else
                  median.reason,
        "restricted_mean": curve.restricted_mean(horizon), "horizon": horizon,
        **(of_lag(pairs, eps) if pairs[0].kind.lag else {}),
    }


def of_lag(pairs: Sequence[Pair], eps: Sequence[float]) -> Summary:
    """The L-lag bounds at geometric steps and the mixing times that they give; None when a pair did not meet."""
    lag, texts = pairs[0].kind.lag, [pair.text for pair in pairs]
    met = [pair.meeting for pair in pairs if pair.meeting is not None]
    if len(met) < len(pairs):
        reason = f"{len(pairs) - len(met)} of {len(pairs)} pairs did not meet: no bound"
        return {"bound": None, "tmix": None, "bound_reason": reason, "lag_to_try": None}
    meetings = np.array(met, dtype=np.int64) + lag
    latest = max(met)
    steps = geometric_steps(2 * latest)
    steps = steps[: 1 + next((k for k, step in enumerate(steps) if step >= latest), 0)]
    found = []
    for k, t in enumerate(steps):
        whole = bound(meetings, lag, t, texts)
        sums = np.array([pair.sums[k] if pair.sums and k < len(pair.sums) else 0 for pair in pairs], dtype=np.float64)
        hamming = estimate(sums, texts)
        found.append({"t": t, "tv": whole.mean, "tv_error": whole.error, "hamming": hamming.mean,
                      "hamming_error": hamming.error})
    mixing = []
    for level in eps:
        first, high = mixing_time(meetings, lag, level, texts)
        mixing.append({"eps": level, "t": first, "t_high": high,
                       **({} if high is not None else {"t_high_reason": TOO_FEW_TO_TELL})})
    return {"bound": found, "tmix": mixing, "bound_reason": None, "lag_to_try": lag_to_try(meetings, lag)}


def of_temperature(pairs: Sequence[Pair]) -> Summary:
    """C of T = C n ln n over all lengths at one temperature, None where times grow faster, and how they grow."""
    groups = []
    for n, members in grouped(pairs, lambda pair: pair.n):
        times, censored = times_of(members)
        groups.append(Times(n, times, censored, [pair.text for pair in members]))
    fit, grown = c_and_growth(groups)
    return {"pairs": len(pairs), "lengths": [group.n for group in groups], "c": fit.value, "c_low": fit.low,
            "c_high": fit.high, "c_reason": fit.reason,
            "growth": grown.rate, "growth_low": grown.low, "growth_high": grown.high, "growth_p": grown.p,
            "growth_reason": grown.reason}
