"""Trajectories in a plane of embeddings: states coloured by step, basins shaded, traps marked."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.palette import BLACK, CATEGORIES, category
from mlmglauber.pictures.panel import (
    Axis,
    Cloud,
    Curve,
    Ground,
    Panel,
    Picture,
    Points,
    Values,
    counted,
    distinct_labels,
)
from mlmglauber.pictures.reading import is_flat, number
from mlmglauber.stream.errors import MlmError
from mlmglauber.stream.records import chain_key, names_of
from mlmglauber.stream.vectors import unpack

LIMIT = 20_000
"""Maximum number of items that are kept."""
CHAINS = 6
"""Maximum number of chains that are drawn with lines; more would hide each other."""
CELLS = 160
"""Number of cells of the shading along each axis."""
REACH = 0.06
"""Maximum distance from a cell to a state of its basin, as a share of the picture's diagonal."""
ENDS = "^Dv>*P"
"""Marks of last states, one for each chain with a line; squares mark first states."""
TRAPS = 12
"""Maximum number of traps that are marked."""
NAMES = 5
"""Maximum number of basins with colours of their own; the rarer ones share a colour."""


class PlaneState(NamedTuple):
    """A state in the plane, with its step and its basin."""

    step: float
    x: float
    y: float
    basin: str | None


class TrapMark(NamedTuple):
    """A trap: its place (NaN where not embedded), its chain, its first and last step, its residence in steps."""

    x: float
    y: float
    chain: tuple[Any, ...]
    first: float
    last: float
    residence: float


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """A state under the key of its chain, a trap, or the shares of variance of a run record of mlm-embed --pca."""
    if record["type"] == "run":
        yield "explained", [float(share) for share in record["pca_explained"]]
        return
    chain = chain_key(record)
    x, y = (float(part) for part in unpack(record["embedding"])) if is_flat(record) else (np.nan, np.nan)
    if record["type"] == "trap":
        first, last, residence = (number(record, name) for name in ("first", "last", "residence"))
        yield "traps", TrapMark(x, y, chain, first, last, residence)
        return
    if not np.isfinite([x, y]).all():
        raise ValueError("the embedding is not finite")
    yield (*chain, str(record.get("embedder"))), PlaneState(number(record, "step"), x, y, names_of(record, "basin")[0])


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """One panel: every state coloured by its step, lines for a few chains, the longest traps, basins as shades."""
    del threshold
    chains: dict[Any, list[PlaneState]] = {key[:3]: sorted(found, key=lambda state: state.step)
                                      for key, found in kept.items() if isinstance(key, tuple)}
    planes = {key[3] for key in kept if isinstance(key, tuple)}
    if max(len(planes), len(set(map(tuple, kept.get("explained", ()))))) > 1:
        raise MlmError("the embeddings are from different planes; pass all records through one mlm-embed")
    states = [state for found in chains.values() for state in found]
    if not states:
        return Picture([])
    notes: list[str] = []
    x, y = _columns(states)
    layers: list[Any] = _ground(states, np.stack([x, y], axis=1))
    few = len(chains) <= CHAINS
    if few:
        layers += [Curve(*_columns(found), "", category(k).color, faint=True)
                   for k, found in enumerate(chains.values())]
    steps = np.array([state.step for state in states], dtype=np.float64)
    late = np.argsort(steps, kind="stable")
    layers.append(Cloud(x[late], y[late], steps[late], "step (updates of one site)"))
    if len(chains) <= 4 * CHAINS:
        first = _columns([found[0] for found in chains.values()])
        layers.append(Points(*first, "first state", BLACK, "s", hollow=True))
    ends = [found[-1] for found in chains.values()]
    if few:
        layers += [Points(*_columns([end]), f"last state, {name}", category(k).color, ENDS[k])
                   for k, (end, name) in enumerate(zip(ends, _names(list(chains)), strict=True))]
    elif len(chains) <= 4 * CHAINS:
        layers.append(Points(*_columns(ends), "last state", BLACK, ENDS[0]))
    layers += _traps(kept.get("traps", ()), chains, notes)
    shares = next(iter(kept.get("explained", ())), None)
    names = [f"component {k + 1} ({100 * shares[k]:.0f} % of variance)" if shares else f"principal component {k + 1}"
             for k in (0, 1)]
    return Picture([Panel(counted(len(chains), "chain"), Axis(names[0]), Axis(names[1]), layers, square=True)], notes)


def _names(chains: Sequence[tuple[Any, ...]]) -> list[str]:
    """Names of chains: the id and, where several chains share it, the chain number and the run."""
    runs = {run for run, _, _ in chains}
    names = [f"id {name}" + (f", chain {chain}" if len({c for _, n, c in chains if n == name}) > 1 else "")
            + (f", run {run}" if len(runs) > 1 else "") for run, name, chain in chains]
    return distinct_labels(names, 60)


def _columns(states: Sequence[PlaneState]) -> tuple[Values, Values]:
    """The x and y coordinates of states."""
    return np.array([state.x for state in states]), np.array([state.y for state in states])


def _ground(states: Sequence[PlaneState], points: Values) -> list[Ground]:
    """The shading: a cell belongs to the basin of the nearest state with a basin, if it is within REACH."""
    named = [k for k, state in enumerate(states) if state.basin is not None]
    if not named:
        return []
    basins = [str(states[k].basin) for k in named]
    counts = {name: basins.count(name) for name in dict.fromkeys(basins)}
    often = sorted(counts, key=lambda name: -counts[name])
    shown = often[:NAMES] + (["other basins"] if len(often) > NAMES else [])
    codes = np.array([min(often.index(name), NAMES) for name in basins])
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.05 * (high - low).max() or 1.0
    x, y = (np.linspace(low[k] - margin, high[k] + margin, CELLS) for k in (0, 1))
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    reach = REACH * float(np.hypot(*(high - low)))
    from scipy.spatial import cKDTree

    distance, nearest = cKDTree(points[named]).query(grid.reshape(-1, 2))
    region = np.where(distance <= reach, codes[nearest], -1).reshape(CELLS, CELLS)
    return [Ground(x, y, region.astype(np.int64), distinct_labels(shown, 40))]


def _traps(traps: Sequence[TrapMark], chains: Mapping[Any, Sequence[PlaneState]], notes: list[str]) -> list[Points]:
    """The longest traps, at their embedding or where their chain was in the middle of them."""
    places, unknown = [], 0
    for trap in sorted(traps, key=lambda trap: -trap.residence)[:TRAPS]:
        inside = [state for state in chains.get(trap.chain, ()) if trap.first <= state.step <= trap.last]
        if np.isfinite(trap.x):
            places.append((trap.x, trap.y))
        elif inside:
            middle = inside[len(inside) // 2]
            places.append((middle.x, middle.y))
        else:
            unknown += 1
    if unknown:
        notes.append(f"{unknown} of the longest traps belong to chains that are not drawn; pass them through the same "
                     "mlm-embed --pca 2")
    if len(traps) > TRAPS:
        notes.append(f"the {TRAPS} longest of {len(traps)} traps are marked")
    if not places:
        return []
    return [Points(np.array([x for x, _ in places]), np.array([y for _, y in places]), "trap", CATEGORIES[1], "X",
                   hollow=True)]
