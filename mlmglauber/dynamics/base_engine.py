"""What all engines share: running many Markov chains together and skipping the steps in which nothing changes.

A chain and a group of coupled chains are moved in the same way (population.MarkovChain). The sites and uniforms of all
steps are known before the states are. So a block of planned steps is compared with the stay intervals of the present
states at once. All steps before the first one that leaves its interval, or whose site is not known, are made: nothing
changed in them. A trapped chain costs next to nothing.

What differs is how a token, or the tokens of a group, are drawn: `draw_known` from conditionals that are known, and
`answer` from those that the model computes.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.cache import ConditionalCache, Key
from mlmglauber.dynamics.cost_model import CostModel
from mlmglauber.dynamics.population import WINDOW, Member, Population
from mlmglauber.models.conditionals import Ids

FIRST_BLOCK = 4
"""Number of steps that are compared at once at first; four times more in each round."""
LONG_BLOCK = 4096
"""The same for a member that has not changed for a whole window."""
ELEMENTS = 1 << 14
"""Maximum number of steps of all members that are compared at once."""
SWEEPS_AHEAD = 4
"""Maximum number of sweeps that prefetching looks ahead."""

Request = TypeVar("Request")
"""What an engine asks the model for."""


class PlannedDraws(NamedTuple):
    """R steps to be made: rows (R,) of the members, sites (R,), and the (R, words) uniforms of the draws."""

    rows: Ids
    sites: Ids
    uniforms: NDArray[np.float64]

    def at(self, places: Ids | list[int]) -> "PlannedDraws":
        """The draws at these places."""
        return PlannedDraws(self.rows[places], self.sites[places], self.uniforms[places])


def joined(parts: Sequence[PlannedDraws]) -> PlannedDraws:
    """The draws of all parts, at least one of them."""
    rows, sites, uniforms = zip(*parts, strict=True)
    return PlannedDraws(np.concatenate(rows), np.concatenate(sites), np.concatenate(uniforms))


class BaseEngine(ABC, Generic[Member, Request]):
    """Moves the members of a population; the subclass draws their tokens.

    cache: for conditionals, and for the stay intervals of states that members left. cost: of the model's calls.
    """

    def __init__(self, population: Population[Member], cache: ConditionalCache, cost: CostModel) -> None:
        self.population, self.cache, self.cost, self.counters = population, cache, cost, cost.counters

    @property
    @abstractmethod
    def rows(self) -> int:
        """Maximum number of conditionals in a call of the model."""

    @abstractmethod
    def draw_known(self, draws: PlannedDraws) -> tuple[PlannedDraws, Ids]:
        """Make the draws whose conditionals are known: (draws that are not, rows of the members that made a step)."""

    @abstractmethod
    def answer(self, waiting: PlannedDraws) -> None:
        """One round of the model: make the draws that wait for it, of which there may be none."""

    @abstractmethod
    def emit(self, row: int, step: int, site: int) -> None:
        """Emit the state of a member after a step that changed nothing, at this site."""

    @abstractmethod
    def state_key(self, row: int) -> Key:
        """What the stay intervals of a member depend on."""

    @abstractmethod
    def unknown(self, row: int, step: int, site: int, uniforms: NDArray[np.float64]) -> Iterable[Request]:
        """Requests for what is not known of a draw in a member's present state: the one of the step behind `step`."""

    def change_temperatures(self, rows: Ids) -> None:
        """Give members that have come to the end of a temperature their next one; most have one for all steps."""

    def advance(self, members: Sequence[Member]) -> None:
        """Move every member as far as the known conditionals carry it; then one round of the model for those that wait.

        Members at their horizon, broken ones and deferred ones stay where they are.
        """
        population = self.population
        rows = population.rows_of(members)
        population.horizon[rows] = [-1 if member.broken is not None else member.horizon for member in members]
        before = int(population.step[rows].sum())
        ready = rows[(population.step[rows] < population.horizon[rows]) & ~population.deferred[rows]]
        waiting = self.run_until_unknown(ready)
        known = int(population.step[rows].sum())
        begin = perf_counter()
        self.answer(waiting)
        self.counters.waited += perf_counter() - begin
        steps = population.step[rows]
        self.counters.steps += int(steps.sum()) - before
        self.counters.answered += int(steps.sum()) - known
        for member, step in zip(members, steps.tolist(), strict=True):
            member.step = step

    def run_until_unknown(self, ready: Ids) -> PlannedDraws:
        """Run members to their horizons or to a draw that is not known; the draws that wait for the model."""
        population = self.population
        waiting = [PlannedDraws(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, population.words)))]
        block, passed = FIRST_BLOCK, np.zeros(len(population.step), dtype=np.int64)
        while len(ready):
            places = population.planned(ready)
            room = np.minimum(population.horizon[ready] - population.step[ready], WINDOW - places)
            if population.scheduled:
                self.change_temperatures(ready)
                room = np.minimum(room, population.turn[ready] - population.step[ready])
            size = int(min(block, room.max(), max(1, ELEMENTS // len(ready))))
            block *= 4
            ahead = np.arange(size)
            steps = np.minimum(places[:, None] + ahead, WINDOW - 1)
            of = ready[:, None]
            sites, uniforms = population.sites[of, steps], population.uniforms[of, steps]
            stays = ((population.low[of, sites] <= uniforms) & (uniforms < population.high[of, sites])).all(axis=2)
            stops = ~stays & (ahead < room[:, None])
            stop = stops.any(axis=1)
            counts = np.where(stop, stops.argmax(axis=1), np.minimum(size, room))
            self.skip_unchanged(ready, counts)
            passed[ready] = np.where(stop, 0, passed[ready] + counts)
            for row in ready[passed[ready] >= WINDOW].tolist():
                self._skip_long(row)
                passed[row] = 0
            at = np.flatnonzero(stop)
            rest = ready[~stop]
            unknown, went_on = self.draw_known(PlannedDraws(ready[at], sites[at, counts[at]],
                                                            uniforms[at, counts[at]]))
            waiting.append(unknown)
            ready = np.concatenate([went_on, rest])
            ready = ready[population.step[ready] < population.horizon[ready]]
        return joined(waiting)

    def _skip_long(self, row: int) -> None:
        """Skip the steps of one member in which nothing changes, many at a time."""
        population = self.population
        member = population.member(row)
        while (room := int(min(population.horizon[row], population.turn[row]) - population.step[row])) > 0:
            sites, uniforms = member.plan(int(population.step[row]), min(room, LONG_BLOCK))
            stays = ((population.low[row, sites] <= uniforms) & (uniforms < population.high[row, sites])).all(axis=1)
            count = len(sites) if stays.all() else int(stays.argmin())
            self.skip_unchanged(np.array([row]), np.array([count]), sites)
            if count < len(sites):
                return

    def skip_unchanged(self, rows: Ids, counts: Ids, sites: Ids | None = None) -> None:
        """Make counts[k] steps of member rows[k], in which nothing changes; emit the states that are due.

        sites: of the steps of a single member; those of its window when they are not given.
        """
        population = self.population
        ends = population.step[rows] + counts
        for k in np.flatnonzero(ends >= population.next_due[rows]).tolist():
            row = int(rows[k])
            while (step := int(population.next_due[row])) <= ends[k]:
                if sites is not None:
                    site = int(sites[step - population.step[row] - 1])
                else:
                    site = int(population.sites[row, step - population.start[row] - 1])
                self.emit(row, step, site)
                population.next_due[row] = population.member(row).next_due(step)
        population.step[rows] = ends
        population.rate[rows] *= (1 - 1 / 32) ** np.minimum(counts, 1000)

    def leave_states(self, rows: Ids) -> None:
        """Keep what is known of the states that these members leave: a chain that flickers comes back to them."""
        population = self.population
        for row in rows[population.known[rows].sum(axis=1) > 1].tolist():
            intervals = population.stay_intervals(row)
            self.cache.put(self.state_key(row), intervals, sum(array.nbytes for array in intervals))

    def enter_states(self, rows: Ids) -> None:
        """Look up what is known of the states that these members have come to."""
        population = self.population
        population.forget_stay_intervals(rows)
        for row in rows.tolist():
            intervals = self.cache.get(self.state_key(row))
            if intervals is not None:
                population.set_stay_intervals(row, intervals)

    def prefetch(self, rows: Ids, count: int) -> list[Request]:
        """What these members are likely to ask for next, as far as it is worth its cost and the batch has room.

        rows: of members that wait. count: number of conditionals that they wait for. A member whose recent rate of
        change is r reaches a step k steps ahead in its present state with chance (1 - r)^k. The request is worth its
        cost when that chance is above CostModel.threshold, so a hot chain asks for nothing in vain.
        """
        room = -count % self.rows
        if not room:
            return []
        threshold = self.cost.threshold(count)
        staying = rows[1 - self.population.rate[rows] > threshold]
        requests = [(chance, request) for row in staying.tolist()
                    for chance, step, site, uniforms in self._likely(row, threshold)
                    for request in self.unknown(row, step, site, uniforms)]
        requests.sort(key=lambda item: -item[0])
        return [request for _, request in requests[:room]]

    def _likely(self, row: int, threshold: float) -> Iterator[tuple[float, int, int, NDArray[np.float64]]]:
        """(chance of being reached unchanged, steps before it, site, uniforms) of next steps of a member.

        At the present temperature those at unknown sites, the first one at each site; behind it all steps.
        """
        population = self.population
        stay = min(1.0 - float(population.rate[row]), 1 - 1e-9)
        reach = int(min(np.log(threshold) / np.log(stay), SWEEPS_AHEAD * population.length[row]))
        start = int(population.start[row])
        place, turn = int(population.step[row]) - start, int(population.turn[row]) - start
        seen = {int(population.sites[row, place])}
        for k in range(place + 1, min(place + 1 + reach, WINDOW)):
            site = int(population.sites[row, k])
            if k < turn:
                if site in seen or population.known[row, site]:
                    continue
                seen.add(site)
            yield stay ** (k - place), start + k, site, population.uniforms[row, k]
