"""mlm-drift --reference FILE: the embeddings, by id, with which chains are compared."""

from typing import Any, NamedTuple

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.measures.drift.cosine import Reference
from mlmglauber.stream.errors import MixedRecordsError, MlmError, RecordError
from mlmglauber.stream.records import Record, has_vector, is_input, names_of, shown_name
from mlmglauber.stream.vectors import unpack


class _Named(NamedTuple):
    """A reference with its place and its embedder."""

    place: str
    embedder: Any
    reference: Reference


class References:
    """The references of a file, by id; a single one serves for all records.

    An id is a string, or the digits of an integer. A record without an id is named by its place among the inputs of its
    file, from 0 on, as mlm-sample names it. MixedRecordsError for two references of one id.
    """

    def __init__(self, io: Filter, path: str) -> None:
        self.path, self._named = path, dict[str, _Named]()
        other = Filter(io.reporter, (path,), io.strict, io.output)
        count = 0
        for record in other.records():
            if is_input(record):
                with other.guard(other.place):
                    self._take(record, other.place, count)
                count += 1
        other.conclude()
        if not self._named:
            raise MlmError(f"{path}: no record has an embedding; embed the references with mlm-embed")
        self._only = next(iter(self._named)) if len(self._named) == 1 else None

    def _take(self, record: Record, place: str, count: int) -> None:
        if not has_vector(record):
            return
        name = own_id(record, count)
        if name in self._named:
            raise MixedRecordsError(f"{place}: a second reference has the id {name!r}, the first is at "
                                    f"{self._named[name].place}; leave one of them out")
        (embedder,) = names_of(record, "embedder")
        self._named[name] = _Named(place, embedder, Reference(unpack(record["embedding"])))

    def find(self, record: Record, count: int, embedder: Any) -> Reference:
        """The reference of a record. count: number of inputs before it. embedder: that of its embedding."""
        name = self._only or own_id(record, count)
        named = self._named.get(name)
        if named is None:
            raise RecordError(f"{self.path} has no reference for the id {name!r}; add one")
        if named.embedder != embedder:
            raise MixedRecordsError(f"{named.place}: the reference was made by another embedder "
                                    f"({shown_name(named.embedder)}) than the records ({shown_name(embedder)}); embed "
                                    "both with the same model")
        return named.reference


def own_id(record: Record, count: int) -> str:
    """The name of a record: its id as a string, else the number of inputs before it."""
    (name,) = names_of(record, "id")
    return str(count if name is None else name)
