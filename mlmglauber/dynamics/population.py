"""What an engine moves, as arrays with a row each: plans, and the stay intervals of the present states.

A stay interval belongs to a site of a state: the uniforms with which a draw at the site leaves its token as it is. The
interval of a site whose conditional is not known is empty. With arrays a step of a thousand chains is a few numpy
operations.
"""

import weakref
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.chain import Chain
from mlmglauber.dynamics.temperatures import NEVER
from mlmglauber.models.conditionals import FILL, Ids

WINDOW = 256
"""Number of steps whose sites and uniforms are drawn at once."""

Column = tuple[tuple[str, ...], type, Any]
"""What an array holds for a member: (sizes of its axes, type of number, value where the row is not used)."""


class MarkovChain(Protocol):
    """What an engine moves: a chain, or a group of coupled chains, which is one chain on the product of their states.

    step: number of steps made. horizon: the step at which it stops for now. broken: the site of a conditional that was
    not finite, None as long as there is none.
    """

    step: int
    horizon: int
    broken: int | None

    @property
    def sites(self) -> int:
        """Number of sites n of a state."""
        ...

    def next_due(self, after: int) -> int:
        """The first step behind `after` whose state is emitted even when nothing changes."""
        ...

    def plan(self, start: int, count: int) -> tuple[Ids, NDArray[np.float64]]:
        """The sites (count,) and uniforms (count, words) of steps start ... start + count - 1."""
        ...


Member = TypeVar("Member", bound=MarkovChain)


class StayIntervals(NamedTuple):
    """Of the n sites of one state: which are known, the uniforms that keep the token, its log-probability in nats.

    known: (n,). low, high: (n, words), low <= u < high for each of the uniforms of a step. logp: (n,).
    """

    known: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    logp: NDArray[np.float64]


class Population(Generic[Member]):
    """Arrays with a row for each member; a row is used again when its member is gone.

    words: number of uniforms of a step.
    """

    COLUMNS: ClassVar[dict[str, Column]] = {
        "known": (("width",), bool, False), "logp": (("width",), np.float64, 0.0),
        "low": (("width", "words"), np.float64, np.inf), "high": (("width", "words"), np.float64, -np.inf),
        "sites": (("window",), np.int64, 0), "uniforms": (("window", "words"), np.float64, 0.0),
        "start": ((), np.int64, -WINDOW), "length": ((), np.int64, 0), "step": ((), np.int64, 0),
        "horizon": ((), np.int64, 0), "next_due": ((), np.int64, 0), "rate": ((), np.float64, 0.5),
        "deferred": ((), bool, False), "turn": ((), np.int64, NEVER),
    }
    """The arrays by name; `width` is the maximum number of sites of a member."""

    def __init__(self, words: int) -> None:
        self.words, self.width = words, 0
        self.members: list[weakref.ref[Member] | None] = []
        self._rows: dict[int, int] = {}
        self._free: list[int] = []
        self._allocate(0, 0)

    known: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    logp: NDArray[np.float64]
    """(C, n) log p_tau of the tokens at known sites; 0 for groups, which have no use for it."""
    sites: Ids
    """(C, WINDOW) planned sites of the steps from `start` on."""
    uniforms: NDArray[np.float64]
    """(C, WINDOW, words) the uniforms of these steps."""
    start: Ids
    length: Ids
    step: Ids
    horizon: Ids
    next_due: Ids
    """The next step whose state is emitted even when nothing changes."""
    rate: NDArray[np.float64]
    """The recent rate of change: a mean over about 32 steps."""
    deferred: NDArray[np.bool_]
    """Whether the member waits for a draw in a better precision."""
    turn: Ids
    """The number of steps after which the member has another temperature."""
    scheduled = False
    """Whether the temperature of a member may change."""

    def _allocate(self, count: int, width: int) -> None:
        """Make room for `count` members of `width` sites; rows that are in use keep their values."""
        used = len(self.members)
        sizes = {"width": width, "window": WINDOW, "words": self.words}
        for name, (axes, kind, fill) in self.COLUMNS.items():
            array: NDArray[Any] = np.full((count, *(sizes[axis] for axis in axes)), fill, dtype=kind)
            if used:
                old = getattr(self, name)
                array[tuple(slice(size) for size in old.shape)] = old
            setattr(self, name, array)
        self._free += range(used, count)
        self.members += [None] * (count - used)
        self.width = width

    def rows_of(self, members: Sequence[Member]) -> Ids:
        """(C,) the rows of members; a member that comes for the first time gets one."""
        rows = self._rows
        try:
            return np.array([rows[id(member)] for member in members], dtype=np.int64)
        except KeyError:
            for member in members:
                if id(member) not in rows:
                    self._adopt(member)
            return np.array([rows[id(member)] for member in members], dtype=np.int64)

    def _adopt(self, member: Member) -> int:
        """Give a member a row."""
        n = member.sites
        if not self._free or n > self.width:
            count = max(64, len(self.members) if self._free else 2 * len(self.members))
            self._allocate(count, max(n, self.width))
        row = self._free.pop()
        key = id(member)
        self._rows[key] = row
        self.forget_stay_intervals(row)
        self.start[row], self.length[row], self.step[row] = -WINDOW, n, member.step
        self.next_due[row], self.rate[row], self.deferred[row] = member.next_due(member.step), 0.5, False
        self.turn[row] = NEVER

        def forget(_: object) -> None:
            del self._rows[key]
            self.members[row] = None
            self._free.append(row)

        self.members[row] = weakref.ref(member, forget)
        return row

    def member(self, row: int) -> Member:
        """The member of a row that is in use."""
        reference = self.members[row]
        member = reference() if reference is not None else None
        assert member is not None
        return member

    def planned(self, rows: Ids) -> Ids:
        """(R,) the place of each member's step in its window; windows that are used up are drawn anew."""
        places = self.step[rows] - self.start[rows]
        for k in np.flatnonzero((places < 0) | (places >= WINDOW)).tolist():
            row = int(rows[k])
            self.start[row] = self.step[row]
            self.sites[row], self.uniforms[row] = self.member(row).plan(int(self.step[row]), WINDOW)
            places[k] = 0
        return places

    def stay_intervals(self, row: int) -> StayIntervals:
        """What is known of a member's present state, as a copy."""
        n = self.length[row]
        columns: list[Any] = [array[row, :n].copy() for array in (self.known, self.low, self.high, self.logp)]
        return StayIntervals(*columns)

    def forget_stay_intervals(self, rows: Ids | int) -> None:
        """Mark all sites of the present states as not known."""
        self.known[rows], self.low[rows], self.high[rows] = False, np.inf, -np.inf

    def set_stay_intervals(self, row: int, known: StayIntervals) -> None:
        """Take over what is known of the state that a member has come to."""
        n = self.length[row]
        self.known[row, :n], self.low[row, :n], self.high[row, :n], self.logp[row, :n] = known


class ChainPopulation(Population[Chain]):
    """A population of single chains: also their states, as one array, and their temperatures and output schedules.

    The `ids` of a chain that has a row is a view of that row: a change of one is a change of the other.
    """

    COLUMNS: ClassVar[dict[str, Column]] = Population.COLUMNS | {
        "ids": (("width",), np.int64, FILL), "tau": ((), np.float64, 0.0), "burn_in": ((), np.int64, 0),
        "on_change": ((), bool, False)}
    ids: Ids
    """(C, n) states, shorter ones filled up with FILL."""
    tau: NDArray[np.float64]
    burn_in: Ids
    on_change: NDArray[np.bool_]
    """Whether each state that differs from the one before is emitted."""
    restricted = False
    """Whether a chain may draw only some tokens at some sites."""

    def __init__(self) -> None:
        super().__init__(words=2)

    def _allocate(self, count: int, width: int) -> None:
        super()._allocate(count, width)
        for row, reference in enumerate(self.members):
            chain = reference() if reference is not None else None
            if chain is not None:
                chain.ids = self.ids[row, : self.length[row]]

    def _adopt(self, member: Chain) -> int:
        row = super()._adopt(member)
        self.ids[row] = FILL
        self.ids[row, : member.sites] = member.ids
        member.ids = self.ids[row, : member.sites]
        self.burn_in[row], self.on_change[row] = member.schedule.burn_in, member.schedule.every == 0
        self.set_temperature(row, member)
        self.scheduled = self.scheduled or not member.temperatures.is_constant
        self.restricted = self.restricted or bool(member.choices)
        return row

    def only(self, row: int, site: int) -> Ids | None:
        """The tokens that a chain may draw at a site, None for all."""
        return self.member(row).choices.get(site) if self.restricted else None

    def set_temperature(self, row: int, chain: Chain) -> None:
        """Set the temperature of a chain's next step, and the step after which it changes."""
        step = int(self.step[row]) + 1
        self.tau[row], self.turn[row] = chain.temperatures.at(step), chain.temperatures.until(step)

    def tau_at(self, row: int, step: int) -> float:
        """The temperature of the step behind the first `step` ones of a chain, not before its present one."""
        return float(self.tau[row]) if step < self.turn[row] else self.member(row).temperatures.at(step + 1)
