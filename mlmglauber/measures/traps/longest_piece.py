"""The longest part of a range of steps that other ranges leave free."""

from collections.abc import Sequence


def longest_piece(first: int, last: int, taken: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The longest piece of first ... last outside the taken ranges, as (first, last); of equal ones the earliest.

    (first, first - 1) where nothing is left.

    >>> longest_piece(0, 9, [(3, 4), (8, 20)])
    (0, 2)
    """
    best, begin = (first, first - 1), first
    for low, high in [*sorted(taken), (last + 1, last + 1)]:
        end = min(low - 1, last)
        if end - begin > best[1] - best[0]:
            best = (begin, end)
        begin = max(begin, high + 1)
    return best
