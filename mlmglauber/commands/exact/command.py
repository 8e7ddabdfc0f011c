"""mlm-exact: solves the chain of a model that is restricted to few tokens a site."""

from functools import partial
from typing import TYPE_CHECKING

import click

from mlmglauber.commands.exact.options import ExactOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.command_line import AliasedOption
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.option_types import Real, Sites, TemperaturesOption
from mlmglauber.commands.shared.options import TABLE_FORMS, model_options, table_options, text_options
from mlmglauber.commands.shared.site_allow import checked_choices
from mlmglauber.commands.shared.table_output import write_tables
from mlmglauber.commands.shared.truncation_options import truncation_options
from mlmglauber.commands.shared.word_lists import restricted_model, word_file_options
from mlmglauber.stream.errors import RecordError

if TYPE_CHECKING:
    from mlmglauber.commands.shared.inputs import Input, Inputs
    from mlmglauber.measures.exact.restriction import Restriction
    from mlmglauber.stream.records import Record

DESCRIPTION = (
    "Restrict a model to few tokens a site and solve the Glauber chain exactly: stationary law, second eigenvalue, "
    "mixing time, influences and the bound that follows from them, incompatibility, escape.\n\n"
    "Reads texts or records with `text` or `ids`; writes one `exact` record a text and temperature. The conditionals "
    "are computed once for all temperatures."
)

EXAMPLES = """\
  echo "the cat sat on the mat" | mlm-exact --top 2 --tau 0.5,1,2
  mlm-exact --allow "cat,dog,man" --sites 1,5 passages.txt | jq '[.tau, .tmix, .bound]'
  mlm-exact --allow "a,b,c" --compare chains.jsonl texts.txt"""

GROUPS = (
    Group("Chain", "tau allow top sites length", "allow-file ban-file top-k top-p min-p max-states"),
    Group("Output", "likeliest compare", "matrix eps"),
)


@click.option("-t", "--tau", type=TemperaturesOption(), default="1", show_default=True, metavar="TAU[,TAU]...",
              help="Temperature, or several.")
@click.option("--allow", "vocab", cls=AliasedOption, aliases=["--vocab"], metavar="WORD[,WORD]...",
              help="Restrict each free site to these tokens, each one piece of the vocabulary.")
@word_file_options
@truncation_options
@click.option("--top", type=click.IntRange(1), metavar="M",
              help="Restrict each free site to its M likeliest tokens given the rest of the text, including its own "
                   "token.")
@click.option("--sites", type=Sites(), metavar="SITES",
              help="The free sites, from 0 on, as in 0,3,5-7; the others keep their tokens. Default: all, or those of "
                   "a state's chain.")
@click.option("--length", type=click.IntRange(1), metavar="N",
              help="Keep the first N tokens of each text; shorter texts are skipped and counted.")
@click.option("--max-states", type=click.IntRange(1), default=20_000, show_default=True, metavar="N",
              help="Maximum number of states of a text.")
@click.option("--eps", type=Real(0, 1, min_open=True, max_open=True), default=0.25, show_default=True,
              metavar="EPS", help="Distance to stationarity in the mixing time.")
@click.option("--likeliest", type=click.IntRange(0), default=5, show_default=True, metavar="K",
              help="Write the K likeliest states.")
@click.option("--matrix", "influences", cls=AliasedOption, aliases=["--influences"], is_flag=True,
              help="Write the matrix of influences too.")
@click.option("--compare", type=click.Path(), metavar="FILE",
              help="Compare the exact law with these states of mlm-sample under the same restriction.")
@table_options()
@text_options
@model_options
def exact(io: Filter, options: ExactOptions) -> None:
    """Solve one text after the other: its conditionals, then its chain at each temperature."""
    if (options.vocab is None and options.allow_file is None) == (options.top is None):
        raise click.UsageError("give either --allow or --top; --allow-file stands for --allow")
    from mlmglauber.commands.exact.records import Sampled, records
    from mlmglauber.commands.shared.inputs import Inputs
    from mlmglauber.models.opening import open_model

    # All rows of a text have one length, so none is padded.
    solved: list[Record] = []
    keep = solved.append if options.table in TABLE_FORMS else None
    inputs = Inputs(io, options, options.in_run_record(), opener=partial(open_model, exact_width=True),
                    write=None if keep is None else lambda record: None)  # a table has no place for records that pass
    inputs.summed = keep is not None
    sampled = Sampled(io, options.compare) if options.compare is not None else None
    for batch in inputs.batches(1):
        for text in batch:
            with io.guard(text.place):
                space = _restriction(inputs, options, text)
                for record in records(inputs, options, text, space, sampled):
                    (keep or io.output.write)(record)
    if keep is not None:
        from mlmglauber.commands.exact.table import exact_tables

        write_tables(io, options.table, exact_tables(solved))


def _restriction(inputs: "Inputs", options: ExactOptions, text: "Input") -> "Restriction":
    """The states of a text; RecordError if there are too many."""
    import numpy as np

    from mlmglauber.measures.exact.restriction import Restriction, likeliest

    n = len(text.ids)
    assert inputs.model is not None
    frozen = text.frozen(None)
    sites = options.sites if options.sites is not None else [site for site in range(n) if site not in frozen]
    if sites[-1] >= n:
        raise RecordError(f"--sites names site {sites[-1]}, but the text has sites 0 to {n - 1} only; leave it out")
    ids = np.array(text.ids)
    if options.top is None:
        model = restricted_model(inputs.model, options.vocab, options.allow_file, options.ban_file)
        choices = [np.flatnonzero(model.allowed).tolist()] * len(sites)
    else:
        model = restricted_model(text.model, None, None, options.ban_file)
        choices = likeliest(model, ids, sites, options.top)
    given = checked_choices(inputs.model, text.record, n, [site for site in range(n) if site not in sites])
    choices = [given[site].tolist() if site in given else tokens for site, tokens in zip(sites, choices, strict=True)]
    space = Restriction(ids, sites, choices)
    if space.states > options.max_states:
        raise RecordError(f"the text has {space.states} states ({' x '.join(map(str, space.shape))}), --max-states "
                          f"allows {options.max_states}; give fewer tokens or --sites, or raise --max-states")
    return space


main = record_command(exact, ExactOptions, DESCRIPTION, EXAMPLES, GROUPS)

if __name__ == "__main__":
    main()
