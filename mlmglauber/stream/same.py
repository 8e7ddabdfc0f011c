"""Compares records of chains: states must be equal, log-probabilities equal up to rounding.

A chain has the same states on every machine. Its log-probabilities differ by rounding, about 1e-6, between processors,
threads and batches. Fields that say how a run was computed, such as its device, are not compared.
"""

from typing import Any

from mlmglauber.stream.records import Record

LOG_PROBABILITIES = frozenset({"logp_old", "logp_new", "pll"})
TOLERANCE = 1e-5
"""Maximum difference of log-probabilities, in nats; of sums over sites, per site."""
COMPUTING = frozenset({"dtype", "device", "threads", "tolerance", "versions"})
"""Fields of a run record that say how a run was computed."""
COMPUTING_OPTIONS = frozenset({"batch_size", "exact"})
"""Options that say how a run was computed."""


def differing_fields(there: Record, here: Record) -> list[str]:
    """The names of the fields in which two records differ, those of options as options.NAME."""
    run = there.get("type") == "run"
    skipped = COMPUTING if run and there.get("precision") == here.get("precision") else frozenset[str]()
    names = [key for key in {**there, **here} if key not in skipped and key != "options"
             and not _same(key, there, here)]
    options, others = there.get("options", {}), here.get("options", {})
    if not run or not isinstance(options, dict) or not isinstance(others, dict):
        return names + (["options"] if options != others else [])
    skipped = COMPUTING_OPTIONS if skipped else frozenset()
    return names + [f"options.{key}" for key in {**options, **others} if key not in skipped
                    and options.get(key) != others.get(key)]


def _same(key: str, there: Record, here: Record) -> bool:
    a: Any = there.get(key)
    b: Any = here.get(key)
    if key in LOG_PROBABILITIES and isinstance(a, float) and isinstance(b, float):
        sites = here.get("n", 1) if key == "pll" else 1
        return abs(a - b) <= TOLERANCE * max(1, sites) * max(1.0, 1 / _tau(here, key))
    return bool(a == b)


def _tau(record: Record, key: str) -> float:
    """The temperature that a log-probability was divided by, 1 for `pll`; below 1 it enlarges rounding errors."""
    tau = record.get("tau", 1.0)
    return float(tau) if key != "pll" and isinstance(tau, (int, float)) and tau > 0 else 1.0
