"""Coupled pairs of chains in Python: meeting times, and the bound on the distance to stationarity that they give."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.api.chains import Text, token_ids
from mlmglauber.api.checks import check_choice, check_count, check_tau, python_errors
from mlmglauber.api.progress import Progress, advancing
from mlmglauber.api.restrictions import Words, restricted_model
from mlmglauber.dynamics.coupled_chains import coupled_chains
from mlmglauber.dynamics.coupled_engine import CoupledEngine
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.randomness import drawn_seed
from mlmglauber.measures.meeting.lag import bound
from mlmglauber.measures.statistics.scaling import budget
from mlmglauber.models.conditionals import TextModel


class MeetingTimes(NamedTuple):
    """Meeting times of coupled pairs, P pairs in the order they were given.

    steps: (P,) steps until the two chains agree everywhere; for a censored pair, the steps after which it was given
    up. censored: (P,) True for a pair that had not met by then. n: (P,) number of sites. tau: temperature. lag: the
    lead of the first chain, in steps, included in `steps`.
    """

    steps: NDArray[np.int64]
    censored: NDArray[np.bool_]
    n: NDArray[np.int64]
    tau: float
    lag: int


@python_errors()
def meeting_times(model: TextModel, pairs: Sequence[tuple[Text, Text]], *, tau: float = 1.0,
                  coupling: str = "maximal", max_steps: int | None = None, horizon: float = 25.0, lag: int = 0,
                  allow: Words | None = None, seed: int | None = None, names: Sequence[str] | None = None,
                  progress: Progress = None, ban: Words | None = None) -> MeetingTimes:
    """Steps until the two chains of each pair agree everywhere, when they draw together by a coupling.

    Both chains update the same site at each step; the two tokens are drawn by a maximal coupling ("maximal"), by
    common exponential clocks ("race") or by common quantiles ("quantile"). A longer text is cut to the length of the
    shorter one. A seed gives the same times as `mlm-couple --seed` on the same texts: names are the names of the
    pairs there, by default "0+1", "2+3" and so on.

    max_steps: joint steps after which a pair is given up and censored, by default horizon * n ln n. lag: the first
    chain runs so many steps ahead (an L-lag coupling, Biswas, Jacob and Vanetti 2019). allow: words that alone may be
    drawn. ban: words that are never drawn. progress: True for a bar, or a function that is called with the number of
    pairs that have ended.

    ValueError for a text that the model cannot take, and for a conditional that is not finite.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> mg.meeting_times(model, [("a b", "b a")], tau=2.0, seed=1).censored
    array([False])
    """
    check_tau(tau)
    check_choice("coupling", coupling, ("maximal", "race", "quantile"))
    check_count("lag", lag, 0)
    if max_steps is not None:
        check_count("max_steps", max_steps, 1)
    if not horizon > 0:
        raise ValueError(f"horizon is {horizon}; give a number above 0")
    if names is not None and len(names) != len(pairs):
        raise ValueError(f"{len(names)} names for {len(pairs)} pairs; give one name a pair")
    if any(isinstance(pair, str) or len(pair) != 2 for pair in pairs):
        raise ValueError("a pair has two texts; give a list of pairs")
    model = restricted_model(model, allow, ban)
    seed = drawn_seed() if seed is None else seed
    engine = Engine(model)
    engine.precision.measure([tau])
    groups = []
    for k, texts in enumerate(pairs):
        both = [token_ids(model, text) for text in texts]
        n = min(map(len, both))
        name = f"{2 * k}+{2 * k + 1}" if names is None else str(names[k])
        groups.append(coupled_chains([ids[:n] for ids in both], name=name, number=0, tau=tau, seed=seed,
                                     coupling=coupling, steps=max_steps or budget(n, horizon),
                                     vocab=model.vocab_size, lag=lag))
    coupled, working = CoupledEngine(engine), groups
    with advancing(progress, "pairs", len(groups)) as advance:
        while working:
            coupled.advance(working)
            left = [group for group in working if not group.finished]
            advance(len(working) - len(left))
            working = left
    engine.finish_checks()
    for k, group in enumerate(groups):
        if group.broken is not None:
            raise ValueError(f"pair {k}, step {group.step + 1}: the model's conditional at site {group.broken} is not "
                             "finite")
    met = [group.meeting for group in groups]
    return MeetingTimes(np.array([(group.last if one is None else one) + lag
                                  for group, one in zip(groups, met, strict=True)], dtype=np.int64),
                        np.array([one is None for one in met], dtype=bool),
                        np.array([len(group.chains[0].ids) for group in groups], dtype=np.int64), tau, lag)


class VariationBound(NamedTuple):
    """Estimated upper bounds on a chain's total variation distance to its stationary distribution.

    steps: (T,) numbers of steps. bound: (T,) estimates; a value of 1 or more says nothing. error: (T,) their standard
    errors, NaN for one pair.
    """

    steps: NDArray[np.int64]
    bound: NDArray[np.float64]
    error: NDArray[np.float64]


def variation_bound(times: MeetingTimes, steps: Sequence[int] | NDArray[np.int64],
                    texts: Sequence[Hashable] | None = None) -> VariationBound:
    """The L-lag bound on the total variation distance to stationarity after each number of steps.

    With the meeting time tau of a pair of lag L, whose chains both start as the chain in question does, TV(t) <=
    E[max(0, ceil((tau - L - t) / L))] (Biswas, Jacob and Vanetti 2019); the mean over the pairs estimates it.

    times: of `meeting_times(..., lag=L)`, L above 0, each pair two copies of one text. texts: the text of each pair,
    by default one for all; standard errors count texts as clusters. ValueError for times without a lag and for a
    censored pair, since then there is no bound.

    >>> import numpy as np
    >>> import mlmglauber as mg
    >>> times = mg.MeetingTimes(np.array([3, 5]), np.array([False, False]), np.array([2, 2]), 1.0, 1)
    >>> mg.variation_bound(times, [0, 3]).bound.tolist()  # means of (2, 4) and (0, 1)
    [3.0, 0.5]
    """
    if times.lag < 1:
        raise ValueError("the pairs have no lag; give meeting times with a lag of 1 or more")
    if times.censored.any():
        raise ValueError(f"{int(times.censored.sum())} of {len(times.steps)} pairs did not meet, so there is no bound; "
                         "run them for more steps")
    if not len(times.steps):
        raise ValueError("no pairs; give at least one")
    if texts is not None and len(texts) != len(times.steps):
        raise ValueError(f"{len(texts)} texts for {len(times.steps)} pairs; give one text a pair")
    for step in steps:
        check_count("steps", step, 0)
    names = ["" if texts is None else str(texts[k]) for k in range(len(times.steps))]
    found = [bound(times.steps, times.lag, int(step), names) for step in steps]
    return VariationBound(np.array(steps, dtype=np.int64), np.array([one.mean for one in found], dtype=float),
                          np.array([np.nan if one.error is None else one.error for one in found], dtype=float))
