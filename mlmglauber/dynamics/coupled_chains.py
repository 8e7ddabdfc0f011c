"""Chains that move together: the same site at every step, tokens by a coupling, one chain from their meeting on.

`advance` carries many groups at once through one engine: their conditionals share batches and its cache. As in the
engine, the sites and uniforms of all steps are known before the states are, so what is known of the present states is,
for each site, the region of uniforms that leaves all tokens as they are; a block of planned steps is compared with the
regions at once, and two trapped chains cost nothing.
"""

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.chain import Chain, OutputSchedule
from mlmglauber.dynamics.coupling import TRIALS, WORDS, AcceptanceRegion, coupled, exponentials
from mlmglauber.dynamics.distributions import Distributions, Wanted
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.glauber import scan_sites
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.dynamics.token_distribution import TokenDistribution
from mlmglauber.models.conditionals import Ids

AHEAD = 512
"""Number of steps whose sites and uniforms are drawn at a time."""
FIRST_BLOCK = 64
"""Number of steps that are compared at once after a change; four times more each time nothing changes."""
REGIONS = 64
"""Maximum number of states of a group whose regions are kept: a group that flickers comes back to them."""


class Snapshot(NamedTuple):
    """The states of all chains of a group after so many joint steps."""

    step: int
    states: tuple[Ids, ...]


def lead_in(ids: Sequence[int], steps: int, *, tau: float, seed: int, record: str, number: int) -> Chain:
    """A chain that runs so many steps by itself before it joins a group."""
    return Chain(ids, tau=tau, seed=seed, record=record, number=number,
                 schedule=OutputSchedule(steps, 1, burn_in=steps))


class JointStayIntervals:
    """The regions of one state of a group: site i keeps all its tokens while the step's uniforms lie in region i."""

    __slots__ = ("high", "known", "low")

    def __init__(self, n: int) -> None:
        self.low, self.high = np.full((n, WORDS), np.inf), np.full((n, WORDS), -np.inf)
        self.known = np.zeros(n, dtype=bool)

    def learn(self, site: int, found: AcceptanceRegion) -> None:
        """The uniforms that keep the tokens of a site."""
        self.low[site], self.high[site] = found
        self.known[site] = True

    def leaves(self, sites: Ids, uniforms: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(k,) which of the planned steps may change a token, of sites (k,) and uniforms (k, WORDS)."""
        return np.asarray(((uniforms < self.low[sites]) | (uniforms >= self.high[sites])).any(axis=1))


class CoupledChains:
    """R chains of n sites at one temperature that move together; a pair when R = 2.

    chains: each runs by itself first, as far as its own horizon (see `lead_in`): a burn-in, or the lead of lag steps of
    the first. steps: joint steps at most. lag: the first chain's lead; recorded, not run here. emit: keep every so many
    joint steps all states in `snapshots`, and go on after the meeting to the end.

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
        self.snapshots: deque[Snapshot] = deque()
        self.last_change = 0
        self.broken: int | None = None
        """The site whose conditional was not finite: the group cannot go on."""
        self.answer: tuple[int, list[TokenDistribution]] | None = None
        """The conditionals that it waited for, at a site of its present states."""
        self.level = 0
        """The least precision that the next draw needs."""
        self.change_rate, self.block = 0.5, FIRST_BLOCK
        self._states: list[Ids] = []  # the distinct ones
        self._whose = [0] * len(chains)  # which of them each chain is in
        self._regions: dict[bytes, JointStayIntervals] = {}
        self._vocab = vocab
        self._streams = {purpose: Stream(seed, record, number, purpose)
                         for purpose in ("site", "block", "token", "accept", "trial", "trials", "race")}
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
        self._record_distance()
        self._enter_states()
        if self.emit:
            self._record(0)

    def _join(self) -> None:
        """Chains in the same state are one from now on."""
        places: dict[bytes, int] = {}
        moved = [places.setdefault(state.tobytes(), len(places)) for state in self._states]
        self._states = [self._states[moved.index(k)] for k in range(len(places))]
        self._whose = [moved[k] for k in self._whose]
        if len(self._states) == 1 and self.meeting is None:
            self.meeting = max(self.step, 1) if self.lag else self.step

    def _record_distance(self) -> None:
        steps, distances = self.history
        first, *others = self._states
        apart = np.zeros(len(first), dtype=bool)
        for other in others:
            apart |= first != other
        distance = int(apart.sum())
        if not distances or distances[-1] != distance:
            steps.append(self.step)
            distances.append(distance)

    def _record(self, step: int) -> None:
        copies = [state.copy() for state in self._states]
        self.snapshots.append(Snapshot(step, tuple(copies[k] for k in self._whose)))

    def _enter_states(self) -> None:
        """The regions of the present states, those of before where the group was here lately."""
        key = b"".join(state.tobytes() for state in self._states)
        found = self._regions.get(key)
        if found is None:
            if len(self._regions) >= REGIONS:
                self._regions.clear()
            found = self._regions[key] = JointStayIntervals(len(self._free))
        self.intervals = found

    def plan(self, count: int) -> tuple[Ids, NDArray[np.float64]]:
        """The sites and (k, WORDS) uniforms of the next steps, at least one and at most `count`."""
        if not self._start <= self.step < self._end:
            self._start, self._end = self.step, self.step + AHEAD
            self._sites = scan_sites("random", self._streams["site"], self._start, AHEAD, self._free)
            first = [self._streams[purpose].uniforms(self._start, AHEAD) for purpose in ("block", "token", "accept")]
            trial = self._streams["trial"].uniforms(self._start * 3, AHEAD * 3).reshape(AHEAD, 3)
            self._uniforms = np.concatenate([np.stack(first, axis=1), trial], axis=1)
        k = self.step - self._start
        return self._sites[k : k + count], self._uniforms[k : k + count]

    def _more(self, trial: int) -> NDArray[np.float64]:
        """The uniforms of a later trial of the step that is due; those of the residual for 0."""
        return self._streams["trials"].uniforms((self.step * TRIALS + trial) * 3, 3)

    def run_until_unknown(self, known: Distributions) -> bool:
        """Run to the horizon, the meeting, or the first conditional that is not known; whether it waits for that."""
        while self.step < self.horizon and not self.finished:
            sites, uniforms = self.plan(min(self.block, self.horizon - self.step))
            leaves = self.intervals.leaves(sites, uniforms)
            k = int(leaves.argmax())
            if not leaves[k]:
                self._skip_unchanged(len(sites))
                self.block = min(4 * self.block, AHEAD)
                continue
            self._skip_unchanged(k)
            site = int(sites[k])
            distributions = self._distributions(site, known)
            before = self._states[0].copy()
            if distributions is None or not self._update(site, distributions, uniforms[k]):
                return True
            if self.coupling != "race":
                known.check(before, site, self.tau, uniforms[k, :2], int(self._states[0][site]), distributions[0])
        return False

    def _distributions(self, site: int, known: Distributions) -> list[TokenDistribution] | None:
        if self.answer is not None and self.answer[0] == site:
            answer = self.answer[1]
            if min(each.level for each in answer) >= self.level:
                return answer
        found = [each for state in self._states if (each := known.get(site, self.tau, state, self.level)) is not None]
        return found if len(found) == len(self._states) else None

    def _skip_unchanged(self, count: int) -> None:
        """`count` steps in which nothing changed."""
        if not count:
            return
        if self.emit:
            for step in range(self.step - self.step % self.emit + self.emit, self.step + count + 1, self.emit):
                self._record(step)
        self.step += count
        self.level = 0
        self.change_rate *= (1 - 1 / 32) ** min(count, 1000)

    def _update(self, site: int, distributions: list[TokenDistribution], uniforms: NDArray[np.float64]) -> bool:
        """One step whose tokens are drawn; a change begins new states. False where a better precision is needed."""
        coupling = coupled(self.coupling, distributions)
        noise = uniforms
        if self.coupling == "race":  # keyed by token: equal conditionals agree, whatever each of them has left out
            noise = exponentials(self._streams["race"].uniforms(self.step * self._vocab, self._vocab))
        tokens, certain = coupling.draw(noise, self._more)
        if not certain:
            self.level = 1 + min(each.level for each in distributions)
            return False
        changed = any(state[site] != token for state, token in zip(self._states, tokens, strict=True))
        self.step += 1
        self.level = 0
        self.change_rate += (changed - self.change_rate) / 32
        if changed:
            for state, token in zip(self._states, tokens, strict=True):
                state[site] = token
            self.last_change, self.block, self.answer = self.step, FIRST_BLOCK, None
            if len(set(tokens)) < len(tokens):
                self._join()
            self._record_distance()
            self._enter_states()
        elif not self.intervals.known[site]:
            found = coupling.acceptance_region(tokens)
            if found is not None:
                self.intervals.learn(site, found)
        if self.emit and self.step % self.emit == 0:
            self._record(self.step)
        return True

    def wanted(self, site: int, level: int) -> list[Wanted]:
        """What is to be known at a site: the conditional of every distinct state."""
        return [Wanted(state, self.tau, site, level) for state in self._states]


def advance(engine: Engine, groups: Sequence[CoupledChains]) -> None:
    """Every group as far as what is known carries it, then one round of the model for those that wait."""
    known = Distributions(engine)
    lone = [chain for group in groups if not group.ready() for chain in group.chains if chain.step < chain.horizon]
    if lone:
        engine.advance(lone)
    waiting = []
    for group in groups:
        before = group.step
        if group.ready() and group.run_until_unknown(known):
            waiting.append(group)
        engine.counters.steps += group.step - before
    if waiting:
        _answer(known, waiting)


def _answer(known: Distributions, waiting: Sequence[CoupledChains]) -> None:
    """The conditionals that groups wait for, and, where the batch has room, those that they are likely to want next."""
    engine = known.engine
    sites = [int(group.plan(1)[0][0]) for group in waiting]
    wanted = [group.wanted(site, group.level) for group, site in zip(waiting, sites, strict=True)]
    flat = [each for of_group in wanted for each in of_group]
    room = -len(flat) % engine.rows
    threshold = engine.cost.threshold(len(flat))
    more = [item for group in waiting for item in _prefetch(known, group, threshold)] if room else []
    more.sort(key=lambda item: -item[0])
    found = iter(known.compute(flat + [each for _, each in more[:room]]))
    for group, site, of_group in zip(waiting, sites, wanted, strict=True):
        distributions = [each for _, each in zip(of_group, found, strict=False) if each is not None]
        if len(distributions) < len(of_group):
            group.broken = site
        else:
            group.answer = (site, distributions)


def _prefetch(known: Distributions, group: CoupledChains, threshold: float) -> Iterator[tuple[float, Wanted]]:
    """(chance of being used, conditional) of the steps ahead as far as they are worth it (see CostModel)."""
    stay = min(1 - group.change_rate, 1 - 1e-4)
    if stay <= threshold:
        return
    reach = min(int(log(threshold) / log(stay)), 8 * len(group.intervals.known), group.horizon - group.step - 1)
    if reach < 1:
        return
    sites, _ = group.plan(1 + reach)
    seen = {int(sites[0])}
    for k, site in enumerate(sites[1:].tolist(), start=1):
        if site in seen or group.intervals.known[site]:
            continue
        seen.add(site)
        for each in group.wanted(site, 0):
            if known.get(site, each.tau, each.ids, 0) is None:
                yield stay**k, each
