"""mlm-rect --path: entropy production of chains, from their own state records."""

from array import array
from math import inf
from typing import Any

import numpy as np

from mlmglauber.commands.rect.options import RectOptions
from mlmglauber.commands.shared.chain_run import ChainLaw, ChainRun, check_same_tau
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.nullable import optional_reason
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.measures.rectangle.irreversibility import Production, of_chain, of_group
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import as_json
from mlmglauber.stream.records import Record, chain_key, step_of, tau_and_n

BURN_IN_PARTS = 5
"""Without --burn-in, one in this many parts of a chain is its burn-in."""
MEANINGLESS = ("other_scan", "zero_temperature", "changing_temperature", "truncated")
"""Reasons why a mean of log p(new) - log p(old) is not an entropy production."""


class _Changes:
    """The changes of one chain: their steps, and the log-ratio log p(new) - log p(old) of each."""

    def __init__(self, record: Record, run: ChainRun) -> None:
        self.key = {key: record.get(key) for key in ("run", "id", "chain", "tau", "n")}
        tau_and_n(record)
        self.run, self.tau = run, run.tau_of(record)
        self.ids = list(record["ids"])
        self.first = self.last = step_of(record, None)
        self.steps, self.gains = array("q"), array("d")
        self.broken = False

    def take(self, record: Record) -> None:
        """Take the next record; RecordError, once, if changes are missing between it and the record before."""
        if self.broken:
            return
        if self.run.law.schedule is None:
            check_same_tau(record, self.tau)
        step, site, new = record["step"], record.get("site"), record.get("new")
        after = list(self.ids)
        follows = type(step) is int and self.last < step < 1 << 62 and type(site) is int and 0 <= site < len(after)
        if follows and type(site) is int:
            follows = after[site] == record.get("old")
            after[site] = new
        if not follows or after != record["ids"] or "logp_new" not in record:
            self.broken = True
            raise RecordError(f"the state of step {step} is not one update after that of step {self.last}, or has no "
                              "`logp_old` and `logp_new`, so the chain is left out; sample with --on-change or "
                              "--every 1")
        if record["old"] != new:
            old, now = record.get("logp_old"), record["logp_new"]
            if not all(type(logp) in (int, float) and -1e100 < logp < 1 for logp in (now, now if old is None else old)):
                self.broken = True
                raise RecordError('"logp_old" or "logp_new" is not a log-probability, so the chain is left out; give '
                                  "records as mlm-sample wrote them")
            self.steps.append(step)
            self.gains.append(inf if old is None else now - old)
        self.ids, self.last = after, step

    def production(self, burn_in: int | None) -> tuple[Production, int]:
        """(entropy production, steps left out)."""
        left_out = (self.last - self.first) // BURN_IN_PARTS if burn_in is None else burn_in
        steps, gains = np.frombuffer(self.steps, np.int64), np.frombuffer(self.gains)
        production = of_chain(steps, gains, self.last, self.first + left_out)
        why = self._meaningless()
        return (production if why is None else _without_number(production, why)), left_out

    def _meaningless(self) -> str | None:
        """Why the mean over these updates is not an entropy production; None if it is."""
        if self.run.scan != "random":
            return "other_scan"
        if self.run.law.schedule is not None:
            return "changing_temperature"
        if self.run.law.truncation is not None:
            return "truncated"
        return "zero_temperature" if self.tau == 0 else None


def write_productions(io: Filter, options: RectOptions) -> None:
    """Write a summary record for each chain and, with --summary, for each temperature and length.

    Other records are left out. Keeps 16 bytes a change.
    """
    paths: dict[Any, _Changes] = {}

    def handle(record: Record) -> None:
        progress(1)
        if record.get("type") != "state":
            return
        if not isinstance(record.get("ids"), list) or type(record.get("step")) is not int:
            raise RecordError('a state has no "ids" or no "step"; give state records as mlm-sample wrote them')
        if io.leaves_out(record):
            return
        key = chain_key(record)
        if key in paths:
            paths[key].take(record)
        else:
            paths[key] = _Changes(record, io.runs.of(record))

    with io.bar("records") as progress:
        io.each(handle)
    if not paths:
        io.report_missing("state record", "give what mlm-sample --on-change writes")
    groups: dict[tuple[ChainLaw, float | None, int | None], list[tuple[Production, str]]] = {}
    records = []
    for path in paths.values():
        if path.broken:
            continue
        try:
            production, left_out = path.production(options.burn_in)
        except ValueError as error:
            chain, text = as_json(path.key["chain"]), as_json(path.key["id"])
            io.bad(RecordError(f"chain {chain} of {text}: {error}; give longer chains, or another --burn-in"),
                       io.place)
            continue
        law = path.run.law
        records.append({"type": "summary", "of": "path", "over": "chain", **path.key, **law.fields(),
                        "burn_in": left_out, **_fields(production)})
        groups.setdefault((law, path.key["tau"], path.key["n"]), []).append((production, str(path.key["id"])))
    _warn_of_runs(io, list(paths.values()))
    wholes = [{"type": "summary", "of": "path", "over": "group", "tau": tau, "n": n, **law.fields(),
               "chains": len(members), "texts": len({text for _, text in members}), **_fields(_together(members))}
              for (law, tau, n), members in sorted(groups.items(), key=lambda item: tuple(
                   (part is None, part or 0) for part in item[0][1:]))]
    if options.summary and shown(io, options.table):
        from mlmglauber.commands.rect.table import production_tables

        write_tables(io, options.table, production_tables(wholes))
        return
    for record in records + wholes if options.summary else records:
        io.output.write(record)


def _together(members: list[tuple[Production, str]]) -> Production:
    """The entropy production of the chains of one law, temperature and length."""
    chains = [chain for chain, _ in members]
    why = next((chain.reason for chain in chains if chain.reason in MEANINGLESS), None)
    production = of_group(chains, [text for _, text in members])
    return production if why is None else _without_number(production, why)


def _without_number(production: Production, reason: str) -> Production:
    return Production(None, None, None, production.steps, production.changes, None, reason, halves=production.halves)


def _warn_of_runs(io: Filter, paths: list[_Changes]) -> None:
    """Warn of runs without entropy production, and of runs without a run record."""
    others = sorted({path.run.scan for path in paths if path.run.scan != "random"})
    if others:
        io.reporter.warn(f"chains of the scan {', '.join(others)} have no entropy production of the random-scan "
                         "dynamics; sample with --scan random")
    unknown = sorted({str(path.key["run"]) for path in paths if not path.run.known})
    if unknown:
        io.reporter.warn(f"no run record came before the states of {', '.join(unknown)}: assuming random scan; give "
                         "the records as mlm-sample wrote them")


def _fields(production: Production) -> Record:
    """The fields of an entropy production."""
    fields = {"entropy_production": production.mean, "production_low": production.low,
              "production_high": production.high, "interval": production.by,
              "production_halves": production.means and list(production.means),
              "boundary": production.boundary, "steps": production.steps, "changes": production.changes}
    return fields | optional_reason("production_reason", production.reason)
