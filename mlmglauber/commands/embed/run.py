"""A run of mlm-embed: records gain embeddings, or with --pca principal components of these."""

import hashlib
from typing import TYPE_CHECKING, Any

from mlmglauber.commands.embed.options import EmbedOptions
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.printable import counted, were
from mlmglauber.stream.records import SCHEMA, Record, has_masks, text_of

if TYPE_CHECKING:
    from mlmglauber.models.embedder import Embedded, Embedder

OWN_FIELDS = ("truncated", "text_tokens", "embedding_reason")
"""Fields of an earlier embedding, which are removed."""


def is_text(record: Record) -> bool:
    """Whether a record gets an embedding: it has a text, and no masked sites."""
    return "text" in record and not has_masks(record)


class EmbedRun:
    """One run: the embedder, opened when the first text comes, and the records that --pca keeps to the end."""

    def __init__(self, io: Filter, options: EmbedOptions) -> None:
        self.io, self.options, self.pca = io, options, options.pca
        self.embedder: Embedder | None = None
        self.truncated = 0
        self.has_head = False
        self.records: list[Record] = []
        self.vectors: list[Any] = []

    def add(self, batch: list[tuple[str, Record]]) -> None:
        """Write a batch of records, with embeddings."""
        good = []
        for place, record in batch:
            with self.io.guard(place):
                if "text" in record:
                    text_of(record)
                good.append((place, record))
        texts = [record["text"] for _, record in good if is_text(record)]
        if texts:
            embedded = self.open().encode(texts)
        row = 0
        for place, record in good:
            if is_text(record):
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
            self.io.output.write(self.run_record({}))
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

    def run_record(self, more: Record) -> Record:
        """The run record of the embedder, with more fields."""
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
        self.io.output.write(self.run_record({"pca_explained": explained, **reason}))
        space = hashlib.blake2b(np.vstack([projection.mean, projection.components]).astype("<f4").tobytes(),
                                digest_size=2).hexdigest()
        points = iter(projection.points.astype(np.float32))
        for record in self.records:
            if is_text(record):
                point = next(points)
                record["embedding"] = self._packed(point) if rank else None
                record["embedder"] += f"/pca{self.pca}-{space}"  # another space than that of the whole embeddings
                if not rank:
                    record["embedding_reason"] = reason["pca_reason"]
            self.io.output.write(record)
