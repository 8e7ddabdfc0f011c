"""How many bytes a record takes as a line, at least and at most, before its numbers and its tokens are known."""

from typing import Any, NamedTuple

import numpy as np

from mlmglauber.models.conditionals import TextModel
from mlmglauber.stream.records import Record, to_line

DIGITS = {"float64": (3, 24), "float32": (3, 15)}
"""Bytes of a number, at least ("0.0") and at most ("-2.2250738585072014e-308"); null lies between them."""
LONGEST = 64
"""Number of pieces of the vocabulary, the longest ones, among which the longest text is looked for."""


class Size(NamedTuple):
    """Bytes, at least and at most."""

    least: int
    most: int

    def __add__(self, other: Any) -> "Size":
        """The size of two values together."""
        return Size(self.least + other[0], self.most + other[1])

    def times(self, least: int, most: int) -> "Size":
        """The size of so many lines, at least and at most."""
        return Size(least * self.least, most * self.most)


def line_size(record: Record) -> Size:
    """The size of the line of a record whose floats may have any value; all else has the value that it will have.

    >>> line_size({"delta": 0.5, "n": 12})
    Size(least=20, most=41)
    """
    return _value_size(record) + (1, 1)


def _value_size(value: Any) -> Size:
    if isinstance(value, float):
        return Size(*DIGITS["float64"])
    if isinstance(value, np.ndarray):
        least, most = DIGITS.get(value.dtype.name, DIGITS["float64"])
        brackets = 2 + max(0, len(value) - 1)
        return Size(least * len(value) + brackets, most * len(value) + brackets)
    if isinstance(value, dict):
        parts = [_value_size(part) + (len(to_line(key)), len(to_line(key))) for key, part in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = list(map(_value_size, value))
    else:
        size = len(to_line(value)) - 1
        return Size(size, size)
    return sum(parts, Size(0, 0)) + (2 + max(0, len(parts) - 1),) * 2


class StateSizes:
    """The sizes of states of a model, whose tokens may be any that it draws."""

    def __init__(self, model: TextModel) -> None:
        allowed = np.flatnonzero(model.allowed).tolist()
        pieces = model.pieces(allowed)
        longest = sorted(range(len(allowed)), key=lambda k: -len(pieces[k].encode()))[:LONGEST]
        self.model = model
        self.token: int = max((allowed[k] for k in longest),
                              key=lambda token: len(to_line([model.decode([token, token]), token])))
        """The drawn token that takes most bytes."""
        self.widest_id: int = max(allowed)

    def of(self, shortest: Record, longest: Record, start: list[int]) -> Size:
        """The size of a state of the chain from `start`, in place of whose text and ids those of other states may stand.

        shortest, longest: the record with the fewest and with the most fields. Tokens of the start that are not drawn
        may stay in a state.
        """
        n = len(start)
        least = line_size(shortest | {"text": "", "ids": [0] * n}).least
        text = self.model.decode([self.token] * n) + " " * n
        most = line_size(longest | {"text": text, "ids": [self.widest_id] * n, "text_exact": False}).most
        kept = [token for token in start if not self.model.allowed[token]]
        return Size(least, most + len(to_line([self.model.decode(kept), kept])) if kept else most)
