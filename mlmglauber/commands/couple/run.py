"""A run of mlm-couple: texts become pairs of chains, their meetings become pair records."""

import os
from collections.abc import Collection, Iterator, Sequence
from types import TracebackType
from typing import Any

import orjson

from mlmglauber.commands.couple.pair import Plan, Text, Unit
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import (
    MODEL_OPTIONS,
    chain_fields,
    chain_run_id,
    opening_options,
    say_checked,
    shard_field,
    tally_unknown,
    token_ids,
)
from mlmglauber.dynamics.coupled_chains import advance
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.randomness import drawn_seed
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.opening import open_model
from mlmglauber.models.restricted import RestrictedModel, tokens_of
from mlmglauber.stream import resume
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.output import Appending, InOrder, Output
from mlmglauber.stream.printable import counted, were
from mlmglauber.stream.records import SCHEMA, Record, is_input, record_id

WAITING = 4
"""Pairs in work and done but not yet written, in multiples of the batch: cold pairs may hold up hot ones."""


class Pairing:
    """One run of mlm-couple: its model, opened when the first text comes, its run record and its pairs."""

    def __init__(self, filter: Filter, options: dict[str, Any], resumed: str | None) -> None:
        self.filter, self.options, self.path = filter, options, resumed
        self.shard, filter.shard = filter.shard, None  # of pairs, not of inputs: a pair takes two of these
        self.planned = 0
        self.leads = self.shard is None or self.shard[0] == 0
        """Whether what concerns all shards, bad inputs and records that are passed on, is this one's to tell."""
        self.model: TextModel | None = None
        self.output: Output = filter.output
        self.seen: set[str] = set()
        self.too_short = self.unused = self.passed = self.passed_before = 0
        self.done: set[tuple[Any, ...]] = set()
        self._plans: Iterator[Plan] = iter(())
        self._gathered: list[Text] = []
        self._made: dict[int | None, int] = {}  # pairs of --start pair so far, by length
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

    def __enter__(self) -> "Pairing":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self.too_short:
            self._say(f"{counted(self.too_short, 'start')} of fewer tokens than --length asks for "
                      f"{were(self.too_short)} skipped")
        if self.unused:
            self._say(f"{counted(self.unused, 'text')} {were(self.unused)} left over: --pairs {self.options['pairs']} "
                      "were made before")
        if self._gathered and kind is None:
            self._say(f"the last {counted(len(self._gathered), 'text')} made no whole pair")
        if self.model is not None and kind is None:
            say_checked(self.filter, self.engine)
        if self.path is not None:
            if kind is None or not issubclass(kind, OSError):
                self.output.flush()
            os.close(self.descriptor)

    def _say(self, text: str) -> None:
        if self.leads:
            self.filter.words.say(text)

    def next_unit(self, wait: bool) -> Unit | None:
        """The next pair to run; None at the end of the input, or when nothing is at hand and `wait` is off."""
        while True:
            for plan in self._plans:
                self.planned += 1
                others = self.shard is not None and (self.planned - 1) % self.shard[1] != self.shard[0]
                if others or plan.key in self.done:
                    continue
                with self.filter.guard(plan.texts[-1].place):
                    assert self.model is not None
                    return Unit(plan, self.model, self.name, self.run, self.options, self.order)
            self.filter.mute = not self.leads
            record = self.filter.read(plain_text=True, wait=wait)
            if record is not None:
                with self.filter.guard(self.filter.place):
                    self._take(record)
            self.filter.mute = False
            if record is None:
                return None

    def _take(self, record: Record) -> None:
        """An input joins those before it until they make a start; other records are passed on in their place."""
        if self.model is None:
            self.model = self._open(record)
        if not is_input(record):
            self.passed += 1
            self.filter.pass_on(record)
            if self.leads and self.passed > self.passed_before:  # the first ones stand in the resumed file already
                sink = self.order.open()
                sink.write(record)
                sink.close()
            return
        if self.filter.leaves_out(record):
            return
        text = Text(self.filter.place, record_id(record, self.filter.count - 1), record)
        if text.name in self.seen:
            raise RecordError(f"the id {text.name!r} stood in the input before; ids name pairs, make them differ")
        lengths = self.options["lengths"]
        ids = token_ids(self.model, record, min(lengths) if lengths else None)
        if ids is None:
            self.too_short += 1  # at every length: the next text takes its place
            return
        tally_unknown(self.filter, record, ids)
        self.seen.add(text.name)
        if self.options["start"] != "pair":
            self._plans = self._plan([text])
        elif self._enough():
            self.unused += 1
        else:
            self._gathered.append(text)
            if len(self._gathered) == self.options["replicas"]:
                self._plans, self._gathered = self._plan(self._gathered), []

    def _enough(self) -> bool:
        wanted = self.options["pairs"]
        lengths = self.options["lengths"] or [None]
        return wanted is not None and all(self._made.get(length, 0) >= wanted for length in lengths)

    def _plan(self, texts: Sequence[Text]) -> Iterator[Plan]:
        """The pairs of a start: every length, temperature and number."""
        assert self.model is not None
        options = self.options
        in_all = options["start"] == "pair"
        for length in options["lengths"] or [None]:
            found: list[list[int] | None] = []
            for text in texts:
                with self.filter.guard(text.place):
                    found.append(token_ids(self.model, text.record, length))
            whole = [ids for ids in found if ids is not None]
            if len(found) < len(texts) or (in_all and self._made.get(length, 0) == options["pairs"]):
                continue
            if len(whole) < len(texts):
                self.too_short += 1
                continue
            self._made[length] = self._made.get(length, 0) + 1
            shortest = min(map(len, whole))
            ids = [tokens[:shortest] for tokens in whole]
            for tau in options["tau"]:
                for number in range(1 if in_all else options["pairs"] or 1):
                    yield Plan(texts, ids, tau, number)

    def _open(self, first: Record) -> TextModel:
        options = self.options
        opening = {"exact_width": options["lengths"] is not None, **opening_options(options)}
        model: TextModel = self.filter.once(("model", options["model"], *opening.values()),
                                            lambda: open_model(options["model"], **opening))
        if options["allow"] is not None:
            model = RestrictedModel(model, tokens_of(model, options["allow"], "--allow"))
        self.engine = Engine(model, memory=options["cache_mb"] << 20)
        described = model.describe()
        self.name = described["model"]
        told = {key: value for key, value in sorted(options.items())
                if key not in (*MODEL_OPTIONS, "seed", "cache_mb")}
        self.engine.precision.measure(options["tau"])
        self.run = chain_run_id(described, ["mlm-couple", options["seed"], told, self.filter.first or first])
        head: Record = {"type": "run", "schema": SCHEMA, "run": self.run, "command": "mlm-couple",
                        "seed": options["seed"], **described, **chain_fields(self.engine.precision.tolerances),
                        "options": told | {"batch_size": options["batch_size"]},
                        **shard_field(self.shard, self.path)}
        if self.path is not None:
            self._take_up(self.path, head)
        else:
            self.output.write(head)
        return model

    def _take_up(self, path: str, head: Record) -> None:
        """What an interrupted run left: its pairs are not run again, and what is not a whole pair is cut off."""
        resume.take_up(self.descriptor, path, [head])
        end = size = 0
        with open(path, "rb") as file:
            for line in file:
                size += len(line)
                record = orjson.loads(line)
                own = record.get("run") == self.run
                if own and record["type"] == "state":
                    continue
                end = size
                if own and record["type"] == "pair":
                    self.done.add((record["id"], record["pair"], record["tau"], record["n"]))
                elif not own:
                    self.passed_before += 1
        os.ftruncate(self.descriptor, end)
        os.lseek(self.descriptor, 0, os.SEEK_END)

    def has_room(self, units: Collection[Unit]) -> bool:
        """Whether another pair may join: the batch is not full, and not too many wait for their turn to be written."""
        rows = self.engine.rows if self.model is not None else 1
        return sum(u.group.distinct for u in units if not u.finished) < 2 * rows and len(units) < WAITING * rows

    def step(self, units: Collection[Unit]) -> None:
        """Every pair in work goes on as far as the engine carries it; what is due is written."""
        working = [unit for unit in units if not unit.finished]
        advance(self.engine, [unit.group for unit in working])
        for unit in working:
            with self.filter.guard(unit.plan.texts[-1].place):
                unit.follow()
        self.output.flush()
