"""mlm-embed: sentence embeddings for every record that has a text."""

from typing import TYPE_CHECKING, Any

import click

from mlmglauber.commands.base import Filter, filter_command
from mlmglauber.commands.options import device_options, spread_options, text_options
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import SCHEMA, Record

if TYPE_CHECKING:
    from mlmglauber.models.embedding import Embedder

EXAMPLES = """\
  mlm-sample --tau 1 --steps 2000 passages.txt | mlm-embed | mlm-drift --summary
  echo "the cat sat on the mat" | mlm-embed --encoding base64
  mlm-embed --pca 2 states.jsonl > plane.jsonl"""


@filter_command(
    "mlm-embed",
    "Add `embedding`, a sentence embedding of `text`, to every record that has a text; the others pass.\n\n"
    "Streams, in constant memory; identical texts are embedded once. --pca holds all records. A text that the model "
    "cuts short is marked `truncated` and counted.",
    EXAMPLES,
)
@click.option("-m", "--model", default="all-MiniLM-L6-v2", show_default=True, envvar="MLM_EMBEDDER", show_envvar=True,
              metavar="NAME", help="Sentence-transformers model: a name or a directory.")
@click.option("--encoding", type=click.Choice(["float", "base64"]), default="float", show_default=True,
              help="A list of numbers, or base64 of little-endian float32: smaller, and ten times faster to read.")
@click.option("--dims", type=click.IntRange(1), metavar="K", help="Keep the first K dimensions.")
@click.option("--normalize", is_flag=True, help="Scale each embedding to length 1.")
@click.option("--prompt", metavar="TEXT", help="A prompt put before each text, or the name of one of the model's own.")
@click.option("--pca", type=click.IntRange(1), metavar="K",
              help="Replace embeddings by their first K principal components; holds all records in memory.")
@click.option("--batch-size", type=click.IntRange(1), default=64, show_default=True, help="Texts a forward pass.")
@text_options
@device_options
@spread_options
def main(filter: Filter, pca: int | None, encoding: str, **options: Any) -> None:
    """Records as they come, in batches of what has arrived."""
    job = _Job(filter, encoding, pca, options)
    with filter.words.bar("records") as progress:
        for batch in filter.batches(options["batch_size"], plain_text=True):
            job.add(batch)
            progress(len(batch))
    job.finish()


class _Job:
    """The embedder, opened when the first text comes, and the records that --pca holds back."""

    def __init__(self, filter: Filter, encoding: str, pca: int | None, options: dict[str, Any]) -> None:
        self.filter, self.encoding, self.pca, self.options = filter, encoding, pca, options
        self.embedder: Embedder | None = None
        self.truncated = 0
        self.headed = False
        self.held: list[Record] = []
        self.vectors: list[Any] = []

    def add(self, batch: list[tuple[str, Record]]) -> None:
        good = []
        for place, record in batch:
            with self.filter.guard(place):
                if "text" in record and not isinstance(record["text"], str):
                    raise RecordError(f'"text" is a {type(record["text"]).__name__}, not a string; correct it')
                good.append((place, record))
        texts = [record["text"] for _, record in good if "text" in record]
        if texts:
            embedder = self._open()
            vectors, tokens, truncated = embedder.encode(texts)
        row = 0
        for place, record in good:
            if "text" in record:
                if not self.headed and self.pca is None:
                    self.filter.output.write(self._run_record({}))
                    self.headed = True
                record["embedder"] = embedder.identity
                for field in ("truncated", "text_tokens"):
                    record.pop(field, None)
                if truncated[row]:
                    self._cut_short(record, int(tokens[row]), place)
                if self.pca is None:
                    record["embedding"] = self._packed(vectors[row])
                else:
                    self.vectors.append(vectors[row])
                row += 1
            if self.pca is None:
                self.filter.output.write(record)
            else:
                self.held.append(record)
        self.filter.output.flush()

    def _cut_short(self, record: Record, tokens: int, place: str) -> None:
        """Mark a record whose text is longer than the model takes; under --strict that is an error."""
        if self.filter.strict:
            assert self.embedder is not None
            limit = self.embedder.describe()["max_tokens"]
            raise RecordError(f"a text of {tokens} tokens, the model takes {limit}; shorten it, or leave --strict out",
                              place)
        record |= {"truncated": True, "text_tokens": tokens}
        self.truncated += 1

    def _packed(self, vector: Any) -> Any:
        from mlmglauber.stream.vectors import pack

        return pack(vector, self.encoding)

    def _open(self) -> "Embedder":
        if self.embedder is None:
            from mlmglauber.models.embedding import Embedder

            options = self.options
            opening = {"rows": options["batch_size"], **{key: options[key] for key in (
                "revision", "device", "trust_remote_code", "allow_pickle", "normalize", "prompt", "dims")}}
            self.embedder = self.filter.once(("embedder", options["model"], *opening.values()),
                                             lambda: Embedder.open(options["model"], **opening))
        return self.embedder

    def _run_record(self, more: Record) -> Record:
        assert self.embedder is not None
        told = {key: self.options[key] for key in ("batch_size", "prompt")} | {"encoding": self.encoding,
                                                                               "pca": self.pca}
        return {"type": "run", "schema": SCHEMA, "run": self.embedder.identity, "command": "mlm-embed",
                **self.embedder.describe(), **more, "options": told}

    def finish(self) -> None:
        """Under --pca everything is written here: the projection needs all records."""
        if self.pca is not None and self.held:
            self._project()
        if self.truncated:
            assert self.embedder is not None
            limit = self.embedder.describe()["max_tokens"]
            self.filter.words.say(f"{self.truncated} texts of more than {limit} tokens were cut short (`truncated`)")

    def _project(self) -> None:
        from mlmglauber.measures.projection import project
        from mlmglauber.stream.errors import MlmError

        assert self.pca is not None
        if not self.vectors:
            for record in self.held:
                self.filter.output.write(record)
            return
        import numpy as np

        try:
            projection = project(np.array(self.vectors), self.pca)
        except ValueError as error:
            raise MlmError(f"--pca {self.pca}: {error}") from error
        self.filter.output.write(self._run_record({"pca_explained": projection.explained.tolist()}))
        points = iter(projection.points)
        for record in self.held:
            if "text" in record:
                record["embedding"] = self._packed(next(points).astype(np.float32))
                record["embedder"] += f"/pca{self.pca}"  # another space than that of the whole embeddings
            self.filter.output.write(record)


if __name__ == "__main__":
    main()
