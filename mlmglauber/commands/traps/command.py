"""mlm-traps: where chains get stuck, and why."""

from typing import TYPE_CHECKING

import click

from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.command_line import AliasedOption
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.modes import Mode
from mlmglauber.commands.shared.option_types import Real, TemperaturesOption
from mlmglauber.commands.shared.options import (
    MODEL_OPTIONS,
    TABLE_FORMS,
    model_options,
    summary_option,
    table_options,
    text_options,
)
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.commands.traps.options import TrapsOptions

if TYPE_CHECKING:
    from mlmglauber.stream.records import Record

DESCRIPTION = (
    "Find where chains get stuck, and how long they should stay there.\n\n"
    "The older forms mlm-traps --find and mlm-traps --certify TOKEN are accepted too."
)

EXAMPLES = """\
  mlm-sample --tau 0.5 --steps 20000 --on-change < passages.txt | mlm-traps --min-steps 200 --summary
  mlm-traps find < passages.txt | jq -r '[.margin, .text] | @tsv'
  mlm-traps certify --token '!' --token the --length 16 --tau 0.5 < passages.txt"""

GROUPS = (
    Group("Traps", "min-steps radius max-sweeps token scan-tokens contexts tau length",
          "basin support no-model candidates draw seed"),
)

TEXTS = ("form", "text", "text_field", "upper", "length", "tau", *MODEL_OPTIONS)
RECORDS = ("summary", "table", "csv", "md", "basin", "support")

MODES = {
    "chains": Mode(
        "Find the traps of chains: long stays in one state or close to it, with margins and expected lengths.\n\n"
        "Reads state records that show every change (mlm-sample --on-change or --every 1) and writes trap records. "
        "Streams; the memory for a chain does not grow with its steps; --summary keeps the length of every trap.",
        """\
  mlm-sample --tau 0.5 --steps 20000 --on-change < passages.txt | mlm-traps --min-steps 200 --summary
  mlm-traps chains --basin 0.05 chains.jsonl | jq '[.residence, .expected, .basin.expected]'""",
        frozenset({"min_steps", "radius", "no_model", *RECORDS, *MODEL_OPTIONS})),
    "find": Mode(
        "Find the fixed points and cycles to which the dynamics at tau 0 leads from texts.\n\n"
        "Reads lines of text, or records with `text` or `ids`; writes one trap record for each different fixed point "
        "or cycle, with the number of texts that lead there.",
        """\
  mlm-traps find < passages.txt | jq -r '[.margin, .text] | @tsv'
  mlm-traps find --length 12 --summary --table passages.txt""",
        frozenset({"max_sweeps", *RECORDS, *TEXTS}), {"find": True}),
    "certify": Mode(
        "Test whether repeats of a token are self-reinforcing, and how long they would last.\n\n"
        "Reads lines of text, or records with `text` or `ids`, all of one length; writes a summary for each --token "
        "and temperature, and with --scan-tokens a list of tokens to test.",
        """\
  mlm-traps certify --token '!' --token the --length 16 --tau 0.5 < passages.txt
  mlm-traps certify --scan-tokens 5 --length 16 < passages.txt""",
        frozenset({"certify", "scan_tokens", "contexts", "candidates", "draw", "seed", *TEXTS}),
        needs=("certify", "scan_tokens")),
}


@click.option("-s", "--min-steps", type=click.IntRange(1), default=100, show_default=True, metavar="N",
              help="Least number of steps of a trap; shorter stays are left out.")
@click.option("-r", "--radius", type=click.IntRange(0), default=1, show_default=True, metavar="R",
              help="Maximum number of sites at which a state of a trap differs from its most occupied state; 0 for one "
                   "state.")
@click.option("--basin", type=Real(0, 1, min_open=True), metavar="P", help="Add the set of states that lead to a "
              "trap's state through changes of probability P or more: its margin, escape and mean time.")
@click.option("--support", is_flag=True, help="Add which tokens support each other: the matrix of drops of each site's "
              "log-probability when another site is masked too.")
@click.option("--no-model", is_flag=True, help="Find traps only; open no model and compute no margins.")
@summary_option("Write summaries in place of the records.")
@table_options(summary=True)
@click.option("--find", is_flag=True, hidden=True, help="The older form of `mlm-traps find`.")
@click.option("--max-sweeps", type=click.IntRange(1), default=200, show_default=True, metavar="N",
              help="Maximum number of sweeps from a text.")
@click.option("--token", "certify", cls=AliasedOption, aliases=["--certify"], multiple=True, metavar="TOKEN",
              help="Test this token: the drift of the number of its copies, the range where the drift is upward, and "
                   "how long copies would last. Exact for the state of copies alone, otherwise from sampled states. A "
                   "word, or id:N for a piece that is not a word. May be given several times.")
@click.option("--scan-tokens", type=click.IntRange(1), metavar="M", help="Propose the M tokens whose copies support "
              "each other most.")
@click.option("--contexts", type=click.IntRange(1), default=16, show_default=True, metavar="C",
              help="Number of states for each number of copies.")
@click.option("--draw", type=click.Choice(["copies", "texts"]), default="copies", show_default=True,
              help="How the states of --contexts are made: n copies of which some are replaced by tokens from the "
                   "conditionals, or texts in which copies are put at random sites.")
@click.option("--candidates", type=click.IntRange(1), default=256, show_default=True, metavar="N",
              help="With --scan-tokens, choose among the N most likely tokens of the texts.")
@click.option("-t", "--tau", type=TemperaturesOption(), default="1", show_default=True, metavar="TAU[,TAU]...",
              help="Temperature, or several, for escape probabilities and drifts.")
@click.option("--length", type=click.IntRange(1), metavar="N",
              help="Keep the first N tokens of each text; shorter texts are skipped and counted.")
@click.option("--seed", type=click.IntRange(0), metavar="N",
              help="Seed of the sites at which copies are put; drawn and recorded when absent.")
@text_options
@model_options
def traps(io: Filter, options: TrapsOptions) -> None:
    """Run the mode that the options ask for; UsageError for options of two modes in the older form."""
    if options.certifying and options.table in TABLE_FORMS:
        raise click.UsageError("--certify and --scan-tokens write records; --table is for chains and --find")
    if options.find and options.certifying:
        raise click.UsageError("--find excludes --certify and --scan-tokens; run the command for each")
    if options.no_model and (options.find or options.certifying):
        raise click.UsageError("--find, --certify and --scan-tokens need a model; leave --no-model out")
    if (options.basin or options.support) and (options.no_model or options.certifying or options.summary):
        raise click.UsageError("--basin and --support add to trap records, by a model; leave out --no-model, "
                               "--summary, --certify and --scan-tokens")
    if options.certifying:
        from mlmglauber.commands.traps.certify import CertifyRun

        CertifyRun(io, options).run()
    elif options.find:
        from mlmglauber.commands.traps.find import FindRun

        FindRun(io, options).run()
    else:
        _chains(io, options)


def _chains(io: Filter, options: TrapsOptions) -> None:
    from mlmglauber.commands.traps.chains import ChainsRun

    run = ChainsRun(io, options)

    def handle(record: "Record") -> None:
        progress(1)
        run.handle(record)

    with io.bar("records") as progress:
        io.each(handle)
        run.end()
    if not run.chains:
        io.report_missing("state record", "give what mlm-sample --on-change writes; 'mlm-traps find' and 'mlm-traps "
                          "certify' read texts", options.summary)
    if options.summary:
        _write_summaries(io, run.head, [*run.summaries(), *run.slowness()], options.table)


def _write_summaries(io: Filter, head: "Record | None", groups: "list[Record]", table: str) -> None:
    if shown(io, table):
        from mlmglauber.commands.traps.table import trap_tables

        write_tables(io, table, trap_tables(groups))
        return
    for record in [head] if head is not None else []:
        io.output.write(record)
    for group in groups:
        io.output.write(group)


main = record_command(traps, TrapsOptions, DESCRIPTION, EXAMPLES, GROUPS, modes=MODES)

if __name__ == "__main__":
    main()
