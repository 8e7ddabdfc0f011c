"""Hitting times of drift over many chains. Each time is known between two records, or censored."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mlmglauber.measures.drift.series import DriftSeries
from mlmglauber.measures.meeting.times import Growth, c_and_growth
from mlmglauber.measures.statistics.intervals import Interval, between
from mlmglauber.measures.statistics.scaling import Times, fit_c, n_log_n
from mlmglauber.measures.statistics.survival import kaplan_meier, median_interval


class HittingTimes(NamedTuple):
    """Hitting times of the chains of one temperature and length, in steps.

    Both ends of each time are known: the step after the last record below the threshold, and the step of the first
    record at or above it. median: Kaplan-Meier median of the latter with its 95 % interval, whose low end is that of
    the former; median_at_least: median of the former or, where that is larger or not reached, the earliest step of the
    chains that give the median. c, c_at_least: likewise C of T = C n ln n. restricted_mean: mean
    of min(T, horizon), with horizon the step until which all chains were watched. hits, censored: numbers of chains.
    resolution: the largest number of steps between two records of a chain.
    """

    threshold: float
    hits: int
    censored: int
    resolution: int
    median: Interval
    median_at_least: float | None
    median_n_log_n: float | None
    restricted_mean: float | None
    restricted_mean_at_least: float | None
    horizon: float | None
    c: Interval
    c_at_least: float | None


class HittingScale(NamedTuple):
    """C of T = C n ln n over several lengths at one temperature, and whether times grow faster than n ln n."""

    threshold: float
    c: Interval
    c_at_least: float | None
    growth: Growth


class _Hits(NamedTuple):
    """The earliest and the latest times that the records allow, for one length; until when all chains were watched."""

    least: Times
    most: Times
    horizon: int


def _hits_of(n: int, chains: Sequence[DriftSeries], threshold: float) -> _Hits | None:
    """The times of chains of n tokens; None where no chain has a defined drift."""
    passages = [(chain, passage) for chain in chains if (passage := chain.passage(threshold)) is not None]
    if not passages:
        return None
    censored = np.array([passage.at_most is None for _, passage in passages])
    watched = [passage.watched for _, passage in passages]
    ends = [[watch if end is None else end for watch, end in zip(watched, part, strict=True)]
            for part in ([passage.at_least for _, passage in passages], [passage.at_most for _, passage in passages])]
    texts = [chain.start for chain, _ in passages]
    least, most = (Times(n, np.array(part, dtype=np.float64), censored, texts) for part in ends)
    return _Hits(least, most, min(watched))


def hitting_times(n: int | None, chains: Sequence[DriftSeries], threshold: float) -> HittingTimes:
    """Hitting times of the chains of one temperature and length n."""
    hits = _hits_of(n or 0, chains, threshold)
    resolution = max(chain.resolution for chain in chains)
    if hits is None:
        nothing = Interval(None, None, None, "no drift is defined")
        return HittingTimes(threshold, 0, 0, resolution, nothing, None, None, None, None, None, nothing, None)
    least, most = (median_interval(times.times, times.censored, times.texts) for times in hits[:2])
    median = between(least, most)
    at_least = _earliest(hits, median.value, least.value)
    if median.value is None and median.reason is None:
        median = median._replace(reason="over half of the chains are censored")
    unit = n_log_n(n) if n else None
    c, c_at_least = _fitted([hits])
    return HittingTimes(
        threshold, int((~hits.most.censored).sum()), int(hits.most.censored.sum()), resolution, median, at_least,
        median.value / unit if median.value is not None and unit else None,
        kaplan_meier(hits.most.times, hits.most.censored).restricted_mean(hits.horizon),
        kaplan_meier(hits.least.times, hits.least.censored).restricted_mean(hits.horizon), float(hits.horizon),
        c, c_at_least)


def hitting_scale(groups: Sequence[tuple[int, Sequence[DriftSeries]]], threshold: float) -> HittingScale:
    """How hitting times grow over lengths, from (n, chains of n tokens) by ascending n; the test is that of meetings.

    The test takes the latest times that the records allow. Records some steps apart lengthen short times, which hides
    growth but never creates it.
    """
    hits = [group for n, chains in groups if n > 0 and (group := _hits_of(n, chains, threshold)) is not None]
    fit, grown = c_and_growth([group.most for group in hits])
    c, least = _fitted(hits) if fit.value is not None or len(hits) < 2 else (
        Interval(None, None, None, fit.reason), None)
    return HittingScale(threshold, c, least, grown)


def _earliest(hits: _Hits, median: float | None, least: float | None) -> float | None:
    """The lower end of a median that lies between two records; `least` is the median of the earliest times.

    Earlier times have other chains at risk beside them where some are censored, so their median may be the later one.
    """
    if median is None:
        return least
    of_length = float(hits.least.times[~hits.most.censored & (hits.most.times == median)].min())
    return of_length if least is None or least > median else least


def _fitted(hits: Sequence[_Hits]) -> tuple[Interval, float | None]:
    """C of the latest times, its interval over both, and C of the earliest times, which is not above it."""
    least, most = fit_c([group.least for group in hits]), fit_c([group.most for group in hits])
    if most.value is None or (least.value is not None and least.value <= most.value):
        return between(least, most), least.value
    units = np.array([n_log_n(group.most.n) or np.nan for group in hits])
    sizes = np.array([len(group.most.times) for group in hits])
    medians = [kaplan_meier(part.times, part.censored).median for group in hits for part in (group.most, group.least)]
    early = np.array([_earliest(group, middle, low) for group, middle, low in
                      zip(hits, medians[::2], medians[1::2], strict=True)], dtype=np.float64)
    known = np.isfinite(units)
    c = float((sizes * units * early)[known].sum() / (sizes * units * units)[known].sum())
    return between(least, most), min(c, most.value)
