"""Stationary frequencies of tokens, overall and at each site, from coupled chains with a lag."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.stationary.unbiased import States, StationaryEstimate, Steps, of_moments

Place = tuple[int | None, int]
"""A site, None for all sites, and a token id."""

WIDTH = 1 << 32
"""More than any token id: site * WIDTH + token is one number for both."""


class PairCounts:
    """Weighted counts of the tokens at each site along one pair; the states of its path are (J, n) token ids."""

    def __init__(self) -> None:
        self.counts: dict[int, tuple[int, int]] = {}
        """For site * WIDTH + token, its number of steps in the average and its weight in the correction."""

    def spend(self, states: States, average: Steps, corrected: Steps) -> None:
        """See unbiased.PairPath."""
        counted = (average != 0) | (corrected != 0)
        ids = states[0][counted]
        if not len(ids):
            return
        keys, places = np.unique(ids + WIDTH * np.arange(ids.shape[1]), return_inverse=True)
        sums = [np.bincount(places.ravel(), weights=np.repeat(weights[counted], ids.shape[1])).round().astype(np.int64)
                for weights in (average, corrected)]
        counts = self.counts
        for key, a, c in zip(keys.tolist(), sums[0].tolist(), sums[1].tolist(), strict=True):
            before = counts.get(key, (0, 0))
            counts[key] = before[0] + a, before[1] + c


class Frequency(NamedTuple):
    """The stationary frequency of a token at a site, or of all sites where site is None."""

    site: int | None
    token: int
    estimate: StationaryEstimate


class TokenFrequencies:
    """Sums over pairs of the estimates of each token's frequency; a pair without a token counts as 0 for it."""

    def __init__(self) -> None:
        self._sums: dict[Place, NDArray[np.float64]] = {}
        """Of each place the sums over pairs of H_{k:m}, its square, the plain average, its square."""
        self.pairs = self.steps = 0

    def add(self, counts: PairCounts, n: int, length: int, cost: int) -> None:
        """Take one pair of texts of n tokens; length: m - k + 1."""
        self.pairs += 1
        self.steps += cost
        whole: dict[int, tuple[int, int]] = {}
        for key, (average, correction) in counts.counts.items():
            site, token = divmod(key, WIDTH)
            if average or correction:
                self._put((site, token), (average + correction) / length, average / length)
                before = whole.get(token, (0, 0))
                whole[token] = before[0] + average + correction, before[1] + average
        for token, (unbiased, average) in whole.items():
            self._put((None, token), unbiased / length / n, average / length / n)

    def _put(self, place: Place, unbiased: float, plain: float) -> None:
        row = np.array([unbiased, unbiased * unbiased, plain, plain * plain])
        before = self._sums.get(place)
        self._sums[place] = row if before is None else before + row

    def most_frequent(self, count: int, length: int) -> list[Frequency]:
        """The `count` most frequent tokens over all sites, then those of each site; ties by token id."""
        by_site: dict[int | None, list[Place]] = {}
        for place in self._sums:
            by_site.setdefault(place[0], []).append(place)
        found = []
        for site in [None, *sorted(site for site in by_site if site is not None)]:
            places = sorted(by_site.get(site, []), key=lambda place: (-self._sums[place][0], place[1]))
            found += [Frequency(site, place[1], self._estimate(place, length)) for place in places[:count]]
        return found

    def _estimate(self, place: Place, length: int) -> StationaryEstimate:
        mean, square, average, average_square = (self._sums[place] / self.pairs).tolist()
        spreads = [_variance(mean, square, self.pairs), _variance(average, average_square, self.pairs)]
        return of_moments(self.pairs, mean, spreads[0], average, spreads[1], self.steps / self.pairs, length)


def _variance(mean: float, square: float, pairs: int) -> float:
    """The variance of R frequencies from the means of them and of their squares; what rounding can give counts as 0."""
    spread = square - mean * mean
    return spread * pairs / (pairs - 1) if pairs > 1 and spread > 1e-12 * square else 0.0
