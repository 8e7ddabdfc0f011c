"""Chains that move together: the same site at every step, tokens by a coupling, one chain from their meeting on.

`advance` carries many groups at once through one engine: their conditionals share batches and its memory. As in the
engine, the sites and uniforms of all steps are known before the states are, so what is known of the present states is,
for each site, the box of uniforms that leaves all tokens as they are; a block of planned steps is compared with the
boxes at once, and two trapped chains cost nothing.
"""

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.coupling import NOWHERE, WORDS, Box, Coupling, coupled, exponentials
from mlmglauber.dynamics.engine import FIRST_BLOCK, Ask, Chain, Engine, Memory, Watch
from mlmglauber.dynamics.glauber import scan_sites
from mlmglauber.dynamics.law import Law
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.models.conditionals import Ids

AHEAD = 512
"""Sites and uniforms are drawn for so many steps at a time: many a pair has met before the engine's own number."""
STANDS = 64
"""States of a group whose boxes are kept: a chain that flickers comes back to them."""


class Shown(NamedTuple):
    """The states of all chains of a group after so many joint steps."""

    step: int
    states: tuple[Ids, ...]


def alone(ids: Sequence[int], steps: int, *, tau: float, seed: int, record: str, number: int) -> Chain:
    """A chain that runs so many steps by itself before it joins a group."""
    return Chain(ids, tau=tau, seed=seed, record=record, number=number, watch=Watch(steps, 1, burn_in=steps))


class Stand:
    """The boxes of one state of a group: site i keeps all its tokens while the step's uniforms lie in box i."""

    __slots__ = ("high", "known", "low", "total")

    def __init__(self, n: int) -> None:
        self.low, self.high = np.full((n, WORDS), np.inf), np.full((n, WORDS), np.inf)
        self.total = np.ones((n, WORDS))
        self.known = np.zeros(n, dtype=bool)

    def learn(self, site: int, box: Box) -> None:
        self.low[site], self.high[site], self.total[site] = zip(*box, strict=True)
        self.known[site] = True

    def leaves(self, sites: Ids, uniforms: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of the planned steps may change a token: (k,) of sites (k,) and uniforms (k, WORDS)."""
        scaled = uniforms * self.total[sites]
        return np.asarray(((scaled < self.low[sites]) | (scaled >= self.high[sites])).any(axis=1))


class Group:
    """R chains of n sites at one temperature that move together; a pair when R = 2.

    chains: each runs by itself first, as far as its own horizon (see `alone`): a burn-in, or the lead of lag steps of
    the first. steps: joint steps at most. lag: what the first chain's lead is; told of, not run here. emit: keep every
    so many joint steps all states in `shown`, and go on after the meeting to the end.

    meeting: joint steps until all chains agree everywhere, None as long as they do not. With a lag it is at least 1,
    as tau > lag in the bound of Biswas, Jacob and Vanetti (2019). history: the steps after which the Hamming distance
    changed, and what it became; of more than two chains it counts the sites at which not all agree.
    """

    def __init__(self, chains: Sequence[Chain], *, tau: float, seed: int, record: str, number: int, coupling: str,
                 steps: int, vocab: int, lag: int = 0, emit: int = 0) -> None:
        self.chains, self.tau, self.coupling, self.lag, self.emit = chains, tau, coupling, lag, emit
        self.step, self.last, self.horizon = 0, steps, steps
        self.meeting: int | None = None
        self.history: tuple[array[int], array[int]] = (array("q"), array("q"))
        self.shown: deque[Shown] = deque()
        self.last_change = 0
        self.broken: int | None = None
        """The site whose conditional was not finite: the group cannot go on."""
        self.answer: tuple[int, list[Law]] | None = None
        """The laws that it waited for, at a site of its present states."""
        self.change_rate, self.block = 0.5, FIRST_BLOCK
        self._states: list[Ids] = []  # the distinct ones
        self._whose = [0] * len(chains)  # which of them each chain is in
        self._stands: dict[bytes, Stand] = {}
        self._vocab = vocab
        self._streams = {purpose: Stream(seed, record, number, purpose)
                         for purpose in ("site", "token", "accept", "residual", "race")}
        self._free = np.arange(len(chains[0].ids))
        self._start = self._end = 0

    @property
    def finished(self) -> bool:
        return self.broken is not None or self.step >= self.last or (self.meeting is not None and not self.emit)

    def ready(self) -> bool:
        """Begin the joint steps once all chains have run what they run by themselves; whether they have begun."""
        if self._states:
            return True
        for chain in self.chains:
            if chain.broken is not None:
                self.broken = chain.broken
        if self.broken is not None or any(chain.step < chain.horizon for chain in self.chains):
            return False
        self._begin()
        return True

    @property
    def states(self) -> tuple[Ids, ...]:
        """The state of each chain; chains that have met share one array."""
        return tuple(self._states[k] for k in self._whose)

    @property
    def distinct(self) -> int:
        """How many different states there are: so many conditionals a step takes."""
        return len(self._states) or len(self.chains)

    def _begin(self) -> None:
        self._states = [chain.ids.copy() for chain in self.chains]
        self._whose = list(range(len(self.chains)))
        self._join()
        self._tell_distance()
        self._arrive()
        if self.emit:
            self._show(0)

    def _join(self) -> None:
        """Chains in the same state are one from now on."""
        places: dict[bytes, int] = {}
        moved = [places.setdefault(state.tobytes(), len(places)) for state in self._states]
        self._states = [self._states[moved.index(k)] for k in range(len(places))]
        self._whose = [moved[k] for k in self._whose]
        if len(self._states) == 1 and self.meeting is None:
            self.meeting = max(self.step, 1) if self.lag else self.step

    def _tell_distance(self) -> None:
        steps, distances = self.history
        first, *others = self._states
        apart = np.zeros(len(first), dtype=bool)
        for other in others:
            apart |= first != other
        distance = int(apart.sum())
        if not distances or distances[-1] != distance:
            steps.append(self.step)
            distances.append(distance)

    def _show(self, step: int) -> None:
        copies = [state.copy() for state in self._states]
        self.shown.append(Shown(step, tuple(copies[k] for k in self._whose)))

    def _arrive(self) -> None:
        """The boxes of the present states, those of before where the group was here lately."""
        key = b"".join(state.tobytes() for state in self._states)
        found = self._stands.get(key)
        if found is None:
            if len(self._stands) >= STANDS:
                self._stands.clear()
            found = self._stands[key] = Stand(len(self._free))
        self.stand = found

    def plan(self, count: int) -> tuple[Ids, NDArray[np.float64]]:
        """The sites and (k, WORDS) uniforms of the next steps, at least one and at most `count`."""
        if not self._start <= self.step < self._end:
            self._start, self._end = self.step, self.step + AHEAD
            self._sites = scan_sites("random", self._streams["site"], self._start, AHEAD, self._free)
            token = self._streams["token"].uniforms(self._start, AHEAD)
            others = [token, token] if self.coupling == "quantile" else [
                self._streams[purpose].uniforms(self._start, AHEAD) for purpose in ("accept", "residual")]
            self._uniforms = np.stack([token, *others], axis=1)
        k = self.step - self._start
        return self._sites[k : k + count], self._uniforms[k : k + count]

    def glide(self, memory: Memory) -> bool:
        """Run to the horizon, the meeting, or the first conditional that is not known; whether it waits for that."""
        while self.step < self.horizon and not self.finished:
            sites, uniforms = self.plan(min(self.block, self.horizon - self.step))
            leaves = self.stand.leaves(sites, uniforms)
            k = int(leaves.argmax())
            if not leaves[k]:
                self._pass(len(sites))
                self.block = min(4 * self.block, AHEAD)
                continue
            self._pass(k)
            site = int(sites[k])
            coupling = self._coupling(site, memory)
            if coupling is None:
                return True
            self._move(site, coupling, uniforms[k])
        return False

    def _coupling(self, site: int, memory: Memory) -> Coupling | None:
        if self.answer is not None and self.answer[0] == site:
            return coupled(self.coupling, self.answer[1])
        laws = [law for state in self._states if (law := memory.law(site, self.tau, state)) is not None]
        return coupled(self.coupling, laws) if len(laws) == len(self._states) else None

    def _pass(self, count: int) -> None:
        """`count` steps in which nothing changed."""
        if not count:
            return
        if self.emit:
            for step in range(self.step - self.step % self.emit + self.emit, self.step + count + 1, self.emit):
                self._show(step)
        self.step += count
        self.change_rate *= (1 - 1 / 32) ** min(count, 1000)

    def _move(self, site: int, coupling: Coupling, uniforms: NDArray[np.float64]) -> None:
        """One step whose tokens are drawn; a change begins new states."""
        noise = uniforms
        if self.coupling == "race":  # keyed by token: equal laws agree, whatever tokens each of them has left out
            noise = exponentials(self._streams["race"].uniforms(self.step * self._vocab, self._vocab))
        tokens = coupling.draw(noise)
        changed = any(state[site] != token for state, token in zip(self._states, tokens, strict=True))
        self.step += 1
        self.change_rate += (changed - self.change_rate) / 32
        if changed:
            for state, token in zip(self._states, tokens, strict=True):
                state[site] = token
            self.last_change, self.block, self.answer = self.step, FIRST_BLOCK, None
            if len(set(tokens)) < len(tokens):
                self._join()
            self._tell_distance()
            self._arrive()
        elif not self.stand.known[site]:
            box = coupling.box(tokens)
            if box is not NOWHERE:
                self.stand.learn(site, box)
        if self.emit and self.step % self.emit == 0:
            self._show(self.step)

    def asks(self, site: int) -> list[Ask]:
        """What is to be known at a site: the conditional of every distinct state."""
        return [Ask(state, self.tau, site) for state in self._states]


def advance(engine: Engine, groups: Sequence[Group]) -> None:
    """Every group as far as what is known carries it, then one round of the model for those that wait."""
    lone = [chain for group in groups if not group.ready() for chain in group.chains if chain.step < chain.horizon]
    if lone:
        engine.advance(lone)
    waiting = []
    for group in groups:
        before = group.step
        if group.ready() and group.glide(engine.memory):
            waiting.append(group)
        engine.counters.steps += group.step - before
    if waiting:
        _ask(engine, waiting)


def _ask(engine: Engine, waiting: Sequence[Group]) -> None:
    """The laws that groups wait for, and, where the batch has room, those that they are likely to want next."""
    sites = [int(group.plan(1)[0][0]) for group in waiting]
    wanted = [group.asks(site) for group, site in zip(waiting, sites, strict=True)]
    flat = [ask for asks in wanted for ask in asks]
    room = -len(flat) % engine.rows
    worth = engine.price.worth(len(flat))
    more = [item for group in waiting for item in _ahead(engine.memory, group, worth)] if room else []
    more.sort(key=lambda item: -item[0])
    found = iter(engine.laws_for(flat + [ask for _, ask in more[:room]]))
    for group, site, asks in zip(waiting, sites, wanted, strict=True):
        laws = [law for _, law in zip(asks, found, strict=False) if law is not None]
        if len(laws) < len(asks):
            group.broken = site
        else:
            group.answer = (site, laws)


def _ahead(memory: Memory, group: Group, worth: float) -> Iterator[tuple[float, Ask]]:
    """(chance of being used, conditional) of the steps ahead as far as they are worth it (see engine.Price)."""
    stay = min(1 - group.change_rate, 1 - 1e-4)
    if stay <= worth:
        return
    reach = min(int(log(worth) / log(stay)), 8 * len(group.stand.known), group.horizon - group.step - 1)
    if reach < 1:
        return
    sites, _ = group.plan(1 + reach)
    seen = {int(sites[0])}
    for k, site in enumerate(sites[1:].tolist(), start=1):
        if site in seen or group.stand.known[site]:
            continue
        seen.add(site)
        for ask in group.asks(site):
            if memory.law(site, ask.tau, ask.ids) is None:
                yield stay**k, ask
