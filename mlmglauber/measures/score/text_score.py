"""The scores of one text: log-probability, margin and rank of each token, their sums, perplexities, and words."""

from collections.abc import Sequence
from math import exp, inf, isnan, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Spans = Sequence[tuple[int, int]]
"""(first, last + 1) of the sites of each word of a text, which cover all sites."""


class TextScore(NamedTuple):
    """Scores of a text x of n tokens under a model, in nats at tau = 1.

    logp: (n,) log p(x_i | x_-i) of a masked model, log p(x_i | x_<i) of a causal one; -inf for a token that is never
    drawn. logp_within_word: (n,) the same of a masked model with the later tokens of the word of x_i masked too
    (PLL-word-l2r of Kauf and Ivanova 2023), None where it is not computed. gamma: (n,) margins
    l_i(x_i) - max_{v != x_i} l_i(v), with l_i = log p(. | x_-i) or log p(. | x_<i). rank: (n,) 1 where x_i is the token
    that tau = 0 draws, 2 for the next one, and so on. words: the sites of each word.

    The first token of a text has no score under a causal model without a token to begin texts with: its numbers are NaN
    and its rank is 0. broken: a site whose conditional is not finite; the scores mean nothing then.

    Properties: total, the sum of logp, which is the pseudo-log-likelihood (PLL) of a masked model (Salazar et al. 2020)
    and log P(x) of a causal one; total_within_word, the sum of logp_within_word; perplexity, exp(-total / tokens), and
    word_perplexity, exp(-total / scored_words); margin, the smallest gamma; tokens and scored_words, numbers of tokens
    and words that have a score.
    """

    logp: NDArray[np.float64]
    logp_within_word: NDArray[np.float64] | None
    gamma: NDArray[np.float64]
    rank: NDArray[np.int64]
    words: Spans
    broken: int | None = None

    @property
    def tokens(self) -> int:
        """Number of tokens that have a score."""
        return int(np.count_nonzero(self.rank))

    @property
    def scored_words(self) -> int:
        """Number of words of which a token has a score."""
        return sum(bool(self.rank[first:last].any()) for first, last in self.words)

    @property
    def total(self) -> float:
        """The sum of logp: the pseudo-log-likelihood of a masked model, log P(x) of a causal one. NaN for no token."""
        return total(self.logp)

    @property
    def total_within_word(self) -> float:
        """The sum of logp_within_word, NaN where it was not computed."""
        return nan if self.logp_within_word is None else total(self.logp_within_word)

    @property
    def perplexity(self) -> float:
        """exp(-total / tokens): the pseudo-perplexity a token of a masked model, the perplexity of a causal one."""
        return perplexity(self.total, self.tokens)

    @property
    def word_perplexity(self) -> float:
        """exp(-total / words), the same a word."""
        return perplexity(self.total, self.scored_words)

    @property
    def margin(self) -> float:
        """The smallest gamma of a token; above 0 the text is a fixed point at tau = 0. NaN for no token."""
        return float(self.gamma[self.rank > 0].min()) if self.tokens else nan


class WordScores(NamedTuple):
    """The scores of the W words of a text.

    logp, logp_within_word: (W,) sums over the tokens of a word that have a score; NaN where none has. gamma: (W,) the
    smallest, rank: (W,) the largest of its tokens; NaN and 0 where none has a score.
    """

    logp: NDArray[np.float64]
    logp_within_word: NDArray[np.float64] | None
    gamma: NDArray[np.float64]
    rank: NDArray[np.int64]


def by_word(score: TextScore) -> WordScores:
    """The scores of the words of a text.

    >>> logp, rank = np.log([0.5, 0.25, 0.5]), np.array([1, 2, 1])
    >>> words = by_word(TextScore(logp, None, logp, rank, [(0, 2), (2, 3)]))
    >>> np.exp(words.logp).round(3).tolist(), words.rank.tolist()
    ([0.125, 0.5], [2, 1])
    """
    spans = [slice(first, last) for first, last in score.words]
    within = score.logp_within_word
    return WordScores(
        np.array([total(score.logp[span]) for span in spans]),
        None if within is None else np.array([total(within[span]) for span in spans]),
        np.array([min((gamma for gamma in score.gamma[span].tolist() if not isnan(gamma)), default=nan)
                  for span in spans]),
        np.array([score.rank[span].max() for span in spans], dtype=np.int64))


def total(logp: NDArray[np.float64]) -> float:
    """The sum of the log-probabilities that are not NaN; NaN where there is none.

    >>> total(np.array([np.nan, -1.0, -2.0])), total(np.array([np.nan]))
    (-3.0, nan)
    """
    known = logp[~np.isnan(logp)]
    return float(known.sum()) if len(known) else nan


def perplexity(log_likelihood: float, count: int) -> float:
    """exp(-log_likelihood / count); inf where it is larger than any float, NaN for a count of 0.

    >>> round(perplexity(np.log(0.25), 2), 6), perplexity(-1e6, 1)
    (2.0, inf)
    """
    if not count or isnan(log_likelihood):
        return nan
    exponent = -log_likelihood / count
    return exp(exponent) if exponent < 709 else inf
