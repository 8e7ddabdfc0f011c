"""What many drift series say together: of each chain, of each temperature and length, of each temperature."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.diagnostics import diagnose, is_constant
from mlmglauber.measures.drift import hitting_time, plateau
from mlmglauber.measures.intervals import Interval
from mlmglauber.measures.scaling import Times, fit_c, n_log_n
from mlmglauber.measures.survival import kaplan_meier, median_interval

MOST = 1 << 20
"""Readings of a chain whose records stand at uneven steps, at most."""

Summary = dict[str, Any]


@dataclass(slots=True)
class Series:
    """The drift of one chain: steps and drifts, not-a-number where drift was undefined. 16 bytes a state."""

    run: str | None
    text: str | None
    chain: int | None
    tau: float | None
    n: int | None
    steps: "array[int]" = field(default_factory=lambda: array("q"))
    drifts: "array[float]" = field(default_factory=lambda: array("d"))
    truncated: int = 0

    def values(self) -> NDArray[np.float64]:
        return np.frombuffer(self.drifts, dtype=np.float64)

    def times(self) -> NDArray[np.int64]:
        return np.frombuffer(self.steps, dtype=np.int64)


def summarise(series: Sequence[Series], thresholds: Sequence[float]) -> Iterator[Summary]:
    """A summary for each chain, then for each (tau, n), then for each tau."""
    for chain in series:
        yield of_chain(chain, thresholds)
    groups = _grouped(series, lambda chain: (chain.tau, chain.n))
    for (tau, n), members in groups:
        yield of_group(tau, n, members, thresholds)
    for (tau,), members in _grouped(series, lambda chain: (chain.tau,)):
        yield of_temperature(tau, members, thresholds)


def _grouped(series: Iterable[Series], key: Any) -> list[tuple[Any, list[Series]]]:
    groups: dict[Any, list[Series]] = {}
    for chain in series:
        groups.setdefault(key(chain), []).append(chain)
    return sorted(groups.items(), key=lambda item: tuple((part is None, part or 0) for part in item[0]))


def of_chain(chain: Series, thresholds: Sequence[float]) -> Summary:
    """Final and plateau drift (the mean over the second half of the records) and the hitting time of each threshold."""
    steps, drifts = chain.times(), chain.values()
    unit = n_log_n(chain.n) if chain.n else None
    hits = []
    for threshold in thresholds:
        step = hitting_time(steps, drifts, threshold)
        scaled = step / unit if step is not None and unit else None
        hits.append({"threshold": threshold, "step": step, "n_log_n": scaled, "censored": step is None})
    defined = drifts[~np.isnan(drifts)]
    return {
        "type": "summary", "of": "state", "over": "chain", "run": chain.run, "id": chain.text, "chain": chain.chain,
        "tau": chain.tau, "n": chain.n, "count": len(drifts), "undefined": len(drifts) - len(defined),
        "truncated": chain.truncated, "last_step": int(steps[-1]),
        "final": None if np.isnan(drifts[-1]) else float(drifts[-1]), "plateau": plateau(drifts),
        "frozen": bool(len(defined)) and is_constant(defined), "hitting": hits,
    }


def of_group(tau: float | None, n: int | None, chains: Sequence[Series], thresholds: Sequence[float]) -> Summary:
    """Means over chains, survival of each threshold, and diagnostics of the second half of the drift series."""
    finals = np.array([chain.values()[-1] for chain in chains])
    plateaus = np.array([p for chain in chains if (p := plateau(chain.values())) is not None])
    finals = finals[~np.isnan(finals)]
    halves, resampled, reason = second_halves(chains, n)
    found = diagnose(halves)._asdict() if halves is not None else {"reason": reason}
    return {
        "type": "summary", "of": "state", "over": "group", "tau": tau, "n": n, "chains": len(chains),
        "texts": len({(chain.run, chain.text) for chain in chains}), "count": sum(len(c.drifts) for c in chains),
        "final": float(finals.mean()) if len(finals) else None,
        "plateau": float(plateaus.mean()) if len(plateaus) else None,
        "plateau_sd": float(plateaus.std(ddof=1)) if len(plateaus) > 1 else None,
        "frozen_chains": sum(is_constant(d) for c in chains if len(d := c.values()[~np.isnan(c.values())])),
        "hitting": [_survival(n, chains, threshold) for threshold in thresholds],
        "diagnostics": {"of": "second half", "resampled": resampled, **found},
    }


def _survival(n: int | None, chains: Sequence[Series], threshold: float) -> Summary:
    group = _times(n or 0, chains, threshold)
    curve = kaplan_meier(group.times, group.censored)
    middle = median_interval(group.times, group.censored, group.texts)
    horizon = float(min(chain.steps[-1] for chain in chains))
    unit = n_log_n(n) if n else None
    fit = fit_c([group])
    return {
        "threshold": threshold, "hits": int((~group.censored).sum()), "censored": int(group.censored.sum()),
        "median": middle.value, "median_low": middle.low, "median_high": middle.high,
        "median_n_log_n": middle.value / unit if middle.value is not None and unit else None,
        "restricted_mean": curve.restricted_mean(horizon),
        "horizon": horizon, "resolution": max(int(np.diff(chain.times()).max(initial=0)) for chain in chains),
        **_fitted(fit),
    }


def of_temperature(tau: float | None, chains: Sequence[Series], thresholds: Sequence[float]) -> Summary:
    """C(tau) of T = C n ln n over all lengths at one temperature."""
    fits = []
    for threshold in thresholds:
        groups = [_times(n, members, threshold) for (n,), members in _grouped(chains, lambda chain: (chain.n or 0,))]
        fits.append({"threshold": threshold, **_fitted(fit_c([group for group in groups if group.n > 0]))})
    return {"type": "summary", "of": "state", "over": "tau", "tau": tau, "chains": len(chains),
            "lengths": sorted({chain.n for chain in chains if chain.n is not None}), "hitting": fits}


def _fitted(fit: Interval) -> Summary:
    return {"c": fit.value, "c_low": fit.low, "c_high": fit.high, "c_reason": fit.reason}


def _times(n: int, chains: Sequence[Series], threshold: float) -> Times:
    hits = [hitting_time(chain.times(), chain.values(), threshold) for chain in chains]
    times = [chain.steps[-1] if hit is None else hit for chain, hit in zip(chains, hits, strict=True)]
    texts = [f"{chain.run}/{chain.text}" for chain in chains]
    return Times(n, np.array(times, dtype=np.float64), np.array([hit is None for hit in hits]), texts)


def second_halves(chains: Sequence[Series], n: int | None) -> tuple[NDArray[np.float64] | None, bool, str | None]:
    """The second half of each chain's series as one (M, N) array; whether it was resampled; why there is none.

    Chains whose records stand at the same steps are stacked as they are. Others, as --on-change gives them, are read
    once a sweep, or MOST times, up to where the shortest ends: between two records a drift stays what it was.
    """
    first = chains[0].times()
    if all(np.array_equal(chain.times(), first) for chain in chains):
        rows, resampled = np.array([chain.values() for chain in chains]), False
    else:
        begin = max(int(chain.steps[0]) for chain in chains)
        end = min(int(chain.steps[-1]) for chain in chains)
        grid = np.arange(begin, end + 1, max(n or 1, (end - begin) // MOST))
        if not len(grid):
            return None, False, "the chains have no steps in common"
        rows, resampled = np.array([chain.values()[np.searchsorted(chain.times(), grid, side="right") - 1]
                                    for chain in chains]), True
    rows = rows[:, rows.shape[1] // 2 :]
    if np.isnan(rows).any():
        return None, resampled, "undefined drifts"
    return rows, resampled, None
