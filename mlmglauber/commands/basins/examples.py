"""Makes the regions of mlm-basins from labelled example texts, which are embedded as the records are."""

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
    """The records of a file that have a text or an embedding, and their unit vectors."""

    def __init__(self, io: Filter, path: str, labelled: bool) -> None:
        self.path, self.reporter, self.records = path, io.reporter, list[Record]()
        other = Filter(io.reporter, (path,), io.strict, io.output)
        for record in other.records():
            if is_input(record) and not io.leaves_out(record):
                with other.guard(other.place):
                    self.records.append(_checked(record, labelled))
        other.conclude()
        if not self.records:
            raise MlmError(f"{path}: the file has no examples; give records with `label` and `text`" if labelled else
                           f"{path}: the file has no texts; give records with `text` or `embedding`")

    @property
    def needs_embedder(self) -> bool:
        return not all(has_vector(record) for record in self.records)

    def units(self, embedder: "Embedder | None", identity: str | None) -> tuple[list[Record], NDArray[np.float64]]:
        """The records that have a direction, and their unit vectors (N, d); MlmError if they cannot be compared."""
        texts = [record["text"] for record in self.records if not has_vector(record)]
        encoded = None if embedder is None else embedder.encode(texts)
        if encoded is not None and encoded.truncated.any():
            count = int(encoded.truncated.sum())
            self.reporter.warn(f"{self.path}: {counted(count, 'text')} longer than the embedder takes {were(count)} "
                               "cut short; shorten them")
        fresh = iter(() if encoded is None else encoded.vectors)
        vectors, kept = [], []
        for record in self.records:
            if has_vector(record):
                check_embedder(record.get("embedder"), identity, self.path)
            vector, reason = unit_of(record["embedding"] if has_vector(record) else next(fresh))
            if reason is None:
                kept.append(record)
                vectors.append(vector)
        if len({len(vector) for vector in vectors}) != 1:
            raise bad(f"{self.path}: the embeddings have different lengths, or none has a direction; embed the file "
                      "again")
        return kept, np.array(vectors)


def _checked(record: Record, labelled: bool) -> Record:
    if labelled and not (isinstance(record.get("label"), str) and record["label"]):
        raise RecordError('"label" is missing or not a string; write {"label": ..., "text": ...}')
    if has_vector(record):
        return record | {"embedding": unpack(record["embedding"])}
    if not isinstance(record.get("text"), str):
        raise RecordError('the record has no "text" and no "embedding"; add one of them')
    return record


def check_embedder(embedder: Any, expected: Any, path: str) -> None:
    """MlmError if the embeddings of a file were not made like those of the records."""
    if embedder != expected:
        raise bad(f"{path}: the embeddings were made otherwise ({shown_name(embedder)}) than those of the records "
                  f"({shown_name(expected)}); embed both alike, or name the records' model with --model")


def bad(message: str) -> MlmError:
    """An error of the records that ends the command with status 65."""
    return MixedRecordsError(message)


def open_embedder(options: BasinsOptions, heads: Sequence[Record], identity: str | None, path: str) -> "Embedder":
    """The embedder of the records: --model, with the settings of the run record of mlm-embed."""
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
    """The labeller that is fitted to the examples, and the run record with its accuracy on held-out examples."""
    assert options.examples is not None
    records, units = _distinct(records, units, options.examples)
    labels = [record["label"] for record in records]
    try:
        labeller = fit(units, labels, options.method)
    except ValueError as error:
        raise MlmError(f"{options.examples}: {error}; add examples of other labels") from error
    accuracy = held_out(units, labels, options.method, options.reject)._asdict()
    digest = hashlib.blake2b(units.astype("<f4").tobytes(), digest_size=8).hexdigest()
    accuracy = {key: value for key, value in accuracy.items() if key != "reason" or value is not None}
    counts = {name: labels.count(name) for name in labeller.names}
    return labeller, run_record({"method": options.method, "reject": options.reject}, identity,
                                [digest, labels], {"examples": counts, "held_out": accuracy})


def run_record(options: Record, identity: str | None, names: list[Any], fields: Record) -> Record:
    """The run record of mlm-basins: `options`, the options that made the regions, and `fields` on the regions."""
    import sklearn

    run = hashlib.blake2b(to_line([options, identity, names])[:-1], digest_size=4).hexdigest()
    return {"type": "run", "schema": SCHEMA, "run": run, "command": "mlm-basins", "embedder": identity, **fields,
            "options": options, "versions": {"mlmglauber": __version__, "scikit-learn": sklearn.__version__}}


def _distinct(records: Sequence[Record], units: NDArray[np.float64],
              path: str) -> tuple[list[Record], NDArray[np.float64]]:
    """Each point once, since a copy would be both in training and held out; MlmError for a point with two labels."""
    seen: dict[bytes, str] = {}
    kept: list[int] = []
    for k, (record, unit) in enumerate(zip(records, units, strict=True)):
        label = seen.setdefault(unit.astype(np.float32).tobytes(), record["label"])
        if label != record["label"]:
            raise bad(f"{path}: a text is an example of {label} and of {record['label']}; keep one of the two")
        if len(seen) > len(kept):
            kept.append(k)
    return [records[k] for k in kept], units[kept]
