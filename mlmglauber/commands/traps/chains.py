"""mlm-traps chains: the traps of the chains in state records."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.commands.shared.chain_run import ChainLaw, ChainRun
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import inherited
from mlmglauber.commands.shared.nullable import optional_reason
from mlmglauber.commands.traps.margins import (
    TrapScorer,
    escape_fields,
    margin_fields,
    repetition_fields,
    state_escapes,
)
from mlmglauber.commands.traps.options import TrapsOptions
from mlmglauber.commands.traps.summary import slowness_fields, summarise
from mlmglauber.measures.traps.margins import Margins
from mlmglauber.measures.traps.residence import holding_ratio
from mlmglauber.measures.traps.summary import StateEscapes, StateMargin, TrapGroup
from mlmglauber.measures.traps.tracker import State, Tracker, Trap
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.printable import counted
from mlmglauber.stream.records import Record, chain_key

INTEGERS = {int}
STATES = 256
"""Maximum number of states of a length whose escape probability is computed at all temperatures."""


class GroupKey(NamedTuple):
    """What the chains of one summary have in common."""

    law: ChainLaw
    tau: float | None
    n: int

    def order(self) -> tuple[bool, float, int, str]:
        return self.tau is None, self.tau or 0, self.n, str(self.law)


class RecordedChain:
    """One chain that is read from state records: its name, its trap tracker, the resolution of its records."""

    def __init__(self, record: Record, number: int, text: int, run: ChainRun, tracker: Tracker) -> None:
        self.tau, self.n = run.tau_of(record), len(record["ids"])
        self.fields = {key: record.get(key) for key in ("run", "id", "chain")} | {"tau": self.tau, "n": self.n}
        self.inherited = inherited(record)
        self.number, self.text, self.run, self.tracker = number, text, run, tracker
        self.first_step = record["step"]
        self.counts = True
        """Whether it counts in summaries: of two coupled chains only the first one does."""
        self._state: tuple[int, ...] | None = None
        self._step, self._unexplained = -1, 1

    def see(self, record: Record, ids: list[int], step: int) -> Sequence[Trap]:
        """Take the next state; the traps that it completes. RecordError if it does not follow the state before it."""
        state = tuple(ids)
        resolution = 1
        if self._state is not None:
            if len(state) != self.n:
                raise RecordError(f"the state has {len(state)} tokens, earlier states of this chain have {self.n}; "
                                  "make run/id/chain unique")
            if step <= self._step:
                raise RecordError(f"step {step} comes after step {self._step} of this chain; sort its records by step")
            resolution = self._unseen(record, state, step - self._step)
        self._state, self._step = state, step
        return self.tracker.see(step, state, resolution, record.get("text"))

    def _unseen(self, record: Record, state: tuple[int, ...], steps: int) -> int:
        """The resolution at a record: 1 if no change can be missing since the last record, else the steps in between.

        Where every change is recorded, a state differs from the one before exactly as its own record says. An unchanged
        state is recorded at the end of a chain; before the end it is a sign of missing records, unless the run record
        says that all are there.
        """
        before_last, self._unexplained = self._unexplained, 1
        if steps == 1:
            return before_last
        before, site = self._state, record.get("site")
        assert before is not None
        if self.run.shows_all is False:
            return steps
        if state == before:
            if record.get("changed"):
                return max(before_last, steps)  # it left the state and came back with this step
            if self.run.shows_all is None and "pll" not in record:
                self._unexplained = steps
            return before_last
        explained = (type(site) is int and 0 <= site < self.n and record.get("old") == before[site]
                     and state[:site] == before[:site] and state[site + 1 :] == before[site + 1 :])
        return before_last if explained else max(before_last, steps)


class ChainsRun:
    """One run of chains: the chains of the input, their traps, and what is written of them."""

    def __init__(self, io: Filter, options: TrapsOptions) -> None:
        self.io, self.radius, self.min_steps, self.summary = io, options.radius, options.min_steps, options.summary
        self.least, self.support = options.basin, options.support
        self.scorer = None if options.no_model else TrapScorer(io, options, options.of_chains(), write=self._write)
        self.head: Record | None = None
        """The run record, which --summary writes before the summaries."""
        self.chains: dict[Any, RecordedChain] = {}
        self.texts: dict[Any, int] = {}
        self.pairs: dict[Any, Any] = {}
        """The chain that counts in summaries, for each pair of coupled chains."""
        self.groups: dict[GroupKey, TrapGroup] = {}
        self.run_of: dict[ChainLaw, ChainRun] = {}

    def handle(self, record: Record) -> None:
        """Take one record of the input; RecordError if it is a state without sound ids or step."""
        if record.get("type") != "state":
            if not self.summary:
                self.io.output.write(record)
            return
        ids, step = record.get("ids"), record.get("step")
        if type(ids) is not list or not ids or set(map(type, ids)) != INTEGERS:
            raise RecordError('"ids" is not a list of integers; give state records as mlm-sample wrote them')
        if type(step) is not int or step < 0:
            raise RecordError('"step" is not a whole number from 0 on; give state records as mlm-sample wrote them')
        if self.io.leaves_out(record):
            return
        key = chain_key(record)
        chain = self.chains.get(key)
        if chain is None:
            run = self.io.runs.of(record)
            coupled = record.get("coupled")
            text = self.texts.setdefault(key[1] if coupled is None else str(coupled), len(self.texts))
            self.run_of.setdefault(run.law, run)
            chain = self.chains[key] = RecordedChain(record, len(self.chains), text, run,
                                             Tracker(self.radius, self.min_steps))
            chain.counts = coupled is None or self.pairs.setdefault(key[:2], key) == key
        self._write_traps(chain, chain.see(record, ids, step), self.io.place)

    def _write(self, record: Record) -> None:
        if self.summary:
            self.head = record
        else:
            self.io.output.write(record)

    def end(self) -> None:
        """End the input: write the last traps of every chain and complete the groups of the summaries."""
        for chain in self.chains.values():
            self._write_traps(chain, chain.tracker.end(),
                           f"chain {chain.fields['run']}/{chain.fields['id']}/{chain.fields['chain']}")
            self._group(chain).add_chain(chain.text, chain.tracker.step - chain.first_step)
        left = sum(not chain.counts for chain in self.chains.values())
        if self.summary and left:
            self.io.reporter.warn(f"{counted(left, 'chain')} left out of the summaries: coupled with one that counts")

    def summaries(self) -> list[Record]:
        """A summary for each law, temperature and length; chains of different laws are not put together."""
        return [summarise(key.tau, key.n, group) | key.law.fields() for key, group in
                sorted(self.groups.items(), key=lambda item: item[0].order())]

    def slowness(self) -> list[Record]:
        """For each law and length of several temperatures above 0, how stays grow with 1 / tau."""
        by_length: dict[tuple[ChainLaw, int], dict[float, TrapGroup]] = {}
        for key, group in sorted(self.groups.items(), key=lambda item: item[0].order()):
            if key.tau:
                by_length.setdefault((key.law, key.n), {})[key.tau] = group
        return [{"type": "summary", "of": "trap", "over": "n", "n": n, "radius": self.radius,
                 "min_steps": self.min_steps} | law.fields() | slowness_fields(groups, self.min_steps,
                                                                               self._escapes(law, groups))
                for (law, n), groups in by_length.items() if len(groups) > 1]

    def _escapes(self, law: ChainLaw, groups: dict[float, TrapGroup]) -> StateEscapes | None:
        """The escape probabilities, at every temperature, of the states that were traps for the most steps."""
        if self.scorer is None:
            return None
        steps: Counter[State] = Counter()
        for group in groups.values():
            for state, place in group.states.items():
                steps[state] += place.steps
        run, taus, escapes, weights = self.run_of[law], list(groups), [], []
        for state, weight in steps.most_common(STATES):
            with self.io.guard("a trap"):
                model = self.scorer.model_of({"type": "trap", "ids": list(state)}, run)
                escapes.append(state_escapes(model, state, taus, run.free_sites(len(state))))
                weights.append(weight)
        return StateEscapes(np.array([one for one, _ in escapes]).reshape(-1, len(taus)),
                       np.array([margin for _, margin in escapes]), np.array(weights, dtype=np.float64))

    def _group(self, chain: RecordedChain) -> TrapGroup:
        """The group of a chain in the summaries; a throw-away group for the second of two coupled chains."""
        if not chain.counts:
            return TrapGroup()
        return self.groups.setdefault(GroupKey(chain.run.law, chain.tau, chain.n), TrapGroup())

    def _write_traps(self, chain: RecordedChain, traps: Sequence[Trap], place: str) -> None:
        """Write traps; with --summary also score the stays of a chain beyond --min-steps."""
        for trap in traps:
            with self.io.guard(place):
                self._write_trap(chain, trap)
        for score in chain.tracker.scores():
            if self.summary and self.scorer is not None and chain.tau is not None and not self._no_geometric_law(
                    chain, score.resolution):
                with self.io.guard(place):
                    margins = self.scorer.margins(chain.fields, score.state, chain.tau, chain.run)
                    self._group(chain).scores.append((score.holding, margins.escape))

    def _no_geometric_law(self, chain: RecordedChain, resolution: int) -> str | None:
        """Why the steps at a state do not follow a geometric law; None if they do."""
        if chain.run.scan != "random":
            return f"the scan is {chain.run.scan}"
        return "stays are not seen at full resolution" if resolution > 1 else None

    def _write_trap(self, chain: RecordedChain, trap: Trap) -> None:
        record: Record = {
            "type": "trap", **chain.fields, "first": trap.first, "last": trap.last, "residence": trap.residence,
            "censored": trap.censored, "cut": trap.cut, "resolution": trap.resolution, "radius": self.radius,
            "min_steps": self.min_steps, "text": trap.label, "ids": list(trap.state), "share": trap.share,
            "visits": trap.visits, "exits": trap.exits, "states": trap.states,
            "flicker": [flicker._asdict() for flicker in trap.flicker], **repetition_fields(trap.state),
        }
        weight = None
        if self.scorer is None or chain.tau is None:
            record |= {"kind": None, "margin": None, "escape": None, "expected": None,
                       "reason": "no model" if self.scorer is None else "no temperature"}
        else:
            margins = self.scorer.margins(record, trap.state, chain.tau, chain.run)
            record |= margin_fields(margins) | escape_fields(margins) | self._against_geometric(chain, trap, margins)
            record["margins_run"] = self.scorer.run
            if self.least is not None:
                record["basin"] = self.scorer.basin(record, trap.state, chain.tau, chain.run, self.least)
            if self.support:
                record |= self.scorer.support(record, trap.state, chain.run)
            weight = StateMargin(margins.perfect, margins.margin, margins.escape)
        self._group(chain).add(trap.state, trap.label, chain.number, chain.text, trap.residence, trap.censored,
                               trap.resolution, weight)
        if not self.summary:
            self.io.output.write(record | {k: v for k, v in chain.inherited.items() if k not in record})

    def _against_geometric(self, chain: RecordedChain, trap: Trap, margins: Margins) -> Record:
        """The mean stay at the representative, counted from the --min-steps-th step of the trap, over 1 / escape."""
        why = self._no_geometric_law(chain, trap.resolution)
        if why is not None:
            return {"ratio": None, "ratio_low": None, "ratio_high": None, "ratio_reason": why}
        ratio = holding_ratio(trap.beyond, margins.escape)
        return {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high,
                "ratio_steps": trap.beyond.steps, "ratio_exits": trap.beyond.exits,
                **optional_reason("ratio_reason", ratio.reason)}
