"""mlm-tokens: how a model cuts texts into sites."""

from typing import Any

import click

from mlmglauber.commands.shared.filter import Filter, filter_command
from mlmglauber.commands.shared.options import model_options
from mlmglauber.commands.shared.tables import FORMS, table_options, write_tables

EXAMPLES = """\
  echo "the food was lovely" | mlm-tokens --table
  mlm-tokens --length 24 passages.jsonl | jq -c 'select(.unknown > 0) | {id, unknown_sites}'"""


@filter_command(
    "mlm-tokens",
    "Tell how a model cuts texts into sites: the piece and the id at each site, words of several pieces, unknown "
    "tokens, and what --length or the model's limit cuts off.\n\n"
    "Reads texts or records with `text` or `ids`; writes a run record and one `tokens` record a text. Streams; --table "
    "holds all texts.",
    EXAMPLES,
)
@click.option("--length", type=click.IntRange(1), metavar="N",
              help="Keep the first N tokens of each text, as the other commands do.")
@table_options(by_default=False)
@model_options
def main(filter: Filter, table: str, **options: Any) -> None:
    """One record a text."""
    from mlmglauber.commands.tokens.records import TokenInputs, tokens_record

    as_table, found = table in FORMS, []
    inputs = TokenInputs(filter, "mlm-tokens", options, write=(lambda record: None) if as_table else None)
    inputs.summed = as_table
    with filter.words.bar("records") as progress:
        for text in (text for batch in inputs.batches(1) for text in batch):
            record = text.answer(tokens_record(inputs.run, text, options["length"]))
            if as_table:
                found.append(record)
            else:
                filter.output.write(record)
            progress(1)
    if as_table:
        from mlmglauber.commands.tokens.table import tokens_tables

        write_tables(filter, table, tokens_tables(found))


if __name__ == "__main__":
    main()
