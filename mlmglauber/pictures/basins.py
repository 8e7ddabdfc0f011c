"""Where chains go: the matrix of starts and visited basins."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.panel import PANELS, Axis, Heat, Panel, Picture, chosen, distinct_labels
from mlmglauber.pictures.reading import number, perhaps

LIMIT = 20_000
ROOM = 12
"""Maximum number of columns with numbers in their cells."""


class Row(NamedTuple):
    """The chains of one start: how many there are, and the share of them that visited each basin."""

    start: str
    chains: int
    visited: Mapping[str, float | None]


class All(NamedTuple):
    """The number of chains at one temperature and length, from all starts."""

    chains: int


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """One row, or the number of all chains, under the key of temperature and length."""
    key = (perhaps(record, "tau"), perhaps(record, "n"))
    if record["over"] == "group":
        yield key, All(int(number(record, "chains")))
        return
    visited = {str(part["basin"]): perhaps(part, "visited") for part in record["basins"]}
    yield key, Row(str(record["start"]), int(record["chains"]), visited)


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """A matrix for each temperature and length: the share of chains of each start that visited each basin."""
    del threshold
    notes: list[str] = []
    keys: list[Any] = sorted((key for key, items in kept.items() if any(isinstance(item, Row) for item in items)),
                             key=_order)
    return Picture([_panel(key[0], key[1], kept[key], notes) for key in chosen(keys, PANELS, "matrices", notes)], notes)


def _order(key: Any) -> Any:
    return tuple((part is None, part or 0) for part in key)


def _panel(tau: float | None, n: float | None, items: Sequence[Row | All], notes: list[str]) -> Panel:
    rows = [item for item in items if isinstance(item, Row)]
    basins = list(dict.fromkeys(name for row in rows for name in row.visited))
    starts = [row.start for row in rows]
    ordered = [name for name in starts if name in basins] + [name for name in basins if name not in starts]
    values = np.array([[np.nan if row.visited.get(name) is None else row.visited[name] for name in ordered]
                       for row in rows], dtype=np.float64)
    across, down = np.arange(len(ordered), dtype=np.float64), np.arange(len(rows), dtype=np.float64)
    where = ", ".join(([] if tau is None else [f"τ = {tau:g}"]) + ([] if n is None else [f"n = {n:g}"]))
    parts = [where] if where else []
    every = next((item.chains for item in items if isinstance(item, All)), None)
    drawn = sum(row.chains for row in rows)
    if every is not None and every > drawn:
        parts.append(f"{every - drawn} of {every} chains have no start and no row")
        notes.append(f"{where}: {parts[-1]}; name the start with mlm-basins --start-field, or lower its --reject")
    names = [f"{name} ({row.chains})" for name, row in zip(distinct_labels(starts, 24), rows, strict=True)]
    missing = "no chain, or unknown" if np.isnan(values).any() else ""
    return Panel(": ".join(parts), Axis("basin visited", ticks=(across.tolist(), distinct_labels(ordered, 24))),
                 Axis("start (chains)", ticks=(down.tolist(), names), downwards=True),
                 [Heat(across, down, values, "share of chains", written=len(ordered) <= ROOM, bounds=(0.0, 1.0),
                       missing=missing)])
