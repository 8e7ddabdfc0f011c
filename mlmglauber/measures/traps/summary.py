"""The traps of many chains: how many there are, how long they last, which states come again, for each group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import Interval
from mlmglauber.measures.statistics.survival import kaplan_meier
from mlmglauber.measures.traps.residence import Holding, pooled_ratio
from mlmglauber.measures.traps.slowness import escape_slopes, residence_fit
from mlmglauber.measures.traps.tracker import State

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class StateMargin(NamedTuple):
    """Margins of a trap's representative state; margin is -inf where the model never draws one of its tokens."""

    perfect: bool
    margin: float
    escape: float


@dataclass(slots=True)
class RecurringState:
    """A representative state: the traps that share it, their steps, and the numbers of their chains and texts."""

    text: str | None
    traps: int = 0
    steps: int = 0
    chains: set[int] = field(default_factory=set)
    texts: set[int] = field(default_factory=set)
    margin: float | None = None


@dataclass(slots=True)
class TrapGroup:
    """The chains of one temperature and length, and their traps.

    residences, censored, texts_of: of each trap. margins: of each trap whose margins are known. scores: for each run
    around a state, what happened there after the steps for which it was chosen (see Tracker.scores), with the state's
    escape probability; chains without geometric stays have none. states: every representative state.
    """

    steps: int = 0
    chains: int = 0
    texts: set[int] = field(default_factory=set)
    trapped_chains: set[int] = field(default_factory=set)
    residences: list[int] = field(default_factory=list)
    censored: list[bool] = field(default_factory=list)
    texts_of: list[int] = field(default_factory=list)
    margins: list[StateMargin] = field(default_factory=list)
    scores: list[tuple[Holding, float]] = field(default_factory=list)
    states: dict[State, RecurringState] = field(default_factory=dict)
    resolution: int = 1

    def add_chain(self, text: int, steps: int) -> None:
        """Count a chain of a text, and the steps of it that were recorded."""
        self.chains += 1
        self.steps += steps
        self.texts.add(text)

    def add(self, state: State, words: str | None, chain: int, text: int, residence: int, censored: bool,
            resolution: int, margin: StateMargin | None) -> None:
        """Count a trap; words: the text of its state; chain, text: numbers of its chain and of its chain's text."""
        self.residences.append(residence)
        self.censored.append(censored)
        self.texts_of.append(text)
        self.resolution = max(self.resolution, resolution)
        self.trapped_chains.add(chain)
        if margin is not None:
            self.margins.append(margin)
        known = self.states.setdefault(state, RecurringState(words))
        known.traps += 1
        known.steps += residence
        known.chains.add(chain)
        known.texts.add(text)
        if margin is not None:
            known.margin = margin.margin if isfinite(margin.margin) else None

    def recurring(self) -> list[tuple[State, RecurringState]]:
        """The states of two traps or more, those with the most texts first, then chains, then steps."""
        again = [(state, known) for state, known in self.states.items() if known.traps > 1]
        return sorted(again, key=lambda item: (-len(item[1].texts), -len(item[1].chains), -item[1].steps))

    def quantiles(self) -> dict[float, float | None]:
        """The q-quantiles of residence: the first time at which the Kaplan-Meier curve is at 1 - q or below.

        None where the curve does not fall so far, since the records cut traps off.
        """
        if not self.residences:
            return dict.fromkeys(QUANTILES)
        curve = kaplan_meier(self.residences, self.censored)
        quantiles: dict[float, float | None] = {}
        for q in QUANTILES:
            below = np.flatnonzero(curve.survival <= 1 - q + 1e-12)
            quantiles[q] = float(curve.times[below[0]]) if len(below) else None
        return quantiles


class TrapMargins(NamedTuple):
    """Margins of a group's traps, and their stays against the geometric law.

    perfect: share of perfect traps. margin, expected: medians over traps of the margin and of 1 / escape, which may be
    infinite. ratio: observed over expected stay, after the steps for which traps were chosen; steps, exits: those that
    it counts.
    """

    perfect: float
    margin: float
    expected: float
    ratio: Interval
    steps: int
    exits: int


def trap_margins(group: TrapGroup) -> TrapMargins | None:
    """None where there is no trap, or where some trap has no margins."""
    count = len(group.residences)
    if not group.margins or len(group.margins) < count:
        return None
    ratio = pooled_ratio([holding for holding, _ in group.scores], [escape for _, escape in group.scores])
    if not group.scores and ratio.reason is not None:
        ratio = ratio._replace(reason="no stay with a geometric law was seen")
    expected = [1 / one.escape if one.escape else np.inf for one in group.margins]
    margin, expected_median = (float(np.quantile(np.array(values), 0.5, method="lower"))
                               for values in ([one.margin for one in group.margins], expected))
    return TrapMargins(sum(one.perfect for one in group.margins) / count, margin, expected_median, ratio,
                       sum(holding.steps for holding, _ in group.scores),
                       sum(holding.exits for holding, _ in group.scores))


class StateEscapes(NamedTuple):
    """S states that were traps at some of K temperatures.

    at: (S, K) escape probabilities; margins: (S,); weights: (S,) the steps of their traps.
    """

    at: NDArray[np.float64]
    margins: NDArray[np.float64]
    weights: NDArray[np.float64]


class TrapsAt(NamedTuple):
    """Traps at one temperature.

    left: number of traps that were seen to end. residence: mean steps until a trap is left, after the steps for which
    it was chosen; None where none was left. expected: weighted median over states of 1 / escape; None without a state,
    or where the median state is never left.
    """

    tau: float
    traps: int
    left: int
    residence: float | None
    expected: float | None


class EscapeSlope(NamedTuple):
    """Weighted median over states of the slope b of 1 / escape = exp(a + b / tau), its quartiles, and median margin."""

    slope: float
    quartiles: tuple[float, float]
    margin: float


class Slowness(NamedTuple):
    """How stays of one length grow with 1 / tau.

    slope, intercept: b and a of T = exp(a + b / tau), T the mean time until a trap is left; b with its 95 % interval
    over texts. states: number of states with escape probabilities. escape: the same slope from these probabilities,
    None with the reason.
    """

    texts: int
    slope: Interval
    intercept: float | None
    states: int
    at: Sequence[TrapsAt]
    escape: EscapeSlope | None
    reason: str | None


def slowness(groups: Mapping[float, TrapGroup], min_steps: int, escapes: StateEscapes | None) -> Slowness:
    """The groups of one length by temperature, above 0; escapes: None without a model."""
    taus = list(groups)
    rows = {text: row for row, text in enumerate(sorted(set().union(*(group.texts for group in groups.values()))))}
    steps, exits = np.zeros((2, len(rows), len(taus)))
    for k, group in enumerate(groups.values()):
        for text, residence, censored in zip(group.texts_of, group.residences, group.censored, strict=True):
            steps[rows[text], k] += residence - min_steps + 1
            exits[rows[text], k] += not censored
    fit = residence_fit(taus, steps, exits)
    at = []
    for k, (tau, group) in enumerate(groups.items()):
        left, expected = int(exits[:, k].sum()), None
        if escapes is not None and len(escapes.at):
            with np.errstate(divide="ignore"):
                expected = weighted_quantile(1 / escapes.at[:, k], escapes.weights)
        at.append(TrapsAt(tau, len(group.residences), left, float(steps[:, k].sum()) / left if left else None,
                          expected))
    slope, reason = _escape_slope(taus, escapes)
    return Slowness(len(rows), fit.slope, fit.intercept, 0 if escapes is None else len(escapes.at), at, slope, reason)


def _escape_slope(taus: Sequence[float], escapes: StateEscapes | None) -> tuple[EscapeSlope | None, str | None]:
    if escapes is None or not len(escapes.at):
        return None, "no model" if escapes is None else "no trap"
    slopes = escape_slopes(taus, escapes.at)
    low, slope, high = (weighted_quantile(slopes, escapes.weights, q) for q in (0.25, 0.5, 0.75))
    margin = weighted_quantile(escapes.margins, escapes.weights)
    if low is None or slope is None or high is None or margin is None:
        return None, "states that are never left, or with a token that is never drawn"
    return EscapeSlope(slope, (low, high), margin), None


def weighted_quantile(values: NDArray[np.float64], weights: NDArray[np.float64], q: float = 0.5) -> float | None:
    """The smallest value such that values at or below it have a share q of the weight; None where it is infinite.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 5.0, 1.0]))
    1.0
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    value = float(values[order[int(np.searchsorted(reached, q * reached[-1]))]])
    return value if isfinite(value) else None
