"""mlm-embed: sentence embeddings for every record that has a text."""

import click

from mlmglauber.commands.embed.options import EmbedOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.options import device_options, dry_run_option, spread_options, text_options
from mlmglauber.commands.shared.spread.plan import Spread

DESCRIPTION = (
    "Add `embedding`, a sentence embedding of `text`, to every record that has a text; pass the others on.\n\n"
    "Streams, in constant memory; identical texts are embedded once. --pca keeps all records. A text that the model "
    "cuts short is marked `truncated` and counted."
)

EXAMPLES = """\
  mlm-sample --tau 1 --steps 2000 passages.txt | mlm-embed | mlm-drift --summary
  echo "the cat sat on the mat" | mlm-embed --encoding base64
  mlm-embed --pca 2 states.jsonl > plane.jsonl"""

GROUPS = (
    Group("Embedding", "pca dims normalize", "prompt prompt-name"),
    Group("Output", "encoding"),
)


@click.option("-m", "--model", default="all-MiniLM-L6-v2", show_default=True, envvar="MLM_EMBEDDER", show_envvar=True,
              metavar="NAME", help="Sentence-transformers model: a name or a directory.")
@click.option("--encoding", type=click.Choice(["float", "base64"]), default="float", show_default=True,
              help="Write a list of numbers, or base64 of little-endian float32, which is smaller and ten times faster "
                   "to read.")
@click.option("--dims", type=click.IntRange(1), metavar="K", help="Keep the first K dimensions.")
@click.option("--normalize", is_flag=True, help="Scale each embedding to length 1.")
@click.option("--prompt", metavar="TEXT", help="Put TEXT before each text, as it stands.")
@click.option("--prompt-name", metavar="NAME", help="Put the model's own prompt of this name before each text. "
              "Default: its default prompt, if it has one.")
@click.option("--pca", type=click.IntRange(1), metavar="K",
              help="Replace embeddings by their first K principal components, or fewer if there are fewer; keeps all "
                   "records in memory.")
@click.option("--batch-size", type=click.IntRange(1), default=64, show_default=True, metavar="N",
              help="Texts of a forward pass.")
@text_options
@device_options
@spread_options
@dry_run_option
def embed(io: Filter, options: EmbedOptions) -> None:
    """Embed records in batches of those that have arrived."""
    if options.prompt is not None and options.prompt_name is not None:
        raise click.UsageError("--prompt and --prompt-name exclude each other; give one of them")
    if io.dry_run:
        from mlmglauber.commands.embed.dry_run import write_embedding_estimate

        write_embedding_estimate(io, options)
        return
    from mlmglauber.commands.embed.run import EmbedRun

    run = EmbedRun(io, options)
    with io.bar("records") as progress:
        for batch in io.batches(options.batch_size, plain_text=True):
            progress.plan(len(batch))
            run.add(batch)
            progress(len(batch))
    run.finish()


main = record_command(embed, EmbedOptions, DESCRIPTION, EXAMPLES, GROUPS,
                      Spread(needs_all=("pca",)))

if __name__ == "__main__":
    main()
