"""Stripes, the layer of the space-time picture: one for each site, with marks, words and brackets."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

MARK = "a token changed"
"""The legend of the marks."""
RIGHT = "its last token"
"""The label of the words at the right."""


class Word(NamedTuple):
    """A word in the stripe of a site, from step `first` until step `last`; drawn where it has room."""

    first: float
    last: float
    site: int
    word: str


class Bracket(NamedTuple):
    """A bracket above the stripes; lane: 0 is the lowest; open: whether it goes on after the last step.

    short: shorter forms of the label.
    """

    first: float
    last: float
    lane: int
    label: str
    open: bool = False
    short: Sequence[str] = ()


class Stripes(NamedTuple):
    """A stripe for each site, site 0 at the top: values (n, C) as colours of cells between edges (C + 1,).

    changed: (n, C) the cells with a mark. unit, bounds, log: of the colours. right: labels of the sites at the right.
    """

    edges: Values
    values: Values
    changed: NDArray[np.bool_]
    unit: str
    bounds: tuple[float, float]
    log: bool
    words: Sequence[Word] = ()
    right: Sequence[str] = ()
    brackets: Sequence[Bracket] = ()

    @property
    def lane(self) -> float:
        """Height of a bracket, in stripes."""
        return max(1.2, len(self.values) / 12)
