"""Traps of the chains in state records: what mlm-traps does without --find, --certify and --scan-tokens."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.commands.shared.chain_run import ChainLaw, ChainRun
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.nullable import optional_reason
from mlmglauber.commands.traps.chain import Chain
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
"""Maximum number of states of a length whose escape is computed at all temperatures."""


class Kind(NamedTuple):
    """What chains that are put together share."""

    law: ChainLaw
    tau: float | None
    n: int

    def order(self) -> tuple[bool, float, int, str]:
        return self.tau is None, self.tau or 0, self.n, str(self.law)


class States:
    """All chains of the input, and what is written of their traps."""

    def __init__(self, io: Filter, options: TrapsOptions) -> None:
        self.io, self.radius, self.min_steps, self.summary = io, options.radius, options.min_steps, options.summary
        self.least, self.support = options.basin, options.support
        self.scorer = None if options.no_model else TrapScorer(io, options, options.of_chains(), write=self._write)
        self.head: Record | None = None
        """The run record, which --summary writes at the end."""
        self.chains: dict[Any, Chain] = {}
        self.texts: dict[Any, int] = {}
        self.pairs: dict[Any, Any] = {}
        """The chain that counts, of each pair of coupled ones."""
        self.groups: dict[Kind, TrapGroup] = {}
        self.run_of: dict[ChainLaw, ChainRun] = {}

    def handle(self, record: Record) -> None:
        """One record of the input; a RecordError is of that record."""
        kind = record.get("type")
        if kind != "state":
            if not self.summary:
                self.io.output.write(record)
            return
        ids, step = record.get("ids"), record.get("step")
        if type(ids) is not list or not ids or set(map(type, ids)) != INTEGERS:
            raise RecordError('"ids" is not a list of integers; give state records of mlm-sample')
        if type(step) is not int or step < 0:
            raise RecordError('"step" is no number of steps; give state records of mlm-sample')
        if self.io.leaves_out(record):
            return
        key = chain_key(record)
        chain = self.chains.get(key)
        if chain is None:
            run = self.io.runs.of(record)
            coupled = record.get("coupled")
            text = self.texts.setdefault(key[1] if coupled is None else str(coupled), len(self.texts))
            self.run_of.setdefault(run.law, run)
            chain = self.chains[key] = Chain(record, len(self.chains), text, run,
                                             Tracker(self.radius, self.min_steps))
            chain.counts = coupled is None or self.pairs.setdefault(key[:2], key) == key
        self._tell_all(chain, chain.see(record, ids, step), self.io.place)

    def _write(self, record: Record) -> None:
        if self.summary:
            self.head = record
        else:
            self.io.output.write(record)

    def end(self) -> None:
        """The end of the input: every chain's last traps, and the summaries' groups."""
        for chain in self.chains.values():
            self._tell_all(chain, chain.tracker.end(),
                           f"chain {chain.named['run']}/{chain.named['id']}/{chain.named['chain']}")
            self._group(chain).add_chain(chain.text, chain.tracker.step - chain.first_step)
        left = sum(not chain.counts for chain in self.chains.values())
        if self.summary and left:
            self.io.reporter.warn(f"{counted(left, 'chain')} left out, coupled with one that counts")

    def summaries(self) -> list[Record]:
        """A summary for each law, temperature and length: chains of two laws are not put together."""
        return [summarise(kind.tau, kind.n, group) | kind.law.fields() for kind, group in
                sorted(self.groups.items(), key=lambda item: item[0].order())]

    def slowness(self) -> list[Record]:
        """For each law and length of several temperatures above 0, how stays grow with 1 / tau."""
        found: dict[tuple[ChainLaw, int], dict[float, TrapGroup]] = {}
        for kind, group in sorted(self.groups.items(), key=lambda item: item[0].order()):
            if kind.tau:
                found.setdefault((kind.law, kind.n), {})[kind.tau] = group
        return [{"type": "summary", "of": "trap", "over": "n", "n": n, "radius": self.radius,
                 "min_steps": self.min_steps} | law.fields() | slowness_fields(groups, self.min_steps,
                                                                               self._escapes(law, groups))
                for (law, n), groups in found.items() if len(groups) > 1]

    def _escapes(self, law: ChainLaw, groups: dict[float, TrapGroup]) -> StateEscapes | None:
        """Of the states of all traps, those that were traps longest, the escape at every temperature."""
        if self.scorer is None:
            return None
        steps: Counter[State] = Counter()
        for group in groups.values():
            for state, place in group.states.items():
                steps[state] += place.steps
        run, taus, found, weights = self.run_of[law], list(groups), [], []
        for state, weight in steps.most_common(STATES):
            with self.io.guard("a trap"):
                model = self.scorer.model_of({"type": "trap", "ids": list(state)}, run)
                found.append(state_escapes(model, state, taus, run.free_sites(len(state))))
                weights.append(weight)
        return StateEscapes(np.array([one for one, _ in found]).reshape(-1, len(taus)),
                       np.array([margin for _, margin in found]), np.array(weights, dtype=np.float64))

    def _group(self, chain: Chain) -> TrapGroup:
        """The group that a chain counts in; the second of two coupled chains counts in none."""
        if not chain.counts:
            return TrapGroup()
        return self.groups.setdefault(Kind(chain.run.law, chain.tau, chain.n), TrapGroup())

    def _tell_all(self, chain: Chain, traps: Sequence[Trap], place: str) -> None:
        """Write traps, and with --summary score what a chain has made beyond its traps' first steps."""
        for trap in traps:
            with self.io.guard(place):
                self._tell(chain, trap)
        for score in chain.tracker.scores():
            if self.summary and self.scorer is not None and chain.tau is not None and not self._unfair(
                    chain, score.resolution):
                with self.io.guard(place):
                    found = self.scorer.margins(chain.named, score.state, chain.tau, chain.run)
                    self._group(chain).scores.append((score.holding, found.escape))

    def _unfair(self, chain: Chain, resolution: int) -> str | None:
        """Why the steps at a state have no geometric law; None where they have."""
        if chain.run.scan != "random":
            return f"the scan is {chain.run.scan}"
        return "stays are not seen at full resolution" if resolution > 1 else None

    def _tell(self, chain: Chain, trap: Trap) -> None:
        record: Record = {
            "type": "trap", **chain.named, "first": trap.first, "last": trap.last, "residence": trap.residence,
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
            found = self.scorer.margins(record, trap.state, chain.tau, chain.run)
            record |= margin_fields(found) | escape_fields(found) | self._against_geometric(chain, trap, found)
            record["margins_run"] = self.scorer.run
            if self.least is not None:
                record["basin"] = self.scorer.basin(record, trap.state, chain.tau, chain.run, self.least)
            if self.support:
                record |= self.scorer.support(record, trap.state, chain.run)
            weight = StateMargin(found.perfect, found.margin, found.escape)
        self._group(chain).add(trap.state, trap.label, chain.number, chain.text, trap.residence, trap.censored,
                               trap.resolution, weight)
        if not self.summary:
            self.io.output.write(record | {k: v for k, v in chain.inherited.items() if k not in record})

    def _against_geometric(self, chain: Chain, trap: Trap, found: Margins) -> Record:
        """The steps at the representative, from the --min-steps-th of the trap on, against 1 / escape."""
        why = self._unfair(chain, trap.resolution)
        if why is not None:
            return {"ratio": None, "ratio_low": None, "ratio_high": None, "ratio_reason": why}
        ratio = holding_ratio(trap.beyond, found.escape)
        return {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high,
                "ratio_steps": trap.beyond.steps, "ratio_exits": trap.beyond.exits,
                **optional_reason("ratio_reason", ratio.reason)}
