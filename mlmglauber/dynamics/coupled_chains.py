"""Chains that move together: the same site at every step, tokens by a coupling, one chain from their meeting on."""

from array import array
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.chain import NO_CHOICES, Chain, Choices, OutputSchedule, choices_key, scan_sites
from mlmglauber.dynamics.coupling import TRIALS, exponentials
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.models.conditionals import Ids


class Snapshot(NamedTuple):
    """States of a group after so many joint steps: the numbers of chains, and the state of each of them, (n,).

    met: whether all chains of the group agree.
    """

    step: int
    chains: tuple[int, ...]
    states: tuple[Ids, ...]
    met: bool


def lead_in(ids: Sequence[int], steps: int, *, tau: float, seed: int, record: str, number: int,
            choices: Choices = NO_CHOICES, emit_from: int | None = None, every: int = 0) -> Chain:
    """A chain that runs so many steps by itself before it joins a group. For the other arguments see Chain.

    emit_from: the step from which on states become events; by default no event is of use. every: each `every`-th one
    does, or, with 0, each that differs from the one before.
    """
    schedule = OutputSchedule(steps, 1, burn_in=steps) if emit_from is None else OutputSchedule(steps, every, emit_from)
    chain = Chain(ids, tau=tau, seed=seed, record=record, number=number, schedule=schedule, choices=choices)
    if emit_from is not None:
        chain.begin()
    return chain


def lead_in_record(n: int, replica: int, name: str) -> str:
    """The name of the random streams of a chain before it joins a group, apart from those of the coupled steps."""
    return f"{n},{replica}:{name}"


class CoupledChains:
    """R chains of n sites at one temperature that move together, a pair when R = 2: one chain on pairs of states.

    chains: each first runs by itself to its own horizon (see `lead_in`): a burn-in, or the lead of lag steps of the
    first one. steps: maximum number of joint steps. seed, record, number: the name of the random streams. coupling: see
    coupling.coupled. vocab: number of tokens. lag: the first chain's lead; recorded here, not run. emit: keep all
    states in `snapshots` after each `emit` joint steps, and go on after the meeting to the end, or to `until`. until:
    number of joint steps that a group makes even if it meets before, then as one chain; None for no such steps.
    on_change: keep the states at joint step 0, and those of the chains that a step changes; after the meeting that of
    the first chain stands for all. choices: see Choices.

    step: number of joint steps made. horizon: the joint step at which the group stops for now. meeting: the number of
    joint steps until all chains agree everywhere, None as long as they do not; with a lag it is at least 1, as is
    tau > lag in the bound of Biswas, Jacob and Vanetti (2019). history: the steps after which the Hamming distance
    changed, and what it became; of more than two chains it counts the sites at which not all agree. last_change: the
    last step that changed a state. broken: the site of a conditional that was not finite. level: the least precision
    that the next draw needs.
    """

    def __init__(self, chains: Sequence[Chain], *, tau: float, seed: int, record: str, number: int, coupling: str,
                 steps: int, vocab: int, lag: int = 0, emit: int = 0, until: int | None = None,
                 on_change: bool = False, choices: Choices = NO_CHOICES) -> None:
        self.chains, self.tau, self.coupling, self.lag, self.emit = chains, tau, coupling, lag, emit
        self.until, self.on_change = until, on_change
        self.choices, self.choices_key = choices, choices_key(choices)
        self.step, self.last, self.horizon = 0, steps, steps
        self.sites = len(chains[0].ids)
        """Number of sites n of a state."""
        self.meeting: int | None = None
        self._met_at = 0
        self.history: tuple[array[int], array[int]] = (array("q"), array("q"))
        self.snapshots: deque[Snapshot] = deque()
        self.last_change = self.level = 0
        self.broken: int | None = None
        self.distinct_states: list[Ids] = []
        """The states that differ; empty until the joint steps begin."""
        self._state_of = [0] * len(chains)  # the place of each chain's state among them
        self._vocab = vocab
        self._streams = {purpose: Stream(seed, record, number, purpose)
                         for purpose in ("site", "block", "token", "accept", "trial", "trials", "race")}
        self._free = np.arange(self.sites)

    @property
    def finished(self) -> bool:
        """Whether the group makes no further step: it is broken, has made all steps, or has met without `emit`."""
        return self.broken is not None or self.step >= self.end

    @property
    def end(self) -> int:
        """The joint step after which the group makes no further one, as far as it is known."""
        if self.meeting is None or (self.emit and self.until is None):
            return self.last
        end = max(self._met_at, self.until or 0)
        return min(self.last, -(-end // self.emit) * self.emit if self.emit else end)  # the next state that is kept

    @property
    def states(self) -> tuple[Ids, ...]:
        """The state of each chain, (n,); chains that have met share one array."""
        return tuple(self.distinct_states[k] for k in self._state_of)

    @property
    def distinct(self) -> int:
        """Number of states that differ: a step takes so many conditionals."""
        return len(self.distinct_states) or len(self.chains)

    def ready(self) -> bool:
        """Begin the joint steps once all chains have run what they run by themselves; whether they have begun."""
        if self.distinct_states:
            return True
        for chain in self.chains:
            if chain.broken is not None:
                self.broken = chain.broken
        if self.broken is not None or any(chain.step < chain.horizon for chain in self.chains):
            return False
        self.distinct_states = [chain.ids.copy() for chain in self.chains]
        self._state_of = list(range(len(self.chains)))
        self._join()
        self._record_distance()
        if self.emit or self.on_change:
            self.take_snapshot(0)
        self.horizon = min(self.horizon, self.end)
        return True

    def next_due(self, after: int) -> int:
        """The next joint step behind `after` whose states are kept; one that is never reached when none are."""
        return after - after % self.emit + self.emit if self.emit else self.last + 1

    def plan(self, start: int, count: int) -> tuple[Ids, NDArray[np.float64]]:
        """The sites (count,) and uniforms (count, coupling.WORDS) of joint steps start ... start + count - 1."""
        sites = scan_sites("random", self._streams["site"], start, count, self._free)
        first = [self._streams[purpose].uniforms(start, count) for purpose in ("block", "token", "accept")]
        trial = self._streams["trial"].uniforms(start * 3, count * 3).reshape(count, 3)
        return sites, np.concatenate([np.stack(first, axis=1), trial], axis=1)

    def noise(self, uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the coupling draws from in the next step: its planned uniforms or, in a race, (V,) exponentials.

        The exponentials belong to tokens: equal conditionals agree, whatever tokens each of them has left out.
        """
        if self.coupling == "race":
            return exponentials(self._streams["race"].uniforms(self.step * self._vocab, self._vocab))
        return uniforms

    def more(self, trial: int) -> NDArray[np.float64]:
        """The three uniforms of a later trial of the next step, from 1 on; those of the residual for 0."""
        return self._streams["trials"].uniforms((self.step * TRIALS + trial) * 3, 3)

    def change(self, site: int, tokens: Sequence[int]) -> None:
        """Put a token into each of the distinct states, as the last of the steps that were made."""
        changed = [bool(state[site] != token) for state, token in zip(self.distinct_states, tokens, strict=True)]
        moved, before = [chain for chain, k in enumerate(self._state_of) if changed[k]], self.meeting
        for state, token in zip(self.distinct_states, tokens, strict=True):
            state[site] = token
        self.last_change = self.step
        if len(set(tokens)) < len(tokens):
            self._join()
        self._record_distance()
        if self.on_change:
            self.take_snapshot(self.step, moved if self.meeting is None else None if before is None else (0,))

    def take_snapshot(self, step: int, chains: Sequence[int] | None = None) -> None:
        """Keep the present states of chains, by default of all, as those after a joint step."""
        numbers = tuple(range(len(self.chains)) if chains is None else chains)
        copies = {k: self.distinct_states[k].copy() for k in {self._state_of[chain] for chain in numbers}}
        self.snapshots.append(Snapshot(step, numbers, tuple(copies[self._state_of[chain]] for chain in numbers),
                                       self.meeting is not None))

    def _join(self) -> None:
        """Make one of the chains that are in the same state."""
        places: dict[bytes, int] = {}
        moved = [places.setdefault(state.tobytes(), len(places)) for state in self.distinct_states]
        self.distinct_states = [self.distinct_states[moved.index(k)] for k in range(len(places))]
        self._state_of = [moved[k] for k in self._state_of]
        if len(self.distinct_states) == 1 and self.meeting is None:
            self.meeting, self._met_at = max(self.step, 1) if self.lag else self.step, self.step

    def _record_distance(self) -> None:
        steps, distances = self.history
        first, *others = self.distinct_states
        apart = np.zeros(len(first), dtype=bool)
        for other in others:
            apart |= first != other
        distance = int(apart.sum())
        if not distances or distances[-1] != distance:
            steps.append(self.step)
            distances.append(distance)


def coupled_chains(starts: Sequence[Sequence[int]], *, name: str, number: int, tau: float, seed: int, coupling: str,
                   steps: int, vocab: int, lag: int = 0, emit: int = 0, burn_in: int = 0, until: int | None = None,
                   on_change: bool = False, choices: Choices = NO_CHOICES) -> CoupledChains:
    """A group of chains from R starts of n sites: each runs the burn-in by itself, and the first one also the lag.

    With `on_change`, or with `emit` and `until`, the states of the lag are events of the first chain, whose steps count
    from the start of its burn-in. name, number: those of the group, from which its random streams and those of its
    chains are named. For the other arguments see CoupledChains.
    """
    n = len(starts[0])
    chains = [lead_in(ids, burn_in + (lag if replica == 0 else 0), tau=tau, seed=seed,
                      record=lead_in_record(n, replica, name), number=number, choices=choices,
                      emit_from=burn_in if replica == 0 and (on_change or (emit and until is not None)) else None,
                      every=emit) for replica, ids in enumerate(starts)]
    return CoupledChains(chains, tau=tau, seed=seed, record=f"{n}:{name}", number=number, coupling=coupling,
                         steps=steps, vocab=vocab, lag=lag, emit=emit, until=until, on_change=on_change,
                         choices=choices)
