"""Traps of the chains in state records: what mlm-traps does without --find, --certify and --scan-tokens."""

from typing import Any

from mlmglauber.commands.base import Filter
from mlmglauber.commands.trap_chain import Chain
from mlmglauber.commands.trap_margins import Representatives, escape_fields, margin_fields, repetition_fields
from mlmglauber.measures.margins import Margins
from mlmglauber.measures.residence import Holding, beyond_selection, holding_ratio
from mlmglauber.measures.trap_summary import Group, Weight, summarise
from mlmglauber.measures.traps import Tracker, Trap
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record, chain_key

INTEGERS = {int}
UPSTREAM = ("run", "command", "model", "hash", "revision", "dtype", "options")
"""What is kept of the run record of chains."""


class States:
    """All chains of the input, and what is written of their traps."""

    def __init__(self, filter: Filter, options: dict[str, Any], radius: int, min_steps: int, no_model: bool,
                 summary: bool) -> None:
        self.filter, self.radius, self.min_steps, self.summary = filter, radius, min_steps, summary
        told = options | {"radius": radius, "min_steps": min_steps}
        self.representatives = None if no_model else Representatives(filter, "mlm-traps", told, write=self._write)
        self.head: Record | None = None
        """The run record, which --summary writes at the end."""
        self.chains: dict[Any, Chain] = {}
        self.texts: dict[Any, int] = {}
        self.runs: dict[str, Record] = {}
        self.groups: dict[Any, Group] = {}

    def handle(self, record: Record) -> None:
        """One record of the input; a RecordError is of that record."""
        kind = record.get("type")
        if kind != "state":
            if kind == "run" and isinstance(record.get("run"), str):
                self.runs[record["run"]] = {key: record.get(key) for key in UPSTREAM}
            if not self.summary:
                self.filter.output.write(record)
            return
        ids, step = record.get("ids"), record.get("step")
        if type(ids) is not list or not ids or set(map(type, ids)) != INTEGERS:
            raise RecordError('"ids" is not a list of integers; give state records of mlm-sample')
        if type(step) is not int or step < 0:
            raise RecordError('"step" is no number of steps; give state records of mlm-sample')
        key = chain_key(record)
        chain = self.chains.get(key)
        if chain is None:
            text = self.texts.setdefault(key[1], len(self.texts))
            chain = self.chains[key] = Chain(record, len(self.chains), text, self.runs.get(str(key[0])),
                                             Tracker(self.radius, self.min_steps))
        for trap in chain.see(record, ids, step):
            with self.filter.guard(self.filter.place):
                self._tell(chain, trap)

    def _write(self, record: Record) -> None:
        if self.summary:
            self.head = record
        else:
            self.filter.output.write(record)

    def end(self) -> None:
        """The end of the input: every chain's last traps, and the summaries' groups."""
        for chain in self.chains.values():
            for trap in chain.tracker.end():
                with self.filter.guard(f"chain {chain.named['run']}/{chain.named['id']}/{chain.named['chain']}"):
                    self._tell(chain, trap)
            self._group(chain).add_chain(chain.text, chain.tracker.step - chain.first_step)

    def summaries(self) -> list[Record]:
        """A summary for each temperature and length."""
        ordered = sorted(self.groups.items(), key=lambda item: (item[0][0] is None, item[0][0] or 0, item[0][1]))
        return [summarise(tau, n, group) for (tau, n), group in ordered]

    def _group(self, chain: Chain) -> Group:
        return self.groups.setdefault((chain.tau, chain.n), Group())

    def _tell(self, chain: Chain, trap: Trap) -> None:
        record: Record = {
            "type": "trap", **chain.named, "first": trap.first, "last": trap.last, "residence": trap.residence,
            "censored": trap.censored, "cut": trap.cut, "resolution": trap.resolution, "radius": self.radius,
            "min_steps": self.min_steps, "text": trap.label, "ids": list(trap.state), "share": trap.share,
            "visits": trap.visits, "exits": trap.exits, "states": trap.states,
            "flicker": [flicker._asdict() for flicker in trap.flicker], **repetition_fields(trap.state),
        }
        weight = None
        if self.representatives is None or chain.tau is None:
            record |= {"kind": None, "margin": None, "escape": None, "expected": None,
                       "reason": "no model" if self.representatives is None else "no temperature"}
        else:
            found = self.representatives.margins(record, trap.state, chain.tau, chain.upstream)
            holding, fields = self._against_geometric(chain, trap, found)
            record |= margin_fields(found) | escape_fields(found) | fields
            record["margins_run"] = self.representatives.run
            weight = Weight(found.argmax == 1, found.margin, found.escape, holding, chain.text)
        self._group(chain).add(trap.state, trap.label, chain.number, chain.text, trap.residence, trap.censored,
                               trap.resolution, weight)
        if not self.summary:
            self.filter.output.write(record | {k: v for k, v in chain.inherited.items() if k not in record})

    def _against_geometric(self, chain: Chain, trap: Trap, found: Margins) -> tuple[Holding | None, Record]:
        """The stays at the representative against 1 / escape: the one stay of radius 0 without its chosen length."""
        scan = ((chain.upstream or {}).get("options") or {}).get("scan", "random")
        if scan != "random" or trap.resolution > 1:
            why = f"the scan is {scan}" if scan != "random" else "stays are not seen at full resolution"
            return None, {"ratio": None, "ratio_low": None, "ratio_high": None, "ratio_reason": why}
        holding = Holding(trap.held, trap.exits, ends_by_exit=trap.exits == trap.visits)
        if self.radius == 0:
            holding = beyond_selection(holding, self.min_steps)
        ratio = holding_ratio(holding, found.escape)
        return holding, {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high,
                         **({"ratio_reason": ratio.reason} if ratio.reason else {})}
