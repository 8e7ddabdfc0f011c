"""Chains in Python: models, Glauber chains of texts, and coupled pairs."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.api.checks import check_choice, check_count, check_sites, check_tau, check_words
from mlmglauber.dynamics.chain import Chain, Event, OutputSchedule, in_step_order
from mlmglauber.dynamics.coupled_chains import CoupledChains, lead_in
from mlmglauber.dynamics.coupled_engine import CoupledEngine
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.randomness import drawn_seed
from mlmglauber.measures.statistics.scaling import n_log_n
from mlmglauber.models.conditionals import Ids, TableConditional, TextModel
from mlmglauber.models.restricted import RestrictedModel, tokens_of

Text = str | Sequence[int]
"""A text, or its token ids."""
Progress = Callable[[float], None]
"""Called with the number of steps that have been made since the call before."""

LEAD = 10_000
"""Maximum number of steps a chain may run ahead of the slowest one; bounds the number of waiting states."""


class State(NamedTuple):
    """One state of a chain.

    step: number of updates made. tau: temperature. chain: number of the chain, from 0. ids: (n,) token ids. text: the
    decoded text. site, old, new: the last update, None at the start. logp_old, logp_new: log-probabilities of the
    tokens before and after that update, in nats at temperature 1.
    """

    step: int
    tau: float
    chain: int
    ids: Ids
    text: str
    site: int | None
    old: int | None
    new: int | None
    logp_old: float | None
    logp_new: float | None


class Trajectory(NamedTuple):
    """States of chains as arrays, S states of n tokens in the order they came.

    step: (S,) int. tau: (S,) float. chain: (S,) int. ids: (S, n) int. text: S strings. logp_new: (S,) log-probability
    in nats of the token that the last update drew, NaN at the start.
    """

    step: NDArray[np.int64]
    tau: NDArray[np.float64]
    chain: NDArray[np.int64]
    ids: Ids
    text: list[str]
    logp_new: NDArray[np.float64]


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


def token_ids(model: TextModel, text: Text) -> list[int]:
    """The token ids of a text; ids are checked and returned.

    ValueError for a text that is empty or longer than the model takes, and for ids that are no state.
    """
    ids = model.encode(text) if isinstance(text, str) else [int(token) for token in text]
    if not ids:
        raise ValueError("the text has no token")
    if len(ids) > model.max_sites:
        raise ValueError(f"the text has {len(ids)} tokens, the model takes {model.max_sites}")
    model.check_ids(ids)
    return ids


def restricted_model(model: TextModel, allow: Sequence[str] | None) -> TextModel:
    """The model with probabilities renormalised over some words; the model itself where allow is None."""
    return model if allow is None else RestrictedModel(model, tokens_of(model, check_words("allow", allow), "allow"))


def sample(model: TextModel, text: Text, *, tau: float = 1.0, steps: int | None = None, sweeps: int | None = None,
           chains: int = 1, every: int | None = 1, burn_in: int = 0, scan: str = "random",
           freeze: Sequence[int] = (), allow: Sequence[str] | None = None, seed: int | None = None, name: str = "0",
           progress: Progress | None = None) -> Iterator[State]:
    """States of Glauber chains from a text: at each step one site is masked and its token drawn from the model.

    The token v at site i has probability proportional to p(v | the other tokens)^(1/tau). A seed gives the same
    chains as `mlm-sample --seed` on an input whose id is `name`; a text without an id is named by its place, "0".

    tau: temperature; 0 takes the likeliest token. steps or sweeps: length of the chains; by default 100 sweeps of n
    steps. every: yield every so many steps, None for the states that differ from the one before. freeze: sites that
    do not move. allow: words that alone may be drawn. Yields step 0 (or burn_in) first, and the last step always.

    ValueError for a text that the model cannot take, and for a conditional that is not finite.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> [state.text for state in mg.sample(model, "a b", steps=2, seed=1)]
    ['a b', 'a a', 'a b']
    """
    check_tau(tau)
    check_choice("scan", scan, ("random", "permutation", "systematic"))
    if steps is not None and sweeps is not None:
        raise ValueError("steps and sweeps exclude each other")
    for argument, value, least in (("steps", steps, 0), ("sweeps", sweeps, 0), ("every", every, 1),
                                   ("chains", chains, 1), ("burn_in", burn_in, 0)):
        if value is not None:
            check_count(argument, value, least)
    model = restricted_model(model, allow)
    ids = token_ids(model, text)
    if steps is None:
        steps = (100 if sweeps is None else sweeps) * len(ids)
    check_sites("freeze", freeze, len(ids))
    if len(freeze) == len(ids):
        raise ValueError("freeze names every site, so none can move; name fewer")
    engine = Engine(model)
    engine.precision.measure([tau])
    schedule = OutputSchedule(burn_in + steps, 0 if every is None else every, burn_in)
    seed = drawn_seed() if seed is None else seed
    group = [Chain(ids, tau=tau, seed=seed, record=name, number=number, schedule=schedule, scan=scan, frozen=freeze)
             for number in range(chains)]
    if burn_in == 0:
        for chain in group:
            chain.events.append(Event(0, chain.ids.copy(), None))
    return _states(model, engine, group, progress)


def _states(model: TextModel, engine: Engine, group: list[Chain], progress: Progress | None) -> Iterator[State]:
    last = group[0].schedule.last
    while True:
        for k, event in in_step_order(group):
            move = event.move
            yield State(event.step, group[k].tau, k, event.ids, model.decode(event.ids.tolist()),
                        *((None,) * 5 if move is None else
                          (move.site, move.old, move.new, move.logp_old, move.logp_new)))
        slowest = min(chain.step for chain in group)
        if slowest >= last:
            engine.finish_checks()
            return
        for chain in group:
            chain.horizon = min(last, slowest + LEAD)
        before = sum(chain.step for chain in group)
        engine.advance(group)
        for chain in group:
            if chain.broken is not None:
                raise ValueError(f"chain {chain.number}, step {chain.step + 1}: the model's conditional at site "
                                 f"{chain.broken} is not finite")
        if progress is not None:
            progress(sum(chain.step for chain in group) - before)


def states_to_arrays(states: Iterator[State] | Sequence[State]) -> Trajectory:
    """The states of chains of one length as arrays; ValueError where there is no state, or where lengths differ.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> mg.states_to_arrays(mg.sample(model, "a b", steps=3, seed=1)).ids.shape
    (4, 2)
    """
    rows = list(states)
    if not rows:
        raise ValueError("no states")
    if len({len(state.ids) for state in rows}) > 1:
        raise ValueError("the states have different numbers of tokens; convert each length by itself")
    return Trajectory(np.array([state.step for state in rows]), np.array([state.tau for state in rows], dtype=float),
                      np.array([state.chain for state in rows]), np.stack([state.ids for state in rows]),
                      [state.text for state in rows],
                      np.array([np.nan if state.logp_new is None else state.logp_new for state in rows]))


def meeting_times(model: TextModel, pairs: Sequence[tuple[Text, Text]], *, tau: float = 1.0,
                  coupling: str = "maximal", max_steps: int | None = None, horizon: float = 25.0, lag: int = 0,
                  seed: int | None = None, names: Sequence[str] | None = None,
                  progress: Progress | None = None) -> MeetingTimes:
    """Steps until the two chains of each pair agree everywhere, when they draw together by a coupling.

    Both chains update the same site at each step; the two tokens are drawn by a maximal coupling ("maximal"), by
    common exponential clocks ("race") or by common quantiles ("quantile"). A longer text is cut to the length of the
    shorter one. A seed gives the same times as `mlm-couple --seed` on the same texts: names are the names of the
    pairs there, by default "0+1", "2+3" and so on.

    max_steps: joint steps after which a pair is given up and censored, by default horizon * n ln n. lag: the first
    chain runs so many steps ahead (an L-lag coupling, Biswas, Jacob and Vanetti 2019).

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
    seed = drawn_seed() if seed is None else seed
    engine = Engine(model)
    engine.precision.measure([tau])
    groups = []
    for k, texts in enumerate(pairs):
        both = [token_ids(model, text) for text in texts]
        n = min(map(len, both))
        name = f"{2 * k}+{2 * k + 1}" if names is None else names[k]
        steps = max_steps or max(1, ceil(horizon * (n_log_n(n) or 0)))
        start = [lead_in(ids[:n], lag if replica == 0 else 0, tau=tau, seed=seed, record=f"{n},{replica}:{name}",
                         number=0) for replica, ids in enumerate(both)]
        groups.append(CoupledChains(start, tau=tau, seed=seed, record=f"{n}:{name}", number=0, coupling=coupling,
                                    steps=steps, vocab=model.vocab_size, lag=lag))
    coupled, working = CoupledEngine(engine), groups
    while working:
        before = sum(group.step for group in working)
        coupled.advance(working)
        if progress is not None:
            progress(sum(group.step for group in working) - before)
        working = [group for group in working if not group.finished]
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


def open_model(name: str | TableConditional | TextModel, *, tokens: Sequence[str] | None = None,
               **options: Any) -> TextModel:
    """The model of a name: "tiny-en" (bundled), a table FILE.json, a directory, or a name on the model hub.

    A TableConditional becomes a model of texts whose words are `tokens`, by default "0", "1", ...; a model that is open
    already is returned as it is.

    options: device ("auto", "cpu", "cuda"), dtype ("auto", "float64", "float32", "bfloat16", "float16"), revision,
    rows (states a call of the model, "auto" by default), exact, trust_remote_code, allow_pickle: as the options of
    the commands. ModelError for a model that cannot be opened or that has no masked conditionals.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> model.encode("b a")
    [1, 0]
    """
    if isinstance(name, TableConditional):
        from mlmglauber.models.table_text import TableText

        words = [str(token) for token in range(name.vocab_size)] if tokens is None else list(tokens)
        digest = hashlib.sha256(b"".join(table.tobytes() for table in name.tables)).hexdigest()[:16]
        return TableText(name, words, "table", digest)
    if not isinstance(name, str):
        return name
    from mlmglauber.models.opening import open_model as open_by_name

    return open_by_name(name, **options)
