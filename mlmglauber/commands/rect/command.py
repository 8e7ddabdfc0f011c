"""mlm-rect: whether a model's conditionals are those of any joint law."""


import click

from mlmglauber.commands.rect.options import RectOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.option_types import Real, Sites
from mlmglauber.commands.shared.options import (
    dry_run_option,
    model_options,
    spread_options,
    summary_option,
    table_options,
    text_options,
)
from mlmglauber.commands.shared.spread.plan import Spread

DESCRIPTION = (
    "The rectangle test: `delta` is the difference, in nats, of log P(z)/P(x) along the two orders of changing two "
    "tokens. It is zero for every rectangle if and only if the conditionals are those of a joint distribution.\n\n"
    "Reads texts or states; writes a run record and rectangle records. Rectangles are named by --site and --to, or by "
    "`i`, `j`, `to_i`, `to_j` in the records, or drawn. Streams; --summary keeps 130 "
    "bytes a rectangle, and 16 kB a text at the end."
)

EXAMPLES = """\
  echo "the cat sat on the mat" | mlm-rect --site cat --to dog --site mat --to rug
  mlm-rect --rectangles 200 --summary < passages.txt
  mlm-sample --on-change --steps 5000 < passages.txt | mlm-rect --path --summary"""

GROUPS = (
    Group("Rectangles", "site to rectangles length seed", "tau draw gap freeze noise"),
    Group("Chains", "path", "burn-in"),
    Group("Output", "", "fail-above"),
)


@click.option("--site", multiple=True, metavar="SITE", help="A site: its number from 0 on, or its word; give two.")
@click.option("--to", multiple=True, metavar="WORD", help="The word to put at each --site, in the same order.")
@click.option("-r", "--rectangles", type=click.IntRange(1), default=20, show_default=True, metavar="R",
              help="Number of rectangles drawn for each text without a named one.")
@click.option("--gap", type=click.IntRange(1), metavar="G", help="Draw sites G apart. Default: any two.")
@click.option("--draw", type=click.Choice(["conditional", "uniform", "top"]), default="conditional", show_default=True,
              help="Alternatives: from the conditional at tau 1 without the present token, uniform, or the likeliest.")
@click.option("-t", "--tau", type=Real(0, min_open=True), default=1.0, show_default=True, metavar="TAU",
              help="Temperature; delta is delta at 1, divided by TAU.")
@click.option("--noise/--no-noise", default=True, show_default=True,
              help="Compute each rectangle again in another order and padding, to measure rounding.")
@summary_option("Write summaries in place of the records; the input may hold rectangle records.")
@table_options(summary=True)
@click.option("--fail-above", type=Real(0), metavar="X", help="End with status 1 if the mean |delta| is "
              "above X nats.")
@click.option("--path", is_flag=True,
              help="Read chains that record every change and write their entropy production; needs no model.")
@click.option("--burn-in", type=click.IntRange(0), metavar="N",
              help="With --path, steps left out of each chain. Default: a fifth of it.")
@click.option("--length", type=click.IntRange(2), metavar="N",
              help="Keep the first N tokens of each text; shorter texts are skipped and counted.")
@click.option("--freeze", type=Sites(), metavar="SITES", help="Sites that no rectangle uses, as in 0,3,5-7.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of the draws; drawn and recorded when absent.")
@text_options
@model_options
@spread_options
@dry_run_option
def rect(io: Filter, options: RectOptions) -> None:
    """Measure rectangles of texts or, with --path, the entropy production of chains."""
    if options.burn_in is not None and not options.path:
        raise click.UsageError("--burn-in needs --path")
    if io.dry_run and options.path:
        raise click.UsageError("--path computes nothing that --dry-run could time; leave one of them out")
    if options.path:
        if options.site or options.to:
            raise click.UsageError("--path excludes --site and --to, which name a rectangle; leave them out")
        if options.fail_above is not None:
            raise click.UsageError("--path excludes --fail-above, which is about |delta|; leave it out")
        from mlmglauber.commands.rect.chains import write_productions

        write_productions(io, options)
        return
    if (len(options.site), len(options.to)) not in ((0, 0), (2, 2)):
        raise click.UsageError("a rectangle needs two --site and two --to; give both, in the same order")
    from mlmglauber.commands.rect.run import RectRun

    run = RectRun(io, options)
    if io.dry_run:
        from mlmglauber.commands.rect.dry_run import write_rectangle_estimate

        write_rectangle_estimate(run)
    else:
        run.run()


main = record_command(rect, RectOptions, DESCRIPTION, EXAMPLES, GROUPS,
                      Spread(needs_all=("table", "summary", "fail_above", "path")))

if __name__ == "__main__":
    main()
