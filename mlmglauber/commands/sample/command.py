"""mlm-sample: Glauber chains from texts."""

from dataclasses import replace

import click
from click.core import ParameterSource

from mlmglauber.commands.sample.options import DEFAULT_SWEEPS, SampleOptions
from mlmglauber.commands.shared.chain_run import INITS, SCANS
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.command_line import AliasedOption
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.option_types import ScheduleOption, Sites, TemperaturesOption
from mlmglauber.commands.shared.options import (
    TABLE_FORMS,
    dry_run_option,
    exact_option,
    model_options,
    spread_options,
    table_options,
    text_options,
)
from mlmglauber.commands.shared.spread.plan import Spread
from mlmglauber.commands.shared.truncation_options import truncation_options
from mlmglauber.commands.shared.word_lists import word_file_options

DESCRIPTION = (
    "Run Glauber chains from texts: pick a site, mask it, redraw its token from a masked language model, repeat.\n\n"
    "Reads lines of text, or records with `text` or `ids`; writes one run record a temperature, then state records. "
    "One step is one update of one site; n steps are one sweep."
)

EXAMPLES = """\
  echo "the cat sat on the mat" | mlm-sample --tau 0.5 --sweeps 20 --seed 1
  mlm-sample --tau 0.5,1,2 --chains 4 --steps 2000 passages.txt | mlm-embed | mlm-drift --summary
  mlm-sample --schedule "2>0.3@2000,0.3" --on-change passages.txt | mlm-traps --summary
  mlm-sample --on-change --steps 100000 --resume chain.jsonl passages.txt"""

GROUPS = (
    Group("Chain", "tau steps sweeps chains length seed",
          "schedule scan start burn-in freeze allow allow-file ban-file top-k top-p min-p engine cache-mb"),
    Group("Output", "every on-change resume", "pll json from-run check"),
)


@click.option("-t", "--tau", type=TemperaturesOption(), default="1", show_default=True, metavar="TAU[,TAU]...",
              help="Temperature, or several: each is run. At 0 the likeliest token is taken.")
@click.option("--schedule", type=ScheduleOption(), metavar="TAU@STEPS[,TAU@STEPS]...",
              help="In place of --tau, a temperature for the first STEPS steps, then the next one; A>B@STEPS is a "
                   "linear ramp. The last one needs no @STEPS and stays to the end.")
@click.option("--steps", type=click.IntRange(0), metavar="N", help="Length of a chain in steps.")
@click.option("--sweeps", type=click.IntRange(0), metavar="N",
              help=f"Length of a chain in sweeps. Default: {DEFAULT_SWEEPS}; with --schedule, its steps and then "
                   f"{DEFAULT_SWEEPS} sweeps at a last temperature without @STEPS.")
@click.option("-c", "--chains", type=click.IntRange(1), default=1, show_default=True, metavar="N",
              help="Number of chains of a text.")
@click.option("--every", type=click.IntRange(1), metavar="N", help="Write every Nth state. Default: once a sweep.")
@click.option("--on-change", is_flag=True,
              help="Write each state that differs from the one before, and the last state: the whole trajectory.")
@click.option("--pll", cls=AliasedOption, aliases=["--energy"], type=click.IntRange(0), default=0, metavar="N",
              help="Every N steps, write the state with `pll`, its pseudo-log-likelihood in nats at tau 1.")
@click.option("--burn-in", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="Number of steps before the first state is written.")
@click.option("--scan", type=click.Choice(SCANS), default="random",
              show_default=True, help="How the next site is chosen.")
@click.option("--start", "init", cls=AliasedOption, aliases=["--init"], type=click.Choice(INITS), default="text",
              show_default=True,
              help="The first state: the text, all masked, or tokens drawn uniformly.")
@click.option("--length", type=click.IntRange(1), metavar="N",
              help="Keep the first N tokens of each text; shorter texts are skipped and counted.")
@click.option("--freeze", type=Sites(), metavar="SITES", help="Sites that stay fixed, from 0 on, as in 0,3,5-7.")
@click.option("--allow", metavar="WORD[,WORD]...",
              help="Draw only these tokens, each one piece of the vocabulary; their probabilities are renormalised.")
@word_file_options
@truncation_options
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed; drawn and recorded when absent.")
@click.option("--engine", type=click.Choice(["fast", "plain"]), default="fast", show_default=True,
              help="plain, the reference, computes every step anew; the states are the same.")
@click.option("--cache-mb", type=click.IntRange(0), default=256, show_default=True, metavar="MB",
              help="Memory for the cache of conditionals.")
@click.option("--resume", type=click.Path(), metavar="FILE",
              help="Write to FILE; if it holds an interrupted run, continue that run.")
@click.option("--from-run", type=click.Path(), metavar="FILE",
              help="Repeat the run of FILE, with the model, seed, temperatures and options of its run records; give "
                   "the same input.")
@click.option("--check", is_flag=True,
              help="With --from-run, write nothing, and end with status 1 at the first line that differs from FILE.")
@click.option("--json", is_flag=True,
              help="Write records on a terminal too, where by default the chains are shown as mlm-show shows them.")
@table_options()
@text_options
@model_options
@exact_option
@spread_options
@dry_run_option
def sample(io: Filter, options: SampleOptions) -> None:
    """Run as many texts together as fill a batch; write their states in the order of the input."""
    from mlmglauber.commands.sample.run import SampleRun

    refuse_two_temperatures(options)
    recorded = None
    if options.from_run is not None:
        from mlmglauber.commands.sample.rerun import read_recorded_run

        recorded = read_recorded_run(options.from_run)
        options = replace(options, **recorded.options).with_files_read()
    options = _checked(io, options)
    if io.dry_run:
        from mlmglauber.commands.shared.dry_chains import write_run_estimate

        write_run_estimate(io, options, SampleRun)
        return
    if options.check:
        from mlmglauber.stream.same import ComparingOutput

        assert options.from_run is not None
        io.output = ComparingOutput(options.from_run)
        io.lines.before_wait = io.output.flush
    tally = None
    if options.table in TABLE_FORMS:
        from mlmglauber.commands.sample.table import StateTally

        io.output = tally = StateTally(io.output)
    with SampleRun(io, options, recorded) as run, io.bar("steps") as progress:
        run.run_jobs(progress)
    if options.check:
        io.output.finish()
        io.reporter.warn(f"every record is the same as in {options.from_run}")
    if tally is not None:
        tally.show(io, options.table)


def refuse_two_temperatures(options: SampleOptions) -> None:
    """UsageError for --tau beside --schedule."""
    context = click.get_current_context(silent=True)
    if options.schedule is not None and context is not None and \
            context.get_parameter_source("tau") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--schedule gives the temperatures; leave --tau out")


def _checked(io: Filter, options: SampleOptions) -> SampleOptions:
    """The options with the default length; UsageError for options that exclude each other."""
    if options.check and options.from_run is None:
        raise click.UsageError("--check needs --from-run FILE, with which it compares; add it")
    if options.steps is not None and options.sweeps is not None:
        raise click.UsageError("--steps and --sweeps exclude each other; give one of them")
    if options.every is not None and options.on_change:
        raise click.UsageError("--every and --on-change exclude each other; give one of them")
    if options.resume is not None and io.output.path is not None:
        raise click.UsageError("--resume writes to its own file; leave --output out")
    if options.table in TABLE_FORMS and (options.check or options.resume is not None):
        raise click.UsageError("--table writes no states and excludes --check and --resume, which need them; leave "
                               "one out")
    if options.steps is None and options.sweeps is None and options.schedule is None:
        return replace(options, sweeps=DEFAULT_SWEEPS)
    return options


main = record_command(sample, SampleOptions, DESCRIPTION, EXAMPLES, GROUPS,
                      Spread(needs_all=("table", "resume", "from_run", "check"), unique_ids=True,
                             check=refuse_two_temperatures))

if __name__ == "__main__":
    main()
