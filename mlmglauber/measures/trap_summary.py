"""What the traps of many chains say together, for each temperature and length."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.residence import Holding, pooled_ratio
from mlmglauber.measures.survival import kaplan_meier
from mlmglauber.measures.traps import State

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
RECURRING = 10
"""So many of the traps that come again are told of."""


class Weight(NamedTuple):
    """What the model says of a trap's representative; margin -inf with a token that is never drawn."""

    perfect: bool
    margin: float
    escape: float


@dataclass(slots=True)
class Place:
    """A state that was the representative of traps: how many, how long, of which chains and texts."""

    text: str | None
    traps: int = 0
    steps: int = 0
    chains: set[int] = field(default_factory=set)
    texts: set[int] = field(default_factory=set)
    margin: float | None = None


@dataclass(slots=True)
class Group:
    """The chains of one temperature and length, and their traps: each one's length, and every different state."""

    steps: int = 0
    chains: int = 0
    texts: set[int] = field(default_factory=set)
    trapped_chains: set[int] = field(default_factory=set)
    residences: list[int] = field(default_factory=list)
    censored: list[bool] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    scores: list[tuple[Holding, float, int]] = field(default_factory=list)
    """What runs made of their states beyond their first steps, with the states' escape probabilities and the chains'
    texts: Tracker.scores. None of chains whose steps have no geometric law."""
    places: dict[State, Place] = field(default_factory=dict)
    resolution: int = 1

    def add_chain(self, text: int, steps: int) -> None:
        """A chain of a text, numbered, and how many steps of it were seen."""
        self.chains += 1
        self.steps += steps
        self.texts.add(text)

    def add(self, state: State, words: str | None, chain: int, text: int, residence: int, censored: bool,
            resolution: int, weight: Weight | None) -> None:
        """A trap of a chain and a text, both numbered."""
        self.residences.append(residence)
        self.censored.append(censored)
        self.resolution = max(self.resolution, resolution)
        self.trapped_chains.add(chain)
        if weight is not None:
            self.weights.append(weight)
        place = self.places.setdefault(state, Place(words))
        place.traps += 1
        place.steps += residence
        place.chains.add(chain)
        place.texts.add(text)
        if weight is not None:
            place.margin = weight.margin if isfinite(weight.margin) else None


def summarise(tau: float | None, n: int | None, group: Group) -> dict[str, Any]:
    """The summary of one temperature and length.

    trapped: share of all steps that were made in traps. per_1000: traps a thousand steps. residence: quantiles of the
    Kaplan-Meier curve, for the records cut stays off; null where the curve does not come down so far. recurring: states
    that were traps again, in another chain or later, those of most starts first.
    """
    count, steps = len(group.residences), group.steps
    again = sorted(((state, place) for state, place in group.places.items() if place.traps > 1),
                   key=lambda item: (-len(item[1].texts), -len(item[1].chains), -item[1].steps))
    return {
        "type": "summary", "of": "trap", "over": "group", "tau": tau, "n": n, "chains": group.chains,
        "texts": len(group.texts), "steps": steps, "count": count, "chains_trapped": len(group.trapped_chains),
        "trapped": sum(group.residences) / steps if steps else None,
        **({} if steps else {"trapped_reason": "no chain has two records"}),
        "per_1000": 1000 * count / steps if steps else None,
        "residence": _quantiles(group.residences, group.censored), "longest": max(group.residences, default=None),
        "censored": sum(group.censored), "resolution": group.resolution,
        "distinct": len(group.places), "recurring_states": len(again),
        "shared_states": sum(len(place.texts) > 1 for _, place in again),
        "recurring": [{"text": place.text, "ids": list(state), "traps": place.traps, "steps": place.steps,
                       "chains": len(place.chains), "texts": len(place.texts), "margin": place.margin}
                      for state, place in again[:RECURRING]],
        **_weighed(group.weights, count, group.scores),
    }


def _quantiles(residences: Sequence[int], censored: Sequence[bool]) -> dict[str, float | None]:
    """The first time at which the Kaplan-Meier curve is down at 1 - q."""
    if not residences:
        return {f"{q:g}": None for q in QUANTILES}
    curve = kaplan_meier(residences, censored)
    found: dict[str, float | None] = {}
    for q in QUANTILES:
        below = np.flatnonzero(curve.survival <= 1 - q + 1e-12)
        found[f"{q:g}"] = float(curve.times[below[0]]) if len(below) else None
    return found


def _weighed(weights: Sequence[Weight], count: int, scores: Sequence[tuple[Holding, float, int]]) -> dict[str, Any]:
    """The share of perfect traps, their margins, and the steps beyond selection against the geometric law."""
    names = ("perfect", "margin_median", "expected_median", "ratio", "ratio_low", "ratio_high")
    if not weights or len(weights) < count:
        return dict.fromkeys(names) | {"reason": "no trap" if not count else "no model"}
    ratio = pooled_ratio([holding for holding, _, _ in scores], [escape for _, escape, _ in scores],
                         [text for _, _, text in scores])
    reason = ratio.reason if scores or ratio.reason is None else "no stay with a geometric law was seen"
    margins: NDArray[np.float64] = np.array([weight.margin for weight in weights])
    median = float(np.quantile(margins, 0.5, method="lower"))
    expected = float(np.quantile([1 / w.escape if w.escape else np.inf for w in weights], 0.5, method="lower"))
    return {
        "perfect": sum(weight.perfect for weight in weights) / count,
        "margin_median": median if isfinite(median) else None,
        "expected_median": expected if isfinite(expected) else None,
        "ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high,
        "ratio_steps": sum(holding.steps for holding, _, _ in scores),
        "ratio_exits": sum(holding.exits for holding, _, _ in scores),
        **({"ratio_reason": reason} if reason else {}),
        **({} if isfinite(median) else {"margin_reason": "a token of the median trap is never drawn"}),
        **({} if isfinite(expected) else {"expected_reason": "the median trap is never left"}),
    }
