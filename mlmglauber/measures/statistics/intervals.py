"""The one 95 % interval of every command: a bootstrap over texts with Student's t.

The chains, pairs, rectangles and contexts of one text depend on each other, so the text is the unit that is resampled
(a cluster bootstrap); a text is named by its id, the same in all runs. A statistic is a function of how often each of
T texts is counted; RESAMPLES draws of these counts give its standard error s, on the scale on which it is nearly
symmetric, and the interval is

    f(value) +- t(0.975; T - 1) sqrt(T / (T - 1)) s,      f = log for times, sizes and ratios, else the identity;

of a share it is Wilson's score interval with the same t and the effective number value (1 - value) / s^2 of trials.

Percentiles of the same draws are too narrow where texts are few (they hold the truth in 49 % of studies of 2 texts and
in 81 to 87 % of 7 to 8). The factor is the small-sample correction of Hesterberg (2015, The American Statistician 69,
371-386), here of the standard error instead of the percentiles. The coverage that was measured for each statistic
stands in mlm-glauber(7). With 2 texts it is under 90 % for censored medians; real texts may differ more than those of
the simulation, so there is no interval below FEWEST.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Scale = Literal["log", "plain", "share"]
Statistic = Callable[[Values], Values]
"""(R, T) counts of each text in each resample to the (R, ...) values: infinite where it is beyond what was watched,
not-a-number where the counted texts tell nothing."""

FEWEST = 4
"""Minimum number of texts of an interval: twice the number at which its coverage, as measured, is under 90 %."""
RESAMPLES = 1000
LOST = 0.05
"""Maximum share of resamples that may tell nothing."""
FLAT = 1e-12
"""A spread below that share of the value is rounding."""

TOO_FEW = f"an interval needs {FEWEST} texts"
NO_SPREAD = "no interval: all resamples of texts agree"
NOT_REACHED = ": not reached in too many resamples of texts"


class Interval(NamedTuple):
    """A value with its 95 % interval; what cannot be told is None, and `reason` says why.

    An end is None also where the interval is open on that side: the reason then begins "low" or "high".
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

    texts: on how many texts the value stands, where that is fewer: of several lengths, those of the one with the
    fewest. An infinite value is one that was not reached: None, with the end towards it open.

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
    """The interval of a value that stands on so many texts, from the (R,) values of the resamples."""
    told = value if np.isfinite(value) else None
    if texts < FEWEST:
        return Interval(told, None, None, f"{TOO_FEW}, there are {texts}")
    low, high = (float(end) for end in ends(np.array(value), draws, texts, scale))
    reason = None
    if np.isnan(low):
        lost = np.isnan(value) or np.isnan(draws).mean() > LOST
        reason = f"no interval: over {LOST:.0%} of the resamples of texts tell nothing" if lost else NO_SPREAD
    elif np.isinf(low) or np.isinf(high):
        reason = " and ".join(name for name, end in (("low", low), ("high", high)) if np.isinf(end)) + NOT_REACHED
    return Interval(told, low if np.isfinite(low) else None, high if np.isfinite(high) else None, reason)


def between(least: Interval, most: Interval) -> Interval:
    """The interval of a value that lies anywhere from one estimate to another, as of times seen between two looks.

    value: the upper estimate; low: the low end of the lower one; high: the high end of the upper one.

    >>> between(Interval(1.0, 0.5, 2.0, None), Interval(16.0, 12.0, 20.0, None))
    Interval(value=16.0, low=0.5, high=20.0, reason=None)
    """
    reasons = [(end, found.reason) for end, found, known in (("low", least, least.low), ("high", most, most.high))
               if known is None and found.reason is not None]
    told = {reason if reason.startswith(("low", "high")) else f"{end}: {reason}" for end, reason in reasons}
    whole = {reason for _, reason in reasons}
    reason = whole.pop() if len(reasons) == 2 and len(whole) == 1 else "; ".join(sorted(told, reverse=True)) or None
    return Interval(most.value, least.low, most.high, reason)


def resamples(total: int, seed: int = 0) -> Values:
    """(RESAMPLES, total): how often each text is counted when as many as there are are drawn with replacement."""
    drawn = np.random.default_rng(seed).multinomial(total, np.full(total, 1 / total), RESAMPLES)
    return drawn.astype(np.float64)


def ends(value: Values, draws: Values, texts: int | Values, scale: Scale) -> tuple[Values, Values]:
    """Low and high ends for values (...), from their draws (R, ...) over so many texts, FEWEST or more.

    An end is infinite where more draws are than the percentile interval with the same correction leaves out; the other
    end is then from the spread of the draws on its own side. Not-a-number: no interval, for want of spread or because
    over LOST of the draws tell nothing. Under "log" a value with a draw of 0 is taken on the plain scale, cut at 0.
    A "share" lies in [0, 1] in every text. Where it is 0 or 1 in all, the far end is the exact one of that many texts,
    1 - 0.025^(1/T) away, which holds for any law on [0, 1]; where all agree on another value, each is one trial.
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
        # A value that was not reached has the percentile with the same correction for its one end.
        ordered = np.sort(draws, axis=0)  # not-a-numbers come last
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
    """Wilson's score interval of shares with a standard error; not-a-number for no spread."""
    trials = value * (1 - value) * (texts - 1) / texts / error**2
    trials = np.where(np.isnan(error), texts, np.maximum(trials, 1))
    square = quantile**2 / trials
    middle = (value + square / 2) / (1 + square)
    half = np.sqrt(value * (1 - value) * square + square**2 / 4) / (1 + square)
    far = 1 - 0.025 ** (1 / texts)
    low = np.where(value == 0, 0, np.where(value == 1, 1 - far, middle - half))
    return low, np.where(value == 1, 1, np.where(value == 0, far, middle + half))


class Ratio(NamedTuple):
    """value, low, high and the number of texts with something to divide by, of one shape.

    Not-a-number where there is nothing to divide by, or no interval; an end is infinite where it is open on that side.
    """

    value: Values
    low: Values
    high: Values
    texts: Values

    def at(self, place: Any) -> Interval:
        """One of them."""
        texts, (value, low, high) = int(self.texts[place]), (float(part[place]) for part in self[:3])
        reason = None
        if np.isnan(low) and np.isfinite(value):
            reason = NO_SPREAD if texts >= FEWEST else f"{TOO_FEW}, there are {texts}"
        elif np.isinf(high):
            reason = f"high{NOT_REACHED}"
        told = [end if np.isfinite(end) else None for end in (value, low, high)]
        return Interval(told[0], told[1], told[2], reason)


def ratio(numerators: NDArray[np.number], denominators: NDArray[np.number], scale: Scale = "log",
          seed: int = 0) -> Ratio:
    """sum(numerators) / sum(denominators) over T texts, (T, ...), each with its interval over texts.

    Texts with nothing to divide by count for nothing: a ratio stands on the others.

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
    return Ratio(*(part.reshape(shape[1:]) for part in (value, low, high, seen)))


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
