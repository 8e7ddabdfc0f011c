"""One pair of mlm-couple, from its texts to its record."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.commands.couple.options import CoupleOptions
from mlmglauber.commands.shared.inputs import OWN_FIELDS, text_exact
from mlmglauber.commands.shared.resumable import Cost
from mlmglauber.dynamics.chain import NO_CHOICES, Choices
from mlmglauber.dynamics.coupled_chains import CoupledChains, Snapshot, coupled_chains, lead_in_record
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.measures.meeting.lag import distance_at, distance_sums, geometric_steps
from mlmglauber.models.conditionals import TextModel
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
            choices=plan.choices)
        self.sink = order.open()
        self.finished = False
        self.inherited: Record = {}
        for text in reversed(plan.texts):  # if several texts have a field, the first one counts
            self.inherited |= {key: value for key, value in text.record.items() if key not in OWN_FIELDS}

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
    def walker(self) -> CoupledChains:
        """The coupled chains."""
        return self.group

    def cost(self) -> Cost:
        """The work for --dry-run; a pair makes at least the steps that its chains run lead_in."""
        options, count, last = self.options, len(self.group.chains), self.group.last
        lead_in = self.work - last
        states = count * (last // options.emit + 1) if options.emit else 0
        return Cost(count, (lead_in + (last if options.emit else 0), self.work), (1, lead_in + count * last),
                    (1 + states, 1 + states))

    def write_records(self) -> None:
        """Write the states that are due and, at the end, the pair record."""
        group = self.group
        while group.snapshots:
            self._write_states(group.snapshots.popleft())
        group.horizon = min(group.last, group.step + LEAD)
        if not group.finished:
            return
        self.finished = True
        if group.broken is None:
            self.sink.write(self._record())
        self.sink.close()
        if group.broken is not None:
            raise RecordError(f"pair {self.plan.number} at tau {self.plan.tau:g}, step {group.step + 1}: the model's "
                              f"conditional at site {group.broken} is not finite; the pair is left out")

    def _write_states(self, snapshot: Snapshot) -> None:
        plan = self.plan
        name = f"{plan.name}/{plan.tau}/{len(plan.ids[0])}/{plan.number}"
        for k, ids in enumerate(snapshot.states):
            ahead = self.options.lag if k == 0 else 0
            tokens = ids.tolist()
            text = self.model.decode(tokens)
            self.sink.write({"type": "state", "run": self.run, "id": name, "chain": k, "step": snapshot.step + ahead,
                             "coupled": plan.name, "tau": plan.tau, "n": len(ids), "text": text, "ids": tokens}
                            | text_exact(self.model, text, tokens) | self.inherited)

    def _record(self) -> Record:
        group, plan, options = self.group, self.plan, self.options
        lag, n = options.lag, len(plan.ids[0])
        end = group.last if group.meeting is None else group.meeting  # the distance is 0 from there on
        steps = [*[step for step in geometric_steps(end) if step < end], end]
        record: Record = {
            "type": "pair", "run": self.run, "id": plan.name, "pair": plan.number, "model": self.name,
            "tau": plan.tau, "n": n, "seed": self.seed, "coupling": options.coupling,
            "start": options.start, "replicas": options.replicas, "lag": lag,
            "meeting": None if group.meeting is None else group.meeting + lag, "censored": group.meeting is None,
            "max_steps": group.last, "last_change": group.last_change,
        }
        if group.meeting is None:
            record["reason"] = f"meeting: the chains differed after {group.last} steps together"
        if options.start.startswith("perturb"):
            record |= {"damage": int(group.history[1][0]), "healed": group.meeting is not None}
        record |= {"steps": steps, "hamming": distance_at(group.history, steps).tolist()}
        if lag:
            record["wasserstein"] = (None if group.meeting is None else
                                     distance_sums(group.history, lag, group.meeting, steps))
        return record | {key: value for key, value in self.inherited.items() if key not in record}


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
