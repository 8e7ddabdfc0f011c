"""mlm-traps: where chains get stuck, and why."""

from typing import TYPE_CHECKING, Any

import click

from mlmglauber.commands.shared.filter import Filter, filter_command
from mlmglauber.commands.shared.options import Real, Temperatures, model_options, text_options
from mlmglauber.commands.shared.tables import FORMS, shown, table_options, write_tables

if TYPE_CHECKING:
    from mlmglauber.stream.records import Record

EXAMPLES = """\
  mlm-sample --tau 0.5 --steps 20000 --on-change < passages.txt | mlm-traps --min-steps 200 --summary
  mlm-traps --find < passages.txt | jq -r '[.margin, .text] | @tsv'
  mlm-traps --certify '!' --certify the --length 16 --tau 0.5 < passages.txt"""

CERTIFYING = ("certify", "scan_tokens", "contexts", "candidates", "draw", "seed")


@filter_command(
    "mlm-traps",
    "Traps: long stretches of a chain in one state or close to it, with margins, and how long they should last.\n\n"
    "Reads state records that show every change (mlm-sample --on-change or --every 1) and writes trap records. "
    "Streams; what is held for a chain does not grow with its steps; --summary holds every trap's length. "
    "With --find or --certify texts are read instead.",
    EXAMPLES,
)
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
def main(filter: Filter, find: bool, min_steps: int, radius: int, no_model: bool, summary: bool, table: str,
         max_sweeps: int, **options: Any) -> None:
    """Chains, or with --find and --certify texts."""
    certificates = {name: options.pop(name) for name in CERTIFYING}
    certifying = bool(certificates["certify"]) or certificates["scan_tokens"] is not None
    if certifying and table in FORMS:
        raise click.UsageError("--certify and --scan-tokens write records; --table is of chains and of --find")
    if find and certifying:
        raise click.UsageError("--find and --certify or --scan-tokens exclude each other")
    if no_model and (find or certifying):
        raise click.UsageError("--no-model leaves nothing of --find, --certify or --scan-tokens")
    if (options["basin"] or options["support"]) and (no_model or certifying or summary):
        raise click.UsageError("--basin and --support add to trap records, by a model: leave out --no-model, "
                               "--summary, --certify and --scan-tokens")
    if certifying:
        from mlmglauber.commands.traps.certify import Certificates

        del options["basin"], options["support"]
        Certificates(filter, options | certificates).run()
    elif find:
        from mlmglauber.commands.traps.find import Search

        Search(filter, options, max_sweeps, summary, table).run()
    else:
        del options["tau"], options["length"]
        _chains(filter, options, radius, min_steps, no_model, summary, table)


def _chains(filter: Filter, options: dict[str, Any], radius: int, min_steps: int, no_model: bool, summary: bool,
            table: str) -> None:
    from mlmglauber.commands.traps.chains import States

    states = States(filter, options, radius, min_steps, no_model, summary)

    def handle(record: "Record") -> None:
        progress(1)
        states.handle(record)

    with filter.words.bar("records") as progress:
        filter.each(handle)
        states.end()
    if not states.chains:
        filter.lacks("state record", "give what mlm-sample --on-change writes; --find and --certify take texts",
                     summary)
    if summary:
        _write_summaries(filter, states.head, [*states.summaries(), *states.slowness()], table)


def _write_summaries(filter: Filter, head: "Record | None", groups: "list[Record]", table: str) -> None:
    if shown(filter, table):
        from mlmglauber.commands.traps.table import trap_tables

        write_tables(filter, table, trap_tables(groups))
        return
    for record in [head] if head is not None else []:
        filter.output.write(record)
    for group in groups:
        filter.output.write(group)


if __name__ == "__main__":
    main()
