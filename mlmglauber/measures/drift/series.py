"""The drift of one chain over time: its plateau, its hitting times, and whether it is frozen."""

from array import array
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.drift.first_passage import Passage, first_passage
from mlmglauber.measures.drift.time_average import mean, quartiles, second_half
from mlmglauber.measures.statistics.diagnostics import is_constant


@dataclass(slots=True)
class DriftSeries:
    """The states of one chain: step, drift (NaN where undefined) and distance to its group's reference of each.

    law: equal for chains that may be summarised together. zero: the step from which times count; None means that
    of the first record. shows_all: whether the records show every change. coupled: for a chain of a coupled pair,
    the text that the pair was made from. piece: of a chain whose temperature changes, the piece of its schedule in
    which these states are; tau is None where that is a ramp. plls: pseudo-log-likelihoods in nats per token, at
    the steps pll_steps. Memory: 24 bytes for each state, 16 more for each with a pseudo-log-likelihood.
    """

    run: str | None
    text: str | None
    chain: int | None
    tau: float | None
    n: int | None
    law: Hashable = None
    zero: int | None = None
    shows_all: bool = False
    coupled: str | None = None
    piece: int | None = None
    steps: "array[int]" = field(default_factory=lambda: array("q"))
    drifts: "array[float]" = field(default_factory=lambda: array("d"))
    distances: "array[float]" = field(default_factory=lambda: array("d"))
    pll_steps: "array[int]" = field(default_factory=lambda: array("q"))
    plls: "array[float]" = field(default_factory=lambda: array("d"))
    truncated: int = 0

    def take(self, step: int, drift: float, distance: float, pll: float | None) -> None:
        """Add a state. pll: its pseudo-log-likelihood in nats per token, None where it is not known."""
        self.steps.append(step)
        self.drifts.append(drift)
        self.distances.append(distance)
        if pll is not None:
            self.pll_steps.append(step)
            self.plls.append(pll)

    def stay(self, other: "DriftSeries", step: int) -> None:
        """Add the last state of another piece of the same chain, or of this one: the chain is still in it at a step."""
        known = other.plls and other.pll_steps[-1] == other.steps[-1]
        self.take(step, other.drifts[-1], other.distances[-1], other.plls[-1] if known else None)

    @property
    def start(self) -> str:
        """The text that the chain depends on: all pairs that are made from one text share it."""
        return str(self.text if self.coupled is None else self.coupled)

    @property
    def first(self) -> int:
        """The step from which times count."""
        return self.steps[0] if self.zero is None else self.zero

    @property
    def watched(self) -> int:
        """Steps from `first` to the last defined drift; 0 where no drift is defined."""
        known = np.flatnonzero(~np.isnan(self.values()))
        return self.steps[int(known[-1])] - self.first if len(known) else 0

    @property
    def undefined(self) -> int:
        """Number of records whose drift is undefined."""
        return int(np.isnan(self.values()).sum())

    @property
    def resolution(self) -> int:
        """The largest number of steps between two records; 1 where the records show every change."""
        return 1 if self.shows_all else int(np.diff(self.times()).max(initial=0))

    def times(self) -> NDArray[np.int64]:
        """(N,) steps of the records."""
        return np.frombuffer(self.steps, dtype=np.int64)

    def values(self) -> NDArray[np.float64]:
        """(N,) drifts."""
        return np.frombuffer(self.drifts, dtype=np.float64)

    def weights(self) -> NDArray[np.float64]:
        """(N,) weights of the records for averages over the second half of the chain's time."""
        return second_half(self.times(), self.shows_all)

    def final(self) -> float | None:
        """The drift of the last record; None where it is undefined."""
        return None if np.isnan(self.drifts[-1]) else self.drifts[-1]

    def plateau(self) -> float | None:
        """Mean drift over the second half of the chain's time; None where no drift is defined there."""
        return mean(self.values(), self.weights())

    def quartiles(self) -> list[float] | None:
        """Quartiles of drift over the second half of the chain's time; None where no drift is defined there."""
        return quartiles(self.values(), self.weights())

    def passage(self, threshold: float) -> Passage | None:
        """The first time at which drift is at the threshold or above; None where no drift is defined."""
        return first_passage(self.times(), self.values(), threshold, self.first, self.shows_all)

    def frozen(self) -> bool | None:
        """Whether drift is constant over the second half; None where fewer than two records show the second half."""
        seen = (self.weights() > 0) & ~np.isnan(self.values())
        if len(self.steps) < 2 or seen.sum() < (1 if self.shows_all else 2):
            return None
        return is_constant(self.values()[seen])

    def pll_start(self) -> float | None:
        """Pseudo-log-likelihood of the first record in nats per token; None where that record has none."""
        return self.plls[0] if self.plls and self.pll_steps[0] == self.steps[0] else None

    def pll_plateau(self) -> float | None:
        """Mean pseudo-log-likelihood in the second half of the chain's time, in nats per token; None without one."""
        late = np.frombuffer(self.pll_steps, dtype=np.int64) >= (self.steps[0] + self.steps[-1]) / 2
        return float(np.frombuffer(self.plls, dtype=np.float64)[late].mean()) if late.any() else None
