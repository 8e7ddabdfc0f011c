"""Write the man pages of the commands: `python man/build.py`.

The options come from the commands themselves, the exit statuses from ExitStatus, the prose and the examples from
man/parts/NAME.mdoc, so that a page, --help and the program cannot part ways. A test compares the pages with the result.
"""

import importlib
import re
from pathlib import Path

import click

from mlmglauber.commands.shared.dry_run import ESTIMATE
from mlmglauber.commands.shared.modes import ModeCommand
from mlmglauber.stream.errors import ExitStatus

MAN = Path(__file__).parent
DATE = "December 1, 2026"
COMMANDS = {
    "mlm-basins": "name the regions of embedding space that chains visit",
    "mlm-couple": "how long two chains take to meet",
    "mlm-drift": "how far chains have gone from where they started",
    "mlm-embed": "add sentence embeddings to records",
    "mlm-estimate": "estimate stationary means from coupled chains",
    "mlm-exact": "everything about a small chain, exactly",
    "mlm-influence": "how far one token moves the conditional at another site",
    "mlm-plot": "draw records",
    "mlm-rect": "whether a model's conditionals fit a joint law",
    "mlm-report": "write one page on all records of an experiment",
    "mlm-sample": "run Glauber chains from texts",
    "mlm-score": "score texts without a chain",
    "mlm-show": "show chains as they are rewritten",
    "mlm-tokens": "how a model cuts texts into sites",
    "mlm-traps": "find where chains get stuck, and why",
}
TABLES = ("mlm-basins", "mlm-couple", "mlm-drift", "mlm-estimate", "mlm-exact", "mlm-influence", "mlm-rect",
          "mlm-sample", "mlm-score", "mlm-tokens", "mlm-traps")
"""Commands with a file table.py that declares their tables."""
STATUSES = {
    ExitStatus.OK: "All went well.",
    ExitStatus.FAILED: "The command failed.",
    ExitStatus.USAGE: "Wrong usage: an unknown option, an invalid value, options that exclude each other.",
    ExitStatus.BAD_RECORD: "At least one record was bad; each was reported on standard error, the others were\n"
                           "answered.\nOr the input had no record that the command reads.",
    ExitStatus.NO_INPUT: "An input file cannot be opened.",
    ExitStatus.NO_MODEL: "The model is not available, or is not of the kind that is needed.",
    ExitStatus.OUR_BUG: "An internal error of the program.",
    ExitStatus.CANNOT_CREATE: "The output file cannot be created.",
    ExitStatus.CANNOT_WRITE: "The output cannot be written, for example on a full disk.",
    ExitStatus.LOCKED: "Another run is writing the same file.",
    ExitStatus.INTERRUPTED: "Interrupted from the keyboard; the lines written before are whole.",
}
TABLE_FORMS = """\
With
.Fl -table ,
tables for people.
A column in which all rows are equal is moved into the title.
Where a line would be longer than
.Ev COLUMNS
or the terminal is wide, headings are broken between their words, then each row is written one field a line; no figure
and no name is cut.
In a file, and in a pipe without
.Ev COLUMNS ,
a line may have any length.
With
.Fl -csv
all digits are written, an interval in three columns, a share from 0 to 1, and nothing for what is not known; several
tables are one, told apart by its first column,
.Va table .
"""
DRY_RUN = """\
.Ss Estimates
With
.Fl -dry-run
a table in the place of records says what a run of this input would do, at least and at most.
The input is read to its end, the model is opened, and the first batches of the work are done for about two seconds.
Nothing of them is written, and no file is made or changed.
.Pp
The counts hold for every run.
Those of bytes let each number have as few or as many digits as a number can have; without records, under
.Fl -summary ,
they are left out.
The seconds follow from the times of the batches, with a margin of one half.
They hold as long as the machine is about as busy during the run as it is now, and as long as neither the writer of the
input nor the reader of the output is the slower one.
.Bl -tag -width Ds
%s.El
"""
DEATHS = [(141, "The reader of standard output has gone; nothing is reported."),
          (143, "Ended by SIGTERM; the lines written before are whole.")]
ENVIRONMENT = {
    "HF_HOME": "Where models fetched from the hub are kept.",
    "HF_HUB_OFFLINE": "When 1, nothing is fetched.",
    "NO_COLOR": "When not empty, no colour.",
    "OMP_NUM_THREADS": "Threads of the model; by default as many as the processors that the process may use.",
}


def escape(text: str) -> str:
    """Text as mdoc prints it, each sentence on its own line."""
    text = text.replace("\\", "\\e").replace("`", "")
    text = re.sub(r"([.;:]) (?=[A-Z])", lambda m: m[1] + ("\n" if m[1] == "." else " "), text)
    return re.sub(r"^([.'])", r"\\&\1", text)


def flags(option: click.Option) -> str:
    names = [*option.opts, *option.secondary_opts]
    names.sort(key=lambda name: (name.startswith("--"), name.startswith("--no-")))
    argument = "" if option.is_flag or option.count else f" Ar {metavar(option)}"
    return " , ".join("Fl " + name[1:] for name in names) + argument


def metavar(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return " | ".join(str(choice) for choice in option.type.choices)
    return option.metavar or "N"


def option_entry(option: click.Option, context: click.Context) -> str:
    help_text = option.help or ""
    if option.show_default and option.default is not None:
        default = option.default
        help_text += f" Default: {default}."
    return f".It {flags(option)}\n{escape(help_text)}\n"


def option_lists(command: click.Command, context: click.Context) -> str:
    """The list of options; where a command has modes, a subsection for each set of modes that share options."""
    options = [option for option in command.get_params(context) if isinstance(option, click.Option)
               and not option.hidden]
    if not isinstance(command, ModeCommand):
        return option_list(options, context)
    shared: dict[str, list[click.Option]] = {}
    for option in options:
        modes = command.modes_of(option)
        shared.setdefault("all modes" if len(modes) == len(command.modes) else " and ".join(modes), []).append(option)
    return "".join(f".Ss Options of {modes}\n{option_list(part, context)}" for modes, part in shared.items())


def option_list(options: list[click.Option], context: click.Context) -> str:
    return ".Bl -tag -width Ds\n" + "".join(option_entry(option, context) for option in options) + ".El\n"


def synopsis(command: click.Command) -> str:
    """The command lines that are possible: one for each mode, the name of the first of which may be left out."""
    if not isinstance(command, ModeCommand):
        return ".Nm\n.Op Ar option ...\n.Op Ar\n"
    first, *others = command.modes
    return "".join(f".Nm\n{mode}\n.Op Ar option ...\n.Op Ar\n"
                   for mode in (f".Op Cm {first}", *(f".Cm {other}" for other in others)))


def tables(name: str) -> str:
    """What each heading of a command's tables means: a subsection at the end of OUTPUT, or nothing."""
    if name not in TABLES:
        return ""
    declared = importlib.import_module(f"mlmglauber.commands.{name.removeprefix('mlm-')}.table").TABLES
    text = f".Ss Tables\n{TABLE_FORMS}"
    for table in declared:
        text += f".Pp\n{escape(table.title)}\n.Bl -tag -width Ds\n"
        text += "".join(f".It {quoted(column.heading)}\n{escape(column.meaning)}\n" for column in table.columns)
        text += ".El\n"
    return text


def estimate(options: list[click.Option]) -> str:
    """What --dry-run writes: a subsection at the end of OUTPUT, or nothing."""
    if not any(option.name == "dry_run" for option in options):
        return ""
    return DRY_RUN % "".join(f".It {quoted(column.heading)}\n{escape(column.meaning)}\n" for column in ESTIMATE.columns)


def quoted(text: str) -> str:
    """A text as one argument of a macro."""
    text = text.replace("\\", "\\e").replace('"', '""')
    return f'"{text}"'


def page(name: str, purpose: str) -> str:
    command = importlib.import_module(f"mlmglauber.commands.{name.removeprefix('mlm-')}.command").main
    context = click.Context(command, info_name=name, help_option_names=["-h", "--help"])
    options = [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option)]
    parts = (MAN / "parts" / f"{name}.mdoc").read_text()
    variables = {option.envvar: f"Default of {option.opts[-1]}." for option in options if option.envvar}
    columns = {"COLUMNS": "Width of a table in cells, also in a pipe."} if name in TABLES else {}
    environment = {**columns, **variables, **(ENVIRONMENT if variables else {"NO_COLOR": ENVIRONMENT["NO_COLOR"]})}
    body = {
        "OPTIONS": option_lists(command, context),
        "EXIT STATUS": ".Bl -tag -width Ds\n" + "".join(
            f".It {int(status)}\n{text}\n" for status, text in [*STATUSES.items(), *DEATHS]) + ".El\n",
        "ENVIRONMENT": ".Bl -tag -width Ds\n" + "".join(
            f".It Ev {variable}\n{text}\n" for variable, text in sorted(environment.items())) + ".El\n",
    }
    estimates = estimate(options)
    parts = parts.replace(".Sh ENVIRONMENT\n", f"{tables(name)}{estimates}.Sh ENVIRONMENT\n")
    for section, text in body.items():
        parts = parts.replace(f".Sh {section}\n", f".Sh {section}\n{text}")
    others = [other for other in COMMANDS if other != name]
    see_also = "".join(f".Xr {other} 1 ,\n" for other in others) + ".Xr mlm-records 5 ,\n.Xr mlm-glauber 7\n"
    return (f".\\\" Made by man/build.py from man/parts/{name}.mdoc and the command's own options.\n"
            f".Dd {DATE}\n.Dt {name.upper()} 1\n.Os mlmglauber\n.Sh NAME\n.Nm {name}\n.Nd {purpose}\n"
            f".Sh SYNOPSIS\n{synopsis(command)}{parts}.Sh SEE ALSO\n{see_also}")


def main() -> None:
    for name, purpose in COMMANDS.items():
        (MAN / f"{name}.1").write_text(page(name, purpose))


if __name__ == "__main__":
    main()
