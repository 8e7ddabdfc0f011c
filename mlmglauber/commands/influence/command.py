"""mlm-influence: how far one token moves the conditional at another site, and what follows for mixing."""


import click

from mlmglauber.commands.influence.options import InfluenceOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.option_types import Real, Sites, Temperatures
from mlmglauber.commands.shared.options import (
    model_options,
    spread_options,
    summary_option,
    table_options,
    text_options,
)
from mlmglauber.commands.shared.spread.plan import Spread

DESCRIPTION = (
    "Estimate influences c_ij, their sizes alpha and the mixing bound if alpha were that, the contraction that typical "
    "pairs of states see, the bound that the model's head proves, and the state's margins.\n\n"
    "Reads texts or states; writes a run record and influence records, one for each temperature. Sampled contexts can "
    "refute alpha < 1, never prove it. Streams; --summary holds conditionals up to --keep-mb."
)

EXAMPLES = """\
  echo "the cat sat on the mat" | mlm-influence --tau 1,2,4 --matrix
  mlm-influence --summary --length 16 --tau 1,2,4 passages.txt
  mlm-sample --tau 2 --sweeps 50 passages.txt | mlm-influence --summary"""


@click.option("-t", "--tau", type=Temperatures(), metavar="TAU[,TAU]...",
              help="Temperature or several, which cost no more; a state's own by default, and 1 for a text.")
@click.option("--draw", type=click.Choice(["conditional", "uniform", "top", "worst"]), default="conditional",
              show_default=True, help="Replacements: from the conditional at the first TAU without the present token, "
              "uniform, the likeliest, or looked for: far away first, then near the best.")
@click.option("-r", "--replacements", type=click.IntRange(1), default=4, show_default=True, metavar="M",
              help="Replacements for each site; a text of n sites takes n (1 + (n - 1) M) rows at most.")
@click.option("--eps", type=Real(0, 1, min_open=True, max_open=True), default=0.25, show_default=True,
              metavar="EPS", help="Distance to stationarity that the mixing bounds are about.")
@click.option("--matrix", is_flag=True, help="Add the matrices of influences and of logit oscillations.")
@summary_option("Summaries over contexts in the place of the records, with the "
              "temperature at which alpha crosses 1.")
@click.option("--keep-mb", type=click.IntRange(0), default=1024, show_default=True, metavar="MB",
              help="Memory for the conditionals that --summary looks for crossings in; 0 looks for none.")
@click.option("--length", type=click.IntRange(1), metavar="N",
              help="Keep the first N tokens of each text; shorter texts are skipped and counted.")
@click.option("--freeze", type=Sites(), metavar="SITES", help="Sites that neither move nor are changed, as in 0,3,5-7.")
@click.option("--seed", type=click.IntRange(0), help="Seed of what is drawn; drawn itself and recorded when absent.")
@table_options(summary=True)
@text_options
@model_options
@spread_options
def influence(io: Filter, options: InfluenceOptions) -> None:
    """Influences of one context after another."""
    from mlmglauber.commands.influence.run import InfluenceRun

    InfluenceRun(io, options).run()


main = record_command(influence, InfluenceOptions, DESCRIPTION, EXAMPLES,
                      Spread(needs_all=("table", "summary")))

if __name__ == "__main__":
    main()
