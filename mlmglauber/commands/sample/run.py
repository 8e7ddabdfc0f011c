"""A run of Glauber chains: the texts that mlm-sample reads become chains, their steps become state records."""

from collections.abc import Collection

import numpy as np

from mlmglauber.commands.sample.options import SampleOptions
from mlmglauber.commands.sample.rerun import RecordedRun, check_same
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import (
    chain_fields,
    chain_run_id,
    check_frozen,
    inherited,
    report_too_short,
    shard_field,
    tally_unknown,
    text_exact,
    token_ids,
)
from mlmglauber.commands.shared.line_size import StateSizes
from mlmglauber.commands.shared.resumable import Cost, ResumableRun
from mlmglauber.commands.shared.site_allow import checked_choices
from mlmglauber.dynamics.chain import (
    NO_CHOICES,
    Chain,
    Choices,
    Event,
    Move,
    OutputSchedule,
    in_step_order,
    run_ahead,
)
from mlmglauber.dynamics.plain import advance
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.stream import resume
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.output import Sink
from mlmglauber.stream.printable import counted
from mlmglauber.stream.records import SCHEMA, Record

IMPOSSIBLE = "logp_old: the old token has probability 0 here"
NEVER_DRAWN = "a token of the state is one that is never drawn"
WAITING = 2
"""Maximum number of texts that are in work or wait to be written, in multiples of the batch size."""


class SampleRun(ResumableRun[SampleOptions, "TextChains"]):
    """One run of mlm-sample: its run records and the chains of its texts."""

    def __init__(self, io: Filter, options: SampleOptions, recorded: RecordedRun | None = None) -> None:
        super().__init__(io, options)
        self.recorded = recorded
        self.jobs_name, self.counts = "texts", options.engine == "fast"
        self.left = resume.BEGINNING
        self.frozen = options.freeze or []
        self.cut_schedules = 0
        """Number of texts whose chains end before the schedule does."""

    @property
    def passed_on_before(self) -> int:
        """Number of records that the interrupted run passed on into the resumed file."""
        return self.left.passed_on

    def report_left_out(self, complete: bool) -> None:
        """Report the texts that are shorter than --length, and those whose chains end before the schedule."""
        if self.cut_schedules:
            (schedule,) = self.options.temperatures
            self.io.reporter.warn(f"the chains of {counted(self.cut_schedules, 'text')} end before step "
                                  f"{schedule.steps}, at which --schedule does; raise --steps or --sweeps")
        if self.too_short:
            assert self.options.length is not None
            report_too_short(self.io, self.too_short, self.options.length)

    def start(self, first: Record) -> None:
        """Open the model and write one run record a temperature."""
        options = self.options
        _, described = self.open_chains(exact_width=options.length is not None)
        self.runs: list[str] = []
        heads = []
        for tau in options.tau if options.schedule is None else [options.schedule]:
            # The first record is part of the run id: two inputs with one seed are two runs.
            self.runs.append(chain_run_id(described, options.in_run_id(tau, self.io.first or first)))
            heads.append({"type": "run", "schema": SCHEMA, "run": self.runs[-1], "command": "mlm-sample",
                          "seed": self.seed, **_temperature_fields(tau), **described,
                          **chain_fields(self.engine.precision.tolerances), "options": options.in_run_record(),
                          **shard_field(self.io.shard, self.path)})
        if self.recorded is not None:
            warning = check_same(self.recorded, set(self.runs), described)
            if warning is not None:
                self.io.reporter.warn(warning)
        if self.path is not None:
            self.left = resume.continue_file(self.descriptor, self.path, heads)
        else:
            for head in heads:
                self.output.write(head)

    def next_job(self, wait: bool) -> "TextChains | None":
        """The chains of the next text; None at the end of the input, or when `wait` is off and no text has arrived."""
        while (record := self.io.read(plain_text=True, wait=wait)) is not None:
            with self.io.guard(self.io.place):
                text = self._chains_of(record)
                if text is not None:
                    return text
        return None

    def _chains_of(self, record: Record) -> "TextChains | None":
        """The chains of a record; None if it makes none, or if they are in the resumed file already."""
        name = self.new_input(record)
        if name is None:
            return None
        assert self.model is not None
        ids = token_ids(self.model, record, self.options.length)
        if ids is None:
            self.too_short += 1
            return None
        tally_unknown(self.io, record, ids)
        check_frozen(self.frozen, len(ids))
        choices = checked_choices(self.model, record, len(ids), self.frozen)
        self.ids.add(name)
        last = self.options.last_step(len(ids))
        self.cut_schedules += any(last < temperatures.steps for temperatures in self.options.temperatures)
        if name not in self.left.finished:
            return TextChains(self, name, record, ids, choices)
        self.skip_job(self.options.steps_of(len(ids)))
        return None

    def has_room(self, jobs: Collection["TextChains"]) -> bool:
        rows = self.engine.rows if self.model is not None else 1
        return sum(len(text.chains) for text in jobs if not text.finished) < rows and len(jobs) < WAITING * rows

    def step(self, jobs: Collection["TextChains"]) -> None:
        assert self.model is not None
        working = [text for text in jobs if not text.finished]
        chains = [chain for text in working for chain in text.chains]
        if self.options.engine == "fast":
            self.engine.advance(chains)
        else:
            advance(self.engine.precision, chains, self.engine.rows)
        for text in working:
            with self.io.guard(text.place):
                text.write_states()
        self.output.flush()  # a reader of the pipe sees each state when it is made


def _temperature_fields(tau: float | str) -> Record:
    """The temperature in a run record, or the schedule of several."""
    if isinstance(tau, str):
        return {"tau": None, "tau_reason": "it changes by the schedule", "schedule": tau}
    return {"tau": tau}


class TextChains:
    """The chains of one text at every temperature; their states are written in the order of their steps."""

    def __init__(self, run: SampleRun, name: str, record: Record, ids: list[int],
                 choices: Choices = NO_CHOICES) -> None:
        assert run.model is not None
        options = run.options
        self.options, self.choices = options, choices
        self.model, self.name, self.place = run.model, name, run.io.place
        self.sink: Sink = run.order.open()
        self.ends = run.io.ends
        self.inherited = inherited(record)
        self.on_change = options.on_change
        every = 0 if self.on_change else options.every or len(ids)
        self.schedule = OutputSchedule(options.last_step(len(ids)), every, options.burn_in, options.pll)
        self.engine = run.engine
        self.with_logp = every <= 1
        self.chains: list[Chain] = []
        self.runs: list[str] = []
        self.finished = False
        self.work = options.steps_of(len(ids))
        for temperatures, of_run in zip(options.temperatures, run.runs, strict=True):
            for number in range(options.chains):
                start = self._first_state(run, ids, number)
                self.chains.append(Chain(start, tau=temperatures, seed=run.seed, record=name, number=number,
                                         schedule=self.schedule, scan=options.scan, frozen=run.frozen,
                                         choices=choices))
                self.runs.append(of_run)
        if name == run.left.unfinished and run.left.states:
            self._continue(run.left)
        else:
            for chain in self.chains:
                chain.begin()
        self.resumed = sum(chain.step for chain in self.chains)
        self.write_states()

    @property
    def steps(self) -> int:
        """Number of steps that need no more work."""
        return self.work if self.finished else sum(chain.step for chain in self.chains)

    @property
    def depth(self) -> float:
        """Mean number of steps of a chain."""
        return sum(chain.step for chain in self.chains) / len(self.chains)

    @property
    def planned(self) -> Chain:
        """The first chain."""
        return self.chains[0]

    def cost(self, sizes: StateSizes) -> Cost:
        """The work for --dry-run."""
        least, most = self.schedule.emitted()
        first, last, count = self.chains[0], self.chains[-1], len(self.chains)
        ids = first.ids
        shortest = self._fields(first, self.runs[0], Event(self.schedule.burn_in, ids, None)) | self.inherited
        shortest.pop("masked", None)
        move = Move(len(ids) - 1, sizes.widest_id, sizes.widest_id, 0.0, 0.0)
        longest = self._fields(last, self.runs[-1], Event(self.schedule.last, ids, move)) | self.inherited
        if self.with_logp:
            longest["reason"] = IMPOSSIBLE
        if self.schedule.energy:
            longest |= {"pll": 0.0, "pll_reason": NEVER_DRAWN}
        size = sizes.of(shortest, longest, ids.tolist())
        return Cost(len(ids), count, self.schedule.last, (self.work, self.work), (least * count, most * count),
                    size.times(least * count, most * count))

    def _first_state(self, run: SampleRun, ids: list[int], number: int) -> list[int]:
        """The first state of a chain by --start. Frozen sites keep the tokens of the text."""
        if run.options.init == "text":
            return ids
        start = np.array(ids)
        free = np.setdiff1d(np.arange(len(ids)), run.frozen)
        if run.options.init == "mask":
            if self.model.mask_id is None:
                raise RecordError("the model has no mask token; use --start text or random")
            start[free] = self.model.mask_id
        else:
            tokens = np.flatnonzero(self.model.allowed)
            draws = Stream(run.seed, self.name, number, "init").uniforms(0, len(ids))
            for site in free.tolist():
                of_site = self.choices.get(site, tokens)
                start[site] = of_site[int(draws[site] * len(of_site))]
        return [int(token) for token in start]

    def _continue(self, left: resume.ResumePoint) -> None:
        """Set the chains to the last states of the interrupted run.

        With --on-change every change is a record, so a chain stays in its last written state up to the last step.
        """
        for chain, run in zip(self.chains, self.runs, strict=True):
            state = left.states[run, chain.number]
            chain.ids[:] = state["ids"]
            chain.step = left.step - 1 if self.on_change else state["step"]

    def write_states(self) -> None:
        """Write the states that all chains have passed; set how far each chain may run ahead of the slowest one."""
        for k, event in in_step_order(self.chains):
            self.sink.write(self._state(self.chains[k], self.runs[k], event))
        for chain in self.chains:
            if chain.broken is not None:
                self._close()
                tau = chain.temperatures.at(chain.step + 1)
                raise RecordError(f"chain {chain.number} at tau {tau:g}, step {chain.step + 1}: the model's "
                                  f"conditional at site {chain.broken} is not finite; the chains of this text end here")
        if run_ahead(self.chains):
            self._close()

    def _close(self) -> None:
        self.finished = True
        self.sink.close()
        for chain in self.chains:
            masked = self._masked(chain.ids.tolist())
            self.ends.update(chains=1, masked=int(masked > 0), sites=masked)

    def _masked(self, ids: list[int]) -> int:
        """Number of sites of a state that are still masked: those of --start mask that were not drawn yet."""
        return 0 if self.model.mask_id is None else ids.count(self.model.mask_id)

    def _state(self, chain: Chain, run: str, event: Event) -> Record:
        state, ids = self._fields(chain, run, event), event.ids.tolist()
        if self.schedule.energy and event.step % self.schedule.energy == 0:
            state["pll"] = self.engine.pll(event.ids)
            if state["pll"] is None:
                state["pll_reason"] = NEVER_DRAWN
        return state | text_exact(self.model, state["text"], ids) | self.inherited

    def _fields(self, chain: Chain, run: str, event: Event) -> Record:
        """The fields of a state that take no computation."""
        ids, move = event.ids.tolist(), event.move
        state: Record = {"type": "state", "run": run, "id": self.name, "chain": chain.number, "step": event.step,
                         "tau": chain.temperatures.at(event.step), "n": len(ids),
                         "text": self.model.decode(ids), "ids": ids}
        if masked := self._masked(ids):
            state["masked"] = masked
        if move is not None:
            state |= {"site": move.site, "old": move.old, "new": move.new, "changed": move.old != move.new}
            if self.with_logp:
                state |= {"logp_old": move.logp_old, "logp_new": move.logp_new}
                if move.logp_old == -np.inf:
                    state |= {"logp_old": None, "reason": IMPOSSIBLE}
        return state
