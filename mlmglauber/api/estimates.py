"""Stationary means in Python: unbiased estimates from coupled pairs of chains with a lag."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mlmglauber.api.chains import Text, token_ids
from mlmglauber.api.checks import check_choice, check_count, check_tau, python_errors
from mlmglauber.api.progress import Progress, advancing
from mlmglauber.api.restrictions import Words, restricted_model
from mlmglauber.dynamics.coupled_chains import CoupledChains, coupled_chains
from mlmglauber.dynamics.coupled_engine import CoupledEngine
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.randomness import drawn_seed
from mlmglauber.measures.stationary import unbiased
from mlmglauber.measures.stationary.unbiased import PairPath, PairSums, StationaryEstimate, Window
from mlmglauber.measures.statistics.scaling import budget
from mlmglauber.models.conditionals import TextModel

LEAD = 10_000
"""Maximum number of steps of a pair before its states are counted; bounds the number of waiting states."""


class _Pair:
    """One pair in work: its coupled chains, and the sums of the states that they have gone through."""

    def __init__(self, group: CoupledChains, window: Window, value: Callable[[NDArray[np.int64]], float]) -> None:
        self.group, self._value = group, value
        self.sums = PairSums(window, 1)
        self._path = PairPath(window, self.sums.spend)
        group.horizon = min(group.last, LEAD)

    def take(self) -> None:
        """Count the states that the chains have gone through since the last call."""
        lag, first = self._path.window.lag, self.group.chains[0]
        while first.events:
            event = first.events.popleft()
            if event.step < lag:
                self._count(0, event.step, event.ids, False)
        while self.group.snapshots:
            snapshot = self.group.snapshots.popleft()
            for chain, ids in zip(snapshot.chains, snapshot.states, strict=True):
                self._count(chain, snapshot.step + (lag if chain == 0 else 0), ids, snapshot.met)
        self.group.horizon = min(self.group.end, self.group.step + LEAD)

    def _count(self, chain: int, step: int, ids: NDArray[np.int64], met: bool) -> None:
        put = self._path.follow if chain else self._path.lead
        put(np.array([step]), [np.array([[float(self._value(ids))]])], step if met else None)

    def finish(self) -> int:
        """The number of steps of the pair; ValueError for one that did not meet."""
        group, window = self.group, self._path.window
        if group.meeting is None:
            raise ValueError(f"a pair did not meet within {group.last} steps together, and an estimate from the others "
                             "would be biased; give a larger max_steps or tau")
        self._path.finish(group.step + window.lag)
        return unbiased.cost(window, group.meeting + window.lag)


@python_errors()
def stationary_mean(model: TextModel, text: Text, of: Callable[[NDArray[np.int64]], float], *, lag: int,
                    tau: float = 1.0, until: int | None = None, k: int | None = None, pairs: int = 20,
                    coupling: str = "maximal", max_steps: int | None = None, allow: Words | None = None,
                    ban: Words | None = None, seed: int | None = None, name: str = "0",
                    progress: Progress = None) -> StationaryEstimate:
    """The mean of a function of the state under the stationary law, without the bias of the start.

    Each pair has two chains from one text, the first `lag` steps ahead. H_{k:m} of Jacob, O'Leary and Atchade (2020)
    is its average over the steps k to m, corrected by the differences of the two chains until they meet. A seed gives
    the pairs of `mlm-couple --lag --on-change --until --seed` on the same text, and `name` is the id of the text there.

    of: called with the token ids (n,) of a state; its value must depend on the state alone. until: m, the step to
    which the first chain runs, 10 times the lag by default. k: the first step that is averaged, the lag by default.
    max_steps: joint steps after which a pair is given up, 25 n ln n by default. allow, ban: words that alone, or never,
    may be drawn. progress: True for a bar, or a function that is called with the number of pairs that have ended.

    ValueError where a pair does not meet, for a value that is not finite, a text that the model cannot take, and a
    conditional that is not finite.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> same = mg.stationary_mean(model, "a b", lambda ids: ids[0] == ids[1], lag=10, until=1000, pairs=50, seed=1)
    >>> same.low < 0.8 < same.high
    True
    """
    check_tau(tau)
    check_choice("coupling", coupling, ("maximal", "race", "quantile"))
    for argument, value, least in (("lag", lag, 1), ("pairs", pairs, 1)):
        check_count(argument, value, least)
    window = Window(lag if k is None else k, 10 * lag if until is None else until, lag).checked()
    model = restricted_model(model, allow, ban)
    ids = token_ids(model, text)
    seed = drawn_seed() if seed is None else seed
    engine = Engine(model)
    engine.precision.measure([tau])
    least = max(0, window.m - lag)
    steps = max(budget(len(ids), 25.0) if max_steps is None else max_steps, least)

    def checked(state: NDArray[np.int64]) -> float:
        found = float(of(state))
        if not np.isfinite(found):
            raise ValueError(f"the function is {found} on {model.decode(state.tolist())!r}; it must be finite")
        return found

    every = [_Pair(coupled_chains([ids, ids], name=name, number=number, tau=tau, seed=seed, coupling=coupling,
                                  steps=steps, vocab=model.vocab_size, lag=lag, until=least, on_change=True),
                   window, checked) for number in range(pairs)]
    _run(every, CoupledEngine(engine), progress)
    engine.finish_checks()
    costs = [pair.finish() for pair in every]
    return unbiased.estimate(np.array([pair.sums.unbiased[0] for pair in every]),
                             np.array([pair.sums.plain[0] for pair in every]), costs, window.length)


def _run(pairs: Sequence[_Pair], engine: CoupledEngine, progress: Progress) -> None:
    """Run all pairs to their ends."""
    working = list(pairs)
    with advancing(progress, "pairs", len(working)) as advance:
        while working:
            engine.advance([pair.group for pair in working])
            for pair in working:
                if pair.group.broken is not None:
                    raise ValueError(f"step {pair.group.step + 1}: the model's conditional at site {pair.group.broken} "
                                     "is not finite")
                pair.take()
            left = [pair for pair in working if not pair.group.finished]
            advance(len(working) - len(left))
            working = left
