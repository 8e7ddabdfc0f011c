"""The runs of a page: a row for each, and what differs between them."""

from collections.abc import Sequence
from typing import Any

from mlmglauber.commands.shared.tables import NOTHING, Column, Table, name
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record

LIMIT = 500
"""Maximum number of run records that are kept."""


def _text(value: Any) -> str:
    """A value of a run record in one cell."""
    if value is None:
        return NOTHING
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def model_of(run: Record) -> str:
    """The model or the embedder of a run."""
    return _text(run.get("model", run.get("embedder")))


def _tau(run: Record) -> str:
    if isinstance(run.get("schedule"), str):
        return str(run["schedule"])
    return _text(run["tau"] if "tau" in run else run["options"].get("tau"))


def _format(run: Record) -> str:
    parts = [run.get("dtype"), None if run.get("precision") in (None, run.get("dtype")) else
             f"chains in {run['precision']}", run.get("device")]
    return _text([part for part in parts if part is not None]) or NOTHING


RUNS = Table("Runs, in the order of their first records", (
    Column("command", "The command that was run.", lambda run: name(_text(run["command"]))),
    Column("run", "Identifier of the run, which its records carry.", lambda run: name(_text(run["run"]))),
    Column("model", "Masked language model; for mlm-embed and mlm-basins the embedder.",
           lambda run: name(model_of(run))),
    Column("hash", "Digest of the weights; equal for equal weights.", lambda run: name(_text(run.get("hash")))),
    Column("tau", "Temperature; at 1 tokens are drawn from the model's own conditionals.", lambda run: name(_tau(run))),
    Column("seed", "Seed of the random draws.", lambda run: name(_text(run.get("seed")))),
    Column("number format, device", "Number format of the weights and of the conditionals that define the chains; "
           "where the model ran.", lambda run: name(_format(run))),
))
VERSIONS = Table("Versions of the suite and of the libraries", (
    Column("library", "Name of the library.", lambda row: name(row[0])),
    Column("version", "Its version; several where runs differ in it.", lambda row: name(", ".join(row[1]))),
))


class RunTable:
    """The run records of the input, each once."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], Record] = {}
        self.left_out = 0

    def take(self, run: Record) -> None:
        """Keep a run record; RecordError for one without the fields of its row."""
        try:
            RUNS.of([run]).cells()
            run["versions"].items()
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise RecordError("a run record lacks `run`, `command`, `versions` or `options`; give records as their "
                              "command wrote them") from error
        key = (str(run["command"]), str(run["run"]))
        if key not in self.records and len(self.records) >= LIMIT:
            self.left_out += 1
            return
        self.records.setdefault(key, run)

    def of(self, command: str) -> list[Record]:
        """The runs of one command."""
        return [run for (made_by, _), run in self.records.items() if made_by == command]

    def tables(self) -> list[Table]:
        """A row for each run, and one for each library."""
        return [RUNS.of(self.records.values()), VERSIONS.of(self._versions().items())]

    def _versions(self) -> dict[str, list[str]]:
        """The versions of each library."""
        runs = self.records.values()
        return {library: _distinct([run["versions"].get(library) for run in runs])
                for library in dict.fromkeys(library for run in runs for library in run["versions"])}

    def warnings(self) -> list[str]:
        """Sentences on versions, models and weights that differ between runs."""
        runs = list(self.records.values())
        found = []
        for library, versions in self._versions().items():
            if len(versions) > 1:
                found.append(f"The runs were made with {len(versions)} versions of {library}: {', '.join(versions)}. "
                             "Numbers may differ in their last digits, and between versions of mlmglauber in more.")
        models = _distinct([run.get("model") for run in runs])
        if len(models) > 1:
            found.append(f"The runs are of {len(models)} models: {', '.join(models)}. Compare rows of one model only.")
        for model in models:
            digests = _distinct([run.get("hash") for run in runs if run.get("model") == model])
            if len(digests) > 1:
                found.append(f"The model {model} had different weights in different runs: {', '.join(digests)}.")
        return found


def _distinct(values: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value is not None))
