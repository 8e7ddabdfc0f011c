"""Stationary frequencies of tokens, overall and at each site, from coupled chains with a lag."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mlmglauber.measures.stationary.unbiased import Estimate, estimate

Place = tuple[int | None, int]
"""A site, None for all sites, and a token id."""


class PairCounts:
    """Weighted counts of the tokens at each site along one pair; see unbiased.PairPath."""

    def __init__(self) -> None:
        self.average: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.correction: defaultdict[tuple[int, int], int] = defaultdict(int)

    def spend(self, ids: Sequence[int], average: int, corrected: int) -> None:
        """Count a state."""
        for place in enumerate(ids):
            self.average[place] += average
            self.correction[place] += corrected


class Frequency(NamedTuple):
    """The stationary frequency of a token at a site, or of all sites where site is None."""

    site: int | None
    token: int
    estimate: Estimate


class TokenFrequencies:
    """Sums over pairs of the estimates of each token's frequency; a pair without a token counts as 0 for it."""

    def __init__(self) -> None:
        self._rows: dict[Place, dict[int, tuple[float, float]]] = defaultdict(dict)
        self.costs: list[int] = []

    def add(self, counts: PairCounts, n: int, length: int, cost: int) -> None:
        """Take one pair of texts of n tokens; length: m - k + 1."""
        pair = len(self.costs)
        self.costs.append(cost)
        for (site, token), average in counts.average.items():
            unbiased, plain = (average + counts.correction[site, token]) / length, average / length
            if unbiased or plain:
                self._rows[site, token][pair] = unbiased, plain
                before = self._rows[None, token].get(pair, (0.0, 0.0))
                self._rows[None, token][pair] = before[0] + unbiased / n, before[1] + plain / n

    def most_frequent(self, count: int, length: int) -> list[Frequency]:
        """The `count` most frequent tokens over all sites, then those of each site; ties by token id."""
        pairs = len(self.costs)
        sums = {place: sum(unbiased for unbiased, _ in row.values()) for place, row in self._rows.items()}
        found = []
        for site in [None, *sorted({site for site, _ in sums if site is not None})]:
            places = sorted((place for place in sums if place[0] == site), key=lambda place: (-sums[place], place[1]))
            for place in places[:count]:
                values = np.zeros((2, pairs))
                for pair, both in self._rows[place].items():
                    values[:, pair] = both
                found.append(Frequency(site, place[1], estimate(values[0], values[1], self.costs, length)))
        return found
