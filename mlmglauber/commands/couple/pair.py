"""One pair of mlm-couple, from its texts to its record."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.commands.couple.options import CoupleOptions
from mlmglauber.commands.shared.inputs import inherited, text_exact
from mlmglauber.commands.shared.line_size import Size, StateSizes, line_size
from mlmglauber.commands.shared.resumable import Cost
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

    name: the ids of the texts, joined by "+".
    """

    name: str
    texts: Sequence[StartText]
    ids: Sequence[list[int]]
    tau: float
    number: int

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
            emit=options.emit or 0, burn_in=options.lead_in_steps(n))
        self.sink = order.open()
        self.finished = False
        self.inherited: Record = {}
        for text in reversed(plan.texts):  # if several texts have a field, the first one counts
            self.inherited |= inherited(text.record)

    def _starts(self) -> list[list[int]]:
        """The first state of each chain."""
        plan, options, n = self.plan, self.options, len(self.plan.ids[0])
        return [first_state(self.model, plan.ids, options, replica,
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
        """The work for --dry-run, from that of a pair that meets at once to that of one that does not meet."""
        options, group = self.options, self.group
        count, last, start = len(group.chains), group.last, group.chains[0].ids
        longest = self._record(None, last, [group.sites] * len(_recorded_steps(last)))
        if options.lag:
            longest["wasserstein"] = [0.0] * len(longest["steps"])
        size, states, joint = Size(line_size(self._record(0, 0, [0])).least, line_size(longest).most), 0, 0
        if options.emit:
            states, joint = count * (last // options.emit + 1), last
            first, end = (self._state(Snapshot(step, (start,) * count), chain) | self.inherited
                          for step, chain in ((0, 0), (last, count - 1)))
            size += sizes.of(first, end | {"step": last + options.lag}, start.tolist()).times(states, states)
        return Cost(group.sites, count, last + max(chain.horizon for chain in group.chains),
                    (self.work - last + joint, self.work), (1 + states, 1 + states), size)

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
            self.sink.write(self._whole_record())
        self.sink.close()
        if group.broken is not None:
            raise RecordError(f"pair {self.plan.number} at tau {self.plan.tau:g}, step {group.step + 1}: the model's "
                              f"conditional at site {group.broken} is not finite; the pair is left out")

    def _write_states(self, snapshot: Snapshot) -> None:
        for chain in range(len(snapshot.states)):
            state = self._state(snapshot, chain)
            self.sink.write(state | text_exact(self.model, state["text"], state["ids"]) | self.inherited)

    def _state(self, snapshot: Snapshot, chain: int) -> Record:
        plan, tokens = self.plan, snapshot.states[chain].tolist()
        name = f"{plan.name}/{plan.tau}/{len(plan.ids[0])}/{plan.number}"
        ahead = self.options.lag if chain == 0 else 0
        return {"type": "state", "run": self.run, "id": name, "chain": chain, "step": snapshot.step + ahead,
                "coupled": plan.name, "tau": plan.tau, "n": len(tokens), "text": self.model.decode(tokens),
                "ids": tokens}

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


def first_state(model: TextModel, ids: Sequence[list[int]], options: CoupleOptions, replica: int,
                draws: Stream) -> list[int]:
    """The first state of a chain by --start, before it runs alone."""
    kind, _, count = options.start.partition(":")
    if kind == "pair":
        return ids[replica]
    state, n = list(ids[0]), len(ids[0])
    tokens = np.flatnonzero(model.allowed)
    if kind == "random" and (replica > 0 or options.lag):  # with a lag both start from one distribution
        return [int(token) for token in tokens[(draws.uniforms(0, n) * len(tokens)).astype(np.int64)]]
    if kind == "perturb" and replica > 0:
        if int(count) > n:
            raise RecordError(f"--start perturb:{count} redraws more sites than the text has ({n}); give fewer")
        for site in draws.uniforms(0, n).argsort(kind="stable")[: int(count)].tolist():
            others = tokens[tokens != state[site]]
            if not len(others):
                raise RecordError("a site has no other token that may be drawn; give another model or --allow")
            state[site] = int(others[int(draws.uniforms(n + site, 1)[0] * len(others))])
    return state
