"""Repetition in a sequence of tokens: its longest repeated n-gram and its most frequent token."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Repetition(NamedTuple):
    """The longest n-gram that occurs twice, and the most frequent token.

    length: that of the n-gram, whose occurrences may overlap; 0 where no token occurs twice. start: place of its first
    occurrence. token, share: the most frequent token (of equal ones the first) and its share of the sequence.
    """

    length: int
    start: int
    token: int
    share: float


def repetition(ids: Sequence[int]) -> Repetition:
    """Repetition of a sequence, by comparing neighbours among its sorted suffixes.

    >>> repetition([5, 1, 2, 3, 1, 2])
    Repetition(length=2, start=1, token=1, share=0.3333333333333333)
    """
    tokens = list(ids)
    suffixes = sorted(range(len(tokens)), key=lambda start: tokens[start:])
    length, start = 0, 0
    for a, b in pairwise(suffixes):
        common = _common_prefix(tokens[a:], tokens[b:])
        if common > length or (common == length and common and min(a, b) < start):
            length, start = common, min(a, b)
    token, count = Counter(tokens).most_common(1)[0]
    return Repetition(length, start, token, count / len(tokens))


def _common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count
