"""The drift of one chain as its records tell it, and what its chain summary says."""

from array import array
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.drift.holding import Passage, first_passage, mean, quartiles, second_half
from mlmglauber.measures.statistics.diagnostics import is_constant
from mlmglauber.measures.statistics.scaling import n_log_n

Summary = dict[str, Any]


@dataclass(slots=True)
class Series:
    """One chain: its steps, its drifts (not-a-number where undefined), and its distances to its group's reference.

    law, told: what chains that are put together share, and the fields that tell of it. zero: the step from which times
    count; None for that of the first record. shows_all: whether the records show every change. coupled: of a pair of
    coupled chains, the start that the pair was made from. 24 bytes a state, 16 more for one with a
    pseudo-log-likelihood.
    """

    run: str | None
    text: str | None
    chain: int | None
    tau: float | None
    n: int | None
    law: Hashable = None
    told: Mapping[str, Any] = field(default_factory=dict)
    zero: int | None = None
    shows_all: bool = False
    coupled: str | None = None
    steps: "array[int]" = field(default_factory=lambda: array("q"))
    drifts: "array[float]" = field(default_factory=lambda: array("d"))
    distances: "array[float]" = field(default_factory=lambda: array("d"))
    pll_steps: "array[int]" = field(default_factory=lambda: array("q"))
    plls: "array[float]" = field(default_factory=lambda: array("d"))
    truncated: int = 0

    @property
    def start(self) -> str:
        """The text that the chain depends on: that of its start, one for all pairs made from it."""
        return str(self.text if self.coupled is None else self.coupled)

    @property
    def first(self) -> int:
        """The step from which times count."""
        return self.steps[0] if self.zero is None else self.zero

    def times(self) -> NDArray[np.int64]:
        """(N,) steps of the records."""
        return np.frombuffer(self.steps, dtype=np.int64)

    def values(self) -> NDArray[np.float64]:
        """(N,) drifts."""
        return np.frombuffer(self.drifts, dtype=np.float64)

    def weights(self) -> NDArray[np.float64]:
        """(N,) weights of the records in the second half of the chain."""
        return second_half(self.times(), self.shows_all)

    def passage(self, threshold: float) -> Passage | None:
        """When drift first was at the threshold or above."""
        return first_passage(self.times(), self.values(), threshold, self.first, self.shows_all)

    @property
    def resolution(self) -> int:
        """The longest time, in steps, in which a change may have been missed; 1 where every change is seen."""
        return 1 if self.shows_all else int(np.diff(self.times()).max(initial=0))

    def frozen(self) -> bool | None:
        """Whether drift was constant over the second half; None where that was seen once."""
        seen = (self.weights() > 0) & ~np.isnan(self.values())
        if len(self.steps) < 2 or seen.sum() < (1 if self.shows_all else 2):
            return None
        return is_constant(self.values()[seen])

    def pll_start(self) -> float | None:
        """Pseudo-log-likelihood a token of the first record, in nats; None where it does not tell it."""
        return self.plls[0] if self.plls and self.pll_steps[0] == self.steps[0] else None

    def pll_plateau(self) -> float | None:
        """Mean pseudo-log-likelihood a token in the second half of the chain's time, in nats."""
        late = np.frombuffer(self.pll_steps, dtype=np.int64) >= (self.steps[0] + self.steps[-1]) / 2
        return float(np.frombuffer(self.plls, dtype=np.float64)[late].mean()) if late.any() else None

    def summary(self, thresholds: Sequence[float]) -> Summary:
        """The summary of the chain: final and plateau drift, hitting times, and whether it is frozen."""
        drifts, weights = self.values(), self.weights()
        unit = n_log_n(self.n) if self.n else None
        hits = []
        for threshold in thresholds:
            found = self.passage(threshold)
            time = found.at_most if found else None
            hits.append({"threshold": threshold, "time": time, "at_least": found.at_least if found else None,
                         "n_log_n": time / unit if time is not None and unit else None, "censored": time is None})
        known = np.flatnonzero(~np.isnan(drifts))
        frozen = self.frozen()
        told: Summary = {
            "type": "summary", "of": "state", "over": "chain", "run": self.run, "id": self.text, "chain": self.chain,
            "tau": self.tau, "n": self.n, **self.told, "count": len(drifts), "undefined": len(drifts) - len(known),
            "truncated": self.truncated, "first_step": self.steps[0], "last_step": self.steps[-1],
            "watched": self.steps[known[-1]] - self.first if len(known) else 0,
            "final": None if np.isnan(drifts[-1]) else float(drifts[-1]), "plateau": mean(drifts, weights),
            "quartiles": quartiles(drifts, weights), "frozen": frozen, "hitting": hits,
        }
        if np.isnan(drifts[-1]):
            told["final_reason"] = "the last drift is undefined"
        if told["plateau"] is None:
            told["plateau_reason"] = "no drift of the second half is defined"
        if frozen is None:
            told["frozen_reason"] = "the second half was not seen twice"
        if self.coupled is not None:
            told["coupled"] = self.coupled
        if self.plls:
            told |= {"pll_start": self.pll_start(), "pll_plateau": self.pll_plateau()}
            reasons = (("pll_start", "the first record has no pll"), ("pll_plateau", "no pll in the second half"))
            told |= {f"{name}_reason": reason for name, reason in reasons if told[name] is None}
        return told
