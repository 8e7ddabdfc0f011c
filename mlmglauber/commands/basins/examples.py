"""The regions of mlm-basins: labelled example texts, embedded as the records are, and what is told of them."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber import __version__
from mlmglauber.commands.basins.options import BasinsOptions
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.measures.regions.labelling import Labeller, fit, held_out, unit_of
from mlmglauber.stream.errors import MixedRecordsError, MlmError, RecordError
from mlmglauber.stream.printable import counted, were
from mlmglauber.stream.records import SCHEMA, Record, has_vector, is_input, shown_name, to_line
from mlmglauber.stream.vectors import unpack

if TYPE_CHECKING:
    from mlmglauber.models.embedder import Embedder


class Texts:
    """The records of a file with a text or an embedding, and their vectors of length 1 in the stream's embedding."""

    def __init__(self, io: Filter, path: str, labelled: bool) -> None:
        self.path, self.reporter, self.records = path, io.reporter, list[Record]()
        other = Filter(io.reporter, (path,), io.strict, io.output)
        for record in other.records():
            if is_input(record) and not io.leaves_out(record):
                with other.guard(other.place):
                    self.records.append(_checked(record, labelled))
        other.conclude()
        if not self.records:
            raise MlmError(f"{path}: no examples; give records with `label` and `text`" if labelled else
                           f"{path}: no texts; give records with `text` or `embedding`")

    @property
    def needs_embedder(self) -> bool:
        return not all(has_vector(record) for record in self.records)

    def units(self, embedder: "Embedder | None", identity: str | None) -> tuple[list[Record], NDArray[np.float64]]:
        """The records that have a direction, and their vectors (N, d). MlmError where embeddings are of two kinds."""
        texts = [record["text"] for record in self.records if not has_vector(record)]
        found = None if embedder is None else embedder.encode(texts)
        if found is not None and found.truncated.any():
            count = int(found.truncated.sum())
            self.reporter.warn(f"{self.path}: {counted(count, 'text')} longer than the model takes {were(count)} cut "
                               "short")
        fresh = iter(() if found is None else found.vectors)
        vectors, kept = [], []
        for record in self.records:
            if has_vector(record):
                check_embedder(record.get("embedder"), identity, self.path)
            vector, reason = unit_of(record["embedding"] if has_vector(record) else next(fresh))
            if reason is None:
                kept.append(record)
                vectors.append(vector)
        if len({len(vector) for vector in vectors}) != 1:
            raise bad(f"{self.path}: embeddings of different lengths, or none with a direction; embed the file again")
        return kept, np.array(vectors)


def _checked(record: Record, labelled: bool) -> Record:
    if labelled and not (isinstance(record.get("label"), str) and record["label"]):
        raise RecordError('"label" is no name; write {"label": ..., "text": ...}')
    if has_vector(record):
        return record | {"embedding": unpack(record["embedding"])}
    if not isinstance(record.get("text"), str):
        raise RecordError('no "text" and no "embedding"; add one of them')
    return record


def check_embedder(own: Any, expected: Any, path: str) -> None:
    """MlmError where embeddings of a file are not of the kind that the records hold."""
    if own != expected:
        raise bad(f"{path}: embeddings of another model or treatment ({shown_name(own)}) than the records' "
                  f"({shown_name(expected)}); embed both alike, or name the records' model with --model")


def bad(message: str) -> MlmError:
    """An error of records that ends the input, with status 65."""
    return MixedRecordsError(message)


def open_embedder(options: BasinsOptions, heads: Sequence[Record], identity: str | None, path: str) -> "Embedder":
    """The embedder that made the records: --model, treated as the run record of mlm-embed tells."""
    from mlmglauber.models.embedder import Embedder

    head: Record = next((head for head in heads if head.get("run") == identity), {})
    dims, prompt = head.get("dims"), head.get("prompt")
    embedder = Embedder.open(
        options.model, revision=options.revision, device=options.device,
        trust_remote_code=options.trust_remote_code, allow_pickle=options.allow_pickle,
        normalize=head.get("normalize") is True, prompt=prompt if isinstance(prompt, str) else None,
        dims=dims if type(dims) is int else None)
    check_embedder(embedder.identity, identity, path)
    return embedder


def regions(records: Sequence[Record], units: NDArray[np.float64], options: BasinsOptions,
            identity: str | None) -> tuple[Labeller, Record]:
    """The labeller of examples, and the run record that tells how well it does on examples held out."""
    assert options.examples is not None
    records, units = _distinct(records, units, options.examples)
    labels = [record["label"] for record in records]
    try:
        labeller = fit(units, labels, options.method)
    except ValueError as error:
        raise MlmError(f"{options.examples}: {error}; add examples of others") from error
    told = held_out(units, labels, options.method, options.reject)._asdict()
    digest = hashlib.blake2b(units.astype("<f4").tobytes(), digest_size=8).hexdigest()
    told = {key: value for key, value in told.items() if key != "reason" or value is not None}
    counts = {name: labels.count(name) for name in labeller.names}
    return labeller, run_record({"method": options.method, "reject": options.reject}, identity,
                                [digest, labels], {"examples": counts, "held_out": told})


def run_record(asked: Record, identity: str | None, names: list[Any], found: Record) -> Record:
    """The run record of mlm-basins: what made the regions, and what they are like."""
    import sklearn

    run = hashlib.blake2b(to_line([asked, identity, names])[:-1], digest_size=4).hexdigest()
    return {"type": "run", "schema": SCHEMA, "run": run, "command": "mlm-basins", "embedder": identity, **found,
            "options": asked, "versions": {"mlmglauber": __version__, "scikit-learn": sklearn.__version__}}


def _distinct(records: Sequence[Record], units: NDArray[np.float64],
              path: str) -> tuple[list[Record], NDArray[np.float64]]:
    """Each point once: a copy would be held out and learned from at the same time. MlmError for one with two labels."""
    seen: dict[bytes, str] = {}
    kept: list[int] = []
    for k, (record, unit) in enumerate(zip(records, units, strict=True)):
        label = seen.setdefault(unit.astype(np.float32).tobytes(), record["label"])
        if label != record["label"]:
            raise bad(f"{path}: one text is an example of {label} and of {record['label']}; keep one of the two")
        if len(seen) > len(kept):
            kept.append(k)
    return [records[k] for k in kept], units[kept]
