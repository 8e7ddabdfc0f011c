"""One chain: its start, its output schedule, and the random numbers of its steps."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.randomness import Stream
from mlmglauber.dynamics.temperatures import Temperatures
from mlmglauber.models.conditionals import Ids

LEAD = 10_000
"""Maximum number of steps a chain may run ahead of its text's slowest chain; bounds the number of waiting states."""


Choices = Mapping[int, Ids]
"""For some sites the tokens, ascending, that may be drawn there."""
NO_CHOICES: Choices = {}


def choices_key(choices: Choices) -> tuple[Any, ...]:
    """What the conditionals of a chain depend on besides its states: nothing, without choices."""
    return tuple(part for site in sorted(choices) for part in (site, choices[site].tobytes()))


class Move(NamedTuple):
    """One update of one chain: the site, the tokens before and after, and log p_tau of both, in nats."""

    site: int
    old: int
    new: int
    logp_old: float
    logp_new: float


class Event(NamedTuple):
    """A state of the output: the step, the state, and the update that made it (None at the start)."""

    step: int
    ids: Ids
    move: Move | None


class OutputSchedule(NamedTuple):
    """The steps whose states a chain emits, and its last step.

    No state before step burn_in is emitted. From there on these are: the state of step burn_in; each `every`-th one
    after it or, with every = 0, each one that differs from the one before; the state of each step that is a multiple
    of `energy`; the last one.
    """

    last: int
    every: int = 1
    burn_in: int = 0
    energy: int = 0

    def due(self, step: int, changed: bool) -> bool:
        """Whether the state after `step` is emitted. changed: whether it differs from the state before."""
        if step < self.burn_in:
            return False
        if step in (self.burn_in, self.last) or (self.energy and step % self.energy == 0):
            return True
        return (step - self.burn_in) % self.every == 0 if self.every else changed

    def emitted(self) -> tuple[int, int]:
        """Number of states that a chain emits, at least and at most: these differ with every = 0.

        >>> OutputSchedule(100, every=10, burn_in=5).emitted(), OutputSchedule(100, every=0).emitted()
        ((11, 11), (2, 101))
        """
        first, last = self.burn_in, self.last
        regular = range(first, last + 1, self.every or max(1, last - first))
        count = len(regular) + (last not in regular)
        if self.energy:
            multiples = np.arange(-(-first // self.energy) * self.energy, last + 1, self.energy)
            count += int(((multiples - first) % regular.step != 0)[multiples != last].sum())
        return count, count if self.every else last - first + 1

    def next_due(self, after: int) -> int:
        """The first step behind `after` that is due even when nothing changes; last + 1 when there is none.

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


def scan_sites(scan: str, stream: Stream, start: int, count: int, free: Ids) -> Ids:
    """(count,) the sites of steps start ... start + count - 1, taken from `free`, the (n,) sites that move.

    scan: random, each site uniform and independent; permutation, a fresh uniform order in every sweep of n steps;
    systematic, left to right in every sweep. stream: the uniforms of the chain's sites. Raises ValueError for another
    scan.
    """
    n = len(free)
    steps = np.arange(start, start + count)
    if scan == "systematic":
        return free[steps % n]
    if scan == "random":
        return free[(stream.uniforms(start, count) * n).astype(np.int64)]
    if scan == "permutation":
        first, last = start // n, (start + count - 1) // n + 1
        orders = stream.uniforms(first * n, (last - first) * n).reshape(-1, n).argsort(axis=1, kind="stable")
        return free[orders.ravel()[start - first * n :][:count]]
    raise ValueError(f"scan {scan!r} is unknown; give random, permutation or systematic")


class Chain:
    """One chain: its state, its step, its random streams, and the events that nobody has taken yet.

    ids: (n,) the start. tau: the temperature, at least 0, or that of each step. seed, record, number: the name of the
    random streams (see randomness.Stream). scan: see scan_sites. frozen: sites that keep their tokens. choices: see
    Choices; elsewhere all tokens of the model. step: the number of updates made before. horizon: the number of updates
    after which the chain stops for now. broken: the site of a conditional that was not finite; such a chain cannot go
    on.
    """

    def __init__(self, ids: Sequence[int], *, tau: float | Temperatures, seed: int, record: str, number: int,
                 schedule: OutputSchedule, scan: str = "random", frozen: Sequence[int] = (), step: int = 0,
                 choices: Choices = NO_CHOICES) -> None:
        self.ids = np.array(ids, dtype=np.int64)
        self.temperatures = tau if isinstance(tau, Temperatures) else Temperatures.constant(tau)
        self.scan, self.step, self.number, self.schedule = scan, step, number, schedule
        self.choices, self.choices_key = choices, choices_key(choices)
        self.sites = len(self.ids)
        """Number of sites n of a state."""
        self.next_due = schedule.next_due
        self.free = np.setdiff1d(np.arange(len(self.ids)), np.asarray(frozen, dtype=np.int64))
        self.horizon = schedule.last
        self.broken: int | None = None
        self.events: deque[Event] = deque()
        self._site, self._block, self._token = (Stream(seed, record, number, purpose)
                                                for purpose in ("site", "block", "token"))

    def begin(self) -> None:
        """Emit the start, which is a state of the output unless there is a burn-in."""
        if self.schedule.burn_in == 0:
            self.events.append(Event(0, self.ids.copy(), None))

    def plan(self, start: int, count: int) -> tuple[Ids, NDArray[np.float64]]:
        """The sites (count,) and uniforms (count, 2) of steps start ... start + count - 1: block, then token."""
        sites = scan_sites(self.scan, self._site, start, count, self.free)
        return sites, np.stack([self._block.uniforms(start, count), self._token.uniforms(start, count)], axis=1)


def run_ahead(chains: Sequence[Chain]) -> bool:
    """Set how far each chain of a text may run ahead of the slowest one; whether all have made their last step."""
    slowest, last = min(chain.step for chain in chains), chains[0].schedule.last
    for chain in chains:
        chain.horizon = min(last, slowest + LEAD)
    return slowest >= last


def in_step_order(chains: Iterable[Chain]) -> Iterator[tuple[int, Event]]:
    """Take the events that no chain can precede any more, as (place of the chain, event), by step and then by place.

    These are the events up to the step of the slowest chain; later ones stay with their chains.
    """
    chains = list(chains)
    if not any(chain.events for chain in chains):
        return
    slowest = min(chain.step for chain in chains)
    ready = []
    for k, chain in enumerate(chains):
        while chain.events and chain.events[0].step <= slowest:
            event = chain.events.popleft()
            ready.append((event.step, k, event))
    ready.sort(key=lambda item: item[:2])
    yield from ((k, event) for _, k, event in ready)
