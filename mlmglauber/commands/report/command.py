"""mlm-report: a page in HTML on all records of an experiment."""

import sys

import click

from mlmglauber.commands.report.options import ReportOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.option_types import Real
from mlmglauber.stream.errors import ExitStatus, MlmError
from mlmglauber.stream.records import Record

DESCRIPTION = (
    "Write one page in HTML on all records of an experiment: what was run, tables, pictures, telling texts, warnings, "
    "and the command lines that make each part again.\n\n"
    "Reads records of the other commands in any mixture. The page is one file: it needs no network, and no script runs "
    "in it. States are not held: a chain keeps three of them, and 24 bytes of each state with `drift`."
)

EXAMPLES = """\
  mlm-report -o report.html states.jsonl drift.jsonl pairs.jsonl traps.jsonl
  mlm-sample --chains 4 passages.txt | mlm-embed | mlm-drift | mlm-report -o drift.html
  zcat chains.jsonl.gz | mlm-report --title 'Cold chains' -o cold.html"""


GROUPS = (
    Group("Page", "title threshold texts"),
)


@click.option("--title", default="Glauber dynamics on masked language models", show_default=True, metavar="TEXT",
              help="Title of the page.")
@click.option("--threshold", type=Real(0, 2), default=0.5, show_default=True, metavar="D",
              help="The drift that counts as a hit, where the records hold no summary of mlm-drift.")
@click.option("--texts", type=click.IntRange(0), default=10, show_default=True, metavar="N",
              help="Maximum number of texts in each list of texts.")
def report(io: Filter, options: ReportOptions) -> None:
    """Read all records, then write the page."""
    if io.output.path is None and sys.stdout.isatty():
        raise click.UsageError("standard output is a terminal; give -o FILE.html")
    from mlmglauber.commands.report.records import ReportRecords

    records = ReportRecords(io, options)

    def handle(record: Record) -> None:
        progress(1)
        records.take(record)

    with io.bar("records") as progress:
        io.each(handle)
    io.conclude()
    if not records.types:
        error = MlmError("the input has no records of the suite; give what its other commands write")
        error.status = ExitStatus.BAD_RECORD if io.types or io.reporter.bad_records else ExitStatus.FAILED
        raise error
    from mlmglauber.commands.report.page import page

    io.output.write_line(page(records).encode())


main = record_command(report, ReportOptions, DESCRIPTION, EXAMPLES, GROUPS)

if __name__ == "__main__":
    main()
