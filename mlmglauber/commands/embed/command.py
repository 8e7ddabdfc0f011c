"""mlm-embed: sentence embeddings for every record that has a text."""

import hashlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from mlmglauber.commands.embed.options import EmbedOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.options import device_options, dry_run_option, spread_options, text_options
from mlmglauber.commands.shared.spread.plan import Spread
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.printable import counted, were
from mlmglauber.stream.records import SCHEMA, Record, has_masks, text_of

if TYPE_CHECKING:
    from mlmglauber.models.embedder import Embedded, Embedder

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

OWN_FIELDS = ("truncated", "text_tokens", "embedding_reason")
"""Fields of an earlier embedding, which are removed."""


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
        _dry_run(io, options)
        return
    run = _EmbedRun(io, options)
    with io.bar("records") as progress:
        for batch in io.batches(options.batch_size, plain_text=True):
            progress.plan(len(batch))
            run.add(batch)
            progress(len(batch))
    run.finish()


def _is_text(record: Record) -> bool:
    """Whether a record gets an embedding: it has a text, and no masked sites."""
    return "text" in record and not has_masks(record)


def _dry_run(io: Filter, options: EmbedOptions) -> None:
    """Embed the first batches, count the others, and write the estimate. Equal texts are embedded once."""
    from mlmglauber.commands.shared.dry_run import Bounds, MeasuredOutput, Timing, write_estimate

    output, timing = io.output, Timing()
    io.output = measured = MeasuredOutput(None)
    run = _EmbedRun(io, replace(options, pca=None))
    count = texts = 0
    different: set[int] = set()
    for batch in io.batches(options.batch_size, plain_text=True):
        count += len(batch)
        new = [record["text"] for _, record in batch if _is_text(record) and isinstance(record["text"], str)]
        texts += len(new)
        different.update(map(hash, new))
        if new and not timing.enough:
            run.open()
            timing.batch(len(new), partial(run.add, batch))
    run.finish()
    if texts:
        write_estimate(io, output, "", [
            Bounds("texts", len(different), texts, "equal texts once; each text"),
            timing.bounds(len(different), texts, "text"), *measured.bounds(count, count)])


class _EmbedRun:
    """One run: the embedder, opened when the first text comes, and the records that --pca keeps to the end."""

    def __init__(self, io: Filter, options: EmbedOptions) -> None:
        self.io, self.options, self.pca = io, options, options.pca
        self.embedder: Embedder | None = None
        self.truncated = 0
        self.has_head = False
        self.records: list[Record] = []
        self.vectors: list[Any] = []

    def add(self, batch: list[tuple[str, Record]]) -> None:
        good = []
        for place, record in batch:
            with self.io.guard(place):
                if "text" in record:
                    text_of(record)
                good.append((place, record))
        texts = [record["text"] for _, record in good if _is_text(record)]
        if texts:
            embedded = self.open().encode(texts)
        row = 0
        for place, record in good:
            if _is_text(record):
                with self.io.guard(place):
                    self._embed(record, embedded, row)
                    self._out(record)
                row += 1
            else:
                if self.io.leaves_out(record, "given no embedding"):
                    for field in (*OWN_FIELDS, "embedder"):
                        record.pop(field, None)
                    record |= {"embedding": None, "embedding_reason": "masked sites: no text"}
                self._out(record)
        self.io.output.flush()

    def _out(self, record: Record) -> None:
        """Write a record; with --pca keep it until all have come."""
        if self.pca is None:
            self.io.output.write(record)
        else:
            self.records.append(record)

    def _embed(self, record: Record, embedded: "Embedded", row: int) -> None:
        """Add the embedding of its text to a record; RecordError if it is not finite."""
        import numpy as np

        vector, tokens = embedded.vectors[row], int(embedded.tokens[row])
        assert self.embedder is not None
        if not np.isfinite(vector).all():
            raise RecordError("the embedding is not finite; shorten the text, or use another model")
        if embedded.truncated[row] and self.io.strict:
            raise RecordError(f"the text has {tokens} tokens, but the model takes at most {self.embedder.max_tokens}; "
                              "shorten it, or leave --strict out")
        if not self.has_head and self.pca is None:
            self.io.output.write(self._run_record({}))
            self.has_head = True
        record["embedder"] = self.embedder.identity
        for field in OWN_FIELDS:
            record.pop(field, None)
        if embedded.truncated[row]:
            record |= {"truncated": True, "text_tokens": tokens}
            self.truncated += 1
        if self.pca is None:
            record["embedding"] = self._packed(vector)
        else:
            self.vectors.append(vector)

    def _packed(self, vector: Any) -> Any:
        from mlmglauber.stream.vectors import pack

        return pack(vector, self.options.encoding)

    def open(self) -> "Embedder":
        """The embedder, opened at the first call."""
        if self.embedder is None:
            from mlmglauber.models.embedder import Embedder

            options = self.options
            self.embedder = self.io.once(("embedder", options.model, *options.opening.values()),
                                         lambda: Embedder.open(options.model, **options.opening))
        return self.embedder

    def _run_record(self, more: Record) -> Record:
        assert self.embedder is not None
        options = self.options
        recorded = {"batch_size": options.batch_size, "prompt": options.prompt, "prompt_name": options.prompt_name,
                    "encoding": options.encoding, "pca": options.pca}
        return {"type": "run", "schema": SCHEMA, "run": self.embedder.identity, "command": "mlm-embed",
                **self.embedder.describe(), **more, "options": recorded}

    def finish(self) -> None:
        """End the input; with --pca all records are projected and written here."""
        if self.vectors:
            self._project()
        else:
            for record in self.records:
                self.io.output.write(record)
        if self.truncated:
            assert self.embedder is not None
            self.io.reporter.warn(f"{counted(self.truncated, 'text')} of more than {self.embedder.max_tokens} tokens "
                                  f"{were(self.truncated)} cut short (`truncated`)")
        if self.embedder is None:
            self.io.report_missing("record with a `text`", "name the field that holds it with --text-field",
                                   empty=False)

    def _project(self) -> None:
        """Replace embeddings by principal components; with a reason if the vectors span fewer dimensions than K."""
        import numpy as np

        from mlmglauber.measures.drift.projection import project

        assert self.pca is not None
        projection = project(np.array(self.vectors), self.pca)
        rank = len(projection.explained)
        explained = [*projection.explained.tolist(), *[None] * (self.pca - rank)]
        reason = {}
        if rank < self.pca:
            why = (f"{counted(len(self.vectors), 'embedding')} of {counted(rank, 'dimension')} "
                   f"about their mean, {self.pca} asked for")
            reason = {"pca_reason": why}
            self.io.reporter.warn(f"--pca {self.pca}: {why}; the missing components are left out")
        self.io.output.write(self._run_record({"pca_explained": explained, **reason}))
        space = hashlib.blake2b(np.vstack([projection.mean, projection.components]).astype("<f4").tobytes(),
                                digest_size=2).hexdigest()
        points = iter(projection.points.astype(np.float32))
        for record in self.records:
            if _is_text(record):
                point = next(points)
                record["embedding"] = self._packed(point) if rank else None
                record["embedder"] += f"/pca{self.pca}-{space}"  # another space than that of the whole embeddings
                if not rank:
                    record["embedding_reason"] = reason["pca_reason"]
            self.io.output.write(record)


main = record_command(embed, EmbedOptions, DESCRIPTION, EXAMPLES, GROUPS,
                      Spread(needs_all=("pca",)))

if __name__ == "__main__":
    main()
