"""mlm-score: log-probabilities of tokens, pseudo-log-likelihoods and perplexities of texts, without a chain."""

import click

from mlmglauber.commands.score.options import ScoreOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.options import (
    dry_run_option,
    model_options,
    spread_options,
    table_options,
    text_options,
)
from mlmglauber.commands.shared.spread.plan import Spread

DESCRIPTION = (
    "Add scores to every text or state: log-probability, margin and rank of each token given all others, "
    "pseudo-log-likelihood `pll` in nats, pseudo-perplexity a token and a word, and the within-word left-to-right "
    "variant.\n\n"
    "Scores are at tau 1. A causal model gives each token given those before it, with `log_likelihood` and "
    "`perplexity`. Streams, in constant memory; equal texts and contexts are computed once. --table keeps all texts."
)

EXAMPLES = """\
  echo "the cat sat on the mat" | mlm-score --table
  mlm-score --by text passages.jsonl | jq -r '[.pseudo_perplexity, .text] | @tsv' | sort -n
  mlm-sample --tau 0.5,1,2 passages.txt | mlm-score --by text | mlm-embed | mlm-drift --summary"""

GROUPS = (
    Group("Scores", "by length", "within-word all-tokens"),
)


@click.option("--by", type=click.Choice(["token", "word", "text"]), default="token", show_default=True,
              help="Add the scores of each token, those of each word, or only those of the text.")
@click.option("--length", type=click.IntRange(1), metavar="N",
              help="Score the first N tokens of each text; shorter texts are skipped and counted.")
@click.option("--within-word/--no-within-word", default=True, show_default=True,
              help="Compute the within-word variant, in which the later tokens of a word are masked too.")
@click.option("--all-tokens", is_flag=True,
              help="Normalise over the whole vocabulary, special and unknown tokens too, which chains never draw.")
@table_options()
@text_options
@model_options
@spread_options
@dry_run_option
def score(io: Filter, options: ScoreOptions) -> None:
    """Score the texts that have arrived, batch after batch."""
    if io.dry_run:
        from mlmglauber.commands.score.dry_run import write_score_estimate

        write_score_estimate(io, options)
        return
    from mlmglauber.commands.score.run import ScoreRun

    ScoreRun(io, options).run()


main = record_command(score, ScoreOptions, DESCRIPTION, EXAMPLES, GROUPS, Spread(needs_all=("table",)))

if __name__ == "__main__":
    main()
