"""Stripes, the layer of the space-time picture: one for each site, with marks, words and brackets."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

MARK, TRAP = "a token changed", "trap"
"""The legend of the marks and of the brackets."""
RIGHT = "its last token"
"""The label of the words at the right."""


class Word(NamedTuple):
    """A word in the stripe of a site, from step `first` until step `last`; drawn where it has room."""

    first: float
    last: float
    site: int
    word: str


class TrapBracket(NamedTuple):
    """A bracket above the stripes; lane: 0 is the lowest; open: whether it goes on after the last step.

    forms: of its label, the longest first.
    """

    first: float
    last: float
    lane: int
    forms: Sequence[str]
    open: bool = False


class StandingTokens(NamedTuple):
    """What stands at the end of each cell of stripes, for a page: the index (n, C) of its word, the step (n, C) since
    which it stands, and the log-probability (n, C) with which it was drawn, NaN where it was not."""

    tokens: NDArray[np.int64]
    words: Sequence[str]
    since: NDArray[np.int64]
    logps: Values


class Stripes(NamedTuple):
    """A stripe for each site, site 0 at the top: values (n, C) as colours of cells between edges (C + 1,).

    changed: (n, C) the cells with a mark. unit, bounds, log: of the colours. missing: legend of
    the cells of NaN. right: labels of the sites at the right.
    """

    edges: Values
    values: Values
    changed: NDArray[np.bool_]
    unit: str
    bounds: tuple[float, float]
    log: bool
    missing: str = ""
    words: Sequence[Word] = ()
    right: Sequence[str] = ()
    brackets: Sequence[TrapBracket] = ()
    standing: StandingTokens | None = None

    def labels(self) -> list[str]:
        """The labels of the legend."""
        return [MARK] + [TRAP] * bool(self.brackets) + [self.missing] * bool(self.missing)

    @property
    def lane(self) -> float:
        """Height of a bracket, in stripes."""
        return max(1.2, len(self.values) / 12)
