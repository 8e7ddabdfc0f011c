"""mlm-basins: which region of embedding space each state is in, and how chains come and go between regions."""

from typing import TYPE_CHECKING

import click

from mlmglauber.commands.basins.options import BasinsOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.command_line import AliasedOption
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.option_types import Real
from mlmglauber.commands.shared.options import device_options, summary_option, table_options
from mlmglauber.stream.records import Record

if TYPE_CHECKING:
    from mlmglauber.commands.basins.run import Job

DESCRIPTION = (
    "Replace `embedding` by `basin`, the region of embedding space in which a text lies, and `basin_p`.\n\n"
    "Regions come from labelled example texts, or from k-means. Streams; --clusters keeps all records. --summary "
    "writes visits, returns, dwell times and moves at the end, and keeps 10 bytes a state."
)

EXAMPLES = """\
  mlm-sample --chains 4 starts.jsonl | mlm-embed | mlm-basins --examples topics.jsonl | jq .basin
  mlm-sample starts.jsonl | mlm-embed | mlm-basins --examples topics.jsonl --summary --start-field label --table
  mlm-basins --clusters 8 --summary embedded.jsonl | jq 'select(.over == "group").transitions'"""

GROUPS = (
    Group("Regions", "examples clusters", "method reject seed"),
    Group("Output", "start-field", "min-steps draws keep-embedding"),
)


@click.option("--examples", type=click.Path(), metavar="FILE",
              help="Labelled examples: records with `label` and `text`, or `label` and `embedding`.")
@click.option("--clusters", type=click.IntRange(2), metavar="K",
              help="Make K regions without names, by k-means of all embeddings; keeps all records in memory.")
@click.option("--method", type=click.Choice(["logistic", "centroid"]), default="logistic", show_default=True,
              help="How examples make regions: logistic regression, or the nearest centroid.")
@click.option("--reject", type=Real(0, 1), default=0.5, show_default=True, metavar="P",
              help="A state is in no region if its likeliest one has a probability below P.")
@click.option("--keep-embedding", is_flag=True, help="Keep `embedding` in the records.")
@summary_option("Write summaries in place of the records.")
@click.option("--start-field", "start", cls=AliasedOption, aliases=["--start"], metavar="FIELD",
              help="With --summary, the field with the start of a chain, such as label. Default: the region of its "
                   "first state.")
@click.option("--min-steps", "min_visit", cls=AliasedOption, aliases=["--min-visit"], type=click.IntRange(0),
              default=0, show_default=True, metavar="N", help="With --summary, ignore visits of fewer than N steps.")
@click.option("--draws", type=click.Path(), metavar="FILE",
              help="With --summary, texts or embedded records that represent independent draws; the share of them in "
                   "each region is the expected share of a chain's steps.")
@table_options(summary=True)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, metavar="N",
              help="Seed of --clusters.")
@click.option("-m", "--model", default="all-MiniLM-L6-v2", show_default=True, envvar="MLM_EMBEDDER", show_envvar=True,
              metavar="NAME", help="The model of mlm-embed, for examples and draws that are not embedded yet.")
@device_options
def basins(io: Filter, options: BasinsOptions) -> None:
    """Answer one record after the other. One without an embedding passes unchanged; --summary leaves it out."""
    if (options.examples is None) == (options.clusters is None):
        raise click.UsageError("give either --examples FILE or --clusters K")
    if not options.summary:
        for name, value in (("start-field", options.start), ("draws", options.draws), ("min-steps", options.min_visit)):
            if value:
                raise click.UsageError(f"--{name} needs --summary; add it")
    if options.clusters and options.draws:
        raise click.UsageError("--draws needs --examples; leave it out with --clusters")
    from mlmglauber.commands.basins.clusters import Clustering
    from mlmglauber.commands.basins.run import Naming

    job: Job = Naming(io, options) if options.clusters is None else Clustering(io, options)
    with io.bar("records") as progress:

        def handle(record: Record) -> None:
            progress(1)
            job.add(record)

        io.each(handle)
    job.finish()


main = record_command(basins, BasinsOptions, DESCRIPTION, EXAMPLES, GROUPS)

if __name__ == "__main__":
    main()
