"""Trajectories in a plane of embeddings: states coloured by step, basins shaded, traps marked."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.palette import CATEGORIES
from mlmglauber.pictures.panel import Axis, Ground, Panel, Picture, Points, Values, counted, distinct_labels
from mlmglauber.pictures.reading import is_flat, number, perhaps
from mlmglauber.pictures.trajectories import PlaneTrajectory, Trajectories
from mlmglauber.stream.errors import MlmError
from mlmglauber.stream.records import chain_key, names_of
from mlmglauber.stream.vectors import unpack

LIMIT = 20_000
"""Maximum number of items that are kept."""
CELLS = 160
"""Number of cells of the shading along each axis."""
REACH = 0.06
"""Maximum distance from a cell to a state of its basin, as a share of the picture's diagonal."""
TRAPS = 12
"""Maximum number of traps that are marked."""
NAMES = 5
"""Maximum number of basins with colours of their own; the rarer ones share a colour."""


class PlaneState(NamedTuple):
    """A state in the plane, with its step, its basin, its text, its drift and its temperature."""

    step: float
    x: float
    y: float
    basin: str | None
    text: str
    drift: float | None
    tau: float | None

    @property
    def hover(self) -> str:
        """What a page shows at the state, in lines."""
        drift = None if self.drift is None else f"drift {self.drift:.3f}"
        basin = None if self.basin is None else f"basin {self.basin}"
        return "\n".join(part for part in (self.text, drift, basin) if part)


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
    text = record.get("text")
    yield (*chain, str(record.get("embedder"))), PlaneState(
        number(record, "step"), x, y, names_of(record, "basin")[0], text if isinstance(text, str) else "",
        perhaps(record, "drift"), perhaps(record, "tau"))


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
    names = _names({key: found[0].tau for key, found in chains.items()})
    layers: list[Any] = _ground(states, np.stack(_columns(states), axis=1))
    layers.append(Trajectories([_trajectory(name, found) for name, found in zip(names, chains.values(), strict=True)],
                               "step (updates of one site)"))
    layers += _traps(kept.get("traps", ()), chains, notes)
    shares = next(iter(kept.get("explained", ())), None)
    labels = [f"component {k + 1} ({100 * shares[k]:.0f} % of variance)" if shares else f"principal component {k + 1}"
              for k in (0, 1)]
    return Picture([Panel(counted(len(chains), "chain"), Axis(labels[0]), Axis(labels[1]), layers, square=True)], notes)


def _trajectory(name: str, states: Sequence[PlaneState]) -> PlaneTrajectory:
    return PlaneTrajectory(name, *_columns(states), np.array([state.step for state in states], dtype=np.float64),
                      [state.hover for state in states])


def _names(chains: Mapping[Any, float | None]) -> list[str]:
    """Names of chains, whose temperatures are the values: the id and, where they differ, what tells others apart.

    >>> _names({("r", "0", 0): 0.5, ("r", "0", 1): 0.5, ("s", "0", 0): 2.0})
    ['id 0, τ = 0.5, chain 0', 'id 0, τ = 0.5, chain 1', 'id 0, τ = 2, chain 0']
    """
    taus = set(chains.values())
    runs = {(run, tau) for (run, _, _), tau in chains.items()}
    names = [f"id {name}" + (f", τ = {tau:g}" if tau is not None and len(taus) > 1 else "")
            + (f", chain {chain}" if len({c for _, n, c in chains if n == name}) > 1 else "")
            + (f", run {run}" if len(runs) > len(taus) else "") for (run, name, chain), tau in chains.items()]
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
    places, hover, unknown = [], [], 0
    for trap in sorted(traps, key=lambda trap: -trap.residence)[:TRAPS]:
        inside = [state for state in chains.get(trap.chain, ()) if trap.first <= state.step <= trap.last]
        if np.isfinite(trap.x):
            places.append((trap.x, trap.y))
        elif inside:
            middle = inside[len(inside) // 2]
            places.append((middle.x, middle.y))
        else:
            unknown += 1
            continue
        hover.append(f"trap of {trap.residence:,.0f} steps\nsteps {trap.first:,.0f} to {trap.last:,.0f}")
    if unknown:
        notes.append(f"{unknown} of the longest traps belong to chains that are not drawn; pass them through the same "
                     "mlm-embed --pca 2")
    if len(traps) > TRAPS:
        notes.append(f"the {TRAPS} longest of {len(traps)} traps are marked")
    if not places:
        return []
    return [Points(np.array([x for x, _ in places]), np.array([y for _, y in places]), "trap", CATEGORIES[1], "X",
                   hollow=True, hover=hover)]
