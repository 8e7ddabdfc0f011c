"""Chains in Python: models and Glauber chains of texts."""

import hashlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.api.checks import check_choice, check_count, check_model, check_sites, check_tau, python_errors
from mlmglauber.api.progress import Progress, advancing, close_at_exit, without_widget_warning
from mlmglauber.api.restrictions import SiteWords, Words, restricted_model, site_choices
from mlmglauber.dynamics.chain import Chain, OutputSchedule, in_step_order, run_ahead
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.randomness import drawn_seed
from mlmglauber.dynamics.temperatures import Temperatures
from mlmglauber.models.conditionals import Ids, TableConditional, TextModel

Text = str | Sequence[int]
"""A text, or its token ids."""


class State(NamedTuple):
    """One state of a chain.

    step: number of updates made. tau: temperature of the last update. chain: number of the chain, from 0. ids: (n,)
    token ids. text: the decoded text. site, old, new: the last update, None at the start. logp_old, logp_new:
    log-probabilities of the tokens before and after that update, in nats at its temperature.
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


def token_ids(model: TextModel, text: Text) -> list[int]:
    """The token ids of a text; ids are checked and returned.

    ValueError for a text that is empty or longer than the model takes, and for ids that are no state.
    """
    check_model(model)
    if not isinstance(text, str) and any(not isinstance(token, Integral) for token in np.atleast_1d(text).tolist()):
        raise ValueError(f"the text is {text!r}; give a text, or a list of token ids")
    ids = model.encode(text) if isinstance(text, str) else [int(token) for token in np.atleast_1d(text)]
    if not ids:
        raise ValueError("the text has no token; give at least one word")
    if len(ids) > model.max_sites:
        raise ValueError(f"the text has {len(ids)} tokens, the model takes {model.max_sites}; give a shorter one")
    model.check_ids(ids)
    return ids


@python_errors()
def sample(model: TextModel, text: Text, *, tau: float = 1.0, steps: int | None = None, sweeps: int | None = None,
           chains: int = 1, every: int | None = 1, burn_in: int = 0, scan: str = "random",
           freeze: Sequence[int] = (), allow: Words | SiteWords | None = None, seed: int | None = None,
           name: str = "0", progress: Progress = None, schedule: str | None = None,
           ban: Words | None = None) -> Iterator[State]:
    """States of Glauber chains from a text: at each step one site is masked and its token drawn from the model.

    The token v at site i has probability proportional to p(v | the other tokens)^(1/tau). A seed gives the same
    chains as `mlm-sample --seed` on an input whose id is `name`; a text without an id is named by its place, "0".
    Texts of one name and seed share their random numbers, so give the texts of one experiment different names.

    tau: temperature; 0 takes the likeliest token. steps or sweeps: length of the chains; by default 100 sweeps of n
    steps. every: yield every so many steps, None for the states that differ from the one before. freeze: sites that
    do not move. allow: words that alone may be drawn, everywhere or, as {site: words}, at some sites. ban: words that
    are never drawn. schedule: in place of tau, temperatures by steps, such as "2>0.3@2000,0.3": a ramp from 2 to 0.3
    in 2000 steps, then 0.3 (see mlm-sample --schedule). Yields step 0 (or burn_in) first, and the last step always.

    ValueError for a text that the model cannot take, and for a conditional that is not finite.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> [state.text for state in mg.sample(model, "a b", steps=2, seed=1)]
    ['a b', 'a a', 'a b']
    """
    check_tau(tau)
    if schedule is not None and tau != 1.0:
        raise ValueError("tau and schedule exclude each other")
    temperatures = Temperatures.constant(tau) if schedule is None else Temperatures.parse(schedule)
    check_choice("scan", scan, ("random", "permutation", "systematic"))
    if steps is not None and sweeps is not None:
        raise ValueError("steps and sweeps exclude each other")
    for argument, value, least in (("steps", steps, 0), ("sweeps", sweeps, 0), ("every", every, 1),
                                   ("chains", chains, 1), ("burn_in", burn_in, 0)):
        if value is not None:
            check_count(argument, value, least)
    of_sites = allow if isinstance(allow, Mapping) else None
    model = restricted_model(model, None if isinstance(allow, Mapping) else allow, ban)
    ids = token_ids(model, text)
    last = burn_in + (len(ids) * (100 if sweeps is None else sweeps) if steps is None else steps)
    if schedule is not None and steps is None and sweeps is None:
        last = max(burn_in, temperatures.length(len(ids), 100))
    check_sites("freeze", freeze, len(ids))
    if len(freeze) == len(ids):
        raise ValueError("freeze names every site, so none can move; name fewer")
    engine = Engine(model)
    engine.precision.measure(temperatures.ends())
    output = OutputSchedule(last, 0 if every is None else every, burn_in)
    seed = drawn_seed() if seed is None else seed
    group = [Chain(ids, tau=temperatures, seed=seed, record=str(name), number=number, schedule=output, scan=scan,
                   frozen=freeze, choices=site_choices(model, of_sites, len(ids), freeze)) for number in range(chains)]
    for chain in group:
        chain.begin()
    states = _states(model, engine, group, progress)
    if progress is True:
        close_at_exit(states)
    return states


def _states(model: TextModel, engine: Engine, group: list[Chain], progress: Progress) -> Generator[State]:
    with advancing(progress, "steps", group[0].schedule.last * len(group)) as advance:
        while True:
            for k, event in in_step_order(group):
                move = event.move
                yield State(event.step, group[k].temperatures.at(event.step), k, event.ids,
                            model.decode(event.ids.tolist()), *((None,) * 5 if move is None else
                              (move.site, move.old, move.new, move.logp_old, move.logp_new)))
            if run_ahead(group):
                engine.finish_checks()
                return
            before = sum(chain.step for chain in group)
            engine.advance(group)
            for chain in group:
                if chain.broken is not None:
                    raise ValueError(f"chain {chain.number}, step {chain.step + 1}: the model's conditional at site "
                                     f"{chain.broken} is not finite")
            advance(sum(chain.step for chain in group) - before)


def states_to_arrays(states: Iterator[State] | Sequence[State]) -> Trajectory:
    """The states of chains of one length as arrays; ValueError where there is no state, or where lengths differ.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> mg.states_to_arrays(mg.sample(model, "a b", steps=3, seed=1)).ids.shape
    (4, 2)
    """
    rows = list(states)
    if not rows:
        raise ValueError("no states; give what sample yields")
    if len({len(state.ids) for state in rows}) > 1:
        raise ValueError("the states have different numbers of tokens; convert each length by itself")
    return Trajectory(np.array([state.step for state in rows]), np.array([state.tau for state in rows], dtype=float),
                      np.array([state.chain for state in rows]), np.stack([state.ids for state in rows]),
                      [state.text for state in rows],
                      np.array([np.nan if state.logp_new is None else state.logp_new for state in rows]))


@python_errors()
def open_model(name: str | TableConditional | TextModel, *, tokens: Sequence[str] | None = None, causal: bool = False,
               **options: Any) -> TextModel:
    """The model of a name: "tiny-en" (bundled), a table FILE.json, a directory, or a name on the model hub.

    A TableConditional becomes a model of texts whose words are `tokens`, by default "0", "1", ...; a model that is open
    already is returned as it is.

    causal: accept a causal language model too; `score` takes one, functions that need masked conditionals do not.
    options: device ("auto", "cpu", "cuda"), dtype ("auto", "float64", "float32", "bfloat16", "float16"), revision,
    rows (states a call of the model, "auto" by default), exact, all_tokens, trust_remote_code, allow_pickle: as the
    options of the commands. ModelError for a model that cannot be opened or that has no masked conditionals.

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
        if not hasattr(name, "log_probs"):
            raise ValueError(f"the model is {name!r}; give its name, a TableConditional, or an open model")
        return name
    if "rows" in options and options["rows"] != "auto":
        check_count("rows", options["rows"], 1)
    from mlmglauber.models.opening import open_model as open_by_name
    from mlmglauber.models.opening import open_scorer

    with without_widget_warning():
        return open_scorer(name, **options) if causal else open_by_name(name, **options)
