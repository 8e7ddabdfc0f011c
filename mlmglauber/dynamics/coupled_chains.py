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
    """The states of all chains of a group, each (n,), after so many joint steps."""

    step: int
    states: tuple[Ids, ...]


def lead_in(ids: Sequence[int], steps: int, *, tau: float, seed: int, record: str, number: int,
            choices: Choices = NO_CHOICES) -> Chain:
    """A chain that runs so many steps by itself before it joins a group. For the other arguments see Chain."""
    return Chain(ids, tau=tau, seed=seed, record=record, number=number,
                 schedule=OutputSchedule(steps, 1, burn_in=steps), choices=choices)


def lead_in_record(n: int, replica: int, name: str) -> str:
    """The name of the random streams of a chain before it joins a group, apart from those of the coupled steps."""
    return f"{n},{replica}:{name}"


class CoupledChains:
    """R chains of n sites at one temperature that move together, a pair when R = 2: one chain on pairs of states.

    chains: each first runs by itself to its own horizon (see `lead_in`): a burn-in, or the lead of lag steps of the
    first one. steps: maximum number of joint steps. seed, record, number: the name of the random streams. coupling:
    see coupling.coupled. vocab: number of tokens. lag: the first chain's lead; recorded here, not run. emit: keep all
    states in `snapshots` after each `emit` joint steps, and go on after the meeting to the end. choices: see Choices.

    step: number of joint steps made. horizon: the joint step at which the group stops for now. meeting: the number of
    joint steps until all chains agree everywhere, None as long as they do not; with a lag it is at least 1, as is
    tau > lag in the bound of Biswas, Jacob and Vanetti (2019). history: the steps after which the Hamming distance
    changed, and what it became; of more than two chains it counts the sites at which not all agree. last_change: the
    last step that changed a state. broken: the site of a conditional that was not finite. level: the least precision
    that the next draw needs.
    """

    def __init__(self, chains: Sequence[Chain], *, tau: float, seed: int, record: str, number: int, coupling: str,
                 steps: int, vocab: int, lag: int = 0, emit: int = 0, choices: Choices = NO_CHOICES) -> None:
        self.chains, self.tau, self.coupling, self.lag, self.emit = chains, tau, coupling, lag, emit
        self.choices, self.choices_key = choices, choices_key(choices)
        self.step, self.last, self.horizon = 0, steps, steps
        self.sites = len(chains[0].ids)
        """Number of sites n of a state."""
        self.meeting: int | None = None
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
        return self.broken is not None or self.step >= self.last or (self.meeting is not None and not self.emit)

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
        if self.emit:
            self.take_snapshot(0)
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
        for state, token in zip(self.distinct_states, tokens, strict=True):
            state[site] = token
        self.last_change = self.step
        if len(set(tokens)) < len(tokens):
            self._join()
        self._record_distance()

    def take_snapshot(self, step: int) -> None:
        """Keep the present states as those after a joint step."""
        copies = [state.copy() for state in self.distinct_states]
        self.snapshots.append(Snapshot(step, tuple(copies[k] for k in self._state_of)))

    def _join(self) -> None:
        """Make one of the chains that are in the same state."""
        places: dict[bytes, int] = {}
        moved = [places.setdefault(state.tobytes(), len(places)) for state in self.distinct_states]
        self.distinct_states = [self.distinct_states[moved.index(k)] for k in range(len(places))]
        self._state_of = [moved[k] for k in self._state_of]
        if len(self.distinct_states) == 1 and self.meeting is None:
            self.meeting = max(self.step, 1) if self.lag else self.step

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
                   steps: int, vocab: int, lag: int = 0, emit: int = 0, burn_in: int = 0,
                   choices: Choices = NO_CHOICES) -> CoupledChains:
    """A group of chains from R starts of n sites: each runs the burn-in by itself, and the first one also the lag.

    name, number: those of the group, from which its random streams and those of its chains are named. For the other
    arguments see CoupledChains.
    """
    n = len(starts[0])
    chains = [lead_in(ids, burn_in + (lag if replica == 0 else 0), tau=tau, seed=seed,
                      record=lead_in_record(n, replica, name), number=number, choices=choices)
              for replica, ids in enumerate(starts)]
    return CoupledChains(chains, tau=tau, seed=seed, record=f"{n}:{name}", number=number, coupling=coupling,
                         steps=steps, vocab=vocab, lag=lag, emit=emit, choices=choices)
