"""Times until two chains meet: what a pair tells, and whether times grow faster than n ln n."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.drift import RESAMPLES, Times, n_log_n
from mlmglauber.measures.survival import kaplan_meier

Values = NDArray[np.float64]


class Kind(NamedTuple):
    """What pairs must share to be summed up together."""

    model: str
    coupling: str
    start: str
    lag: int
    replicas: int


class Pair(NamedTuple):
    """One pair: joint steps until it met, None where it did not in max_steps; when a state last changed.

    text: what it started from; the pairs of one text depend on each other. sums: the Hamming distances that bound the
    Wasserstein distance, at geometric_steps, 0 from their end on; None without a lag.
    """

    kind: Kind
    text: str
    tau: float
    n: int
    meeting: int | None
    max_steps: int
    last_change: int
    sums: Sequence[int] | None = None

    @property
    def watched(self) -> int:
        """The meeting or, where censored, how long was waited for it."""
        return self.max_steps if self.meeting is None else self.meeting


def grouped(pairs: Sequence[Pair], key: Callable[[Pair], Any]) -> list[tuple[Any, list[Pair]]]:
    """(key, its pairs), in the order of the keys."""
    groups: dict[Any, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair)
    return sorted(groups.items())


def times_of(pairs: Sequence[Pair]) -> tuple[Values, NDArray[np.bool_]]:
    """(times, censored): joint steps to the meeting or, where there was none, to the end."""
    return (np.array([pair.watched for pair in pairs], dtype=np.float64),
            np.array([pair.meeting is None for pair in pairs]))


class Growth(NamedTuple):
    """Exponential growth in n against T = C n ln n, in two ways.

    rate: k of the median time in ln(T / (n ln n)) = a + k n, by least squares weighted by the number of pairs, low and
    high its percentile bootstrap over texts. 0 is n ln n; above 0 is exponential growth, by a factor e^k a site.
    p: of a one-sided log-rank test of T / (n ln n) at the shortest against the longest n, which needs no medians; small
    says that times grow faster than n ln n, exponentially or not. It takes pairs for independent.
    What cannot be told is None, and `reason` says why.
    """

    rate: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    reason: str | None = None


def growth(groups: Sequence[Times], seed: int = 0) -> Growth:
    """How meeting times grow over the lengths, shortest first; times as for fit_c."""
    groups = [group for group in groups if n_log_n(group.n) is not None]
    if len(groups) < 2:
        return Growth(reason="growth needs two lengths of two sites or more")
    p = _log_rank(groups[0], groups[-1])
    rate = _rate(groups, [_median(group.times, group.censored) for group in groups])
    found = Growth(rate, p=p)
    if rate is None:
        return found._replace(reason="rate: a median is not reached, or is 0")
    if min(len(set(group.texts)) for group in groups) < 2:
        return found._replace(reason="interval: one text tells nothing about others")
    generator = np.random.default_rng(seed)
    draws = [_rate(groups, [_resampled_median(group, generator) for group in groups]) for _ in range(RESAMPLES)]
    known = [draw for draw in draws if draw is not None]
    if len(known) < 0.95 * len(draws):
        return found._replace(reason="interval: median_not_reached in over 5 % of draws")
    low, high = np.quantile(known, [0.025, 0.975]).tolist()
    return found._replace(low=low, high=high, reason=None if p is not None else "p: too few pairs met")


def _median(times: Values, censored: NDArray[np.bool_]) -> float | None:
    """The Kaplan-Meier median; an order statistic where nothing is censored before the last meeting, as usual."""
    if censored.any() and not censored.all() and times[censored].min() < times[~censored].max():
        return kaplan_meier(times, censored).median
    middle = np.sort(np.where(censored, inf, times))[(len(times) - 1) // 2]
    return None if middle == inf else float(middle)


def _resampled_median(group: Times, generator: np.random.Generator) -> float | None:
    names, places = np.unique(np.asarray(group.texts), return_inverse=True)
    rows = np.concatenate([np.flatnonzero(places == k) for k in generator.integers(0, len(names), len(names))])
    return _median(group.times[rows], group.censored[rows])


def _rate(groups: Sequence[Times], medians: Sequence[float | None]) -> float | None:
    if any(not median for median in medians):
        return None
    n = np.array([group.n for group in groups], dtype=np.float64)
    weights = np.array([len(group.times) for group in groups], dtype=np.float64)
    y = np.log(np.array(medians, dtype=np.float64) / (n * np.log(n)))
    centred = n - (weights * n).sum() / weights.sum()
    return float((weights * centred * y).sum() / (weights * centred * centred).sum())


def _log_rank(short: Times, long: Times) -> float | None:
    from scipy.stats import CensoredData, logrank

    if short.censored.all() or min(len(short.times), len(long.times)) < 2:
        return None
    scaled = []
    for group in (short, long):
        times = group.times / (n_log_n(group.n) or 1)
        scaled.append(CensoredData(uncensored=times[~group.censored], right=times[group.censored]))
    with np.errstate(all="ignore"):
        p = float(logrank(*scaled, alternative="greater").pvalue)
    return p if np.isfinite(p) else None
