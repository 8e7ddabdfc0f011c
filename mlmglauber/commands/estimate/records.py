"""The summary records of mlm-estimate."""

from collections.abc import Callable, Iterator, Sequence
from math import isfinite

import numpy as np

from mlmglauber.commands.estimate.pairs import EstimateKind, KindSums
from mlmglauber.commands.shared.nullable import with_reasons
from mlmglauber.measures.stationary.unbiased import StationaryEstimate, estimate
from mlmglauber.stream.json_values import loads
from mlmglauber.stream.printable import counted
from mlmglauber.stream.records import Record

FEW = "one pair has no standard error"
NULL = dict.fromkeys(("mean", "error", "low", "high", "plain", "plain_error", "inefficiency"))


def summaries(kind: EstimateKind, sums: KindSums, names: Sequence[str], most: int | None, target: float | None,
              piece: Callable[[int], str]) -> Iterator[Record]:
    """One record for each function and, with --tokens, for each frequent token. piece: the token of an id."""
    pairs = len(sums.unbiased)
    window = kind.window
    head: Record = {"type": "summary", "of": "estimate", "over": "group", **kind.law.fields(),
                    "coupling": kind.coupling, "tau": kind.tau, "n": kind.n, **window._asdict(), "pairs": pairs,
                    "censored": sums.censored, "incomplete": sums.incomplete,
                    "mean_meeting": float(np.mean(sums.meetings)) if pairs else None,
                    "mean_cost": float(np.mean(sums.costs)) if pairs else None}
    if kind.allow_at is not None:
        head["allow_at"] = loads(kind.allow_at.encode())
    if not pairs:
        head |= {"mean_meeting_reason": "no pair met", "mean_cost_reason": "no pair met"}
    why = _why_not(sums)
    for place, name in enumerate(names):
        if why is not None:
            yield {**head, "field": name, **_null(why, target)}
            continue
        values = np.array(sums.unbiased)[:, place], np.array(sums.plain)[:, place]
        yield {**head, "field": name, **_fields(estimate(*values, sums.costs, window.length), target)}
    if most is not None and why is None:
        for frequency in sums.tokens.most_frequent(most, window.length):
            yield {**head, "field": "token", "token": piece(frequency.token), "token_id": frequency.token,
                   "site": frequency.site, **_fields(frequency.estimate, target)}
    elif most is not None:
        yield {**head, "field": "token", **_null(why or "", target)}


def _why_not(sums: KindSums) -> str | None:
    """Why there is no estimate, None if there is one."""
    every = len(sums.unbiased) + sums.censored + sums.incomplete
    if sums.censored:
        return (f"{sums.censored} of {counted(every, 'pair')} did not meet: a mean over the others is biased; raise "
                "--max-steps of mlm-couple, or the temperature")
    if sums.incomplete:
        return f"{counted(sums.incomplete, 'pair')} could not be read whole"
    return None if every else "there is no pair"


def _null(why: str, target: float | None) -> Record:
    fields = NULL if target is None else {**NULL, "pairs_needed": None}
    return with_reasons(dict(fields), dict.fromkeys(fields, why))


def _fields(found: StationaryEstimate, target: float | None) -> Record:
    known = {name: value if isfinite(value) else None for name, value in found._asdict().items() if name != "pairs"}
    if target is not None:
        known["pairs_needed"] = found.pairs_for(target)
    reasons = dict.fromkeys(known, FEW)
    if found.pairs > 1:
        reasons["inefficiency"] = "the plain averages of all pairs are equal"
    return with_reasons(known, reasons)
