"""Options that several commands share, and the types of their values."""

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

import click

from mlmglauber.stream.formats import FORMATS, Reading

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Temperatures(click.ParamType[list[float]]):
    """One temperature or several with commas between; each finite and not negative."""

    name = "tau"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        if isinstance(value, list):
            return value
        taus = []
        for part in str(value).split(","):
            try:
                tau = float(part) if "_" not in part else None
            except ValueError:
                tau = None
            if tau is None or not isfinite(tau) or tau < 0:
                self.fail(f"{part!r} is no temperature: a finite number, 0 or above, or several as in 0.5,1,2")
            taus.append(tau + 0.0)  # -0 is 0
        if len(set(taus)) < len(taus):
            self.fail(f"{value}: a temperature stands twice")
        return taus


class Real(click.FloatRange):
    """A finite number in a range; click alone lets not-a-number through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not isfinite(number) or "_" in str(value):
            self.fail(f"{value!r} is no finite number", param, ctx)
        return number


class Numbers(click.ParamType[list[float]]):
    """One number or several with commas between, each from `low` to `high`."""

    name = "numbers"

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        if isinstance(value, list):
            return value
        try:
            numbers = [float(part) for part in str(value).split(",") if "_" not in str(value)]
        except ValueError:
            numbers = []
        if not numbers or not all(self.low <= number <= self.high for number in numbers):
            self.fail(f"{value!r}: give numbers from {self.low:g} to {self.high:g}, as in 0.3,0.5")
        return numbers


class Sites(click.ParamType[list[int]]):
    """Sites counted from 0, as in 0,3,5-7."""

    name = "sites"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        sites: set[int] = set()
        for part in str(value).split(","):
            match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part.strip())
            if match is None:
                self.fail(f"{part!r} is no site: give numbers from 0 on, as in 0,3,5-7")
            sites.update(range(int(match[1]), int(match[2] or match[1]) + 1))
        return sorted(sites)


class BatchSizeOption(click.ParamType["int | str"]):
    """A number of rows, 1 or more, or "auto"."""

    name = "rows"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value == "auto" or isinstance(value, int):
            return str(value) if value == "auto" else value
        try:
            rows = int(value)
        except ValueError:
            rows = 0
        if rows < 1:
            self.fail(f"{value!r} is no number of rows: give 1 or more, or auto")
        return rows


class Shard(click.ParamType[tuple[int, int]]):
    """I/N, the I-th of N parts, from 1 on; (I - 1, N)."""

    name = "shard"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", str(value))
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            self.fail(f"{value!r} is no shard: give I/N, from 1/N to N/N")
        return int(match[1]) - 1, int(match[2])


def _all(*decorators: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


exact_option = click.option(
    "--exact", is_flag=True,
    help="With --dtype bfloat16 or float16: use it as a faster way to the chains of float64; else it has chains of its "
         "own.")

device_options = _all(
    click.option("--device", default="auto", show_default=True, envvar="MLM_DEVICE", show_envvar=True,
                 metavar="DEVICE", help="auto, cpu, cuda or cuda:N."),
    click.option("--revision", metavar="REV", help="Revision of a model on the hub."),
    click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model."),
    click.option("--allow-pickle", is_flag=True, help="Load weights that are pickles, which can run code."),
)

model_options = _all(
    click.option("-m", "--model", default="tiny-en", show_default=True, envvar="MLM_MODEL", show_envvar=True,
                 metavar="NAME", help="Masked language model: tiny-en, a directory, a hub name, or a table FILE.json."),
    click.option("--dtype", type=click.Choice(["auto", "float64", "float32", "bfloat16", "float16"]), default="auto",
                 show_default=True, help="Number format of the model; auto is float32."),
    click.option("--batch-size", type=BatchSizeOption(), default="auto", show_default=True, metavar="ROWS",
                 help="Rows a forward pass; auto: doubled while timed passes become cheaper a row."),
    device_options,
)

spread_options = _all(
    click.option("--shard", type=Shard(), metavar="I/N",
                 help="Answer the I-th of N parts of the input: records I, N+I, 2N+I, ... from 1 on. All parts "
                      "together give the records of the whole."),
    click.option("--dask", metavar="ADDRESS",
                 help="Let the workers of dask.distributed at ADDRESS answer, or local:N processes of this machine."),
)

text_options = _all(
    click.option("--format", "form", type=click.Choice(FORMATS),
                 help="Format of the input; by default the names of files say it (.fasta, .fa, .faa, .fna, .csv, .tsv, "
                      "also with .gz), and else each line: an object of JSON, or a text."),
    click.option("--text", is_flag=True, help="Every line is a text, whatever it looks like: --format text."),
    click.option("--text-field", metavar="NAME", help="Field or column that holds the text; text by default."),
    click.option("--upper", is_flag=True, help="Sequences of FASTA in capitals."),
)


def reading_of(options: dict[str, Any]) -> Reading | None:
    """How the inputs of a command with `text_options` are read, taken out of its options; None for other commands."""
    if "form" not in options:
        return None
    form, text, field, upper = (options.pop(name) for name in ("form", "text", "text_field", "upper"))
    if text and form not in (None, "text"):
        raise click.UsageError(f"--text and --format {form} exclude each other")
    form = "text" if text else form
    if field is not None and form in ("text", "fasta"):
        raise click.UsageError(f"--text-field is for records and tables; --format {form} has no fields")
    if upper and form not in (None, "fasta"):
        raise click.UsageError("--upper is for --format fasta")
    return Reading(form, field, upper)
