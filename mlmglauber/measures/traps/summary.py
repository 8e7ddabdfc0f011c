"""What the traps of many chains say together, for each temperature and length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.survival import kaplan_meier
from mlmglauber.measures.traps.residence import Holding, pooled_ratio
from mlmglauber.measures.traps.slowness import escape_slopes, residence_fit
from mlmglauber.measures.traps.tracker import State

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
    texts_of: list[int] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    scores: list[tuple[Holding, float]] = field(default_factory=list)
    """What runs made of their states beyond their first steps, with the states' escape probabilities: Tracker.scores.
    None of chains whose steps have no geometric law."""
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
        self.texts_of.append(text)
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


def _weighed(weights: Sequence[Weight], count: int, scores: Sequence[tuple[Holding, float]]) -> dict[str, Any]:
    """The share of perfect traps, their margins, and the steps beyond selection against the geometric law."""
    names = ("perfect", "margin_median", "expected_median", "ratio", "ratio_low", "ratio_high")
    if not weights or len(weights) < count:
        return dict.fromkeys(names) | {"reason": "no trap" if not count else "no model"}
    ratio = pooled_ratio([holding for holding, _ in scores], [escape for _, escape in scores])
    reason = ratio.reason if scores or ratio.reason is None else "no stay with a geometric law was seen"
    margins: NDArray[np.float64] = np.array([weight.margin for weight in weights])
    median = float(np.quantile(margins, 0.5, method="lower"))
    expected = float(np.quantile([1 / w.escape if w.escape else np.inf for w in weights], 0.5, method="lower"))
    return {
        "perfect": sum(weight.perfect for weight in weights) / count,
        "margin_median": median if isfinite(median) else None,
        "expected_median": expected if isfinite(expected) else None,
        "ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high,
        "ratio_steps": sum(holding.steps for holding, _ in scores),
        "ratio_exits": sum(holding.exits for holding, _ in scores),
        **({"ratio_reason": reason} if reason else {}),
        **({} if isfinite(median) else {"margin_reason": "a token of the median trap is never drawn"}),
        **({} if isfinite(expected) else {"expected_reason": "the median trap is never left"}),
    }


class Escapes(NamedTuple):
    """Of S states that were traps at some of K temperatures: the escape probabilities at all, the margins, and weights.

    at: (S, K); margins: (S,); weights: (S,) the steps of their traps, so a state counts as long as it held chains.
    """

    at: NDArray[np.float64]
    margins: NDArray[np.float64]
    weights: NDArray[np.float64]


def slowness_fields(groups: Mapping[float, Group], min_steps: int, escapes: Escapes | None) -> dict[str, Any]:
    """How the stays of one length grow with 1 / tau: those in traps, and those that escape probabilities give.

    at: for each temperature the traps, how many were left, the mean steps until one is left beyond the min_steps for
    which it was chosen, and the median over all states, weighed by the steps of their traps, of 1 / escape there.
    residence_slope: b in exp(a + b / tau) of the first, with an interval over texts. escape_slope: such a median of the
    states' own b, with quartiles.
    """
    taus = list(groups)
    rows = {text: row for row, text in enumerate(sorted(set().union(*(group.texts for group in groups.values()))))}
    steps, exits = np.zeros((2, len(rows), len(taus)))
    for k, group in enumerate(groups.values()):
        for text, residence, censored in zip(group.texts_of, group.residences, group.censored, strict=True):
            steps[rows[text], k] += residence - min_steps + 1
            exits[rows[text], k] += not censored
    fit = residence_fit(taus, steps, exits)
    states = 0 if escapes is None else len(escapes.at)
    record: dict[str, Any] = {
        "taus": taus, "texts": len(rows), "residence_slope": fit.slope.value, "residence_slope_low": fit.slope.low,
        "residence_slope_high": fit.slope.high, "residence_intercept": fit.intercept,
        **({"residence_slope_reason": fit.slope.reason} if fit.slope.reason else {}), "states": states, "at": [],
        **dict.fromkeys(("escape_slope", "escape_slope_quartiles", "margin_median"))}
    for k, (tau, group) in enumerate(groups.items()):
        left = int(exits[:, k].sum())
        expected = None
        if escapes is not None and states:
            with np.errstate(divide="ignore"):
                expected = _weighed_quantile(1 / escapes.at[:, k], escapes.weights)
        record["at"].append({
            "tau": tau, "traps": len(group.residences), "left": left,
            "residence": float(steps[:, k].sum()) / left if left else None, "expected": expected,
            **({} if left else {"residence_reason": "no trap was seen to end"}),
            **({} if expected is not None else {"expected_reason": "no state, or the median one is never left"})})
    if escapes is None or not states:
        return record | {"reason": "no trap" if escapes is not None else "no model"}
    slopes = escape_slopes(taus, escapes.at)
    low, slope, high = (_weighed_quantile(slopes, escapes.weights, q) for q in (0.25, 0.5, 0.75))
    margin = _weighed_quantile(escapes.margins, escapes.weights)
    if None in (low, slope, high, margin):
        return record | {"reason": "states that are never left, or with a token that is never drawn"}
    return record | {"escape_slope": slope, "escape_slope_quartiles": [low, high], "margin_median": margin}


def _weighed_quantile(values: NDArray[np.float64], weights: NDArray[np.float64], q: float = 0.5) -> float | None:
    """The first of the sorted values at which q of the weight is reached; None where that is infinite."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    found = float(values[order[int(np.searchsorted(reached, q * reached[-1]))]])
    return found if isfinite(found) else None
