"""What the model, opened with the first trap, says of representatives: margins, escape, residence."""

from collections import OrderedDict
from math import inf, isfinite
from typing import Any

import numpy as np

from mlmglauber.commands.inputs import Inputs
from mlmglauber.measures.margins import Margins, margins, site_rows
from mlmglauber.measures.repetition import repetition
from mlmglauber.models.conditionals import TextModel
from mlmglauber.stream.errors import RecordError, UsageError
from mlmglauber.stream.records import Record

REMEMBERED = 4096
"""Margins of so many states are kept: chains share traps."""


class Representatives(Inputs):
    """The model of traps that were found in records: opened, and told of in a run record, when the first one comes."""

    _known: "OrderedDict[tuple[float, tuple[int, ...], tuple[int, ...]], Margins] | None" = None

    def margins(self, first: Record, ids: tuple[int, ...], tau: float, upstream: Record | None) -> Margins:
        """Margins of a state at the sites that its chain draws at. first: the trap's record, upstream: its run's."""
        if self.model is None:
            self.model = self._open(first)
            self._known = OrderedDict()
            self._checked: set[Any] = set()
        assert self._known is not None
        if upstream is not None and upstream["run"] not in self._checked:
            self._check(upstream)
        free = free_sites(len(ids), upstream)
        key = (tau, ids, free)
        found = self._known.pop(key, None)
        if found is None:
            found = state_margins(self.model, ids, tau, free)
        self._known[key] = found
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found

    def _check(self, upstream: Record) -> None:
        """The chains must be of this very model: with another one the margins would be of another law."""
        assert self.model is not None
        ours = self.model.describe()
        for key in ("hash", "revision", "model"):
            if ours.get(key) is not None and upstream.get(key) is not None:
                if ours[key] != upstream[key]:
                    raise UsageError(f"run {upstream['run']} is of the model {upstream.get('model')} ({key} "
                                     f"{upstream[key]}), not of {ours['model']} ({ours[key]}); name its model with -m, "
                                     "or leave margins out with --no-model")
                break
        if upstream.get("dtype") not in (None, ours["dtype"]):
            self.filter.words.say(f"run {upstream['run']} was made in {upstream['dtype']}, margins are computed in "
                                  f"{ours['dtype']}; give --dtype {upstream['dtype']} for those of the chains")
        self._checked.add(upstream["run"])


def free_sites(n: int, upstream: Record | None) -> tuple[int, ...]:
    """The sites that a chain draws at, by its run record: all but the frozen ones."""
    frozen = ((upstream or {}).get("options") or {}).get("freeze") or []
    return tuple(site for site in range(n) if site not in frozen)


def state_margins(model: TextModel, ids: tuple[int, ...], tau: float, free: tuple[int, ...] | None = None) -> Margins:
    """Margins of one state; RecordError where it is none of the model, or a conditional is not finite."""
    if len(ids) > model.max_sites:
        raise RecordError(f"{len(ids)} tokens, the model takes {model.max_sites}; these states are of another model")
    model.check_ids(ids)
    sites, state = np.arange(len(ids)) if free is None else np.array(free), np.array(ids)
    try:
        return margins(site_rows(model, state, sites), state[sites], tau, int(model.allowed.sum()))
    except ValueError as error:
        raise RecordError(f"{error} at this trap; no margin can be told") from error


def margin_fields(found: Margins) -> Record:
    """What the conditionals say of a state at tau = 1: kind, margins, pseudo-log-likelihood, entropy."""
    fields: Record = {"kind": "perfect" if found.argmax == 1 else "approximate", "argmax": found.argmax}
    fields |= _number("margin", found.margin, "a token of the state is never drawn" if found.margin < 0
                      else "no other token is allowed")
    fields["gamma"] = [gamma if isfinite(gamma) else None for gamma in found.gamma.tolist()]
    return fields | _number("pll", found.pll, "a token of the state is never drawn") | {"entropy": found.entropy}


def escape_fields(found: Margins) -> Record:
    """The chance that one step leaves the state, at the margins' temperature, and what follows from it."""
    return ({"escape": found.escape} | _number("expected", found.residence, "the state is never left")
            | _number("bound", found.bound, "it is beyond all floats"))


def _number(name: str, value: float, reason: str) -> Record:
    if value in (inf, -inf):
        return {name: None, f"{name}_reason": reason}
    return {name: value}


def repetition_fields(ids: tuple[int, ...]) -> Record:
    """How much a state repeats itself."""
    found = repetition(ids)
    return {"repeated": found.length, "repeated_ids": list(ids[found.start : found.start + found.length]),
            "top_share": found.share, "top_token": found.token}
