"""Compares records of chains: states must be equal, log-probabilities equal up to rounding.

A chain has the same states on every machine. Its log-probabilities differ by rounding, 1e-6 to 1e-5, between
processors, threads and batches. Fields that say how a run was computed, such as its device, are not compared.
"""

from typing import Any

import orjson

from mlmglauber.stream.errors import MlmError, RecordError
from mlmglauber.stream.lines import Lines
from mlmglauber.stream.output import Output
from mlmglauber.stream.records import Record

LOG_PROBABILITIES = frozenset({"logp_old", "logp_new", "pll"})
TOLERANCE = 3e-5
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


class ComparingOutput(Output):
    """Compares each record with the next one of a file and writes nothing.

    MlmError names the first line that differs.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._name, self._number = path, 0
        self._there = Lines([path])  # which decompresses gzip

    def _next(self) -> bytes | None:
        try:
            line = self._there.next()
        except RecordError as error:
            raise MlmError(str(error)) from error
        return None if line is None else line.content

    def write_line(self, line: bytes) -> None:
        self._number += 1
        there = self._next()
        if there is not None and there + b"\n" == line:
            return
        try:
            differing = differing_fields(orjson.loads(there or b""), orjson.loads(line))
        except (ValueError, AttributeError):
            differing = ["the line"]
        if differing:
            raise MlmError(f"{self._name}:{self._number}: this run gives another record here "
                           f"({', '.join(differing)}); compare model, input and versions")

    def finish(self) -> None:
        """MlmError where the file has more lines than the run."""
        if self._next() is not None:
            raise MlmError(f"{self._name}:{self._number + 1}: the file has more lines than this run; compare the input")
