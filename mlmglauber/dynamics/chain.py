"""One chain: where it starts, which of its states are wanted, and the random numbers of its steps."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.glauber import scan_sites
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.models.conditionals import Ids


class Move(NamedTuple):
    """One update of one chain: the site, the tokens before and after, their log-probabilities in nats."""

    site: int
    old: int
    new: int
    logp_old: float
    logp_new: float


class Event(NamedTuple):
    """A state that is wanted: the step, the state, and the update that made it (None at the start)."""

    step: int
    ids: Ids
    move: Move | None


class OutputSchedule(NamedTuple):
    """Which states of a chain are wanted, and where it ends.

    From step burn_in on: that one, every `every`-th after it or, with every = 0, each one that differs from the one
    before; each multiple of `energy`; and the last.
    """

    last: int
    every: int = 1
    burn_in: int = 0
    energy: int = 0

    def due(self, step: int, changed: bool) -> bool:
        """Whether the state after a step is wanted."""
        if step < self.burn_in:
            return False
        if step in (self.burn_in, self.last) or (self.energy and step % self.energy == 0):
            return True
        return (step - self.burn_in) % self.every == 0 if self.every else changed

    def next_due(self, after: int) -> int:
        """The first step behind `after` that is wanted even when nothing changes; last + 1 when there is none.

        >>> OutputSchedule(100, every=10, burn_in=5).next_due(16)
        25
        """
        low = max(after + 1, self.burn_in)
        steps = [step for step in (self.burn_in, self.last) if step > after]
        if self.every:
            steps.append(low + (self.burn_in - low) % self.every)
        if self.energy:
            steps.append(low + -low % self.energy)
        return min(steps, default=self.last + 1)


class Chain:
    """One chain: its state, its place in time, its streams, and the events that nobody has taken yet.

    step, horizon: how many updates it has made, and how many it may make for now. broken: the site whose conditional
    was not finite; such a chain cannot go on.
    """

    def __init__(self, ids: Sequence[int], *, tau: float, seed: int, record: str, number: int,
                 schedule: OutputSchedule, scan: str = "random", frozen: Sequence[int] = (), step: int = 0) -> None:
        self.ids = np.array(ids, dtype=np.int64)
        self.tau, self.scan, self.step, self.number, self.schedule = tau, scan, step, number, schedule
        self.free = np.setdiff1d(np.arange(len(self.ids)), np.asarray(frozen, dtype=np.int64))
        self.horizon = schedule.last
        self.broken: int | None = None
        self.events: deque[Event] = deque()
        self._site, self._block, self._token = (Stream(seed, record, number, purpose)
                                                for purpose in ("site", "block", "token"))

    def plan(self, start: int, count: int) -> tuple[Ids, NDArray[np.float64]]:
        """The sites (count,) and uniforms (count, 2) of steps start ... start + count - 1: block, then token."""
        sites = scan_sites(self.scan, self._site, start, count, self.free)
        return sites, np.stack([self._block.uniforms(start, count), self._token.uniforms(start, count)], axis=1)


def in_step_order(chains: Iterable[Chain]) -> Iterator[tuple[int, Event]]:
    """(place of the chain, event) of all events up to where the slowest chain is, by step and then by chain."""
    chains = list(chains)
    if not any(chain.events for chain in chains):
        return
    frontier = min(chain.step for chain in chains)
    ready = []
    for k, chain in enumerate(chains):
        while chain.events and chain.events[0].step <= frontier:
            event = chain.events.popleft()
            ready.append((event.step, k, event))
    ready.sort(key=lambda item: item[:2])
    yield from ((k, event) for _, k, event in ready)
