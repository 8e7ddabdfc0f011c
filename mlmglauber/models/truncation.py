"""Truncation of tempered conditionals: only the likeliest tokens may be drawn, their probabilities renormalised.

The rules, in this order, on the conditional at its temperature: top-k keeps the k likeliest tokens. top-p keeps the
fewest likeliest tokens whose probabilities, renormalised after top-k, add up to p or more (Holtzman et al. 2020). min-p
keeps the tokens whose probability is at least min-p times the largest one (Nguyen et al. 2024). Each rule keeps the m
likeliest tokens for some m, so together they keep the least of these m. Of tokens that are equally likely those with
the lowest ids are kept, as in an argmax.

Which tokens are kept must not depend on the processor. Log-probabilities, sums and thresholds that differ by ROUNDING
or less count as equal: that decides the exact ties of tables in one way on every machine. A conditional in a faster
precision is truncated for certain only where no error within its tolerance could change which tokens are kept; `slack`
says how far it is from that.
"""

from math import inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

ROUNDING = 1e-9
"""Log-probabilities and probabilities that differ by no more than this count as equal."""
FEW = 256
"""Number of likeliest tokens that are sorted at first; where they do not decide a rule, MORE times as many."""
MORE = 8


class Truncated(NamedTuple):
    """(B, V) log-probabilities at tau = 1 with -inf for tokens that are cut off, not renormalised; and their slack.

    slack: (B,) the smallest error of a difference of log-probabilities at tau = 1, in nats, that could change which
    tokens are kept; inf where none could.
    """

    rows: NDArray[np.floating]
    slack: Values


class Truncation(NamedTuple):
    """Rules for the tokens that may be drawn; None for a rule that is not used.

    top_k: at least 1. top_p: above 0 and below 1. min_p: above 0 and at most 1.

    >>> rows = np.log([[0.5, 0.3, 0.15, 0.05]])
    >>> kept = Truncation(top_p=0.75).of(rows, np.ones(1))
    >>> np.exp(kept.rows).round(2), kept.slack.round(2)
    (array([[0.5, 0.3, 0. , 0. ]]), array([0.29]))
    """

    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    @classmethod
    def given(cls, top_k: int | None = None, top_p: float | None = None,
              min_p: float | None = None) -> "Truncation | None":
        """The rules that cut something off, None without any: a top_p of 1 and a min_p of 0 cut off nothing."""
        rules = cls(top_k, None if top_p == 1 else top_p, None if min_p == 0 else min_p)
        return None if rules == cls() else rules

    def of(self, rows: NDArray[np.floating], taus: Values, cold: NDArray[np.bool_] | None = None) -> Truncated:
        """Truncate (B, V) log-probabilities at tau = 1 as the rules say at the temperatures (B,).

        cold: (B,) rows of which the argmax is taken; they stay whole, as do rows that are not finite.
        """
        result, slack = rows.copy(), np.full(len(rows), inf)
        warm = np.isfinite(rows.max(axis=1)) & (taus > 0)
        if cold is not None:
            warm &= ~cold
        places = np.flatnonzero(warm)
        if len(places):
            chosen = rows[places].astype(np.float64)
            counts, slack[places], last = self._counts(chosen, taus[places])
            result[places] = np.where(_largest(chosen, counts, last), rows[places], -inf)
        return Truncated(result, slack)

    def _counts(self, rows: Values, taus: Values) -> tuple[NDArray[np.int64], Values, Values]:
        """((B,) number of tokens that are kept, (B,) slack, (B,) log-probability of the last one) of finite rows."""
        vocab = rows.shape[1]
        size = min(vocab, FEW if self.top_k is None else self.top_k + 1)
        while True:
            values = -np.sort(-np.partition(rows, vocab - size, axis=1)[:, vocab - size :], axis=1)
            counts, slack = self._decided(rows, values, taus)
            if size == vocab or self.top_k is not None or (counts < size).all():
                return counts, slack, values[np.arange(len(rows)), counts - 1]
            size = min(vocab, size * MORE)

    def _decided(self, rows: Values, values: Values, taus: Values) -> tuple[NDArray[np.int64], Values]:
        """(numbers of tokens that are kept, slack), from the (B, C) largest log-probabilities in falling order.

        Without top-k a number of C says that C are too few to decide.
        """
        possible = np.isfinite(rows).sum(axis=1)
        top, size = values[:, :1], values.shape[1]
        counts = possible if self.top_k is None else np.minimum(possible, self.top_k)
        first = np.minimum(counts, size)
        places = np.arange(len(rows))
        shares = floor = None
        if self.top_p is not None:
            whole = rows if self.top_k is None else values[:, : self.top_k]
            total = np.exp((whole - top) / taus[:, None]).sum(axis=1, keepdims=True)
            shares = np.minimum(np.cumsum(np.exp((values - top) / taus[:, None]), axis=1) / total, 1.0)
            first = np.minimum(first, 1 + (shares < self.top_p - ROUNDING).sum(axis=1))
        if self.min_p is not None:
            floor = top[:, 0] + taus * log(self.min_p)
            first = np.minimum(first, (values >= floor[:, None] - ROUNDING).sum(axis=1))
        first = np.minimum(first, size)
        last, more = values[places, first - 1], first > 1
        following = np.where(first < size, values[places, np.minimum(first, size - 1)], -inf)
        least = np.full(len(rows), inf)  # errors below this keep as many tokens
        most = np.where(first == counts, inf, -inf)  # errors below this keep no more
        if shares is not None and self.top_p is not None:
            odds = log(self.top_p / (1 - self.top_p))
            with np.errstate(divide="ignore"):
                reached = taus * (_odds(shares[places, first - 1]) - odds)
                before = taus * (odds - _odds(shares[places, np.maximum(first - 2, 0)]))
            least = np.minimum(least, np.where(more, before, inf))
            most = np.maximum(most, reached)
        if floor is not None:
            least = np.minimum(least, np.where(more, last - floor, inf))
            most = np.maximum(most, floor - following)
        return first, np.minimum(np.minimum(least, most), last - following)


def _odds(shares: Values) -> Values:
    """Log-odds of probabilities; inf for 1."""
    return np.asarray(np.log(shares) - np.log1p(-shares))


def _largest(rows: Values, counts: NDArray[np.int64], last: Values) -> NDArray[np.bool_]:
    """(B, V) which tokens are the likeliest, so many of each row; of equal ones those with the lowest ids.

    last: (B,) the log-probability of the last one of them.
    """
    above = rows > (last + ROUNDING)[:, None]
    equal = (rows >= (last - ROUNDING)[:, None]) & ~above
    room = (counts - above.sum(axis=1))[:, None]
    return np.asarray(above | (equal & (np.cumsum(equal, axis=1) <= room)))


def cut(rows: NDArray[np.floating], truncation: Truncation | None, tau: float) -> NDArray[np.floating]:
    """(B, V) log-probabilities at tau = 1, with -inf for the tokens that a truncation cuts off at a temperature."""
    return rows if truncation is None else truncation.of(rows, np.full(len(rows), tau)).rows
