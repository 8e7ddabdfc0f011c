"""mlm-show: chains as they are rewritten."""

import os
import sys
from typing import TYPE_CHECKING

import click

from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.option_types import Real
from mlmglauber.commands.show.options import ShowOptions

if TYPE_CHECKING:
    from mlmglauber.commands.show.lines import LineWriter
    from mlmglauber.stream.records import Record

FPS = 5.0
"""States a second of --follow where --fps is not given."""

STATES = "states", "give the records of mlm-sample"

DESCRIPTION = (
    "Show chains as they are rewritten: each state as text, with what changed.\n\n"
    "Reads states, and run and trap records, of mlm-sample and of the commands that add to them; writes text for "
    "people. On a terminal changed words are coloured by the probability of their token; in a pipe or file they are "
    "written [old -> new]. Each state is shown when its record comes."
)

EXAMPLES = """\
  echo "the cat sat on the mat" | mlm-sample --on-change --sweeps 20 | mlm-show
  mlm-sample --on-change --chains 4 passages.txt | mlm-show --follow --fps 10
  mlm-show --log chains.jsonl | grep river"""


GROUPS = (
    Group("Form", "follow fps log diff color"),
)


@click.option("-f", "--follow", is_flag=True,
              help="On a terminal, rewrite the texts in place, each chain in a pane of its own. Space pauses, arrows "
                   "step back and forward, q ends.")
@click.option("--fps", type=Real(0.01, 1000), metavar="N",
              help=f"With --follow, show N states of each chain a second. Default: {FPS:g}.")
@click.option("--log", is_flag=True, help="Write one line for each change: step, site, old and new word, and the "
              "log-probability of the new token in nats.")
@click.option("--diff", is_flag=True, help="Compare with the first state of the chain, and write only what differs.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
              help="Colour changed words; auto: on a terminal, unless NO_COLOR is set.")
def show(io: Filter, options: ShowOptions) -> None:
    """Write the lines of each record as it comes, or follow the chains in place."""
    from mlmglauber.commands.show.lines import Form, LineWriter, Place
    from mlmglauber.commands.show.output import terminal_width

    _check(io, options)
    descriptor = sys.stdout.fileno()
    terminal = io.output.path is None and os.isatty(descriptor)
    color = options.color == "always" or (options.color == "auto" and terminal and io.reporter.color)
    if options.follow:
        if not terminal:
            raise click.UsageError("--follow rewrites a terminal, and standard output is none; leave it out")
        from mlmglauber.commands.show.follow import follow

        follow(io, color, options.fps or FPS)
    else:
        form = Form.LOG if options.log else Form.DIFF if options.diff else Form.TEXT
        _write_lines(io, LineWriter(form, Place(terminal, color), lambda: terminal_width(descriptor)))
    if not io.types["state"] and not io.types["trap"] and not io.types["None"]:
        io.report_missing(*STATES)


def _write_lines(io: Filter, writer: "LineWriter") -> None:
    from mlmglauber.commands.show.lines import shows

    def handle(record: "Record") -> None:
        if shows(record):
            io.output.write_line(writer.lines(record).encode())

    io.each(handle)


def _check(io: Filter, options: ShowOptions) -> None:
    """UsageError for options that exclude each other."""
    given = [f"--{name}" for name in ("follow", "log", "diff") if getattr(options, name)]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other; give one of them")
    if options.fps is not None and not options.follow:
        raise click.UsageError("--fps needs --follow; add it")
    if options.color == "always" and click.get_current_context().params["no_color"]:
        raise click.UsageError("--color always and --no-color exclude each other; give one of them")
    if options.follow and io.lines.paths == ["-"] and os.isatty(sys.stdin.fileno()):
        raise click.UsageError("--follow reads keys from the terminal; give the records in a file or a pipe")


main = record_command(show, ShowOptions, DESCRIPTION, EXAMPLES, GROUPS)

if __name__ == "__main__":
    main()
