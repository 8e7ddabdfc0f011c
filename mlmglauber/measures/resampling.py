"""Ratios of sums over texts, with intervals that take the chains of one text for dependent."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1000
FEWEST = 2
"""Texts: one tells nothing about others."""


class Ratio(NamedTuple):
    """value, low and high of one shape; not-a-number where there is nothing to divide by, or no interval."""

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def ratio(numerators: NDArray[np.number], denominators: NDArray[np.number], share: bool, seed: int = 0) -> Ratio:
    """sum(numerators) / sum(denominators) over T texts, (T, ...), with a 95 % percentile bootstrap over texts.

    An end is infinite where that many resamples have nothing to divide by but something to divide.
    share: whether each text's ratio lies in [0, 1]. Where all of them are 0, or all 1, resampling sees no spread: then
    the far end is the exact one for that many texts, 1 - 0.025^(1/T) away, which holds for any law on [0, 1].
    The bootstrap is too narrow where texts are few.

    >>> ratio(np.zeros((3, 1)), np.ones((3, 1)), share=True).high.round(3)
    array([0.708])
    """
    texts = len(numerators)
    shape = np.broadcast_shapes(numerators.shape, denominators.shape)
    above, below = (np.broadcast_to(part, shape).reshape(texts, -1).astype(np.float64)
                    for part in (numerators, denominators))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = above.sum(axis=0) / below.sum(axis=0)
        low = high = np.full_like(value, np.nan)
        if texts >= FEWEST:
            weights = np.random.default_rng(seed).multinomial(texts, np.full(texts, 1 / texts), RESAMPLES)
            drawn = (weights @ above) / (weights @ below)
            low, high = _quantiles(drawn)
    seen = (below > 0).sum(axis=0)
    low, high = (np.where(seen >= FEWEST, end, np.nan) for end in (low, high))
    if share:
        reach = 1 - 0.025 ** (1 / np.maximum(seen, 1))
        high = np.where((value == 0) & (seen >= FEWEST), reach, high)
        low = np.where((value == 1) & (seen >= FEWEST), 1 - reach, low)
    return Ratio(*(part.reshape(shape[1:]) for part in (value, low, high)))


def _quantiles(drawn: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The 2.5 and 97.5 % points of each column, over the resamples that had something to divide by."""
    ends = np.full((2, drawn.shape[1]), np.nan)
    known = ~np.isnan(drawn).all(axis=0)
    if known.any():
        ends[:, known] = np.nanquantile(drawn[:, known], [0.025, 0.975], axis=0, method="inverted_cdf")
    return ends[0], ends[1]
