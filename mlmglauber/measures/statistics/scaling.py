"""How times scale with the number n of sites: T = C n ln n, the order of the mixing time of hot chains."""

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import Interval, Statistic, interval, places_of
from mlmglauber.measures.statistics.survival import medians


def n_log_n(n: int) -> float | None:
    """n ln n, the unit in which times of n sites are compared; None for one site, where it is 0."""
    return n * log(n) if n > 1 else None


class Times(NamedTuple):
    """Times at one n: of each chain or pair its time (where censored, how long it was watched) and its text."""

    n: int
    times: NDArray[np.float64]
    censored: NDArray[np.bool_]
    texts: Sequence[str]


def fit_c(groups: Sequence[Times], seed: int = 0) -> Interval:
    """C in T = C n ln n, from the Kaplan-Meier median time at each n.

    Least squares through the origin, each n weighted by its number of times; for one n it is median / (n ln n). All
    lengths use the same resamples of texts, since the times of a text at several lengths depend on each other. None
    where more than half of the times are censored at some n: C is then larger than the data can show.

    >>> times = Times(10, np.array([20.0, 23.0, 30.0, 26.0]), np.zeros(4, bool), "abcd")
    >>> round(fit_c([times]).value, 6)
    0.998877
    """
    groups = [group for group in groups if n_log_n(group.n) is not None]
    if not groups:
        return Interval(None, None, None, "one site has no n ln n")
    of_groups, total, fewest = over_lengths(groups)
    sizes = [np.bincount(places, minlength=total) for places in text_places(groups)[0]]
    units = np.array([n_log_n(group.n) for group in groups], dtype=np.float64)

    def c(counts: NDArray[np.float64]) -> NDArray[np.float64]:
        middle = np.stack([median(counts) for median in of_groups], axis=1)
        weights = np.stack([counts @ size for size in sizes], axis=1)
        return np.asarray((weights * units * middle).sum(axis=1) / (weights * units * units).sum(axis=1))

    fit = interval(c, total, texts=fewest, seed=seed)
    return fit if fit.value is not None else fit._replace(reason="median_not_reached")


def text_places(groups: Sequence[Times]) -> tuple[list[NDArray[np.intp]], int]:
    """The index of each time's text, for each length, and the number of texts of all lengths together."""
    places, total = places_of([text for group in groups for text in group.texts])
    ends = np.cumsum([len(group.texts) for group in groups])
    return np.split(places, ends[:-1]), total


def over_lengths(groups: Sequence[Times]) -> tuple[list[Statistic], int, int]:
    """Median functions of each length, on the same counts of texts; the number of texts; the fewest of a length."""
    places, total = text_places(groups)
    statistics = [medians(group.times, group.censored, texts, total)
                  for group, texts in zip(groups, places, strict=True)]
    return statistics, total, min(len(set(group.texts)) for group in groups)
