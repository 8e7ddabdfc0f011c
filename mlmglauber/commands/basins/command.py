"""mlm-basins: which region of embedding space each state is in, and how chains come and go between regions."""

from typing import TYPE_CHECKING

import click

from mlmglauber.commands.basins.options import BasinsOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.option_types import Real
from mlmglauber.commands.shared.options import device_options, summary_option, table_options
from mlmglauber.stream.records import Record

if TYPE_CHECKING:
    from mlmglauber.commands.basins.run import Job

DESCRIPTION = (
    "Replace `embedding` by `basin`, the region of embedding space that a text lies in, and `basin_p`.\n\n"
    "Regions are named by labelled example texts, or found by k-means. Streams; --clusters holds all records. "
    "--summary tells at the end of visits, returns, dwell times and moves, and holds 10 bytes a state."
)

EXAMPLES = """\
  mlm-sample --chains 4 starts.jsonl | mlm-embed | mlm-basins --examples topics.jsonl | jq .basin
  mlm-sample starts.jsonl | mlm-embed | mlm-basins --examples topics.jsonl --summary --start label --table
  mlm-basins --clusters 8 --summary embedded.jsonl | jq 'select(.over == "group").transitions'"""


@click.option("--examples", type=click.Path(), metavar="FILE",
              help="Labelled examples: records with `label` and `text`, or `label` and `embedding`.")
@click.option("--clusters", type=click.IntRange(2), metavar="K",
              help="K regions without names, by k-means of all embeddings; holds all records.")
@click.option("--method", type=click.Choice(["logistic", "centroid"]), default="logistic", show_default=True,
              help="How examples make regions: logistic regression, or the nearest centroid.")
@click.option("--reject", type=Real(0, 1), default=0.5, show_default=True, metavar="P",
              help="A state whose likeliest region has a probability below P is in none.")
@click.option("--keep-embedding", is_flag=True, help="Keep `embedding` beside what is added.")
@summary_option("Summaries in the place of the records.")
@click.option("--start", metavar="FIELD",
              help="With --summary, the field that names what a chain started from, as label; by default the region of "
                   "its first state.")
@click.option("--min-visit", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="With --summary, pass over visits of fewer than N steps.")
@click.option("--draws", type=click.Path(), metavar="FILE",
              help="With --summary, texts or embedded records that stand for independent draws: the share of them that "
                   "each region has is what is expected of a chain.")
@table_options(summary=True)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of --clusters.")
@click.option("-m", "--model", default="all-MiniLM-L6-v2", show_default=True, envvar="MLM_EMBEDDER", show_envvar=True,
              metavar="NAME", help="The model that mlm-embed had, for examples and draws that are not embedded yet.")
@device_options
def basins(io: Filter, options: BasinsOptions) -> None:
    """Records pass one at a time; a record without an embedding passes as it is, or not at all under --summary."""
    if (options.examples is None) == (options.clusters is None):
        raise click.UsageError("give --examples FILE or --clusters K, one of the two")
    if not options.summary:
        for name, value in (("start", options.start), ("draws", options.draws), ("min-visit", options.min_visit)):
            if value:
                raise click.UsageError(f"--{name} needs --summary")
    if options.clusters and options.draws:
        raise click.UsageError("--draws needs --examples: clusters are made of the records alone")
    from mlmglauber.commands.basins.clusters import Clustering
    from mlmglauber.commands.basins.run import Naming

    job: Job = Naming(io, options) if options.clusters is None else Clustering(io, options)
    with io.reporter.bar("records") as progress:

        def handle(record: Record) -> None:
            progress(1)
            job.add(record)

        io.each(handle)
    job.finish()


main = record_command(basins, BasinsOptions, DESCRIPTION, EXAMPLES)

if __name__ == "__main__":
    main()
