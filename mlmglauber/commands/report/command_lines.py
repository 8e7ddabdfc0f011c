"""The command line that makes a run again, from its run record; words are quoted for a shell."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from mlmglauber.commands.sample.options import RECORDED_NAMES
from mlmglauber.commands.shared.modes import ModeCommand
from mlmglauber.commands.umbrella.command import COMMANDS
from mlmglauber.stream.printable import printable
from mlmglauber.stream.records import Record

INPUTS = {"mlm-embed": "STATES", "mlm-basins": "EMBEDDED_STATES"}
"""What stands for the input of a run, which run records do not name; TEXTS for other commands."""


def quoted(words: Iterable[str]) -> str:
    """Words as a shell reads them; control characters are spelled out.

    >>> quoted(["mlm-embed", "--prompt", "it's"])
    'mlm-embed --prompt \\'it\\'"\\'"\\'s\\''
    """
    return " ".join(shlex.quote(printable(word)) for word in words)


def command_line(runs: Sequence[Record]) -> str | None:
    """The command line of runs that differ in their temperature alone; None for a command that is not known.

    Options that have their default are left out, except for the model and the seed.
    """
    name = str(runs[0].get("command")).removeprefix("mlm-")
    if name not in COMMANDS:
        return None
    main = import_module(f"mlmglauber.commands.{name}.command").main
    values = _values(runs)
    words = [f"mlm-{name}"]
    if isinstance(main, ModeCommand):
        for word, mode in main.modes.items():
            if mode.values and all(values.get(key) == value for key, value in mode.values.items()):
                words.append(word)
                values = {key: value for key, value in values.items() if key not in mode.values}
            elif any(values.get(key) for key in mode.needs):
                words.append(word)
    for option in main.params:
        if isinstance(option, click.Option) and option.name in values:
            words += _option_words(option, values[option.name])
    if name == "basins" and "clusters" not in values:
        words += ["--examples", "EXAMPLES", "--summary"]
    of_chains = name == "traps" and len(words) > 1 and words[1].startswith("-")
    return f"{quoted(words)} < {'STATES' if of_chains else INPUTS.get(f'mlm-{name}', 'TEXTS')}"


def _values(runs: Sequence[Record]) -> dict[str, Any]:
    """The values of a run's options by the names of their parameters."""
    run = runs[0]
    recorded = {new: old for old, new in RECORDED_NAMES.items()}
    options = run["options"] if isinstance(run.get("options"), dict) else {}
    values: dict[str, Any] = {recorded.get(name, name): value for name, value in options.items()}
    values |= {name: run[name] for name in ("seed", "revision", "shard") if run.get(name) is not None}
    model = run.get("model", run.get("embedder"))
    if run.get("command") != "mlm-basins" and model is not None:
        values["model"] = model
    taus = [one["tau"] for one in runs if one.get("tau") is not None]
    if taus:
        values["tau"] = list(dict.fromkeys(taus))
    if run.get("command") == "mlm-embed":
        return values | {"dims": None, "normalize": bool(run.get("normalize"))}
    dtype = run.get("dtype")
    if run.get("class") != "TableConditional" and dtype not in (None, "float32"):
        values |= {"dtype": dtype, "exact": dtype in ("bfloat16", "float16") and run.get("precision") == "float64"}
    return values


def _option_words(option: click.Option, value: Any) -> list[str]:
    """An option and its value as words; none for a value that is the default."""
    name = max(option.opts, key=len)
    if value is None or (isinstance(value, (list, tuple)) and not value):
        return []
    if option.name not in ("model", "seed") and _shown(value) == _shown(option.default):
        return []
    if option.is_flag:
        return [name] if value else list(option.secondary_opts[:1])
    values = value if option.multiple and isinstance(value, list) else [value]
    return [word for one in values for word in _pair(name, _shown(one))]


def _pair(name: str, value: str) -> list[str]:
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _shown(value: Any) -> str:
    """A value as it is written on a command line: lists with commas, numbers without needless digits."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(_shown, value))
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def grouped(runs: Iterable[Record]) -> list[list[Record]]:
    """The runs by what they share besides id and temperature: one command line makes all runs of a group."""
    groups: dict[str, list[Record]] = {}
    for run in runs:
        rest = {name: value for name, value in run.items() if name not in ("run", "tau", "type")}
        groups.setdefault(repr(sorted(rest.items(), key=lambda item: item[0])), []).append(run)
    return list(groups.values())


def source(files: Mapping[str, None], unknown: str) -> str:
    """The files of records at the end of a command line; a redirection from `unknown` where they have no name."""
    names = [name for name in files if name != "stdin"]
    return quoted(names) if names else f"< {unknown}"
