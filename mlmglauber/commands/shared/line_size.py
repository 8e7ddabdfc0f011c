"""How many bytes a record takes as a line, at least and at most, before its numbers and its tokens are known."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlmglauber.models.conditionals import TextModel
from mlmglauber.stream.records import Record, to_line

DIGITS = {"float64": (3, 24), "float32": (3, 15)}
"""Bytes of a number, at least ("0.0") and at most ("-2.2250738585072014e-308"); null lies between them."""
LONGEST = 64
"""Number of pieces of the vocabulary, the longest ones, among which the longest text is looked for."""


@dataclass(frozen=True)
class Size:
    """Bytes, at least and at most."""

    least: int
    most: int

    def __add__(self, other: "Size") -> "Size":
        """The size of both together."""
        return Size(self.least + other.least, self.most + other.most)

    def times(self, least: int, most: int) -> "Size":
        """The size of so many lines, at least and at most."""
        return Size(least * self.least, most * self.most)


NONE = Size(0, 0)


def line_size(record: Record) -> Size:
    """The size of the line of a record whose floats may have any value; all else has the value that it will have.

    >>> line_size({"delta": 0.5, "n": 12})
    Size(least=21, most=42)
    """
    return _value_size(record) + _exactly(1)


def _exactly(size: int) -> Size:
    return Size(size, size)


def _value_size(value: Any) -> Size:
    if isinstance(value, float):
        return Size(*DIGITS["float64"])
    if isinstance(value, np.ndarray):
        least, most = DIGITS[value.dtype.name]
        return Size(least * len(value), most * len(value)) + _around(len(value))
    if isinstance(value, dict):  # len(to_line(key)) counts a line feed, here for the colon
        return sum((_value_size(part) + _exactly(len(to_line(key))) for key, part in value.items()),
                   _around(len(value)))
    if isinstance(value, (list, tuple)):
        return sum(map(_value_size, value), _around(len(value)))
    return _exactly(len(to_line(value)) - 1)


def _around(count: int) -> Size:
    """The brackets around so many values, and the commas between them."""
    return _exactly(2 + max(0, count - 1))


class StateSizes:
    """The sizes of states of a model, whose tokens may be any that it draws."""

    def __init__(self, model: TextModel) -> None:
        allowed = np.flatnonzero(model.allowed).tolist()
        pieces = model.pieces(allowed)
        longest = sorted(range(len(allowed)), key=lambda k: -len(pieces[k].encode()))[:LONGEST]
        self.model = model
        self.token: int = max((allowed[k] for k in longest),
                              key=lambda token: len(to_line([model.decode([token, token]), token])))
        """The drawn token whose text and id take most bytes."""
        self.piece = max((pieces[k] for k in longest), key=lambda piece: len(to_line([piece])))
        self.widest_id: int = max(allowed)

    def of(self, shortest: Record, longest: Record, start: list[int]) -> Size:
        """The size of a state of the chain from `start`. Tokens of the start that are never drawn may stay in a state.

        shortest, longest: the records of a state with the fewest and the most fields, whatever their text and ids.
        """
        n = len(start)
        least = line_size(shortest | {"text": "", "ids": [0] * n}).least
        text = self.model.decode([self.token] * n) + " " * n
        most = line_size(longest | {"text": text, "ids": [self.widest_id] * n, "text_exact": False}).most
        kept = [token for token in start if not self.model.allowed[token]]
        return Size(least, most + (len(to_line([self.model.decode(kept), kept])) if kept else 0))
