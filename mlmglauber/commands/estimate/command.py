"""mlm-estimate: reads coupled chains with a lag and writes unbiased estimates of stationary means."""

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from mlmglauber.commands.estimate.options import EstimateOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.option_types import Real
from mlmglauber.commands.shared.options import table_options
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.stream.records import Record

DESCRIPTION = (
    "Estimate means under the stationary law of a chain without the bias of its start, from coupled chains: "
    "mlm-couple --lag L --on-change writes them, and filters between may add fields.\n\n"
    "Reads the states and pair records of mlm-couple; writes a summary record for each --of of each temperature and "
    "length, with its standard error and interval over independent pairs. Streams: no state is kept."
)

EXAMPLES = """\
  head -n 8 passages.txt | mlm-couple --tau 2 --length 8 --lag 60 --on-change --pairs 4 > lagged.jsonl
  mlm-estimate --of words,count:the --table lagged.jsonl
  mlm-basins --examples topics.jsonl lagged.jsonl | mlm-estimate --of basin=politics"""

GROUPS = (
    Group("Estimates", "of tokens target-se", "k m"),
)


class Names(click.ParamType[tuple[str, ...]]):
    """Names of fields with commas between."""

    name = "fields"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(part.strip() for part in str(value).split(","))
        if not all(names) or len(set(names)) < len(names):
            self.fail(f"{value!r}: give names of fields, each once, as in pll,drift,basin=politics")
        return names


@click.option("--of", type=Names(), default=(), metavar="FIELD[,FIELD]...",
              help="What to estimate: fields that are numbers or booleans, PATH.FIELD in nested objects, FIELD=VALUE "
                   "for the share of a value, words for the words of the text, count:WORD for a word in it.")
@click.option("--tokens", type=click.IntRange(1), metavar="K",
              help="Also estimate the frequency of the K most frequent tokens, of all sites and of each.")
@click.option("--target-se", type=Real(0, min_open=True), metavar="S",
              help="Also write how many pairs in all bring the standard error down to S.")
@click.option("--k", type=click.IntRange(0), metavar="K", help="First step that is averaged. Default: the lag.")
@click.option("--m", type=click.IntRange(1), metavar="M",
              help="Last step that is averaged. Default: the step to which mlm-couple ran its pairs.")
@click.option("--model", metavar="MODEL",
              help="With --tokens, the model whose vocabulary spells the tokens. Default: that of the run record.")
@table_options()
def estimate(io: Filter, options: EstimateOptions) -> None:
    """Read all pairs, then write the estimates."""
    if not options.of and options.tokens is None:
        raise click.UsageError("give --of FIELD, --tokens K, or both")
    from mlmglauber.commands.estimate.functions import StateFunction
    from mlmglauber.commands.estimate.pairs import PairReader
    from mlmglauber.commands.estimate.records import summaries

    reader = PairReader(io, [StateFunction(name) for name in options.of], options.tokens is not None, options.k,
                        options.m)
    with io.bar("records") as progress:
        def take(records: list[Record], place: Callable[[int], str]) -> None:
            progress(len(records))
            reader.take_states(records, place)

        io.each_states(take, reader.take_record)
    reader.close()
    if not reader.kinds:
        io.report_missing("state of a coupled pair", "give what mlm-couple --lag L --on-change writes")
    found = [record for kind, sums in reader.kinds.items()
             for record in summaries(kind, sums, options.of, options.tokens, options.target_se,
                                     partial(_piece, io, options.model or kind.law.model))]
    if shown(io, options.table):
        from mlmglauber.commands.estimate.table import estimate_tables

        write_tables(io, options.table, estimate_tables(found))
        return
    for record in found:
        io.output.write(record)


def _piece(io: Filter, model: str | None, token: int) -> str:
    """The token of an id, from the vocabulary of a model."""
    from mlmglauber.models.opening import open_model

    if model is None:
        raise click.UsageError("the model of the pairs is not known; name it with --model")
    return str(io.once(("vocabulary", model), lambda: open_model(model)).decode([token]))


main = record_command(estimate, EstimateOptions, DESCRIPTION, EXAMPLES, GROUPS)

if __name__ == "__main__":
    main()
