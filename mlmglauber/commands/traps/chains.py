"""mlm-traps chains: the traps of the chains in state records."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlmglauber.commands.shared.chain_run import ChainLaw, ChainRun
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.nullable import optional_reason
from mlmglauber.commands.traps.margins import (
    TrapScorer,
    escape_fields,
    margin_fields,
    repetition_fields,
    state_escapes,
)
from mlmglauber.commands.traps.options import TrapsOptions
from mlmglauber.commands.traps.recorded_chain import GroupKey, RecordedChain
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
        self.with_allow: set[ChainLaw] = set()
        """Laws of chains that may draw only some words at some sites, each chain its own."""

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
            if run.allow_at is not None:
                self.with_allow.add(run.law)
            chain = self.chains[key] = RecordedChain(record, len(self.chains), text, run,
                                             Tracker(self.radius, self.min_steps))
            chain.counts = coupled is None or self.pairs.setdefault(key[:2], key) == key
        while chain.ends_piece(step):
            self._end_piece(chain, chain.end_piece(step), self.io.place)
            chain.begin_piece(step)
        self._write_traps(chain, chain.see(record, ids, step), self.io.place)

    def _end_piece(self, chain: RecordedChain, traps: Sequence[Trap], place: str) -> None:
        """Write the last traps of a chain, or of a piece of its schedule, and count its steps."""
        self._write_traps(chain, traps, place)
        self._group(chain).add_chain(chain.text, chain.tracker.step - chain.first_step)

    def _write(self, record: Record) -> None:
        if self.summary:
            self.head = record
        else:
            self.io.output.write(record)

    def end(self) -> None:
        """End the input: write the last traps of every chain and complete the groups of the summaries."""
        for chain in self.chains.values():
            self._end_piece(chain, chain.tracker.end(),
                            f"chain {chain.fields['run']}/{chain.fields['id']}/{chain.fields['chain']}")
        left = sum(not chain.counts for chain in self.chains.values())
        if self.summary and left:
            self.io.reporter.warn(f"{counted(left, 'chain')} left out of the summaries: coupled with one that counts")

    def summaries(self) -> list[Record]:
        """A summary for each law, temperature and length; chains of different laws are not put together.

        Each piece of a schedule has a summary of its own.
        """
        return [summarise(key.tau, key.n, group) | key.fields() for key, group in
                sorted(self.groups.items(), key=lambda item: item[0].order())]

    def slowness(self) -> list[Record]:
        """For each law and length of several temperatures above 0, how stays grow with 1 / tau.

        The pieces of a schedule are left out: a later one begins in the traps of those before.
        """
        by_length: dict[tuple[ChainLaw, int], dict[float, TrapGroup]] = {}
        for key, group in sorted(self.groups.items(), key=lambda item: item[0].order()):
            if key.tau and key.piece is None:
                by_length.setdefault((key.law, key.n), {})[key.tau] = group
        return [{"type": "summary", "of": "trap", "over": "n", "n": n, "radius": self.radius,
                 "min_steps": self.min_steps} | law.fields()
                | slowness_fields(groups, self.min_steps, self._escapes(law, groups))
                | ({"reason": "each chain may draw words of its own at some sites"} if law in self.with_allow else {})
                for (law, n), groups in by_length.items() if len(groups) > 1]

    def _escapes(self, law: ChainLaw, groups: dict[float, TrapGroup]) -> StateEscapes | None:
        """The escape probabilities, at every temperature, of the states that were traps for the most steps."""
        if self.scorer is None or law in self.with_allow:
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
        return self.groups.setdefault(chain.key, TrapGroup())

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
                       "reason": "no model" if self.scorer is None else "no temperature" if chain.piece is None
                       else "the temperature changes along a ramp"}
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
