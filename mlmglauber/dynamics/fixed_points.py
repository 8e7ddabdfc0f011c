"""Where the dynamics at tau = 0 ends: in a fixed point, which is a perfect trap, or on a cycle.

At tau = 0 a step puts the likeliest token at its site; of several likeliest tokens the one with the lowest id. Sites
are taken from left to right, so a sweep maps a state to a state, and nothing is random. A state that a sweep does not
change is a fixed point under every scan. A state that comes again after p > 1 sweeps lies on a cycle of p sweeps, which
the conditionals of a joint distribution do not have.
"""

from collections.abc import Sequence
from typing import NamedTuple

from mlmglauber.dynamics.chain import Chain, OutputSchedule
from mlmglauber.dynamics.engine import Engine
from mlmglauber.models.conditionals import Ids


class Ending(NamedTuple):
    """Where a start led.

    kind: "fixed_point"; "cycle"; "unfinished" when the last sweep that was allowed still changed the state;
    "not_finite" when a conditional is not finite. sweeps: number of sweeps until the last change or, on a cycle, until
    its first state. states: the fixed point alone; the states of a cycle after each sweep, beginning with the one whose
    ids come first in order; or the last state. site: the site of the conditional that is not finite.
    """

    kind: str
    sweeps: int
    states: list[Ids]
    site: int | None = None


class _Descent:
    """The descent of one start, with its state after each sweep."""

    def __init__(self, ids: Sequence[int], max_sweeps: int, frozen: Sequence[int]) -> None:
        self.sweep = len(set(range(len(ids))) - set(frozen))
        self.chain = Chain(ids, tau=0.0, seed=0, record="", number=0,
                           schedule=OutputSchedule(max_sweeps * self.sweep, every=0), scan="systematic", frozen=frozen)
        self.chain.horizon = min(self.sweep, self.chain.schedule.last)
        self.path = [self.chain.ids.copy()]
        self.seen = {self.path[0].tobytes(): 0}
        self.ending: Ending | None = None

    def update(self) -> None:
        """After an advance of the chain: set the ending if it has come, else allow the next sweep."""
        chain = self.chain
        chain.events.clear()
        if chain.broken is not None:
            self.ending = Ending("not_finite", len(self.path) - 1, [chain.ids.copy()], chain.broken)
        elif chain.step == chain.horizon:
            self._finish_sweep()

    def _finish_sweep(self) -> None:
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
    """The ending of each start, all of them in shared batches.

    max_sweeps: maximum number of sweeps, at least 1. frozen: sites that keep their tokens.

    >>> from mlmglauber.models.conditionals import TableConditional
    >>> table = TableConditional([[[.8, .2], [.3, .7]], [[.6, .4], [.4, .6]]])
    >>> [(ending.kind, ending.states[0].tolist()) for ending in descend(Engine(table), [[0, 1], [1, 0]], 9)]
    [('fixed_point', [1, 1]), ('fixed_point', [0, 0])]
    """
    descents = [_Descent(start, max_sweeps, frozen) for start in starts]
    while under_way := [descent for descent in descents if descent.ending is None]:
        engine.advance([descent.chain for descent in under_way])
        for descent in under_way:
            descent.update()
    return [descent.ending for descent in descents if descent.ending is not None]
