"""Where chains go from where they start: the start x visited matrix."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.panel import PANELS, Axis, Heat, Panel, Picture, chosen, shortened
from mlmglauber.pictures.reading import perhaps

LIMIT = 20_000
ROOM = 12
"""Numbers can be read in the cells of so many columns."""


class Row(NamedTuple):
    """What one start's chains visited: basin and share of chains."""

    start: str
    chains: int
    visited: Mapping[str, float | None]


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """One row, by temperature and length."""
    visited = {str(part["basin"]): perhaps(part, "visited") for part in record["basins"]}
    yield (perhaps(record, "tau"), perhaps(record, "n")), Row(str(record["start"]), int(record["chains"]), visited)


def picture(held: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """A matrix for each temperature and length: the share of chains of each start that visited each basin."""
    del threshold
    notes: list[str] = []
    keys: list[Any] = sorted(held, key=_order)
    return Picture([_panel(key[0], key[1], held[key]) for key in chosen(keys, PANELS, "matrices", notes)], notes)


def _order(key: Any) -> Any:
    return tuple((part is None, part or 0) for part in key)


def _panel(tau: float | None, n: float | None, rows: Sequence[Row]) -> Panel:
    basins = list(dict.fromkeys(name for row in rows for name in row.visited))
    starts = [row.start for row in rows]
    ordered = [name for name in starts if name in basins] + [name for name in basins if name not in starts]
    values = np.array([[np.nan if row.visited.get(name) is None else row.visited[name] for name in ordered]
                       for row in rows], dtype=np.float64)
    across, down = np.arange(len(ordered), dtype=np.float64), np.arange(len(rows), dtype=np.float64)
    title = ", ".join(([] if tau is None else [f"τ = {tau:g}"]) + ([] if n is None else [f"n = {n:g}"]))
    return Panel(title, Axis("basin visited", ticks=(across.tolist(), [shortened(name, 14) for name in ordered])),
                 Axis("start (chains)", ticks=(down.tolist(), [f"{shortened(row.start, 14)} ({row.chains})"
                                                               for row in rows]), downwards=True),
                 [Heat(across, down, values, "share of chains", written=len(ordered) <= ROOM, bounds=(0.0, 1.0))])
