"""The temperature above which sampled influences no longer refute alpha < 1, from conditionals that are kept.

Logits are computed once and tempered, so alpha at another temperature costs no forward pass. Temperatures are looked at
on a ladder tau_k = 2^(k / 128), so that the searches for the three alphas share them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mlmglauber.measures.influence.matrix import Matrix, alphas, oscillation_bound, total_variations
from mlmglauber.models.conditionals import Floats, Ids

OCTAVE = 128
"""Steps of the ladder to a doubling of tau: a bracket is 0.54 % wide."""
LOWEST, HIGHEST = -4 * OCTAVE, 8 * OCTAVE
"""From tau = 1/16 to 256."""
GRID = OCTAVE // 2
"""Half octaves, when rows cannot be kept."""


class Room:
    """Bytes that kept rows may take, shared by all lengths."""

    def __init__(self, size: int) -> None:
        self.left = size

    def claim(self, size: int) -> bool:
        """Take so much, if it is there."""
        if size > self.left:
            return False
        self.left -= size
        return True


class Bracket(NamedTuple):
    """alpha >= 1 at `low`, < 1 at `high` and at the octaves seen above it; None, and a reason, for an end not seen."""

    low: float | None
    high: float | None
    reason: str | None


def ladder(k: int) -> float:
    """tau_k = 2^(k / 128)."""
    return float(2.0 ** (k / OCTAVE))


class Crossing:
    """The entrywise largest influences of contexts of one length, as a function of tau.

    Rows are kept while there is room; from then on only matrices on a grid of half octaves. advance: is told of each
    temperature that was looked at.
    """

    def __init__(self, n: int, room: Room) -> None:
        self.n, self.room = n, room
        self.advance: Callable[[float], None] = lambda amount: None
        self.blocks: list[tuple[Floats, Ids, Ids, Floats]] = []
        self.matrices: dict[int, Matrix] = {}
        self.coarse = False
        self.oscillations = np.zeros((n, n))

    def take(self, base: Floats, i: Ids, j: Ids, rows: Floats) -> None:
        """Rows (B, V) at places i of states changed at places j, and the rows (n, V) of the state itself."""
        if not self.coarse and self.room.claim(base.nbytes + rows.nbytes):
            self.blocks.append((base, i, j, rows))
            return
        if not self.coarse:
            self.coarse = True
            self.matrices = {k: self._matrix(k) for k in range(LOWEST, HIGHEST + 1, GRID)}
            self.room.left += sum(block[0].nbytes + block[3].nbytes for block in self.blocks)
            self.blocks.clear()
        for k, matrix in self.matrices.items():
            _update(matrix, ladder(k), base, i, j, rows)

    def move(self, oscillations: Matrix) -> None:
        """(n, n) the D_ij of one more context: they spare the temperatures at which they prove alpha < 1."""
        self.oscillations = np.maximum(self.oscillations, oscillations)

    def _matrix(self, k: int) -> Matrix:
        if k not in self.matrices:
            matrix = np.zeros((self.n, self.n))
            for block in self.blocks:
                _update(matrix, ladder(k), *block)
            self.matrices[k] = matrix
            self.advance(1)
        return self.matrices[k]

    def _alpha(self, size: int, k: int) -> float:
        """One of the three alphas at a temperature, or a bound of it that is below 1."""
        if k not in self.matrices:
            bound = alphas(oscillation_bound(self.oscillations, ladder(k)))[size]
            if bound < 1:
                return bound
        return alphas(self._matrix(k))[size]

    def bracket(self, size: int) -> Bracket:
        """Where an alpha (0 by rows, 1 by columns, 2 the spectral radius) comes down to 1 for good.

        From tau = 256 down, octave by octave, to the first one with alpha >= 1; then by bisection. A crossing that
        returns within one octave is not seen: alpha need not be monotone in tau.
        """
        step = GRID if self.coarse else OCTAVE
        high = HIGHEST
        if self._alpha(size, high) >= 1:
            return Bracket(ladder(high), None, f"high: alpha is 1 or above up to tau {ladder(high):g}")
        while high > LOWEST and self._alpha(size, high - step) < 1:
            high -= step
        if high == LOWEST:
            return Bracket(None, ladder(high), f"low: alpha is below 1 down to tau {ladder(high):g}")
        low = high - step
        if self.coarse:
            return Bracket(ladder(low), ladder(high), "a grid of half octaves: the conditionals took more memory than "
                           "--keep-mb")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._alpha(size, middle) >= 1 else (low, middle)
        return Bracket(ladder(low), ladder(high), None)


def _update(matrix: Matrix, tau: float, base: Floats, i: Ids, j: Ids, rows: Floats) -> None:
    """Raise the entries of a matrix to the influences of some rows, which stand site by site."""
    for place in np.unique(i).tolist():
        here = slice(*np.searchsorted(i, [place, place + 1]))
        np.maximum.at(matrix[place], j[here], total_variations(base[place], rows[here], [tau])[0])
