"""Where the dynamics at tau = 0 ends: fixed points, which are the perfect traps, or cycles.

At tau = 0 a step puts the likeliest token in the place of the one that stands there, ties going to the lowest id. Sites
are taken from left to right, so a sweep maps a state to a state, and nothing is random: a state that a sweep leaves as
it is is a fixed point, under every scan; one that comes again after p > 1 sweeps lies on a cycle of p sweeps, which the
conditionals of a joint law do not have.
"""

from collections.abc import Sequence
from typing import NamedTuple

from mlmglauber.dynamics.chain import Chain, OutputSchedule
from mlmglauber.dynamics.engine import Engine
from mlmglauber.models.conditionals import Ids


class Ending(NamedTuple):
    """Where a start led.

    kind: "fixed_point", "cycle", "unfinished" after the last sweep that was allowed, or "not_finite" when a conditional
    is not. sweeps: how many until the last change or, on a cycle, until its first state. states: the fixed point alone,
    or a cycle's states after each sweep, from the one with the lowest ids on, or the last state.
    """

    kind: str
    sweeps: int
    states: list[Ids]
    site: int | None = None
    """The site of the conditional that is not finite."""


class _Descent:
    """One start on its way, with its state after each sweep."""

    def __init__(self, ids: Sequence[int], max_sweeps: int, frozen: Sequence[int]) -> None:
        self.sweep = len(set(range(len(ids))) - set(frozen))
        self.chain = Chain(ids, tau=0.0, seed=0, record="", number=0,
                           schedule=OutputSchedule(max_sweeps * self.sweep, every=0), scan="systematic", frozen=frozen)
        self.chain.horizon = min(self.sweep, self.chain.schedule.last)
        self.path = [self.chain.ids.copy()]
        self.seen = {self.path[0].tobytes(): 0}
        self.ending: Ending | None = None

    def look(self) -> None:
        """After an advance: if a sweep is done, whether it was the last."""
        chain = self.chain
        chain.events.clear()
        if chain.broken is not None:
            self.ending = Ending("not_finite", len(self.path) - 1, [chain.ids.copy()], chain.broken)
        elif chain.step == chain.horizon:
            self._sweep_done()

    def _sweep_done(self) -> None:
        chain = self.chain
        first = self.seen.get(chain.ids.tobytes())
        if first is not None:  # a sweep draws once at each site: one that changes anything ends in another state
            cycle = self.path[first:]
            lowest = min(range(len(cycle)), key=lambda k: cycle[k].tolist())
            self.ending = Ending("fixed_point" if len(cycle) == 1 else "cycle", first,
                                 cycle[lowest:] + cycle[:lowest])
        elif chain.step >= chain.schedule.last:
            self.ending = Ending("unfinished", len(self.path), [chain.ids.copy()])
        else:
            self.seen[chain.ids.tobytes()] = len(self.path)
            self.path.append(chain.ids.copy())
            chain.horizon = min(chain.step + self.sweep, chain.schedule.last)


def descend(engine: Engine, starts: Sequence[Sequence[int]], max_sweeps: int,
            frozen: Sequence[int] = ()) -> list[Ending]:
    """The ending of each start, all of them in shared batches. max_sweeps: at least 1. frozen: sites that do not move.

    >>> from mlmglauber.models.conditionals import TableConditional
    >>> table = TableConditional([[[.8, .2], [.3, .7]], [[.6, .4], [.4, .6]]])
    >>> [(ending.kind, ending.states[0].tolist()) for ending in descend(Engine(table), [[0, 1], [1, 0]], 9)]
    [('fixed_point', [1, 1]), ('fixed_point', [0, 0])]
    """
    descents = [_Descent(start, max_sweeps, frozen) for start in starts]
    while under_way := [descent for descent in descents if descent.ending is None]:
        engine.advance([descent.chain for descent in under_way])
        for descent in under_way:
            descent.look()
    return [descent.ending for descent in descents if descent.ending is not None]
