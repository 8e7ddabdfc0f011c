"""mlm-rect --path: entropy production of chains, from their own state records."""

import sys
from array import array
from math import inf
from typing import Any

import numpy as np

from mlmglauber.commands.base import Filter
from mlmglauber.measures.irreversibility import Production, of_chain, of_group
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record, chain_key, step_of, tau_and_n

LEFT_OUT = 5
"""One part in so many of a chain is left out as its burn-in, where none is given."""


class _Path:
    """One chain: the steps at which it changed and what each change gained."""

    def __init__(self, record: Record) -> None:
        self.key = {key: record.get(key) for key in ("run", "id", "chain", "tau", "n")}
        tau_and_n(record)
        self.ids = list(record["ids"])
        self.first = self.last = step_of(record, None)
        self.steps, self.gains = array("q"), array("d")
        self.broken = False

    def take(self, record: Record) -> None:
        """The next record; RecordError, once, where changes are missing between it and the one before."""
        if self.broken:
            return
        step, site, new = record["step"], record.get("site"), record.get("new")
        after = list(self.ids)
        follows = type(step) is int and self.last < step < 1 << 62 and type(site) is int and 0 <= site < len(after)
        if follows and type(site) is int:
            follows = after[site] == record.get("old")
            after[site] = new
        if not follows or after != record["ids"] or "logp_new" not in record:
            self.broken = True
            raise RecordError(f"the state of step {step} is not one update after that of step {self.last}, or has no "
                              "`logp_old` and `logp_new`; sample with --on-change or --every 1. The chain is left out")
        if record["old"] != new:
            old, now = record.get("logp_old"), record["logp_new"]
            if not all(type(logp) in (int, float) and -1e100 < logp < 1 for logp in (now, now if old is None else old)):
                self.broken = True
                raise RecordError('"logp_old" or "logp_new" is no log-probability; the chain is left out')
            self.steps.append(step)
            self.gains.append(inf if old is None else now - old)
        self.ids, self.last = after, step

    def production(self, burn_in: int | None) -> tuple[Production, int]:
        """(entropy production, steps left out)."""
        left_out = (self.last - self.first) // LEFT_OUT if burn_in is None else burn_in
        steps, gains = np.frombuffer(self.steps, np.int64), np.frombuffer(self.gains)
        return of_chain(steps, gains, self.last, self.first + left_out), left_out


def follow(filter: Filter, burn_in: int | None, summary: bool, table: bool | None) -> None:
    """A summary record for each chain and, with --summary, for each temperature and length; other records are left out.

    Holds 16 bytes a change.
    """
    paths: dict[Any, _Path] = {}

    def handle(record: Record) -> None:
        progress(1)
        if record.get("type") != "state":
            return
        if not isinstance(record.get("ids"), list) or type(record.get("step")) is not int:
            raise RecordError('a state without "ids" or "step"; --path reads the records of mlm-sample')
        key = chain_key(record)
        if key in paths:
            paths[key].take(record)
        else:
            paths[key] = _Path(record)

    with filter.words.bar("records") as progress:
        filter.each(handle)
    if not paths:
        filter.lacks("state record", "give what mlm-sample --on-change writes")
    groups: dict[Any, list[Production]] = {}
    records = []
    for path in paths.values():
        if path.broken:
            continue
        try:
            production, left_out = path.production(burn_in)
        except ValueError as error:
            filter.bad(RecordError(f"chain {path.key['chain']} of {path.key['id']!r}: {error}; give longer chains, or "
                                   "another --burn-in"), filter.place)
            continue
        records.append({"type": "summary", "of": "state", "over": "chain", **path.key, "burn_in": left_out,
                        **_told(production)})
        groups.setdefault((path.key["tau"], path.key["n"]), []).append(production)
    wholes = [{"type": "summary", "of": "state", "over": "group", "tau": tau, "n": n, "chains": len(members),
               **_told(of_group(members))} for (tau, n), members in sorted(groups.items(), key=lambda item: tuple(
                   (part is None, part or 0) for part in item[0]))]
    if summary and wholes and (table or (table is None and filter.output.path is None and sys.stdout.isatty())):
        from mlmglauber.commands.rect_table import production_table

        filter.output.write_line(production_table(wholes, filter.words.color))
        return
    for record in records + wholes if summary else records:
        filter.output.write(record)


def _told(production: Production) -> Record:
    told = {"entropy_production": production.mean, "production_low": production.low, "production_high": production.high,
            "interval": production.by, "steps": production.steps, "changes": production.changes}
    return told | ({"production_reason": production.reason} if production.reason else {})
