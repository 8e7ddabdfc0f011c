"""Finds traps, long periods of a chain in one state or close to it, while the chain's states arrive.

Let x_t be the state of a chain at step t, d the number of sites at which two states differ, r a radius, L a length.

- A run around a state m begins when the chain enters m and ends when it enters a state x with d(x, m) > r.
- The stretch of a run extends from the first to the last of its steps at which the chain is at m. The steps before and
  after, which may also be within r of m, belong to no trap: they lead from one trap to the next.
- The residence of a stretch is the number of steps made from its states. The stretch is a candidate if its residence is
  at least L and no other state is occupied for more of its steps.
- Overlapping candidates share their steps as follows. Among candidates connected by overlaps the longest one (of equal
  ones the earlier) becomes a trap. Each other candidate becomes a trap, marked `cut`, if the longest piece that the
  traps before leave of it has L steps.

With r = 0 a stretch is one stay in one state, and no two overlap.

A run never reaches back before the chain enters its state, so a candidate overlaps only with runs that are open when it
ends; when these have ended, it is resolved. Memory does not grow with the number of steps: a chain holds at most OPEN
runs and WAITING candidates, each with the occupation of at most 2 STATES states. Beyond OPEN runs, the run whose own
state was occupied least is dropped; it begins anew when the chain enters its state again. Beyond 2 STATES states of a
run, the half that was occupied least is dropped, but never a state with more than 2 / STATES of the steps so far.
Beyond WAITING candidates, they are resolved without waiting for open runs, and later candidates keep what they leave.
Below these limits the result is exact.
"""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

from mlmglauber.measures.traps.longest_piece import longest_piece
from mlmglauber.measures.traps.residence import Beyond, Holding

OPEN = 32
"""Maximum number of runs that are followed at a time."""
STATES = 256
"""Number of states whose occupation a run keeps when it drops others."""
WAITING = 32
"""Maximum number of candidates that wait for runs that may overlap with them."""

State = tuple[int, ...]


class Flicker(NamedTuple):
    """A site at which states of a trap differ from its representative state.

    share: share of the steps with another token there. token: the most frequent of the other tokens.
    """

    site: int
    share: float
    token: int


class Trap(NamedTuple):
    """A trap of one chain.

    state: the representative state m; label: that of the call of `see` that began the run. first, last: first and last
    step of the trap. residence: number of steps made from its states: last - first + 1, or one less where the records
    end at m with step `last`. censored: whether the records end before the chain leaves the ball of radius r around m.
    cut: whether a longer trap took some of its steps; the fields below then describe the whole stretch. occupied:
    number of steps made from m; share: their share. visits, exits: how often the chain entered m and left it. states:
    number of different states. flicker: sites that differ from m, the most frequent first. resolution: largest number
    of steps between two records in which changes may be missing; 1 where none is. beyond: steps made from m, from the
    L-th step after `first` on, and how many of them left it.
    """

    state: State
    label: Any
    first: int
    last: int
    residence: int
    censored: bool
    cut: bool
    occupied: int
    share: float
    visits: int
    exits: int
    states: int
    flicker: list[Flicker]
    resolution: int
    beyond: Holding


class Score(NamedTuple):
    """The steps of a run made from its state that are free of selection: see Tracker.scores."""

    state: State
    holding: Holding
    resolution: int


class _Run:
    """A run around one state. Steps between two visits to the state count once the chain has come back."""

    __slots__ = ("away", "away_resolution", "beyond", "chosen", "counts", "distance", "exits", "first", "label", "last",
                 "open_end", "resolution", "state", "total", "visits")

    def __init__(self, state: State, step: int, label: Any, min_steps: int) -> None:
        self.state, self.first, self.label = state, step, label
        self.last, self.open_end = step, False
        self.distance = self.exits = self.total = 0
        self.visits = self.resolution = self.away_resolution = 1
        self.counts: dict[State, int] = {state: 0}
        self.away: dict[State, int] = {}
        self.beyond, self.chosen = Beyond(step + min_steps - 1), False

    def stay(self, state: State, steps: int, end: int, resolution: int, leaves: bool) -> None:
        """Count `steps` steps made from a state, the last from step `end`; leaves: whether the last left the state."""
        since = end + leaves - steps
        if since <= self.beyond.begin < since + steps:
            self.chosen = self._most_occupied_at(state, self.beyond.begin - since)
        if self.distance:
            self.away[state] = self.away.get(state, 0) + steps
            self.away_resolution = max(self.away_resolution, resolution)
            if len(self.away) > STATES:
                self.away = _heavier_half(self.away, self.state)
            return
        self.counts[state] += steps
        self.total += steps
        self.last, self.open_end = end, not leaves
        self.exits += leaves
        self.beyond.stay(since, steps, leaves)
        self.resolution = max(self.resolution, resolution)

    def move(self, sites: Sequence[int], old: State, new: State, step: int) -> None:
        """Follow a change of the chain at some sites; back at its own state, the run counts the steps in between."""
        for site in sites:
            token = self.state[site]
            self.distance += (token != new[site]) - (token != old[site])
        if self.distance == 0:
            self.visits += 1
            self.last = step
            for state, steps in self.away.items():
                self.counts[state] = self.counts.get(state, 0) + steps
            self.total = step - self.first
            self.resolution = max(self.resolution, self.away_resolution)
            self.away, self.away_resolution = {}, 1
            if len(self.counts) > STATES:
                self.counts = _heavier_half(self.counts, self.state)

    @property
    def most_occupied(self) -> bool:
        return self.counts[self.state] >= max(self.counts.values())

    def _most_occupied_at(self, present: State, steps: int) -> bool:
        """Whether no other state has more steps so far; `steps` of those at `present` belong to the present stay."""
        counts = {state: self.counts.get(state, 0) + self.away.get(state, 0) for state in (*self.counts, *self.away)}
        counts[present] = counts.get(present, 0) + steps
        return counts[self.state] >= max(counts.values())

    def score(self) -> Score:
        return Score(self.state, self.beyond.holding, max(self.resolution, self.away_resolution))


def _heavier_half(counts: dict[State, int], representative: State) -> dict[State, int]:
    """The half of the states with the most steps, and a run's own state."""
    kept = sorted(counts, key=lambda state: (state != representative, -counts[state]))[: STATES // 2]
    return {state: counts[state] for state in kept}


class _Candidate(NamedTuple):
    run: _Run
    censored: bool

    def trap(self, first: int, last: int) -> Trap:
        """The steps first ... last of the stretch, as a trap."""
        run, whole = self.run, max(self.run.total, 1)
        open_end = run.open_end and last == run.last
        occupied = run.counts[run.state]
        return Trap(run.state, run.label, first, last, last - first + 1 - open_end, self.censored and last == run.last,
                    (first, last) != (run.first, run.last), occupied, occupied / whole, run.visits, run.exits,
                    len(run.counts), _flicker(run.state, run.counts, whole), run.resolution, run.beyond.holding)


def _flicker(representative: State, counts: dict[State, int], whole: int) -> list[Flicker]:
    """Where and how often the states of a stretch differ from its own state; whole: number of steps."""
    away: dict[int, dict[int, int]] = {}
    for state, steps in counts.items():
        for site, (token, other) in enumerate(zip(representative, state, strict=True)):
            if token != other:
                tokens = away.setdefault(site, {})
                tokens[other] = tokens.get(other, 0) + steps
    flickers = [Flicker(site, sum(tokens.values()) / whole, max(tokens, key=lambda token: tokens[token]))
             for site, tokens in away.items()]
    return sorted(flickers, key=lambda flicker: (-flicker.share, flicker.site))


class Tracker:
    """Finds the traps of one chain; feed it states with `see`, then call `end`.

    >>> tracker = Tracker(radius=0, min_steps=3)
    >>> traps = [*tracker.see(0, (1, 1)), *tracker.see(1, (1, 2)), *tracker.see(6, (1, 1)), *tracker.end()]
    >>> [(trap.state, trap.first, trap.last, trap.residence) for trap in traps]
    [((1, 2), 1, 5, 5)]
    """

    def __init__(self, radius: int, min_steps: int) -> None:
        self.radius, self.min_steps = radius, min_steps
        self.step = -1
        """The last step seen, -1 before the first."""
        self._state: State | None = None
        self._since, self._resolution = -1, 1
        self._runs: list[_Run] = []
        self._waiting: list[_Candidate] = []
        self._decided = -1
        self._scores: list[Score] = []

    def scores(self) -> list[Score]:
        """The scores of the runs that ended since the last call.

        A run has a score if it was open at its L-th step and no other state was occupied for more of its steps until
        then. The score counts the steps made from its state from that step on. Whether the run became a trap does not
        matter, since that depends on later steps; see residence.Beyond.
        """
        scores, self._scores = self._scores, []
        return scores

    def see(self, step: int, state: State, resolution: int = 1, label: Any = None) -> Sequence[Trap]:
        """Take the chain's state at a step; returns the traps that are now certain.

        The chain is assumed to have stayed in its last state until this step; resolution: largest number of steps for
        which this is not known. label: anything, kept with the trap of a run that begins here.
        """
        old = self._state
        self.step, self._resolution = step, max(self._resolution, resolution)
        if state == old:
            return ()
        if old is None:
            self._since = step
        else:
            self._stay(leaves=True)
            sites = [site for site, (a, b) in enumerate(zip(old, state, strict=True)) if a != b]
            for run in self._runs:
                run.move(sites, old, state, step)
        self._state = state
        ended = [run for run in self._runs if run.distance > self.radius]
        if ended:
            self._runs = [run for run in self._runs if run.distance <= self.radius]
        if all(run.distance for run in self._runs):
            self._runs.append(_Run(state, step, label, self.min_steps))
            if len(self._runs) > OPEN:
                forgotten = min(self._runs[:-1], key=lambda run: run.counts[run.state])
                self._runs.remove(forgotten)
                self._score([forgotten])
        return self._close(ended, censored=False)

    def end(self) -> Sequence[Trap]:
        """End the chain: returns the remaining traps, those that are open as censored."""
        if self._state is None:
            return ()
        self._stay(leaves=False)
        ended, self._runs = self._runs, []
        return self._close(ended, censored=True)

    def _stay(self, leaves: bool) -> None:
        """End the present stay: the chain leaves its state at this step or, at the end of the records, does not."""
        assert self._state is not None
        for run in self._runs:
            run.stay(self._state, self.step - self._since, self.step - leaves, self._resolution, leaves)
        self._since, self._resolution = self.step, 1

    def _score(self, ended: Sequence[_Run]) -> None:
        self._scores += [run.score() for run in ended if run.chosen and run.beyond.steps]

    def _close(self, ended: Sequence[_Run], censored: bool) -> Sequence[Trap]:
        self._score(ended)
        candidates = [_Candidate(run, censored) for run in ended if run.total >= self.min_steps and run.most_occupied]
        self._waiting += candidates
        if not self._waiting or not ended:
            return ()
        frontier = min((run.first for run in self._runs), default=inf)
        if len(self._waiting) > WAITING:
            frontier = inf
        ready = [group for group in _overlapping(self._waiting) if max(one.run.last for one in group) < frontier]
        self._waiting = [one for one in self._waiting if not any(one in group for group in ready)]
        return [trap for group in ready for trap in self._resolve(group)]

    def _resolve(self, group: Sequence[_Candidate]) -> Iterator[Trap]:
        """The traps of overlapping candidates: the longest first; others keep the longest piece that is left."""
        taken = [(-1, self._decided)]
        traps = []
        for one in sorted(group, key=lambda one: (-one.run.total, one.run.first)):
            first, last = longest_piece(one.run.first, one.run.last, taken)
            trap = one.trap(first, last)
            if trap.residence >= self.min_steps:
                taken.append((first, last))
                traps.append(trap)
        self._decided = max(last for _, last in taken)
        yield from sorted(traps, key=lambda trap: trap.first)


def _overlapping(candidates: Sequence[_Candidate]) -> list[list[_Candidate]]:
    """The candidates in groups that are connected by overlaps, in the order of their steps."""
    groups: list[list[_Candidate]] = []
    end = -1
    for one in sorted(candidates, key=lambda one: one.run.first):
        if one.run.first > end:
            groups.append([])
        groups[-1].append(one)
        end = max(end, one.run.last)
    return groups
