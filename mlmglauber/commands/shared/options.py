"""Options that several commands share, and the dataclasses that hold the values of a command's options."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import click

from mlmglauber.commands.shared.command_line import AliasedOption
from mlmglauber.commands.shared.option_types import BatchSizeOption, Shard
from mlmglauber.commands.shared.truncation_options import TRUNCATION_NAMES
from mlmglauber.commands.shared.word_lists import WordList, with_words
from mlmglauber.models.batch_size import Rows
from mlmglauber.models.checkpoint import DTYPES
from mlmglauber.stream.formats import FORMATS, Reading
from mlmglauber.stream.output import BufferedOutput, Output

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

TABLE_FORMS = ("text", "csv", "md")
"""The forms of a table that --table, --csv and --md ask for."""


MODEL_OPTIONS = ("model", "dtype", "batch_size", "device", "revision", "trust_remote_code", "allow_pickle")
"""Options that a run record describes in fields of its own."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The values of a command's own options, by the names that click gives them.

    RECORDED_IF_GIVEN: options that a run record holds only where they are given; records of other runs stay what they
    were before these options existed.
    """

    RECORDED_IF_GIVEN: ClassVar[frozenset[str]] = frozenset()

    def recorded(self, *left_out: str) -> dict[str, Any]:
        """The values by name, sorted, without those in `left_out`: the options as a run record holds them."""
        names = sorted({field.name for field in fields(self)}.difference(left_out))
        values = {name: getattr(self, name) for name in names}
        values = {name: list(value.words) if isinstance(value, WordList) else value for name, value in values.items()}
        return {name: value for name, value in values.items()
                if value is not None or name not in self.RECORDED_IF_GIVEN}

    def with_files_read(self) -> Self:
        """The options with the words of the files that they name in the place of the names."""
        return self

    def shown_output(self, output: BufferedOutput, named: bool, color: bool) -> Output:
        """Where the records go: the output, or one that shows them on a terminal. named: whether -o was given."""
        return output


@dataclass(frozen=True, kw_only=True)
class DeviceOptions(Options):
    """Values of `device_options`."""

    device: str
    revision: str | None
    trust_remote_code: bool
    allow_pickle: bool


@dataclass(frozen=True, kw_only=True)
class ModelOptions(DeviceOptions):
    """Values of `model_options`."""

    model: str
    dtype: str
    batch_size: Rows

    @property
    def opening(self) -> dict[str, Any]:
        """The keyword arguments of `open_model` that these options give."""
        return {"device": self.device, "dtype": self.dtype, "revision": self.revision, "rows": self.batch_size,
                "trust_remote_code": self.trust_remote_code, "allow_pickle": self.allow_pickle}


@dataclass(frozen=True, kw_only=True)
class TextOptions(ModelOptions):
    """Values of `model_options` and --length: options of a command that reads texts with a model."""

    length: int | None


@dataclass(frozen=True, kw_only=True)
class ChainOptions(ModelOptions):
    """Options that mlm-sample and mlm-couple share: those of a run of chains that --resume can continue."""

    RECORDED_IF_GIVEN: ClassVar[frozenset[str]] = frozenset({"allow_file", "ban_file", *TRUNCATION_NAMES})
    tau: list[float]
    allow: str | None
    allow_file: WordList | None
    ban_file: WordList | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int | None
    cache_mb: int
    resume: str | None
    exact: bool
    table: str

    def with_files_read(self) -> Self:
        """See Options."""
        return with_words(self)

    @property
    def taus(self) -> list[float]:
        """Temperatures at which the precision of the model is measured."""
        return self.tau

    @property
    def opening(self) -> dict[str, Any]:
        """As that of ModelOptions, with `exact`."""
        return super().opening | ({"exact": True} if self.exact else {})


def _all(*decorators: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


exact_option = click.option(
    "--exact", is_flag=True,
    help="With --dtype bfloat16 or float16: compute the chains of float64 faster; without --exact these formats have "
         "chains of their own.")

device_options = _all(
    click.option("--device", default="auto", show_default=True, envvar="MLM_DEVICE", show_envvar=True,
                 metavar="DEVICE", help="Device of the model: auto, cpu, cuda or cuda:N."),
    click.option("--revision", metavar="REV", help="Revision of a model on the hub."),
    click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model."),
    click.option("--allow-pickle", is_flag=True, help="Load weights from pickles, which can run code."),
)

model_options = _all(
    click.option("-m", "--model", default="tiny-en", show_default=True, envvar="MLM_MODEL", show_envvar=True,
                 metavar="NAME", help="Masked language model: tiny-en, a directory, a hub name, or a table FILE.json."),
    click.option("--dtype", type=click.Choice(DTYPES), default="auto",
                 show_default=True, help="Number format of the model; auto is float32."),
    click.option("--batch-size", type=BatchSizeOption(), default="auto", show_default=True, metavar="ROWS",
                 help="Rows of a forward pass; auto doubles them while timed passes become cheaper per row."),
    device_options,
)

spread_options = _all(
    click.option("--shard", type=Shard(), metavar="I/N",
                 help="Answer the I-th of N parts of the input: records I, N+I, 2N+I, ..., counted from 1. All parts "
                      "together give the records of one run."),
    click.option("--dask", metavar="ADDRESS",
                 help="Run on the workers of dask.distributed at ADDRESS, or on local:N processes of this machine."),
)

dry_run_option = click.option(
    "--dry-run", is_flag=True,
    help="Count the work, time a few batches, and write how long all would take and how much it would write; nothing "
         "else is written.")

text_options = _all(
    click.option("--format", "form", type=click.Choice(FORMATS),
                 help="Format of the input. Default: by the name of the file (.fasta, .fa, .faa, .fna, .csv, .tsv, "
                      "also with .gz); otherwise each line is a JSON object or a text."),
    click.option("--text", is_flag=True, help="Take every line as a text; the same as --format text."),
    click.option("--text-field", metavar="NAME", help="Field or column that holds the text. Default: text."),
    click.option("--upper", is_flag=True, help="Convert FASTA sequences to capitals."),
)


def summary_option(help_text: str) -> Decorator:
    """--summary, which is accepted as --summarize too."""
    return click.option("--summary", is_flag=True, cls=AliasedOption, aliases=["--summarize"], help=help_text)


def table_options(summary: bool = False) -> Decorator:
    """--table, --csv and --md, of which one may be given: the field `table` holds which, "" for none.

    summary: whether the command has --summary, which each of them turns on and which is a table on a terminal.
    """
    what = ("Write summaries as a table, the default on a terminal; implies --summary." if summary else
            "Write a table for people instead of records.")
    options = [
        click.option("--table/--no-table", default=None, help=what),
        click.option("--csv", is_flag=True, help="Write the table as CSV, with all digits."),
        click.option("--md", is_flag=True, help="Write the table in Markdown."),
    ]
    return _all(*options)


def take_table(values: dict[str, Any]) -> None:
    """Replace the values of `table_options` by one, `table`; a table turns --summary on."""
    if "csv" not in values:
        return
    table, csv, md = values.pop("table"), values.pop("csv"), values.pop("md")
    if (table is True) + csv + md > 1:
        raise click.UsageError("--table, --csv and --md exclude each other; give one of them")
    values["table"] = "csv" if csv else "md" if md else {True: "text", False: "records", None: ""}[table]
    if values["table"] in TABLE_FORMS:
        values |= {"summary": True} if "summary" in values else {}


def take_reading(values: dict[str, Any]) -> Reading | None:
    """Remove the values of `text_options`; the Reading that they ask for, None for a command without them."""
    if "form" not in values:
        return None
    form, text, field, upper = (values.pop(name) for name in ("form", "text", "text_field", "upper"))
    if text and form not in (None, "text"):
        raise click.UsageError(f"--text and --format {form} exclude each other; give one of them")
    form = "text" if text else form
    if field is not None and form in ("text", "fasta"):
        raise click.UsageError(f"--format {form} has no fields; leave --text-field out")
    if upper and form not in (None, "fasta"):
        raise click.UsageError("--upper needs --format fasta")
    return Reading(form, field, upper)
