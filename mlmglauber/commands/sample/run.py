"""A run of Glauber chains as records: what mlm-sample reads becomes chains, their steps become state records."""

import os
from collections.abc import Collection
from types import TracebackType
from typing import Any

import numpy as np

from mlmglauber.commands.sample.rerun import Recorded, check_same
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import (
    MODEL_OPTIONS,
    OWN_FIELDS,
    chain_fields,
    chain_run_id,
    check_frozen,
    opening_options,
    say_checked,
    say_too_short,
    shard_field,
    tally_unknown,
    text_exact,
    token_ids,
)
from mlmglauber.dynamics.chain import Chain, Event, OutputSchedule, in_step_order
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.plain import advance
from mlmglauber.dynamics.randomness import Stream, drawn_seed
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.opening import open_model
from mlmglauber.models.restricted import RestrictedModel, tokens_of
from mlmglauber.stream import resume
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.output import Appending, InOrder, Output, Sink
from mlmglauber.stream.records import SCHEMA, Record, is_input, record_id

PLACE_OPTIONS = (*MODEL_OPTIONS, "seed", "tau", "engine", "cache_mb")
"""Options that the run record tells elsewhere, or that do not change what is computed."""


LEAD = 10_000
"""Steps that a chain may be before the slowest one of its text: at most so many of its states wait to be written."""

WAITING = 2
"""Texts in work and done but not yet written, in multiples of the batch: long texts may hold up short ones."""


class Journey:
    """One run of mlm-sample: its model, opened when the first record comes, its run records and its walks."""

    def __init__(self, filter: Filter, options: dict[str, Any], resumed: str | None,
                 again: Recorded | None = None) -> None:
        self.filter, self.options, self.again = filter, options, again
        self.model: TextModel | None = None
        self.seen: set[str] = set()
        self.too_short = self.passed = 0
        self.left = resume.NOTHING
        self.path = resumed
        self.output: Output = filter.output
        if resumed is not None:
            self.descriptor = resume.open_locked(resumed)
            self.output = Appending(self.descriptor)
            filter.lines.before_wait = self.output.flush
            first = resume.first_record(self.descriptor, resumed)
            if options["seed"] is None and first is not None:
                options["seed"] = first["seed"]
        if options["seed"] is None:
            options["seed"] = drawn_seed()
        self.order = InOrder(self.output)

    def __enter__(self) -> "Journey":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self.too_short:
            say_too_short(self.filter, self.too_short, self.options["length"])
        if self.model is not None and kind is None:
            say_checked(self.filter, self.engine)
        if self.path is not None:
            if kind is None or not issubclass(kind, OSError):
                self.output.flush()
            os.close(self.descriptor)

    def next_walk(self, wait: bool) -> "Walk | None":
        """The chains of the next text; None at the end of the input, or when nothing is at hand and `wait` is off."""
        while (record := self.filter.read(plain_text=True, wait=wait)) is not None:
            with self.filter.guard(self.filter.place):
                walk = self._walk_of(record)
                if walk is not None:
                    return walk
        return None

    def _walk_of(self, record: Record) -> "Walk | None":
        if self.model is None:
            self.model = self._open(record)
        if not is_input(record):
            self.passed += 1
            self.filter.pass_on(record)
            if self.passed > self.left.passed:  # the first ones stand in the resumed file already
                sink = self.order.open()
                sink.write(record)
                sink.close()
            return None
        if self.filter.leaves_out(record):
            return None
        name = record_id(record, self.filter.count - 1)
        if name in self.seen:
            raise RecordError(f"the id {name!r} stood in the input before; ids name chains, make them differ")
        ids = self._ids(record)
        if ids is None:
            self.too_short += 1
            return None
        self.seen.add(name)
        return None if name in self.left.done else Walk(self, name, record, ids)

    def _open(self, first: Record) -> TextModel:
        options = self.options
        opening = {"exact_width": options["length"] is not None, **opening_options(options)}
        model: TextModel = self.filter.once(("model", options["model"], *opening.values()),
                                            lambda: open_model(options["model"], **opening))
        if options["allow"] is not None:
            model = RestrictedModel(model, tokens_of(model, options["allow"], "--allow"))
        self.engine = Engine(model, memory=options["cache_mb"] << 20)
        precision = self.engine.precision
        precision.measure(options["tau"])
        described = model.describe()
        told = {key: value for key, value in sorted(options.items()) if key not in PLACE_OPTIONS}
        told["batch_size"] = options["batch_size"]
        self.runs = {}
        head = []
        for tau in options["tau"]:
            # What makes a chain what it is, and the first record: two inputs at one seed are two runs.
            names = [options["seed"], tau, *(options[key] for key in ("scan", "init", "length", "freeze")),
                     self.filter.first or first]
            if options["allow"] is not None:
                names.append(options["allow"])
            self.runs[tau] = chain_run_id(described, names)
            head.append({"type": "run", "schema": SCHEMA, "run": self.runs[tau], "command": "mlm-sample",
                         "seed": options["seed"], "tau": tau, **described, **chain_fields(precision.tolerances),
                         "options": told,
                         **shard_field(self.filter.shard, self.path)})
        if self.again is not None:
            warning = check_same(self.again, set(self.runs.values()), described)
            if warning is not None:
                self.filter.words.say(warning)
        if self.path is not None:
            self.left = resume.take_up(self.descriptor, self.path, head)
        else:
            for run in head:
                self.output.write(run)
        return model

    def _ids(self, record: Record) -> list[int] | None:
        """The token ids of a record, None when it is shorter than --length."""
        assert self.model is not None
        ids = token_ids(self.model, record, self.options["length"])
        if ids is not None:
            tally_unknown(self.filter, record, ids)
            check_frozen(self.options["freeze"] or [], len(ids))
        return ids

    def has_room(self, walks: Collection["Walk"]) -> bool:
        """Whether another text may join: the batch is not full, and not too many wait for their turn to be written."""
        rows = self.engine.rows if self.model is not None else 1
        return sum(len(w.chains) for w in walks if not w.finished) < rows and len(walks) < WAITING * rows

    def step(self, walks: Collection["Walk"]) -> None:
        """Every chain in work goes on, one step or as far as the engine carries it; what is due is written."""
        assert self.model is not None
        walks = [walk for walk in walks if not walk.finished]
        chains = [chain for walk in walks for chain in walk.chains]
        if self.options["engine"] == "fast":
            self.engine.advance(chains)
        else:
            advance(self.engine.precision, chains, self.engine.rows)
        for walk in walks:
            with self.filter.guard(walk.place):
                walk.follow()
        self.output.flush()  # whoever reads sees each state when it is made


class Walk:
    """The chains of one text, at every temperature, in step with each other."""

    def __init__(self, journey: Journey, name: str, record: Record, ids: list[int]) -> None:
        assert journey.model is not None
        options = journey.options
        self.model, self.name, self.place = journey.model, name, journey.filter.place
        self.sink: Sink = journey.order.open()
        self.ends = journey.filter.ends
        self.inherited = {key: value for key, value in record.items() if key not in OWN_FIELDS}
        self.on_change = options["on_change"]
        every = 0 if self.on_change else options["every"] or len(ids)
        steps = options["steps"] if options["steps"] is not None else options["sweeps"] * len(ids)
        self.schedule = OutputSchedule(options["burn_in"] + steps, every, options["burn_in"], options["energy"])
        self.engine = journey.engine
        self.with_logp = every <= 1
        self.chains: list[Chain] = []
        self.runs: list[str] = []
        self.finished = False
        for tau in options["tau"]:
            for number in range(options["chains"]):
                start = first_state(self.model, ids, options, name, number)
                self.chains.append(Chain(start, tau=tau, seed=options["seed"], record=name, number=number,
                                         schedule=self.schedule, scan=options["scan"], frozen=options["freeze"] or []))
                self.runs.append(journey.runs[tau])
        if name == journey.left.current and journey.left.states:
            self._go_on(journey.left)
        elif self.schedule.burn_in == 0:
            for chain in self.chains:
                chain.events.append(Event(0, chain.ids.copy(), None))
        self.follow()

    def _go_on(self, left: resume.Left) -> None:
        """Set the chains where the interrupted run left them: nothing changed unseen between states --on-change."""
        for chain, run in zip(self.chains, self.runs, strict=True):
            state = left.states[run, chain.number]
            chain.ids[:] = state["ids"]
            chain.step = left.step - 1 if self.on_change else state["step"]

    def follow(self) -> None:
        """Write the states that all chains have passed; let the chains run on, none too far before the others."""
        for k, event in in_step_order(self.chains):
            self.sink.write(self._state(self.chains[k], self.runs[k], event))
        for chain in self.chains:
            if chain.broken is not None:
                self._close()
                raise RecordError(f"chain {chain.number} at tau {chain.tau:g}, step {chain.step + 1}: the model's "
                                  f"conditional at site {chain.broken} is not finite; the record ends here")
        slowest = min(chain.step for chain in self.chains)
        if slowest >= self.schedule.last:
            self._close()
        for chain in self.chains:
            chain.horizon = min(self.schedule.last, slowest + LEAD)

    def _close(self) -> None:
        self.finished = True
        self.sink.close()
        for chain in self.chains:
            masked = self._masked(chain.ids.tolist())
            self.ends.update(chains=1, masked=bool(masked), sites=masked)

    def _masked(self, ids: list[int]) -> int:
        """Number of sites of a state that are still masked: those of --init mask that were not drawn yet."""
        return 0 if self.model.mask_id is None else ids.count(self.model.mask_id)

    def _state(self, chain: Chain, run: str, event: Event) -> Record:
        ids, move = event.ids.tolist(), event.move
        text = self.model.decode(ids)
        state: Record = {"type": "state", "run": run, "id": self.name, "chain": chain.number, "step": event.step,
                         "tau": chain.tau, "n": len(ids), "text": text, "ids": ids}
        if masked := self._masked(ids):
            state["masked"] = masked
        if move is not None:
            state |= {"site": move.site, "old": move.old, "new": move.new, "changed": move.old != move.new}
            if self.with_logp:
                state |= {"logp_old": move.logp_old, "logp_new": move.logp_new}
                if move.logp_old == -np.inf:
                    state |= {"logp_old": None, "reason": "logp_old: the old token has probability 0 here"}
        if self.schedule.energy and event.step % self.schedule.energy == 0:
            state["pll"] = self.engine.pll(event.ids)
            if state["pll"] is None:
                state["pll_reason"] = "a token of the state is one that is never drawn"
        return state | text_exact(self.model, text, ids) | self.inherited


def first_state(model: TextModel, ids: list[int], options: dict[str, Any], name: str, number: int) -> list[int]:
    """The first state of a chain by --init; frozen sites keep the text's tokens."""
    if options["init"] == "text":
        return ids
    start = np.array(ids)
    free = np.setdiff1d(np.arange(len(ids)), options["freeze"] or [])
    if options["init"] == "mask":
        if model.mask_id is None:
            raise RecordError("a table has no mask token; use --init text or random")
        start[free] = model.mask_id
    else:
        tokens = np.flatnonzero(model.allowed)
        draws = Stream(options["seed"], name, number, "init").uniforms(0, len(ids))
        start[free] = tokens[(draws[free] * len(tokens)).astype(np.int64)]
    return [int(token) for token in start]
