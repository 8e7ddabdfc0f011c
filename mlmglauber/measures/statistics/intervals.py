"""The 95 % interval that every command uses: a cluster bootstrap over texts with Student's t.

The chains, pairs, rectangles and contexts of one text depend on each other, so texts are resampled as clusters; a text
is identified by its id in all runs. A statistic is a function of how often each of T texts is counted. RESAMPLES draws
of these counts give its standard error s, on the scale f on which it is nearly symmetric, and the interval is

    f(value) +- t(0.975; T - 1) sqrt(T / (T - 1)) s,      f = log for times, sizes and ratios, else the identity;

For a share the interval is Wilson's score interval with the same t and value (1 - value) / s^2 as the effective number
of trials.

Percentiles of the same draws are too narrow for few texts: they contain the truth in 49 % of studies of 2 texts and in
81 to 87 % of studies of 7 to 8. The factor is the small-sample correction of Hesterberg (2015, The American
Statistician 69, 371-386), applied to the standard error instead of the percentiles. mlm-glauber(7) gives the measured
coverage of each statistic. With 2 texts it is under 90 % for censored medians, and real texts may differ more than
simulated ones, so there is no interval for fewer than FEWEST texts.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Scale = Literal["log", "plain", "share"]
Statistic = Callable[[Values], Values]
"""From the (R, T) counts of T texts in R resamples to (R, ...) values: infinite for a value that was not reached, NaN
where the counted texts do not determine it."""

FEWEST = 4
"""Minimum number of texts for an interval: twice the number at which the measured coverage is under 90 %."""
RESAMPLES = 1000
"""Number of bootstrap resamples."""
LOST = 0.05
"""Maximum share of resamples in which the statistic may be NaN."""
FLAT = 1e-12
"""Maximum spread of a statistic, relative to its value, that counts as rounding."""

TOO_FEW = f"an interval needs {FEWEST} texts"
NO_SPREAD = "no interval: all resamples of texts agree"
NOT_REACHED = ": not reached in too many resamples of texts"


class Interval(NamedTuple):
    """A value with its 95 % interval; a part that is not known is None, and `reason` says why.

    An end is also None where the interval is open on that side; the reason then begins with "low" or "high".
    """

    value: float | None
    low: float | None
    high: float | None
    reason: str | None


def places_of(texts: Sequence[Hashable]) -> tuple[NDArray[np.intp], int]:
    """The number of each item's text, in order of first appearance, and how many texts there are.

    >>> places_of(["b", "a", "b"])
    (array([0, 1, 0]), 2)
    """
    names = {text: k for k, text in enumerate(dict.fromkeys(texts))}
    return np.array([names[text] for text in texts], dtype=np.intp), len(names)


def interval(statistic: Statistic, total: int, scale: Scale = "log", *, texts: int | None = None,
             seed: int = 0) -> Interval:
    """The value of a statistic over all `total` texts and its interval.

    texts: number of texts that determine the value, where it is smaller than total: for several lengths, that of the
    length with the fewest. An infinite value was not reached: it becomes None, with the end towards it open.

    >>> x = np.array([1.0, 2.0, 4.0, 8.0, 2.0, 4.0])
    >>> found = interval(lambda counts: counts @ x / counts.sum(axis=1), len(x))
    >>> found.value, round(found.low, 1), round(found.high, 1)
    (3.5, 1.6, 7.6)
    """
    value = float(statistic(np.ones((1, total)))[0])
    known = total if texts is None else texts
    draws = statistic(resamples(total, seed)) if known >= FEWEST else np.empty(0)
    return from_draws(value, draws, known, scale)


def from_draws(value: float, draws: Values, texts: int, scale: Scale = "log") -> Interval:
    """The interval of a value that `texts` texts determine, from its (R,) values in the resamples."""
    known = value if np.isfinite(value) else None
    if texts < FEWEST:
        return Interval(known, None, None, f"{TOO_FEW}, there are {texts}")
    low, high = (float(end) for end in ends(np.array(value), draws, texts, scale))
    reason = None
    if np.isnan(low):
        lost = np.isnan(value) or np.isnan(draws).mean() > LOST
        reason = f"no interval: over {LOST:.0%} of the resamples of texts give no value" if lost else NO_SPREAD
    elif np.isinf(low) or np.isinf(high):
        reason = " and ".join(name for name, end in (("low", low), ("high", high)) if np.isinf(end)) + NOT_REACHED
    return Interval(known, low if np.isfinite(low) else None, high if np.isfinite(high) else None, reason)


def between(least: Interval, most: Interval) -> Interval:
    """The interval of a value that lies between two estimates, as for times that are known between two records.

    value: the upper estimate; low: the low end of the lower estimate; high: the high end of the upper one.

    >>> between(Interval(1.0, 0.5, 2.0, None), Interval(16.0, 12.0, 20.0, None))
    Interval(value=16.0, low=0.5, high=20.0, reason=None)
    """
    reasons = [(end, interval.reason) for end, interval, known in (("low", least, least.low), ("high", most, most.high))
               if known is None and interval.reason is not None]
    named = {reason if reason.startswith(("low", "high")) else f"{end}: {reason}" for end, reason in reasons}
    whole = {reason for _, reason in reasons}
    reason = whole.pop() if len(reasons) == 2 and len(whole) == 1 else "; ".join(sorted(named, reverse=True)) or None
    return Interval(most.value, least.low, most.high, reason)


def resamples(total: int, seed: int = 0) -> Values:
    """(RESAMPLES, total) how often each text is counted when `total` texts are drawn with replacement."""
    drawn = np.random.default_rng(seed).multinomial(total, np.full(total, 1 / total), RESAMPLES)
    return drawn.astype(np.float64)


def ends(value: Values, draws: Values, texts: int | Values, scale: Scale) -> tuple[Values, Values]:
    """Low and high ends for values (...), from their draws (R, ...) in resamples of `texts` texts, FEWEST or more.

    An end is infinite where more draws are infinite than the percentile interval with the same correction leaves out;
    the other end then comes from the spread of the draws on its own side. The ends are NaN where the draws have no
    spread, or over LOST of them are NaN. On the "log" scale, a value with a draw of 0 is treated on the plain scale and
    its interval is cut at 0. A "share" lies in [0, 1] for every text. Where it is 0 (or 1) for all texts, the far end
    is exact for T texts: it is 1 - 0.025^(1/T) away, whatever the distribution on [0, 1]. Where all texts agree on
    another value, each text counts as one trial.
    """
    from scipy.stats import norm, t

    texts = np.asarray(texts, dtype=np.float64)
    quantile = t.ppf(0.975, texts - 1)
    reach = quantile * np.sqrt(texts / (texts - 1))
    spare = norm.cdf(-reach)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = (value > 0) & ~(draws <= 0).any(axis=0) if scale == "log" else np.zeros(value.shape, dtype=bool)
        x, y = np.where(logs, np.log(value), value), np.where(logs, np.log(draws), draws)
        count = (~np.isnan(y)).sum(axis=0)
        open_low, open_high = ((y == end).sum(axis=0) > spare * count for end in (-np.inf, np.inf))
        finite = np.isfinite(y) & np.isfinite(x)
        away = np.where(finite, y - x, 0.0)
        both = _root_mean(np.where(finite, away - away.sum(axis=0) / finite.sum(axis=0), 0.0), finite.sum(axis=0))
        below, above = (_root_mean(np.where(side, away, 0.0), side.sum(axis=0) + (finite & (away == 0)).sum(axis=0) / 2)
                        for side in (away < 0, away > 0))
        down = np.where(open_low, -np.inf, -reach * np.where(open_high, below, both))
        up = np.where(open_high, np.inf, reach * np.where(open_low, above, both))
        low, high = (np.where(logs, value * np.exp(end), value + end) for end in (down, up))
        # The known end of a value that was not reached is a percentile with the same correction.
        ordered = np.sort(draws, axis=0)  # NaN comes last
        low = np.where(value == np.inf, _at(ordered, np.ceil(spare * count) - 1), low)
        high = np.where(value == -np.inf, _at(ordered, np.ceil((1 - spare) * count) - 1), high)
        flat = np.isfinite(x) & ~open_low & ~open_high & (both <= FLAT * np.abs(x))
        if scale == "log":
            low = np.maximum(low, 0)
        if scale == "share":
            low, high = _wilson(value, np.where(flat, np.nan, both), texts, quantile)
        nothing = np.isnan(x) | (count < (1 - LOST) * len(draws)) | (flat & (scale != "share"))
    return np.where(nothing, np.nan, low), np.where(nothing, np.nan, high)


def _wilson(value: Values, error: Values, texts: Values, quantile: Values) -> tuple[Values, Values]:
    """Wilson's score interval of shares from their standard errors; an error of NaN stands for no spread."""
    trials = value * (1 - value) * (texts - 1) / texts / error**2
    trials = np.where(np.isnan(error), texts, np.maximum(trials, 1))
    square = quantile**2 / trials
    middle = (value + square / 2) / (1 + square)
    half = np.sqrt(value * (1 - value) * square + square**2 / 4) / (1 + square)
    far = 1 - 0.025 ** (1 / texts)
    low = np.where(value == 0, 0, np.where(value == 1, 1 - far, middle - half))
    return low, np.where(value == 1, 1, np.where(value == 0, far, middle + half))


class Ratio(NamedTuple):
    """Arrays of one shape: ratios, the ends of their intervals, and numbers of texts with a denominator above 0.

    A ratio is NaN where all denominators are 0, an end is NaN where there is no interval, and infinite where the
    interval is open on that side.
    """

    value: Values
    low: Values
    high: Values
    texts: Values

    def at(self, place: Any) -> Interval:
        """The ratio at a place of the arrays."""
        texts, (value, low, high) = int(self.texts[place]), (float(part[place]) for part in self[:3])
        reason = None
        if np.isnan(low) and np.isfinite(value):
            reason = NO_SPREAD if texts >= FEWEST else f"{TOO_FEW}, there are {texts}"
        elif np.isinf(high):
            reason = f"high{NOT_REACHED}"
        known = [end if np.isfinite(end) else None for end in (value, low, high)]
        return Interval(known[0], known[1], known[2], reason)


def ratio(numerators: NDArray[np.number], denominators: NDArray[np.number], scale: Scale = "log",
          seed: int = 0) -> Ratio:
    """sum(numerators) / sum(denominators) over T texts, (T, ...), each with its 95 % interval over texts.

    Texts whose denominator is 0 do not count.

    >>> ratio(np.zeros((4, 1)), np.ones((4, 1)), "share").high.round(3)
    array([0.602])
    """
    shape = np.broadcast_shapes(numerators.shape, denominators.shape)
    above, below = (np.broadcast_to(part, shape).reshape(len(part), -1).astype(np.float64)
                    for part in (numerators, denominators))
    seen = (below > 0).sum(axis=0)
    counts = resamples(len(above), seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = above.sum(axis=0) / below.sum(axis=0)
        low, high = ends(value, (counts @ above) / (counts @ below), np.maximum(seen, 2.0), scale)
    low, high = (np.where(seen >= FEWEST, end, np.nan) for end in (low, high))
    value, low, high = (end.reshape(shape[1:]) for end in (value, low, high))
    return Ratio(value, low, high, seen.reshape(shape[1:]))


def student_half_width(values: Values) -> float:
    """Half the width of Student's 95 % interval for the mean of (N,) independent values, N >= 2.

    t(0.975; N - 1) s / sqrt(N), s the standard deviation of the values; 0 where all values are equal.

    >>> round(student_half_width(np.array([1.0, 2.0, 3.0])), 4)
    2.4841
    """
    from scipy.stats import sem, t

    return float(t.ppf(0.975, len(values) - 1) * sem(values))


def cluster_mean(values: Sequence[float] | Values, texts: Sequence[Hashable], scale: Scale = "log") -> Interval:
    """The mean of N values and its 95 % interval over texts, which are the clusters.

    values: (N,); texts: (N,) the text that each value belongs to. Each value counts once, whatever its text.

    >>> cluster_mean([1.0, 3.0, 5.0], ["a", "a", "b"]).value
    3.0
    """
    places, total = places_of(texts)
    sums = np.bincount(places, weights=values, minlength=total)
    counts = np.bincount(places, minlength=total).astype(np.float64)
    return interval(lambda weights: (weights @ sums) / (weights @ counts), total, scale)


def _root_mean(values: Values, count: Any) -> Values:
    return np.asarray(np.sqrt((values**2).sum(axis=0) / np.maximum(count, 1)))


def _at(ordered: Values, place: Values) -> Values:
    rows = np.clip(place, 0, len(ordered) - 1).astype(np.intp)
    return np.asarray(np.take_along_axis(ordered, rows[None], axis=0)[0])
