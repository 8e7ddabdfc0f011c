"""Meeting times of coupled chains, and the test whether times grow faster than n ln n."""

from collections.abc import Callable, Sequence
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import FEWEST, TOO_FEW, Interval, interval
from mlmglauber.measures.statistics.scaling import Times, fit_c, n_log_n, over_lengths, text_places

Values = NDArray[np.float64]


class PairKind(NamedTuple):
    """What pairs that are summarised together have in common."""

    model: str
    coupling: str
    start: str
    lag: int
    replicas: int


class Pair(NamedTuple):
    """One pair of coupled chains.

    text: the text it started from; the pairs of one text depend on each other. meeting: joint steps until the chains
    were equal, None where they were not within max_steps. last_change: the last joint step at which a state changed.
    sums: sums of Hamming distances that bound the Wasserstein distance, at geometric_steps, 0 after their end; None
    without a lag.
    """

    kind: PairKind
    text: str
    tau: float
    n: int
    meeting: int | None
    max_steps: int
    last_change: int
    sums: Sequence[int] | None = None

    @property
    def watched(self) -> int:
        """The meeting time or, where censored, the number of joint steps."""
        return self.max_steps if self.meeting is None else self.meeting


def grouped(pairs: Sequence[Pair], key: Callable[[Pair], Any]) -> list[tuple[Any, list[Pair]]]:
    """(key, pairs) of each group, in the order of the keys."""
    groups: dict[Any, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair)
    return sorted(groups.items())


def times_of(pairs: Sequence[Pair]) -> tuple[Values, NDArray[np.bool_]]:
    """(times, censored): joint steps to the meeting or, where the chains did not meet, to the end."""
    return (np.array([pair.watched for pair in pairs], dtype=np.float64),
            np.array([pair.meeting is None for pair in pairs]))


class Growth(NamedTuple):
    """Whether times grow faster than T = C n ln n, measured in two ways.

    rate: k in ln(T / (n ln n)) = a + k n for the median time T, by least squares weighted by the number of times, with
    its 95 % interval (low, high) over texts. 0 means n ln n; above 0 the time grows by a factor e^k per site.
    p: p-value of a one-sided log-rank test of T / (n ln n), the shortest against the longest n, which needs no medians.
    A small one means that times grow faster than n ln n, exponentially or not.
    A part that is not known is None, and `reason` says why.
    """

    rate: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    reason: str | None = None


REJECTED = 0.05
"""p-values of growth below this reject T = C n ln n."""


def growth(groups: Sequence[Times], seed: int = 0) -> Growth:
    """How times grow over the lengths, shortest first; all lengths use the same resamples of texts."""
    groups = [group for group in groups if n_log_n(group.n) is not None]
    if len(groups) < 2:
        return Growth(reason="growth needs two lengths of two sites or more")
    p, why = _log_rank(groups[0], groups[-1])
    of_groups, total, fewest = over_lengths(groups)
    sizes = [np.bincount(places, minlength=total) for places in text_places(groups)[0]]
    n = np.array([group.n for group in groups], dtype=np.float64)

    def rate(counts: Values) -> Values:
        middle = np.stack([median(counts) for median in of_groups], axis=1)
        middle[(middle == 0) | np.isinf(middle)] = np.nan
        weights = np.stack([counts @ size for size in sizes], axis=1)
        centred = n - (weights * n).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
        y = np.log(middle / (n * np.log(n)))
        return np.asarray((weights * centred * y).sum(axis=1) / (weights * centred * centred).sum(axis=1))

    fit = interval(rate, total, "plain", texts=fewest, seed=seed)
    if fit.value is None:
        reason: str | None = "rate: a median is not reached, or is 0"
    else:
        reason = fit.reason or (f"p: {why}" if why else None)
    return Growth(fit.value, fit.low, fit.high, p, reason)


def c_and_growth(groups: Sequence[Times]) -> tuple[Interval, Growth]:
    """C of T = C n ln n over the lengths, and the test of growth; C is None where the test rejects n ln n."""
    grown = growth(groups)
    if grown.p is not None and grown.p < REJECTED:
        return Interval(None, None, None, f"times grow faster than n ln n (p {grown.p:.2g})"), grown
    return fit_c(groups), grown


def _log_rank(short: Times, long: Times) -> tuple[float | None, str | None]:
    """p-value of the log-rank test with texts as clusters; or None and the reason.

    The log-rank score is the sum over times of the residuals delta (Z - e(t)) - sum over events s <= t of (Z - e(s))
    d(s) / r(s), with Z = 1 for the short length and 0 for the long one, r the number at risk, e the share of the short
    length among them, and d the number of events. The sums over the times of each text are independent with mean 0
    under T = C n ln n, which Student's t tests (Lin and Wei 1989). With few texts the tail of t is too
    thin: p is not below 1 / C(a + b, a), the smallest value that a permutation test of a and b texts can give.
    """
    from scipy.stats import ttest_1samp

    places, total = text_places([short, long])
    if min(len(set(short.texts)), len(set(long.texts))) < FEWEST:
        return None, TOO_FEW.replace("an interval", "it")
    scaled = [group.times / (n_log_n(group.n) or 1) for group in (short, long)]
    times, censored = np.concatenate(scaled), np.concatenate([short.censored, long.censored])
    of_short = np.repeat([1.0, 0.0], [len(short.times), len(long.times)])
    moments = np.unique(times[~censored])
    if short.censored.all():
        return None, "too few met"
    order = np.argsort(times)
    ahead = np.searchsorted(times[order], moments, side="left")  # number of times that are no longer at risk
    risk = len(times) - ahead
    share = (of_short.sum() - np.concatenate([[0.0], np.cumsum(of_short[order])])[ahead]) / risk
    events = np.bincount(np.searchsorted(moments, times[~censored]), minlength=len(moments))
    hazard, drawn = (np.concatenate([[0.0], np.cumsum(part)]) for part in (events / risk, share * events / risk))
    seen = np.searchsorted(moments, times, side="right")
    residuals = -(of_short * hazard[seen] - drawn[seen])
    residuals[~censored] += of_short[~censored] - share[np.searchsorted(moments, times[~censored])]
    scores = np.bincount(np.concatenate(places), weights=residuals, minlength=total)
    if np.ptp(scores) <= 1e-12 * np.abs(residuals).sum():
        return None, "all texts agree"
    smallest = 1 / comb(*_texts_of(short, long))
    return max(float(ttest_1samp(scores, 0.0, alternative="greater").pvalue), smallest), None


def _texts_of(short: Times, long: Times) -> tuple[int, int]:
    """(number of texts of both lengths, number of texts of the short one), a text counted once for each length."""
    shorter = len(set(short.texts))
    return shorter + len(set(long.texts)), shorter
