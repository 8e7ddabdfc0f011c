"""One pair of mlm-couple, from its texts to its record."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.commands.couple.options import CoupleOptions
from mlmglauber.commands.shared.inputs import inherited, text_exact
from mlmglauber.commands.shared.line_size import Size, StateSizes, line_size
from mlmglauber.commands.shared.resumable import Cost
from mlmglauber.dynamics.chain import NO_CHOICES, Choices
from mlmglauber.dynamics.coupled_chains import CoupledChains, Snapshot, coupled_chains, lead_in_record
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.measures.meeting.lag import distance_at, distance_sums, geometric_steps
from mlmglauber.models.conditionals import Ids, TextModel
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.output import InOrder
from mlmglauber.stream.records import Record

LEAD = 10_000
"""Maximum number of steps a pair runs before its states are written; bounds the number of waiting states."""


class StartText(NamedTuple):
    """One input: file:line, id, record."""

    place: str
    name: str
    record: Record


class PairPlan(NamedTuple):
    """A pair to run: texts, their token ids at one length, temperature, number of the pair among those of the texts.

    name: the ids of the texts, joined by "+". choices: the tokens that may be drawn at some sites.
    """

    name: str
    texts: Sequence[StartText]
    ids: Sequence[list[int]]
    tau: float
    number: int
    choices: Choices = NO_CHOICES

    @property
    def key(self) -> tuple[Any, ...]:
        """The name, number, temperature and length, which identify a pair in a run."""
        return self.name, self.number, self.tau, len(self.ids[0])


class PairJob:
    """One pair in work: its coupled chains, and the records made of them."""

    def __init__(self, plan: PairPlan, model: TextModel, name: str, run: str, options: CoupleOptions,
                 seed: int, order: InOrder) -> None:
        """name: of the model. seed: of the run.

        RecordError for an impossible start, before the pair takes its place in the output.
        """
        self.plan, self.model, self.name, self.run, self.options, self.seed = plan, model, name, run, options, seed
        n = len(plan.ids[0])
        self.work, self.resumed = options.steps_of(n), 0
        self.group = coupled_chains(
            self._starts(), name=plan.name, number=plan.number, tau=plan.tau, seed=self.seed,
            coupling=options.coupling, steps=options.joint_steps(n), vocab=model.vocab_size, lag=options.lag,
            emit=options.emit or 0, burn_in=options.lead_in_steps(n),
            until=options.least_steps if options.for_estimates else None,
            on_change=options.on_change, choices=plan.choices)
        self.group.horizon = min(self.group.last, LEAD)
        self.sink = order.open()
        self.finished = False
        self.written = [0] * options.replicas
        """Number of states of each chain that are written."""
        self._last_written = [-1] * options.replicas
        self._met_is_written = False
        self.inherited: Record = {}
        for text in reversed(plan.texts):  # if several texts have a field, the first one counts
            self.inherited |= inherited(text.record)

    def _starts(self) -> list[list[int]]:
        """The first state of each chain."""
        plan, options, n = self.plan, self.options, len(self.plan.ids[0])
        return [first_state(self.model, plan, options, replica,
                            Stream(self.seed, lead_in_record(n, replica, plan.name), plan.number, "start"))
                for replica in range(options.replicas)]

    @property
    def steps(self) -> int:
        """Number of steps that need no more work; a pair that meets needs no further one."""
        return self.work if self.finished else self.group.step + sum(chain.step for chain in self.group.chains)

    @property
    def depth(self) -> float:
        """Number of joint steps, and of those that a chain made alone before."""
        return self.group.step + max(chain.step for chain in self.group.chains)

    @property
    def planned(self) -> CoupledChains:
        """The coupled chains."""
        return self.group

    def cost(self, sizes: StateSizes) -> Cost:
        """The work for --dry-run; a pair makes at least the steps that its chains run alone."""
        options, group = self.options, self.group
        count, last, start = len(group.chains), group.last, group.chains[0].ids
        longest = self._record(None, last, [group.sites] * len(_recorded_steps(last)))
        if options.lag:
            longest["wasserstein"] = [0.0] * len(longest["steps"])
        size, states = Size(line_size(self._record(0, 0, [0])).least, line_size(longest).most), (0, 0)
        joint = last if options.emit and options.until is None else options.least_steps
        if options.emit:
            every, most = options.emit, count * (last // options.emit + 1)
            states = most, most
            if options.until is not None:
                states = count + (options.until // every), most + options.lag // every
        elif options.on_change:
            states = count + 1, count * (last + 1) + options.lag
        if states[1]:
            first, end = (self._state(chain, step, start) | self.inherited
                          for step, chain in ((0, 0), (last, count - 1)))
            size += sizes.of(first, end | {"step": last + options.lag}, start.tolist()).times(*states)
        return Cost(group.sites, count, last + max(chain.horizon for chain in group.chains),
                    (self.work - last + joint, self.work), (1 + states[0], 1 + states[1]), size)

    def write_records(self) -> None:
        """Write the states that are due and, at the end, the pair record."""
        group = self.group
        if self.options.for_estimates:
            self._write_lead()
        while group.snapshots:
            self._write_snapshot(group.snapshots.popleft())
        group.horizon = min(group.end, group.step + LEAD)
        if not group.finished:
            return
        self.finished = True
        if group.broken is None:
            if self.options.on_change:
                self._write_ends()
            self.sink.write(self._whole_record())
        self.sink.close()
        if group.broken is not None:
            raise RecordError(f"pair {self.plan.number} at tau {self.plan.tau:g}, step {group.step + 1}: the model's "
                              f"conditional at site {group.broken} is not finite; the pair is left out")

    def _write_lead(self) -> None:
        """Write the states of the first chain in its lead, before the joint steps; step 0 is the end of the burn-in."""
        first, burn_in = self.group.chains[0], self.group.chains[0].schedule.burn_in
        while first.events:
            event = first.events.popleft()
            if event.step - burn_in < self.options.lag:
                self._write_state(0, event.step - burn_in, event.ids)

    def _write_snapshot(self, snapshot: Snapshot) -> None:
        """Write states; for mlm-estimate only those of the first chain once those of both have met."""
        later = self.options.for_estimates and self._met_is_written
        for chain, ids in zip(snapshot.chains, snapshot.states, strict=True):
            if chain == 0 or not later:
                self._write_state(chain, snapshot.step + (self.options.lag if chain == 0 else 0), ids, snapshot.met)
        self._met_is_written = snapshot.met

    def _write_ends(self) -> None:
        """Write the last states of all chains, or of the first if they have met, where they are not written yet."""
        group = self.group
        chains = range(len(group.chains) if group.meeting is None else 1)
        ends = [group.step + (self.options.lag if chain == 0 else 0) for chain in chains]
        group.take_snapshot(group.step, [chain for chain in chains if self._last_written[chain] < ends[chain]])
        self._write_snapshot(group.snapshots.popleft())

    def _write_state(self, chain: int, step: int, ids: Ids, met: bool = False) -> None:
        state = self._state(chain, step, ids)
        if met and self.options.for_estimates:
            state["met"] = True
        self.sink.write(state | text_exact(self.model, state["text"], state["ids"]) | self.inherited)
        self.written[chain] += 1
        self._last_written[chain] = step

    def _state(self, chain: int, step: int, ids: Ids) -> Record:
        plan, tokens = self.plan, ids.tolist()
        name = f"{plan.name}/{plan.tau}/{len(tokens)}/{plan.number}"
        return {"type": "state", "run": self.run, "id": name, "chain": chain, "step": step, "coupled": plan.name,
                "tau": plan.tau, "n": len(tokens), "text": self.model.decode(tokens), "ids": tokens}

    def _whole_record(self) -> Record:
        """The pair record of a pair that has ended."""
        group, lag = self.group, self.options.lag
        steps = _recorded_steps(group.last if group.meeting is None else group.meeting)
        record = self._record(group.meeting, group.last_change, distance_at(group.history, steps).tolist())
        if lag and group.meeting is not None:
            record["wasserstein"] = distance_sums(group.history, lag, group.meeting, steps)
        return record

    def _record(self, meeting: int | None, last_change: int, hamming: list[int]) -> Record:
        """The pair record. meeting: joint steps until the pair met, None without one. hamming: at _recorded_steps."""
        group, plan, options = self.group, self.plan, self.options
        record: Record = {
            "type": "pair", "run": self.run, "id": plan.name, "pair": plan.number, "model": self.name,
            "tau": plan.tau, "n": len(plan.ids[0]), "seed": self.seed, "coupling": options.coupling,
            "start": options.start, "replicas": options.replicas, "lag": options.lag,
            "meeting": None if meeting is None else meeting + options.lag, "censored": meeting is None,
            "max_steps": group.last, "last_change": last_change,
        }
        if options.for_estimates:
            record |= {"last_step": group.step + options.lag, "states": self.written}
        if meeting is None:
            record["reason"] = f"meeting: the chains differed after {group.last} steps together"
        if options.start.startswith("perturb"):
            record |= {"damage": hamming[0], "healed": meeting is not None}
        record |= {"steps": _recorded_steps(group.last if meeting is None else meeting), "hamming": hamming}
        if options.lag:
            record["wasserstein"] = None
        return record | {key: value for key, value in self.inherited.items() if key not in record}


def _recorded_steps(end: int) -> list[int]:
    """The joint steps at which the distance of a pair is recorded; from `end` on it is 0, or not known."""
    return [*[step for step in geometric_steps(end) if step < end], end]


def first_state(model: TextModel, plan: PairPlan, options: CoupleOptions, replica: int, draws: Stream) -> list[int]:
    """The first state of a chain by --start, before it runs alone."""
    kind, _, count = options.start.partition(":")
    if kind == "pair":
        return plan.ids[replica]
    state, n = list(plan.ids[0]), len(plan.ids[0])
    every = np.flatnonzero(model.allowed)
    if kind == "random" and (replica > 0 or options.lag):  # with a lag both start from one distribution
        return [int(tokens[int(draw * len(tokens))]) for site, draw in enumerate(draws.uniforms(0, n).tolist())
                for tokens in [plan.choices.get(site, every)]]
    if kind == "perturb" and replica > 0:
        if int(count) > n:
            raise RecordError(f"--start perturb:{count} redraws more sites than the text has ({n}); give fewer")
        for site in draws.uniforms(0, n).argsort(kind="stable")[: int(count)].tolist():
            tokens = plan.choices.get(site, every)
            others = tokens[tokens != state[site]]
            if not len(others):
                raise RecordError("a site has no other token that may be drawn; give another model or --allow")
            state[site] = int(others[int(draws.uniforms(n + site, 1)[0] * len(others))])
    return state
