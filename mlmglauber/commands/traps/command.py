"""mlm-traps: where chains get stuck, and why."""

from typing import TYPE_CHECKING

import click

from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.option_types import Real, Temperatures
from mlmglauber.commands.shared.options import TABLE_FORMS, model_options, table_options, text_options
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.commands.traps.options import TrapsOptions

if TYPE_CHECKING:
    from mlmglauber.stream.records import Record

DESCRIPTION = (
    "Traps: long stretches of a chain in one state or close to it, with margins, and how long they should last.\n\n"
    "Reads state records that show every change (mlm-sample --on-change or --every 1) and writes trap records. "
    "Streams; what is held for a chain does not grow with its steps; --summary holds every trap's length. "
    "With --find or --certify texts are read instead."
)

EXAMPLES = """\
  mlm-sample --tau 0.5 --steps 20000 --on-change < passages.txt | mlm-traps --min-steps 200 --summary
  mlm-traps --find < passages.txt | jq -r '[.margin, .text] | @tsv'
  mlm-traps --certify '!' --certify the --length 16 --tau 0.5 < passages.txt"""

CERTIFYING = ("certify", "scan_tokens", "contexts", "candidates", "draw", "seed")


@click.option("-s", "--min-steps", type=click.IntRange(1), default=100, show_default=True, metavar="N",
              help="A shorter stretch is no trap.")
@click.option("-r", "--radius", type=click.IntRange(0), default=1, show_default=True, metavar="R",
              help="A trap's states differ from its most occupied one at R sites at most; 0 for one state.")
@click.option("--basin", type=Real(0, 1, min_open=True), metavar="P", help="Add the set of states that lead from a "
              "trap's state through changes of chance P or more: its margin, escape and mean time, as of one state.")
@click.option("--support", is_flag=True, help="Add which tokens hold each other: the drop of each site's "
              "log-probability when another site is masked too, a matrix.")
@click.option("--no-model", is_flag=True, help="Find traps only; no margins, no model.")
@click.option("--summary", is_flag=True, help="A summary for each temperature and length in the place of the records, "
              "and for each length how stays grow with 1 / tau.")
@table_options("summary")
@click.option("--find", is_flag=True, help="From each text, run the dynamics at tau 0 to its fixed point or cycle, and "
              "write each different one with the number of texts that lead there.")
@click.option("--max-sweeps", type=click.IntRange(1), default=200, show_default=True, metavar="N",
              help="With --find, sweeps until a text is given up.")
@click.option("--certify", multiple=True, metavar="TOKEN", help="Estimate whether copies of TOKEN beget copies: the "
              "drift of their number, where it is upward, how long they would last. Exact for the state of copies "
              "alone, else from sampled states. A word, or id:N for a piece that is none. May be given again.")
@click.option("--scan-tokens", type=click.IntRange(1), metavar="M", help="Propose the M tokens whose copies hold each "
              "other best.")
@click.option("--contexts", type=click.IntRange(1), default=16, show_default=True, metavar="C",
              help="With --certify, states for each number of copies.")
@click.option("--draw", type=click.Choice(["copies", "texts"]), default="copies", show_default=True,
              help="With --certify, how these states are made: n copies of which some are replaced by tokens from the "
              "conditionals, or texts in which copies are put at random sites.")
@click.option("--candidates", type=click.IntRange(1), default=256, show_default=True, metavar="N",
              help="With --scan-tokens, look at the N tokens that are likeliest in the texts.")
@click.option("-t", "--tau", type=Temperatures(), default="1", show_default=True, metavar="TAU[,TAU]...",
              help="With --find, --certify and --scan-tokens, the temperatures asked about; a chain has its own.")
@click.option("--length", type=click.IntRange(1), metavar="N", help="With --find, --certify and --scan-tokens, keep "
              "the first N tokens of each text; shorter texts are skipped and counted.")
@click.option("--seed", type=click.IntRange(0), help="With --certify, the seed of the sites at which copies are put; "
              "drawn and recorded when absent.")
@text_options
@model_options
def traps(io: Filter, options: TrapsOptions) -> None:
    """Chains, or with --find and --certify texts."""
    if options.certifying and options.table in TABLE_FORMS:
        raise click.UsageError("--certify and --scan-tokens write records; --table is for chains and --find")
    if options.find and options.certifying:
        raise click.UsageError("--find and --certify or --scan-tokens exclude each other")
    if options.no_model and (options.find or options.certifying):
        raise click.UsageError("--find, --certify and --scan-tokens need a model; leave --no-model out")
    if (options.basin or options.support) and (options.no_model or options.certifying or options.summary):
        raise click.UsageError("--basin and --support add to trap records, by a model: leave out --no-model, "
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

    states = ChainsRun(io, options)

    def handle(record: "Record") -> None:
        progress(1)
        states.handle(record)

    with io.reporter.bar("records") as progress:
        io.each(handle)
        states.end()
    if not states.chains:
        io.report_missing("state record", "give what mlm-sample --on-change writes; --find and --certify take texts",
                              options.summary)
    if options.summary:
        _write_summaries(io, states.head, [*states.summaries(), *states.slowness()], options.table)


def _write_summaries(io: Filter, head: "Record | None", groups: "list[Record]", table: str) -> None:
    if shown(io, table):
        from mlmglauber.commands.traps.table import trap_tables

        write_tables(io, table, trap_tables(groups))
        return
    for record in [head] if head is not None else []:
        io.output.write(record)
    for group in groups:
        io.output.write(group)


main = record_command(traps, TrapsOptions, DESCRIPTION, EXAMPLES)

if __name__ == "__main__":
    main()
