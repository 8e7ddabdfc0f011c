"""mlm-tokens: how a model cuts texts into sites."""

import click

from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.options import TABLE_FORMS, model_options, table_options
from mlmglauber.commands.shared.table_output import write_tables
from mlmglauber.commands.tokens.options import TokensOptions

DESCRIPTION = (
    "Show how a model cuts texts into sites: the piece and the id at each site, words of several pieces, unknown "
    "tokens, and what --length or the model's limit cuts off.\n\n"
    "Reads texts or records with `text` or `ids`; writes a run record and one `tokens` record a text. Streams; --table "
    "keeps all texts."
)

EXAMPLES = """\
  echo "the food was lovely" | mlm-tokens --table
  mlm-tokens --length 24 passages.jsonl | jq -c 'select(.unknown > 0) | {id, unknown_sites}'"""

GROUPS = (
    Group("Tokens", "length"),
)


@click.option("--length", type=click.IntRange(1), metavar="N",
              help="Keep the first N tokens of each text, as the other commands do.")
@table_options()
@model_options
def tokens(io: Filter, options: TokensOptions) -> None:
    """Write one record for each text."""
    from mlmglauber.commands.tokens.records import TokenInputs, tokens_record

    as_table = options.table in TABLE_FORMS
    records = []
    inputs = TokenInputs(io, options, options.in_run_record(), write=(lambda record: None) if as_table else None)
    inputs.summed = as_table
    with io.bar("records") as progress:
        for text in (text for batch in inputs.batches(1) for text in batch):
            record = text.answer(tokens_record(inputs.run, text, options.length))
            if as_table:
                records.append(record)
            else:
                io.output.write(record)
            progress(1)
    if as_table:
        from mlmglauber.commands.tokens.table import tokens_tables

        write_tables(io, options.table, tokens_tables(records))


main = record_command(tokens, TokensOptions, DESCRIPTION, EXAMPLES, GROUPS)

if __name__ == "__main__":
    main()
