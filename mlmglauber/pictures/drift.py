"""Drift curves: the distance of chains from their starts over time, by temperature and length."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.palette import category, ordered
from mlmglauber.pictures.panel import (
    PANELS,
    SERIES,
    Axis,
    Curve,
    Panel,
    Picture,
    Rule,
    Values,
    chosen,
    tau_axis,
)
from mlmglauber.pictures.reading import law_of, number, perhaps
from mlmglauber.stream.records import chain_key

LIMIT = 200_000
GRID = 256
"""Maximum number of steps at which chains are compared."""
DRIFT = "drift (1 − cosine)"


class ChainKey(NamedTuple):
    """The key of a chain's states: its name, temperature and length, None where a record has none."""

    name: tuple[Any, ...]
    tau: float | None
    n: int | None


Taus = tuple[float, ...]
"""The temperatures of a chain in the order of its steps; empty where it has none."""


class Plateau(NamedTuple):
    """Mean drift over the second half of the chains of one law, temperature and length, and its spread over chains."""

    tau: float
    n: int
    mean: float
    spread: float | None
    law: str


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """(step, drift) of a state, not-a-number where drift is undefined; the plateau of a summary."""
    if record["type"] == "state":
        n = perhaps(record, "n")
        drift = perhaps(record, "drift")
        yield (ChainKey(chain_key(record), perhaps(record, "tau"), None if n is None else int(n)),
               (number(record, "step"), np.nan if drift is None else drift))
    elif record["plateau"] is not None and record["tau"] is not None and record["n"] is not None:
        yield "plateau", Plateau(number(record, "tau"), int(number(record, "n")), number(record, "plateau"),
                                 perhaps(record, "plateau_sd"), law_of(record))


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """A panel for each length with a curve for each temperature, the median and quartiles over chains; of summaries
    the plateau against temperature, mean and standard deviation over chains.

    Chains whose temperature changes by a schedule have one curve for each schedule.
    """
    notes: list[str] = []
    groups: dict[Any, dict[Taus, list[Values]]] = {}
    for (_, n), chain in _chains(kept).items():
        parts = sorted((min(states)[0], tau) for tau, states in chain.items())
        taus = tuple(tau for _, tau in parts if tau is not None)
        states = sorted(state for of_tau in chain.values() for state in of_tau)
        groups.setdefault(n, {}).setdefault(taus, []).append(np.array(states, dtype=np.float64).T)
    panels = [_curves(n, groups[n], threshold, notes) for n in chosen(_sorted(groups), PANELS, "lengths", notes)]
    panels = [panel for panel in panels if len(panel.layers) > 1]
    if "plateau" in kept:
        panels.append(_plateaus(kept["plateau"], threshold, notes))
    return Picture(panels, notes)


def _chains(kept: Mapping[Hashable, Sequence[Any]]) -> dict[tuple[Any, int | None], dict[float | None, Any]]:
    """The states of each chain of each length at each of its temperatures."""
    chains: dict[tuple[Any, int | None], dict[float | None, Any]] = {}
    for key, states in kept.items():
        if isinstance(key, ChainKey):
            chains.setdefault((key.name, key.n), {})[key.tau] = states
    return chains


def _sorted(keys: Mapping[Any, Any]) -> list[Any]:
    return sorted(keys, key=lambda key: (key is None, key or 0))


def _label(taus: Taus) -> str:
    if not taus:
        return "no temperature"
    return f"τ = {taus[0]:g}" if len(taus) == 1 else f"τ from {taus[0]:g} to {taus[-1]:g}"


def _curves(n: int | None, by_tau: Mapping[Taus, list[Values]], threshold: float, notes: list[str]) -> Panel:
    taus = chosen(sorted(by_tau, key=lambda taus: (not taus, len(taus) > 1, taus)), SERIES, "temperatures", notes)
    layers: list[Any] = []
    count = max(len(series) for series in by_tau.values())
    for tau, look in zip(taus, ordered(len(taus)), strict=True):
        steps, low, middle, high = over_chains(by_tau[tau])
        if not len(steps):
            name = "tau unknown" if not tau else _label(tau).replace("τ =", "tau").replace("τ", "tau")
            notes.append(f"{name}: drift is undefined in all states")
            continue
        band = (low, high) if len(by_tau[tau]) > 1 else (None, None)
        layers.append(Curve(steps, middle, _label(tau), look.color, *band))
    layers.append(Rule(threshold, f"threshold {threshold:g}"))
    title = ("" if n is None else f"n = {n}: ") + ("median and quartiles of chains" if count > 1 else "one chain")
    return Panel(title, Axis("steps (updates of one site)", low=0), Axis(DRIFT, low=0), layers)


def over_chains(series: Sequence[Values]) -> tuple[Values, Values, Values, Values]:
    """Steps, and the quartiles of drift over chains at these steps.

    series: (2, N) steps and drifts of each chain. Between two records the drift of a chain is constant; after its last
    record the chain does not count.

    >>> a, b = np.array([[0, 2, 4], [0, 0.2, 0.4]]), np.array([[0, 2], [0, 0.6]])
    >>> [part.tolist() for part in over_chains([a, b])[::2]]
    [[0.0, 2.0, 4.0], [0.0, 0.4, 0.4]]
    """
    steps = np.unique(np.concatenate([steps for steps, _ in series]))
    if len(steps) > GRID:
        steps = np.unique(np.linspace(steps[0], steps[-1], GRID).round())
    there = np.full((len(series), len(steps)), np.nan)
    for row, (steps_there, drifts) in zip(there, series, strict=True):
        seen = (steps >= steps_there[0]) & (steps <= steps_there[-1])
        row[seen] = drifts[np.searchsorted(steps_there, steps[seen], side="right") - 1]
    known = ~np.isnan(there).all(axis=0)
    low, middle, high = np.nanquantile(there[:, known], [0.25, 0.5, 0.75], axis=0) if known.any() else np.empty((3, 0))
    return steps[known], low, middle, high


def _plateaus(plateaus: Sequence[Plateau], threshold: float, notes: list[str]) -> Panel:
    axis = tau_axis([part.tau for part in plateaus])
    layers: list[Any] = []
    laws = list(dict.fromkeys(part.law for part in plateaus))
    kinds = sorted({(laws.index(part.law), part.n) for part in plateaus})
    for k, (law, n) in enumerate(chosen(kinds, SERIES, "lengths", notes)):
        mine = sorted((part for part in plateaus if (part.law, part.n) == (laws[law], n)), key=lambda part: part.tau)
        x, y = np.array([part.tau for part in mine]), np.array([part.mean for part in mine])
        spread = np.array([np.nan if part.spread is None else part.spread for part in mine])
        look = category(k)
        label = f"{laws[law]}, n = {n}" if len(laws) > 1 and laws[law] else f"n = {n}"
        layers.append(Curve(x, y, label, look.color, y - spread, y + spread, mark=look.mark))
    layers.append(Rule(threshold, f"threshold {threshold:g}"))
    return Panel("plateau: mean ± s.d. over chains", axis, Axis(f"plateau of {DRIFT}", low=0), layers)
