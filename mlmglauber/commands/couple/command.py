"""mlm-couple: how long coupled chains take to meet."""

import re
from typing import Any

import click

from mlmglauber.commands.couple.options import DEFAULT_HORIZON, CoupleOptions, refuse_pairs
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.command_line import AliasedOption
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.option_types import Numbers, Real, TemperaturesOption
from mlmglauber.commands.shared.options import (
    dry_run_option,
    exact_option,
    model_options,
    spread_options,
    summary_option,
    table_options,
    text_options,
)
from mlmglauber.commands.shared.spread.plan import Spread
from mlmglauber.commands.shared.truncation_options import truncation_options
from mlmglauber.commands.shared.word_lists import word_file_options

DESCRIPTION = (
    "Run pairs of coupled Glauber chains, with the same sites and coupled tokens, until they meet.\n\n"
    "Reads lines of text, or records with `text` or `ids`; writes a run record, then one pair record for each pair, "
    "temperature and length. With --lag the meeting times bound the distance to stationarity. --summary reads pair "
    "records, without a model."
)

EXAMPLES = """\
  mlm-couple --tau 0.5,1,2 --length 8,16 --pairs 20 < passages.txt | mlm-couple --summary
  echo "the cat sat on the mat" | mlm-couple --lag 50 --pairs 100 | mlm-couple --summary --eps 0.25
  mlm-couple --start perturb:1 --resume damage.jsonl passages.txt"""

GROUPS = (
    Group("Chains", "tau length start pairs lag max-steps seed",
          "horizon burn-in coupling replicas allow allow-file ban-file top-k top-p min-p cache-mb"),
    Group("Output", "resume", "on-change until every budget eps"),
)


class Lengths(click.ParamType[list[int]]):
    """A number of tokens, or several with commas between."""

    name = "lengths"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        parts = str(value).split(",")
        if not all(re.fullmatch(r"[1-9][0-9]{0,5}", part) for part in parts) or len(set(parts)) < len(parts):
            self.fail(f"{value!r}: give numbers of tokens, 1 or more, each once, as in 8,16,32")
        return [int(part) for part in parts]


class Start(click.ParamType[str]):
    """pair, text, random, burned or perturb:K."""

    name = "start"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not re.fullmatch(r"pair|text|random|burned|perturb:[1-9][0-9]{0,5}", str(value)):
            self.fail(f"{value!r} is not a start; give pair, text, random, burned or perturb:K, with K sites")
        return str(value)


@click.option("-t", "--tau", type=TemperaturesOption(), default="1", show_default=True, metavar="TAU[,TAU]...",
              help="Temperature, or several: each is run.")
@click.option("--length", "lengths", type=Lengths(), metavar="N[,N]...",
              help="Keep the first N tokens of each text; each of several is run. Shorter texts are skipped and "
                   "counted.")
@click.option("--start", type=Start(), metavar="KIND",
              help="First states. pair, the default: two consecutive inputs; random: an input and random tokens; "
                   "burned: an input after two independent burn-ins; perturb:K: an input and its copy with K sites "
                   "redrawn; text, the default with --lag: the input.")
@click.option("-p", "--pairs", type=click.IntRange(1), metavar="P",
              help="Number of pairs of each input, 1 by default; with --start pair the maximum number of pairs in all. "
                   "Each is run at every temperature and length.")
@click.option("--burn-in", type=click.IntRange(0), metavar="N",
              help="With --start burned, steps that each chain runs alone first. Default: 10 sweeps.")
@click.option("--coupling", type=click.Choice(["maximal", "race", "quantile"]), default="maximal", show_default=True,
              help="How the two tokens of a step are drawn together.")
@click.option("--replicas", type=click.IntRange(2), default=2, show_default=True, metavar="R",
              help="With --coupling race, number of chains that are coupled; they have met when all agree.")
@click.option("--lag", type=click.IntRange(0), default=0, show_default=True, metavar="L",
              help="The first chain runs L steps ahead: an L-lag coupling.")
@click.option("--max-steps", type=click.IntRange(1), metavar="N",
              help="Maximum number of steps of a pair; then it is censored.")
@click.option("--horizon", type=Real(0, min_open=True), metavar="C",
              help=f"Maximum number of steps of a pair in units of n ln n. Default: {DEFAULT_HORIZON:g}.")
@click.option("--every", "emit", cls=AliasedOption, aliases=["--emit"], type=click.IntRange(1), metavar="N",
              help="Also write the states of both chains every N steps, to the end, even after they have met.")
@click.option("--on-change", is_flag=True,
              help="Also write the changed states of both chains, for mlm-estimate.")
@click.option("--until", type=click.IntRange(1), metavar="M",
              help="With --lag, and --on-change or --every: write the states of the lag too, and those of the first "
                   "chain to step M, also after the meeting. Default with --on-change: 10 times the lag.")
@click.option("--allow", metavar="WORD[,WORD]...",
              help="Draw only these tokens, each one piece of the vocabulary; their probabilities are renormalised.")
@word_file_options
@truncation_options
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed; drawn and recorded when absent.")
@click.option("--cache-mb", type=click.IntRange(0), default=256, show_default=True, metavar="MB",
              help="Memory for the cache of conditionals.")
@click.option("--resume", type=click.Path(), metavar="FILE",
              help="Write to FILE; if it holds an interrupted run, continue that run.")
@summary_option("Read pair records and write their summaries.")
@click.option("--budget", "budgets", type=Numbers(1e-9, 1e9), default="3,5,10", show_default=True, metavar="B[,B]...",
              help="With --summary: the crossover is the temperature at which the median meeting time passes B n ln n.")
@click.option("--eps", type=Numbers(1e-9, 1), default="0.25", show_default=True, metavar="E[,E]...",
              help="With --summary and lagged pairs: report t_mix(E) for these total-variation distances.")
@table_options(summary=True)
@text_options
@model_options
@exact_option
@spread_options
@dry_run_option
def couple(io: Filter, options: CoupleOptions) -> None:
    """Run as many pairs together as fill a batch; write their records in the order of the input."""
    if io.dry_run and options.summary and not options.table:
        raise click.UsageError("--dry-run is about pairs that run, and --summary reads them; leave one out")
    if options.summary and not io.dry_run:
        from mlmglauber.commands.couple.summary import summarise_pairs

        summarise_pairs(io, options.budgets, options.eps, options.table)
        return
    options = options.completed()
    if options.resume is not None and io.output.path is not None:
        raise click.UsageError("--resume writes to its own file; leave --output out")
    from mlmglauber.commands.couple.run import CoupleRun

    if io.dry_run:
        from mlmglauber.commands.shared.dry_chains import write_run_estimate

        run = write_run_estimate(io, options, CoupleRun)
    else:
        with CoupleRun(io, options) as run, io.bar("steps") as progress:
            run.run_jobs(progress)
    if (run.ids or run.too_short) and not run.planned:
        io.reporter.nothing_found = True  # __exit__ has reported why no pair was made


main = record_command(couple, CoupleOptions, DESCRIPTION, EXAMPLES, GROUPS,
                      Spread(needs_all=("table", "resume", "summary"), unique_ids=True, check=refuse_pairs))

if __name__ == "__main__":
    main()
