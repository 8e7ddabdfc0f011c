"""mlm-influence: how far one token moves the conditional at another site, and what follows for mixing."""


import click

from mlmglauber.commands.influence.options import InfluenceOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.option_types import Real, Sites, TemperaturesOption
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
    "Estimate influences c_ij, their size alpha and the mixing bound that such an alpha gives, the contraction of "
    "typical pairs of states, the bound that the model's head proves, and the margins of the state.\n\n"
    "Reads texts or states; writes a run record and influence records, one for each temperature. Sampled contexts can "
    "refute alpha < 1 but not prove it. Streams; --summary keeps conditionals, up to --keep-mb."
)

EXAMPLES = """\
  echo "the cat sat on the mat" | mlm-influence --tau 1,2,4 --matrix
  mlm-influence --summary --length 16 --tau 1,2,4 passages.txt
  mlm-sample --tau 2 --sweeps 50 passages.txt | mlm-influence --summary"""

GROUPS = (
    Group("Influences", "tau replacements length seed", "draw eps freeze keep-mb"),
    Group("Output", "matrix"),
)


@click.option("-t", "--tau", type=TemperaturesOption(), metavar="TAU[,TAU]...",
              help="Temperature, or several at no extra cost. Default: that of a state, and 1 for a text.")
@click.option("--draw", type=click.Choice(["conditional", "uniform", "top", "worst"]), default="conditional",
              show_default=True, help="Replacements: from the conditional at the first TAU without the present token, "
              "uniform, the likeliest, or by a search for large influences.")
@click.option("-r", "--replacements", type=click.IntRange(1), default=4, show_default=True, metavar="M",
              help="Replacements for each site; a text of n sites takes n (1 + (n - 1) M) rows at most.")
@click.option("--eps", type=Real(0, 1, min_open=True, max_open=True), default=0.25, show_default=True,
              metavar="EPS", help="Distance to stationarity in the mixing bounds.")
@click.option("--matrix", is_flag=True, help="Add the matrices of influences and of logit oscillations.")
@summary_option("Write summaries over contexts in place of the records, with the temperature at which alpha crosses 1.")
@click.option("--keep-mb", type=click.IntRange(0), default=1024, show_default=True, metavar="MB",
              help="Memory for the conditionals in which --summary searches for crossings; 0 for no search.")
@click.option("--length", type=click.IntRange(1), metavar="N",
              help="Keep the first N tokens of each text; shorter texts are skipped and counted.")
@click.option("--freeze", type=Sites(), metavar="SITES",
              help="Sites that are neither drawn nor changed, as in 0,3,5-7.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of the draws; drawn and recorded when absent.")
@table_options(summary=True)
@text_options
@model_options
@spread_options
@dry_run_option
def influence(io: Filter, options: InfluenceOptions) -> None:
    """Measure the influences of one context after another."""
    from mlmglauber.commands.influence.run import InfluenceRun

    run = InfluenceRun(io, options)
    if io.dry_run:
        from mlmglauber.commands.influence.dry_run import write_influence_estimate

        write_influence_estimate(run)
    else:
        run.run()


main = record_command(influence, InfluenceOptions, DESCRIPTION, EXAMPLES, GROUPS,
                      Spread(needs_all=("table", "summary")))

if __name__ == "__main__":
    main()
