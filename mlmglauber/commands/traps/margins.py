"""What the model, opened with the first trap, says of scorer: margins, escape, residence."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np

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

REMEMBERED = 4096
"""Margins of so many states are kept: chains share traps."""


class TrapScorer(Inputs):
    """The model of traps that were found in records: opened, and told of in a run record, when the first one comes."""

    _known: "OrderedDict[Any, Any] | None" = None

    def model_of(self, first: Record, run: ChainRun) -> TextModel:
        """The model as a run's chains have it. first: a record of what it is needed for."""
        if self.model is None or self.chains is None:
            self.model = self._open(first)
            self.chains = ChainModels(self.io, self.model, "leave margins out with --no-model")
        return self.chains.of(run)

    def margins(self, first: Record, ids: State, tau: float, run: ChainRun) -> Margins:
        """Margins of a state of a run at the sites that its chains draw at, of the tokens that they may draw."""
        found: Margins = self._once(("margins", run.law, tau, ids), lambda: state_margins(
            self.model_of(first, run), ids, tau, run.free_sites(len(ids))))
        return found

    def basin(self, first: Record, ids: State, tau: float, run: ChainRun, least: float) -> Record:
        """The fields of the set of states around it: see measures/traps/basin.py."""
        found: Record = self._once(("basin", run.law, tau, ids), lambda: basin_fields(
            self.model_of(first, run), ids, tau, least, run.free_sites(len(ids))))
        return found

    def support(self, first: Record, ids: State, run: ChainRun) -> Record:
        """The fields that tell which of its tokens hold each other."""
        model = self.model_of(first, run)
        found: Record = self._once(("support", run.law, ids), lambda: support_fields(
            model, ids, run.free_sites(len(ids)), model.rows))
        return found

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if self._known is None:
            self._known = OrderedDict()
        found = self._known.pop(key, None)
        if found is None:
            found = make()
        self._known[key] = found
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found


def checked_sites(model: TextModel, ids: Sequence[int], free: Sequence[int] | None) -> Ids:
    """The sites of a state that are drawn at, all by default; RecordError where it is no state of the model."""
    if len(ids) > model.max_sites:
        raise RecordError(f"{len(ids)} tokens, the model takes {model.max_sites}; these states are of another model")
    model.check_ids(ids)
    sites = np.arange(len(ids)) if free is None else np.array(free, dtype=np.int64)
    if not len(sites):
        raise RecordError("every site is frozen: no step changes this state")
    return sites


def state_margins(model: TextModel, ids: State, tau: float, free: Sequence[int] | None = None) -> Margins:
    """Margins of one state; RecordError where it is none of the model, or a conditional is not finite."""
    sites, state = checked_sites(model, ids, free), np.array(ids)
    try:
        return margins(decided_rows(model, state, sites), state[sites], tau, int(model.allowed.sum()))
    except ValueError as error:
        raise RecordError(f"{error} at this trap; no margin can be told") from error


def state_escapes(model: TextModel, ids: State, taus: Sequence[float],
                  free: Sequence[int]) -> tuple[list[float], float]:
    """The escape probabilities of a state at several temperatures, and its margin."""
    sites, state = checked_sites(model, ids, free), np.array(ids)
    try:
        rows = decided_rows(model, state, sites)
        found = [margins(rows, state[sites], tau, int(model.allowed.sum())) for tau in taus]
    except ValueError as error:
        raise RecordError(f"{error} at this trap; no margin can be told") from error
    return [one.escape for one in found], found[0].margin


def basin_fields(model: TextModel, ids: State, tau: float, least: float, free: Sequence[int]) -> Record:
    """The set of states that lead from a state through changes of chance `least` or more: how long it should hold."""
    sites = checked_sites(model, ids, free)
    try:
        found = basin_of(model, np.array(ids), sites, tau, least)
    except ValueError as error:
        raise RecordError(f"{error} around this trap; its basin cannot be told") from error
    fields: Record = {"least": least, "states": None if found is None else len(found.states)}
    if found is None:
        return fields | dict.fromkeys(("margin", "escape", "bound", "expected")) | {
            "reason": f"more than {LIMIT} states lead from it through changes of chance {least:g} or more"}
    return fields | nullable("margin", found.margin, "no step leaves the set" if found.margin > 0
                            else "a token of its states is never drawn") | {"escape": found.escape} | bound_fields(
        "bound", found.bound) | nullable("expected", found.expected, "the set is never left")


def support_fields(model: TextModel, ids: State, free: Sequence[int], rows: int) -> Record:
    """What the model knows of each token by each other one; null where it has no mask token."""
    sites = checked_sites(model, ids, free)
    if model.mask_id is None:
        return nullable("support", None, "the model has no mask token, so no two tokens can be hidden")
    try:
        found = mutual_support(model, np.array(ids), sites, model.mask_id, rows)
    except ValueError as error:
        raise RecordError(f"{error} with two masked tokens; their support cannot be told") from error
    return {"support": [[value if isfinite(value) else None for value in row] for row in found.tolist()]}


def margin_fields(found: Margins) -> Record:
    """What the conditionals say of a state at tau = 1: kind, margins, pseudo-log-likelihood, entropy."""
    fields: Record = {"kind": "perfect" if found.perfect else "approximate", "argmax": found.argmax,
                      **({"ties": found.ties} if found.ties else {})}
    fields |= nullable("margin", found.margin, "a token of the state is never drawn" if found.margin < 0
                      else "no other token is allowed")
    fields["gamma"] = [gamma if isfinite(gamma) else None for gamma in found.gamma.tolist()]
    return fields | nullable("pll", found.pll, "a token of the state is never drawn") | {"entropy": found.entropy}


def escape_fields(found: Margins) -> Record:
    """The chance that one step leaves the state, at the margins' temperature, and what follows from it."""
    return ({"escape": found.escape} | nullable("expected", found.residence, "the state is never left")
            | bound_fields("bound", found.bound))


def bound_fields(name: str, bound: float) -> Record:
    """A bound of a probability; null with the reason where it is 1 or above: then it says nothing."""
    return nullable(name, bound if bound < 1 else None, "it is 1 or above and says nothing")


def repetition_fields(ids: State) -> Record:
    """How much a state repeats itself."""
    found = repetition(ids)
    return {"repeated": found.length, "repeated_ids": list(ids[found.start : found.start + found.length]),
            "top_share": found.share, "top_token": found.token}
