"""mlm-sample --from-run: repeats a run from its own records."""

from dataclasses import fields
from typing import Any, NamedTuple

from mlmglauber.commands.sample.options import RECORDED_NAMES, SampleOptions
from mlmglauber.commands.shared.inputs import DRAW_VERSION
from mlmglauber.stream.errors import MlmError, UsageError
from mlmglauber.stream.records import Lines, Record, parse


class RecordedRun(NamedTuple):
    """A run as its run records describe it: options, run ids, hash of the weights, versions of the libraries."""

    path: str
    options: dict[str, Any]
    runs: frozenset[str]
    hash: str | None
    versions: dict[str, str]


def read_recorded_run(path: str) -> RecordedRun:
    """The run records at the head of a file of mlm-sample; UsageError where there are none."""
    runs: list[Record] = []
    for line in Lines([path]):
        record = parse(line, plain_text=False) or {}
        if record.get("type") == "run" and record.get("command") == "mlm-sample":
            runs.append(record)
        elif record.get("type") == "state":
            break
    if not runs:
        raise UsageError(f"{path}: the file does not begin with a run record of mlm-sample; give a file that "
                         "mlm-sample wrote")
    first = runs[0]
    if first.get("draw", 1) != DRAW_VERSION:
        raise UsageError(f"{path}: its chains were drawn by version {first.get('draw', 1)} of the draws, this is "
                         f"version {DRAW_VERSION}, in which the same seed gives other chains; make a new run")
    recorded = {RECORDED_NAMES.get(field.name, field.name): field.name for field in fields(SampleOptions)}
    options = {recorded[name]: value for name, value in first["options"].items() if name in recorded}
    options |= {"model": first["model"], "dtype": first["dtype"], "seed": first["seed"],
                "tau": [run["tau"] for run in runs if run["seed"] == first["seed"] and run["tau"] is not None]}
    options = dict.fromkeys(SampleOptions.RECORDED_IF_GIVEN) | options
    if first["class"] == "TableConditional":  # a table has only one number format
        options["dtype"] = "auto"
    options["exact"] = options["dtype"] in ("bfloat16", "float16") and first["precision"] == "float64"
    if first.get("revision"):
        options["revision"] = first["revision"]
    return RecordedRun(path, options, frozenset(run["run"] for run in runs), first.get("hash"), first["versions"])


def check_same(was: RecordedRun, runs: set[str], described: dict[str, Any]) -> str | None:
    """MlmError where the model or the input are not those of the recorded run; a warning where the versions differ."""
    if was.hash != described.get("hash"):
        raise MlmError(f"{was.path}: the weights of the run had the hash {was.hash}, those of {described['model']} "
                       f"have {described.get('hash')}; give the model of the run")
    if runs != was.runs:
        raise MlmError(f"{was.path}: the first record of the input differs from that of the run; give the same input")
    differing = [f"{name} {version} then, {described['versions'].get(name)} now"
                 for name, version in was.versions.items() if described["versions"].get(name) != version]
    return f"{was.path}: the versions differ from those of the run: {', '.join(differing)}" if differing else None
