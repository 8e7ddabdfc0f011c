"""The kinds of pictures, and which records each of them draws."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from mlmglauber.pictures.reading import is_flat

if TYPE_CHECKING:
    from mlmglauber.pictures.panel import Picture

Record = Mapping[str, Any]

KINDS = {
    "basins": "start summaries of mlm-basins --summary",
    "drift": "states with `drift`, or group summaries of mlm-drift --summary",
    "exact": "records of mlm-exact",
    "influence": "records or summaries of mlm-influence",
    "lag": "summaries of mlm-couple --summarize over pairs with a --lag",
    "phase": "summaries of mlm-couple --summarize",
    "plane": "states with an `embedding` of mlm-embed --pca 2, and traps",
    "rectangles": "rectangle records of mlm-rect",
    "residence": "traps of chains, of mlm-traps",
    "slowness": "summaries of mlm-traps --summary over several temperatures",
    "spacetime": "states of every change, of mlm-sample --on-change, and traps",
    "times": "summaries of mlm-drift --summary, pairs of mlm-couple or their summaries",
}
"""The kinds of pictures and the records that they draw; each kind is a file of this folder."""

WITH_PAGE = ("phase", "plane", "spacetime", "times")
"""The kinds that can also be a page of HTML."""


class PictureKind(Protocol):
    """The interface of a kind's file."""

    LIMIT: int
    """Maximum number of items that are kept."""

    def items(self, record: Record) -> Iterator[tuple[Hashable, Any]]:
        """(key, item) pairs to keep of a record. KeyError, TypeError or ValueError for a record without its fields."""

    def picture(self, kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> "Picture":
        """The picture of the kept items, listed by key; threshold: the drift that counts as a hit."""


def open_kind(name: str) -> PictureKind:
    """The module of a kind."""
    return cast(PictureKind, import_module(f"mlmglauber.pictures.{name}"))


class Uses(NamedTuple):
    """The kinds that draw a record: by default, and only if --kind names them or other records call for them."""

    default: tuple[str, ...] = ()
    other: tuple[str, ...] = ()


def uses(record: Record) -> Uses:
    """The kinds that draw a record.

    >>> uses({"type": "pair"}), uses({"type": "summary", "of": "pair", "over": "group", "lag": 0})
    (Uses(default=('times',), other=()), Uses(default=('phase',), other=('times',)))
    """
    what = record.get("type")
    if what == "state":
        return Uses(("drift",) * ("drift" in record) + ("plane",) * is_flat(record), ("spacetime",) * ("ids" in record))
    if what == "summary":
        return _of_summary(summary_of(record), record.get("over"), bool(record.get("lag")))
    if what == "trap":
        return Uses(("residence",), ("plane", "spacetime")) if "residence" in record else Uses()
    if what == "run":
        shares = record.get("pca_explained")  # null where the embeddings span fewer dimensions: then there is no plane
        drawn = isinstance(shares, list) and None not in shares
        return Uses((), ("plane",) * drawn + ("spacetime",) * (record.get("command") == "mlm-sample"))
    name = {"pair": "times", "rectangle": "rectangles", "influence": "influence", "exact": "exact"}.get(str(what))
    return Uses((name,)) if name else Uses()


def summary_of(record: Record) -> Any:
    """What a summary record is about. mlm-rect --path once wrote "state" in the place of "path".

    >>> summary_of({"of": "state", "entropy_production": 0.1}), summary_of({"of": "pair"})
    ('path', 'pair')
    """
    return "path" if "entropy_production" in record else record.get("of")


def _of_summary(of: Any, over: Any, lagged: bool) -> Uses:
    match of, over:
        case "state", "group":
            return Uses(("times",), ("drift",))
        case "state", "chain" | "tau":
            return Uses(("times",))
        case "pair", "group":
            return Uses(("lag",), ("phase", "times")) if lagged else Uses(("phase",), ("times",))
        case "pair", "tau":
            return Uses((), ("times",))
        case "pair", "n":
            return Uses((), ("phase",))
        case "influence", "group":
            return Uses(("influence",))
        case "trap", "n":
            return Uses(("slowness",))
        case "basin", "start":
            return Uses(("basins",))
        case "basin", "group":
            return Uses((), ("basins",))
    return Uses()
