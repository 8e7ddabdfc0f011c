"""The chains of an engine as arrays, a row each: states, plans, and the stay intervals of the present states.

A stay interval is what is known of one site of a state: the uniforms with which a draw leaves its token as it is. A
site that is not known has an empty one. With arrays, a step of a thousand chains is a few operations, not a loop.
"""

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.chain import Chain
from mlmglauber.models.conditionals import FILL, Ids

WINDOW = 256
"""Number of steps of a chain whose sites and uniforms are drawn at once."""


class StayIntervals(NamedTuple):
    """Of the n sites of one state: which are known, the uniforms that keep the token, its log-probability in nats."""

    known: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    logp: NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self)


class Population:
    """Arrays with a row for each chain; rows are used again when their chains are done."""

    def __init__(self) -> None:
        self.width = 0
        self.chains: list[weakref.ref[Chain] | None] = []
        self._rows: dict[int, int] = {}
        self._free: list[int] = []
        self._allocate(0, 0)

    def _allocate(self, count: int, width: int) -> None:
        """Room for so many chains of so many sites; what is there stays."""
        before = len(self.chains), self.width
        shapes = {
            "ids": ((count, width), np.int64, FILL), "known": ((count, width), bool, False),
            "low": ((count, width, 2), np.float64, np.inf), "high": ((count, width, 2), np.float64, -np.inf),
            "logp": ((count, width), np.float64, 0.0), "sites": ((count, WINDOW), np.int64, 0),
            "uniforms": ((count, WINDOW, 2), np.float64, 0.0), "start": ((count,), np.int64, -WINDOW),
            "length": ((count,), np.int64, 0), "tau": ((count,), np.float64, 0.0), "step": ((count,), np.int64, 0),
            "horizon": ((count,), np.int64, 0), "next_due": ((count,), np.int64, 0),
            "burn_in": ((count,), np.int64, 0), "on_change": ((count,), bool, False),
            "rate": ((count,), np.float64, 0.5), "held": ((count,), bool, False),
        }
        for name, (shape, kind, fill) in shapes.items():
            array = np.full(shape, fill, dtype=kind)
            if before[0]:
                old = getattr(self, name)
                array[tuple(slice(size) for size in old.shape)] = old
            setattr(self, name, array)
        self._free += range(len(self.chains), count)
        self.chains += [None] * (count - len(self.chains))
        self.width = width
        for row, reference in enumerate(self.chains):
            chain = reference() if reference is not None else None
            if chain is not None:
                chain.ids = self.ids[row, : self.length[row]]

    ids: Ids
    """(C, n) states, shorter ones filled up with FILL."""
    known: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    logp: NDArray[np.float64]
    sites: Ids
    """(C, WINDOW) planned sites of the steps from `start` on."""
    uniforms: NDArray[np.float64]
    """(C, WINDOW, 2) their uniforms."""
    start: Ids
    length: Ids
    tau: NDArray[np.float64]
    step: Ids
    horizon: Ids
    next_due: Ids
    """The next step whose state is wanted even when nothing changes."""
    burn_in: Ids
    on_change: NDArray[np.bool_]
    """Whether each state that differs from the one before is wanted."""
    rate: NDArray[np.float64]
    """The recent rate of change: a mean over about 32 steps."""
    held: NDArray[np.bool_]
    """Whether the chain waits for a draw in a better precision."""

    def rows_of(self, chains: Sequence[Chain]) -> Ids:
        """(C,) the rows of chains; those that come for the first time get one."""
        rows = self._rows
        try:
            return np.array([rows[id(chain)] for chain in chains], dtype=np.int64)
        except KeyError:
            for chain in chains:
                if id(chain) not in rows:
                    self._adopt(chain)
            return np.array([rows[id(chain)] for chain in chains], dtype=np.int64)

    def _adopt(self, chain: Chain) -> None:
        n = len(chain.ids)
        if not self._free or n > self.width:
            count = max(64, len(self.chains) if self._free else 2 * len(self.chains))
            self._allocate(count, max(n, self.width))
        row = self._free.pop()
        key = id(chain)
        self._rows[key] = row
        self.ids[row], self.known[row], self.low[row], self.high[row] = FILL, False, np.inf, -np.inf
        self.ids[row, :n] = chain.ids
        chain.ids = self.ids[row, :n]
        schedule = chain.schedule
        self.start[row], self.length[row], self.tau[row], self.step[row] = -WINDOW, n, chain.tau, chain.step
        self.next_due[row], self.burn_in[row] = schedule.next_due(chain.step), schedule.burn_in
        self.on_change[row], self.rate[row], self.held[row] = schedule.every == 0, 0.5, False

        def forget(_: object) -> None:
            del self._rows[key]
            self.chains[row] = None
            self._free.append(row)

        self.chains[row] = weakref.ref(chain, forget)

    def chain(self, row: int) -> Chain | None:
        """The chain of a row, None when it is gone."""
        reference = self.chains[row]
        return reference() if reference is not None else None

    def planned(self, rows: Ids) -> Ids:
        """(R,) how far into its window each chain is; windows that are used up are drawn anew."""
        places = self.step[rows] - self.start[rows]
        for k in np.flatnonzero((places < 0) | (places >= WINDOW)).tolist():
            row = int(rows[k])
            chain = self.chain(row)
            assert chain is not None
            self.start[row] = self.step[row]
            self.sites[row], self.uniforms[row] = chain.plan(int(self.step[row]), WINDOW)
            places[k] = 0
        return places

    def stay_intervals(self, row: int) -> StayIntervals:
        """What is known of a chain's present state, as a copy."""
        n = self.length[row]
        columns: list[Any] = [array[row, :n].copy() for array in (self.known, self.low, self.high, self.logp)]
        return StayIntervals(*columns)

    def forget_stay_intervals(self, rows: Ids) -> None:
        """Nothing is known of the states that these chains have come to."""
        self.known[rows], self.low[rows], self.high[rows] = False, np.inf, -np.inf

    def set_stay_intervals(self, row: int, found: StayIntervals) -> None:
        """A chain has come to a state of which something is known."""
        n = self.length[row]
        self.known[row, :n], self.low[row, :n], self.high[row, :n], self.logp[row, :n] = found
