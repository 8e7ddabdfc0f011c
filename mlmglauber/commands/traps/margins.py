"""Scores traps by the model: margins, escape probabilities, residence times; and their record fields."""

from collections.abc import Sequence
from math import isfinite
from operator import attrgetter
from typing import Any

import numpy as np
from cachetools import LRUCache, cachedmethod

from mlmglauber.commands.shared.chain_models import ChainModels
from mlmglauber.commands.shared.chain_run import ChainRun
from mlmglauber.commands.shared.inputs import Inputs
from mlmglauber.commands.shared.nullable import nullable
from mlmglauber.measures.traps.basin import LIMIT, State, basin_of
from mlmglauber.measures.traps.margins import Margins, decided_rows, margins
from mlmglauber.measures.traps.mutual_support import mutual_support
from mlmglauber.measures.traps.repetition import repetition
from mlmglauber.models.conditionals import Ids, TextModel
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record

CACHED = 4096
"""Maximum number of scores in the cache; chains share traps."""


class TrapScorer(Inputs):
    """Scores the traps of state records; the model is opened, and its run record written, with the first trap."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._scores: LRUCache[Any, Any] = LRUCache(CACHED)

    def model_of(self, first: Record, run: ChainRun) -> TextModel:
        """The model as the chains of a run have it. first: a record that names the run where none came before it."""
        if self.model is None or self.chains is None:
            self.model = self._open(first)
            self.chains = ChainModels(self.io, self.model, "leave margins out with --no-model")
        return self.chains.of(run)

    @cachedmethod(attrgetter("_scores"),
                  key=lambda _, first, ids, tau, run: ("margins", run.law, run.allow_at, tau, ids))
    def margins(self, first: Record, ids: State, tau: float, run: ChainRun) -> Margins:
        """Margins of a state at the sites and among the tokens that its chains may draw."""
        return state_margins(self.model_of(first, run), ids, tau, run.free_sites(len(ids)))

    @cachedmethod(attrgetter("_scores"),
                  key=lambda _, first, ids, tau, run, least: ("basin", run.law, run.allow_at, tau, ids))
    def basin(self, first: Record, ids: State, tau: float, run: ChainRun, least: float) -> Record:
        """The fields on the set of states around a state: see measures/traps/basin.py."""
        return basin_fields(self.model_of(first, run), ids, tau, least, run.free_sites(len(ids)))

    @cachedmethod(attrgetter("_scores"), key=lambda _, first, ids, run: ("support", run.law, run.allow_at, ids))
    def support(self, first: Record, ids: State, run: ChainRun) -> Record:
        """The fields on which tokens of a state support each other."""
        model = self.model_of(first, run)
        return support_fields(model, ids, run.free_sites(len(ids)), model.rows)


def checked_sites(model: TextModel, ids: Sequence[int], free: Sequence[int] | None) -> Ids:
    """The sites at which tokens are drawn, all by default; RecordError if the state is not one of the model."""
    if len(ids) > model.max_sites:
        raise RecordError(f"the state has {len(ids)} tokens, but the model takes at most {model.max_sites}; give the "
                          "model of these states with -m")
    model.check_ids(ids)
    sites = np.arange(len(ids)) if free is None else np.array(free, dtype=np.int64)
    if not len(sites):
        raise RecordError("every site is frozen, so no step changes this state; freeze fewer sites")
    return sites


def state_margins(model: TextModel, ids: State, tau: float, free: Sequence[int] | None = None) -> Margins:
    """Margins of one state; RecordError if it is not one of the model, or a conditional is not finite."""
    sites, state = checked_sites(model, ids, free), np.array(ids)
    try:
        return margins(decided_rows(model, state, sites), state[sites], tau, int(model.allowed.sum()), model.truncation)
    except ValueError as error:
        raise RecordError(f"{error} at this trap, so it has no margin; use another model, or --no-model") from error


def state_escapes(model: TextModel, ids: State, taus: Sequence[float],
                  free: Sequence[int]) -> tuple[list[float], float]:
    """The escape probabilities of a state at several temperatures, and its margin."""
    sites, state = checked_sites(model, ids, free), np.array(ids)
    try:
        rows = decided_rows(model, state, sites)
        at_taus = [margins(rows, state[sites], tau, int(model.allowed.sum()), model.truncation) for tau in taus]
    except ValueError as error:
        raise RecordError(f"{error} at this trap, so it has no margin; use another model, or --no-model") from error
    return [each.escape for each in at_taus], at_taus[0].margin


def basin_fields(model: TextModel, ids: State, tau: float, least: float, free: Sequence[int]) -> Record:
    """The fields on the set of states reached from a state through changes of probability `least` or more."""
    sites = checked_sites(model, ids, free)
    try:
        basin = basin_of(model, np.array(ids), sites, tau, least)
    except ValueError as error:
        raise RecordError(f"{error} around this trap; leave --basin out") from error
    fields: Record = {"least": least, "states": None if basin is None else len(basin.states)}
    if basin is None:
        return fields | dict.fromkeys(("margin", "escape", "bound", "expected")) | {
            "reason": f"more than {LIMIT} states lead from it through changes of chance {least:g} or more"}
    return fields | nullable("margin", basin.margin, "no step leaves the set" if basin.margin > 0
                            else "a token of its states is never drawn") | {"escape": basin.escape} | bound_fields(
        "bound", basin.bound) | nullable("expected", basin.expected, "the set is never left")


def support_fields(model: TextModel, ids: State, free: Sequence[int], rows: int) -> Record:
    """The field `support`, how much each token supports each other one; null if the model has no mask token."""
    sites = checked_sites(model, ids, free)
    if model.mask_id is None:
        return nullable("support", None, "the model has no mask token, so no two tokens can be hidden")
    try:
        support = mutual_support(model, np.array(ids), sites, model.mask_id, rows)
    except ValueError as error:
        raise RecordError(f"{error} with two masked tokens; leave --support out") from error
    return {"support": [[value if isfinite(value) else None for value in row] for row in support.tolist()]}


def margin_fields(state: Margins) -> Record:
    """The fields of a state at tau = 1: kind, margins, pseudo-log-likelihood, entropy."""
    fields: Record = {"kind": "perfect" if state.perfect else "approximate", "argmax": state.argmax,
                      **({"ties": state.ties} if state.ties else {})}
    fields |= nullable("margin", state.margin, "a token of the state is never drawn" if state.margin < 0
                      else "no other token is allowed")
    fields["gamma"] = [gamma if isfinite(gamma) else None for gamma in state.gamma.tolist()]
    return fields | nullable("pll", state.pll, "a token of the state is never drawn") | {"entropy": state.entropy}


def escape_fields(state: Margins) -> Record:
    """The probability that one step leaves the state, at the margins' temperature, and what follows from it."""
    return ({"escape": state.escape} | nullable("expected", state.residence, "the state is never left")
            | bound_fields("bound", state.bound))


def bound_fields(name: str, bound: float) -> Record:
    """A bound on a probability; null with the reason where it is 1 or above and so excludes nothing."""
    return nullable(name, bound if bound < 1 else None, "it is 1 or above and says nothing")


def repetition_fields(ids: State) -> Record:
    """How much a state repeats itself."""
    longest = repetition(ids)
    return {"repeated": longest.length, "repeated_ids": list(ids[longest.start : longest.start + longest.length]),
            "top_share": longest.share, "top_token": longest.token}
