"""When two records of chains are the same: states are equal, log-probabilities nearly so.

A chain is the same on every machine. Its log-probabilities are computed in a number format that rounds, so they differ
by about 1e-6 between processors, threads and batches; and how a run was computed is no part of what it computed.
"""

from typing import Any

from mlmglauber.stream.records import Record

LOG_PROBABILITIES = frozenset({"logp_old", "logp_new", "pll"})
TOLERANCE = 1e-5
"""Nats by which log-probabilities may differ; those of sums over sites by that much a site."""
HOW = frozenset({"dtype", "device", "threads", "tolerance", "versions"})
"""Fields of a run record that tell how a run was computed."""
HOW_OPTIONS = frozenset({"batch_size", "exact"})


def differing_fields(there: Record, here: Record) -> list[str]:
    """The names of fields in which two records are not the same, those of options as options.NAME."""
    run = there.get("type") == "run"
    skipped = HOW if run and there.get("precision") == here.get("precision") else frozenset[str]()
    found = [key for key in {**there, **here} if key not in skipped and key != "options"
             and not _same(key, there, here)]
    options, others = there.get("options", {}), here.get("options", {})
    if not run or not isinstance(options, dict) or not isinstance(others, dict):
        return found + (["options"] if options != others else [])
    skipped = HOW_OPTIONS if skipped else frozenset()
    return found + [f"options.{key}" for key in {**options, **others} if key not in skipped
                    and options.get(key) != others.get(key)]


def _same(key: str, there: Record, here: Record) -> bool:
    a: Any = there.get(key)
    b: Any = here.get(key)
    if key in LOG_PROBABILITIES and isinstance(a, float) and isinstance(b, float):
        sites = here.get("n", 1) if key == "pll" else 1
        return abs(a - b) <= TOLERANCE * max(1, sites) * max(1.0, 1 / _tau(here, key))
    return bool(a == b)


def _tau(record: Record, key: str) -> float:
    """The temperature that a log-probability was divided by; below 1 it makes errors larger."""
    tau = record.get("tau", 1.0)
    return float(tau) if key != "pll" and isinstance(tau, (int, float)) and tau > 0 else 1.0
