"""The temperature of each step of a chain: one temperature, or a schedule of several (simulated annealing).

A schedule is a list of pieces. A piece has one temperature, or a linear ramp from one temperature to another, and a
number of steps; the last piece may go on to the end of the chain.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

NEVER = 1 << 62
"""A step that no chain comes to."""

FORM = "TAU, TAU@STEPS or TAU>TAU@STEPS"


class SchedulePiece(NamedTuple):
    """Some consecutive steps of a schedule.

    first, last: temperatures of its first and its last step. steps: number of its steps, None to the end of the chain.
    """

    first: float
    last: float
    steps: int | None

    @property
    def tau(self) -> float | None:
        """The temperature of all its steps; None for a ramp."""
        return self.first if self.first == self.last else None

    def __str__(self) -> str:
        ramp = [self.first, self.last] if self.last != self.first else [self.first]
        tau = ">".join(repr(tau).removesuffix(".0") for tau in ramp)
        return tau if self.steps is None else f"{tau}@{self.steps}"


class Temperatures:
    """The temperatures of the steps of a chain.

    Step k is the update that makes the state of step k, so the first one is step 1. In a ramp of N steps from a to b
    the j-th step has the temperature (a (N - j) + b (j - 1)) / (N - 1), which is a at the first one and b at the last.
    After the last piece its last temperature stays.

    >>> schedule = Temperatures.parse("2>1@3,0.5@2,0.3")
    >>> [schedule.at(step) for step in range(1, 8)], str(schedule)
    ([2.0, 1.5, 1.0, 0.5, 0.5, 0.3, 0.3], '2>1@3,0.5@2,0.3')
    """

    def __init__(self, pieces: Sequence[SchedulePiece]) -> None:
        self.pieces = pieces
        self._starts = [1]  # the first step of each piece
        for piece in pieces[:-1]:
            assert piece.steps is not None
            self._starts.append(self._starts[-1] + piece.steps)

    @classmethod
    def constant(cls, tau: float) -> "Temperatures":
        """One temperature for all steps."""
        return cls([SchedulePiece(float(tau), float(tau), None)])

    @classmethod
    def parse(cls, text: str) -> "Temperatures":
        """The schedule that a text names, such as "2@500,1@500,0.3" or "2>0.3@2000,0.3".

        ValueError for a piece of another form, for a piece without a number of steps before the last one, and for a
        ramp of fewer than two steps.
        """
        parts = [part.strip() for part in text.split(",")]
        pieces = [_piece(part) for part in parts]
        for part, piece in zip(parts[:-1], pieces[:-1], strict=True):
            if piece.steps is None:
                raise ValueError(f"{part!r} has no number of steps, which only the last piece may leave out; write "
                                 f"{part}@STEPS")
        return cls(pieces)

    def __str__(self) -> str:
        return ",".join(map(str, self.pieces))

    @property
    def is_constant(self) -> bool:
        """Whether all steps have one temperature."""
        return len(self.pieces) == 1 and self.pieces[0].first == self.pieces[0].last

    @property
    def steps(self) -> int:
        """Number of steps of the pieces that have one."""
        return sum(piece.steps or 0 for piece in self.pieces)

    def length(self, n: int, sweeps: int) -> int:
        """Number of steps of all pieces; a last one without a number of steps has so many sweeps of n steps."""
        return self.steps + (sweeps * n if self.pieces[-1].steps is None else 0)

    def ends(self) -> list[float]:
        """The temperatures at which pieces begin and end, each once."""
        return list(dict.fromkeys(tau for piece in self.pieces for tau in (piece.first, piece.last)))

    def piece_of(self, step: int) -> int:
        """The number, from 0 on, of the piece of a step; the start of a chain, step 0, belongs to the first one."""
        return max(bisect_right(self._starts, step) - 1, 0)

    def start_of(self, piece: int) -> int:
        """The step before the first one of a piece: the number of steps that were made when it begins."""
        return self._starts[piece] - 1

    def at(self, step: int) -> float:
        """The temperature of a step, from 1 on; that of the first one for the start, step 0."""
        number = self.piece_of(step)
        piece = self.pieces[number]
        if piece.steps is None or piece.first == piece.last:
            return piece.last
        place = min(max(step - self._starts[number], 0), piece.steps - 1)
        left = piece.steps - 1 - place
        if not place or not left:  # free of rounding
            return piece.last if place else piece.first
        return (piece.first * left + piece.last * place) / (piece.steps - 1)

    def until(self, step: int) -> int:
        """The last step, from `step` on, up to which the temperature does not change; NEVER where it never does."""
        tau = self.at(step)
        for number in range(self.piece_of(step), len(self.pieces)):
            piece, start = self.pieces[number], self._starts[number]
            if number > self.piece_of(step) and piece.first != tau:
                return start - 1
            if piece.first != piece.last:
                assert piece.steps is not None
                end = start + piece.steps - 1
                if step < end:
                    return max(step, start)
        return NEVER


def _piece(text: str) -> SchedulePiece:
    """The piece that a text such as 2, 2@500 or 2>0.3@2000 names."""
    match = re.fullmatch(r"([^>@]+)(?:>([^>@]+))?(?:@([0-9]{1,12}))?", text)
    if match is None:
        raise ValueError(f"{text!r} is not a piece of a schedule; give {FORM}, as in 2@500,1@500,0.3")
    first = _temperature(match[1])
    last = first if match[2] is None else _temperature(match[2])
    steps = None if match[3] is None else int(match[3])
    if steps == 0:
        raise ValueError(f"{text!r} has no step; leave it out")
    if first != last and (steps is None or steps < 2):
        raise ValueError(f"{text!r} is a ramp, which needs a number of steps, 2 or more; write "
                         f"{text.partition('@')[0]}@STEPS")
    return SchedulePiece(first, last, steps)


def _temperature(text: str) -> float:
    try:
        tau = float(text) if "_" not in text else None
    except ValueError:
        tau = None
    if tau is None or not isfinite(tau) or tau < 0:
        raise ValueError(f"{text!r} is not a temperature; give a finite number, 0 or above")
    return tau + 0.0  # -0 is 0
