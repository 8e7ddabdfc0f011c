"""The crossing temperature: above it sampled influences no longer refute alpha < 1.

Conditionals are computed once and kept, so alpha at another temperature needs no forward pass. Temperatures are on a
ladder tau_k = 2^(k / 128), which the searches for the three alphas share.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mlmglauber.measures.influence.matrix import Matrix, alphas, oscillation_bound, total_variations
from mlmglauber.models.conditionals import Floats, Ids

OCTAVE = 128
"""Number of steps of the ladder for a doubling of tau; one step is 0.54 %."""
LOWEST, HIGHEST = -4 * OCTAVE, 8 * OCTAVE
"""Ends of the ladder: tau = 1/16 and 256."""
MOST = 1 + (HIGHEST - LOWEST) // OCTAVE + 3 * (OCTAVE.bit_length() - 1)
"""Maximum number of temperatures at which influences are computed: every octave, and a bisection for each alpha."""
GRID = OCTAVE // 2
"""Number of steps between temperatures (half an octave) where there is no memory for the conditionals."""


class Room:
    """Bytes of memory left for conditionals, shared by all lengths."""

    def __init__(self, size: int) -> None:
        self.left = size

    def claim(self, size: int) -> bool:
        """Take `size` bytes; False, and nothing is taken, where fewer are left."""
        if size > self.left:
            return False
        self.left -= size
        return True


class Bracket(NamedTuple):
    """alpha >= 1 at `low`, and < 1 at `high` and at the octaves above it; None with a reason for an end not found."""

    low: float | None
    high: float | None
    reason: str | None


def ladder(k: int) -> float:
    """tau_k = 2^(k / 128)."""
    return float(2.0 ** (k / OCTAVE))


class Crossing:
    """The entrywise largest influences over contexts of n free sites, as a function of tau.

    Conditionals are kept while there is memory; afterwards only matrices at half octaves are. advance: called with 1
    for each temperature at which the matrix is computed.
    """

    def __init__(self, n: int, room: Room) -> None:
        self.n, self.room = n, room
        self.advance: Callable[[float], None] = lambda amount: None
        self.blocks: list[tuple[Floats, Ids, Ids, Floats]] = []
        self.matrices: dict[int, Matrix] = {}
        self.coarse = False
        self.oscillations = np.zeros((n, n))

    def take(self, base: Floats, i: Ids, j: Ids, rows: Floats) -> None:
        """Add rows (B, V) at places i of states changed at places j; base: (n, V) rows of the state itself."""
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
        """Add the (n, n) D_ij of a context; where they prove alpha < 1, influences need not be computed."""
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
        """One of the three alphas at a temperature, or an upper bound of it that is below 1."""
        if k not in self.matrices:
            bound = alphas(oscillation_bound(self.oscillations, ladder(k)))[size]
            if bound < 1:
                return bound
        return alphas(self._matrix(k))[size]

    def bracket(self, size: int) -> Bracket:
        """Where an alpha (size: 0 by rows, 1 by columns, 2 the spectral radius) falls below 1 as tau rises.

        The search goes down from tau = 256, octave by octave, to the first alpha >= 1, then by bisection. alpha need
        not be monotone in tau: two crossings within one octave are not found.
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
    """Raise the entries of a matrix to the influences of some rows, which are ordered by site."""
    for place in np.unique(i).tolist():
        here = slice(*np.searchsorted(i, [place, place + 1]))
        np.maximum.at(matrix[place], j[here], total_variations(base[place], rows[here], [tau])[0])
