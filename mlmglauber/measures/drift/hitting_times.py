"""Hitting times of drift over many chains: they are seen between two looks, or not at all."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.measures.drift.series import Series
from mlmglauber.measures.meeting.times import c_and_growth
from mlmglauber.measures.statistics.intervals import Interval, between
from mlmglauber.measures.statistics.scaling import Times, fit_c, n_log_n
from mlmglauber.measures.statistics.survival import kaplan_meier, median_interval

Summary = dict[str, Any]

FIGURES = ("median", "median_low", "median_high", "median_at_least", "median_n_log_n", "restricted_mean",
           "restricted_mean_at_least", "horizon", "c", "c_low", "c_high", "c_at_least")


class Hits(NamedTuple):
    """The earliest and latest times that looks at the chains of one length leave open; until when all were watched."""

    least: Times
    most: Times
    horizon: int


def hits_of(n: int, chains: Sequence[Series], threshold: float) -> Hits | None:
    """The times of chains of n tokens; None where no chain has a defined drift."""
    found = [(chain, passage) for chain in chains if (passage := chain.passage(threshold)) is not None]
    if not found:
        return None
    censored = np.array([passage.at_most is None for _, passage in found])
    watched = [passage.watched for _, passage in found]
    ends = [[watch if end is None else end for watch, end in zip(watched, part, strict=True)]
            for part in ([passage.at_least for _, passage in found], [passage.at_most for _, passage in found])]
    texts = [chain.start for chain, _ in found]
    least, most = (Times(n, np.array(part, dtype=np.float64), censored, texts) for part in ends)
    return Hits(least, most, min(watched))


def survival(n: int | None, chains: Sequence[Series], threshold: float) -> Summary:
    """Of the chains of one temperature and length: how many were hit, the median time, and C.

    Both ends of a time are known: the step after the last look below the threshold, and the first look at or above it.
    The Kaplan-Meier median of the former is `median_at_least`, that of the latter `median`; the true one lies between.
    Its interval takes the low end from the former and the high end from the latter.
    """
    hits = hits_of(n or 0, chains, threshold)
    told: Summary = {"threshold": threshold}
    if hits is None:
        told |= {"hits": 0, "censored": 0, "resolution": _resolution(chains)} | dict.fromkeys(FIGURES)
        return told | dict.fromkeys(("median_reason", "c_reason"), "no drift is defined")
    least, most = (median_interval(times.times, times.censored, times.texts) for times in hits[:2])
    median = between(least, most)
    unit = n_log_n(n) if n else None
    told |= {
        "hits": int((~hits.most.censored).sum()), "censored": int(hits.most.censored.sum()),
        "median": median.value, "median_low": median.low, "median_high": median.high, "median_at_least": least.value,
        "median_n_log_n": median.value / unit if median.value is not None and unit else None,
        "restricted_mean": kaplan_meier(hits.most.times, hits.most.censored).restricted_mean(hits.horizon),
        "restricted_mean_at_least": kaplan_meier(hits.least.times, hits.least.censored).restricted_mean(hits.horizon),
        "horizon": float(hits.horizon), "resolution": _resolution(chains), **_fitted([hits]),
    }
    reason = median.reason or ("over half of the chains are censored" if median.value is None else None)
    return told if reason is None else told | {"median_reason": reason}


def over_lengths(groups: Sequence[tuple[int, Sequence[Series]]], threshold: float) -> Summary:
    """C(tau) of T = C n ln n over all lengths at one temperature, and whether times grow faster, as of meeting times.

    The test takes the latest times that the looks leave open. A look every so many steps makes short times longer than
    they are, and so hides growth; it does not feign it.
    """
    hits = [found for n, chains in groups if n > 0 and (found := hits_of(n, chains, threshold)) is not None]
    fit, grown = c_and_growth([found.most for found in hits])
    told = _fitted(hits) if fit.value is not None or len(hits) < 2 else {
        "c": None, "c_low": None, "c_high": None, "c_at_least": None, "c_reason": fit.reason}
    return {"threshold": threshold, **told, "growth": grown.rate, "growth_low": grown.low, "growth_high": grown.high,
            "growth_p": grown.p, "growth_reason": grown.reason}


def _resolution(chains: Sequence[Series]) -> int:
    return max(chain.resolution for chain in chains)


def _fitted(hits: Sequence[Hits]) -> Summary:
    least, most = fit_c([found.least for found in hits]), fit_c([found.most for found in hits])
    fit: Interval = between(least, most)
    return {"c": fit.value, "c_low": fit.low, "c_high": fit.high, "c_at_least": least.value, "c_reason": fit.reason}
