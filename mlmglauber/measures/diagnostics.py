"""How much a set of chains tells: effective sample sizes, R-hat, autocorrelation time. arviz-stats does the statistics.

A frozen chain has no effective sample size, and chains that are each stuck at another value have not converged:
where a number would mislead it is None, and `reason` says why.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MIN_DRAWS = 4
"""Fewer draws a chain estimate nothing."""
LONG_ENOUGH = 50
"""An autocorrelation time is reliable from so many times its own length on (Sokal 1997; the default of emcee)."""


class Diagnostics(NamedTuple):
    """Of M chains of N draws of one number.

    ess_bulk, ess_tail: effective sample sizes (Vehtari et al. 2021), in draws. rhat_rank: rank-normalised split R-hat,
    the larger of bulk and folded; rhat_split: plain split R-hat. mcse_mean: Monte Carlo standard error of the mean.
    iat: integrated autocorrelation time, M N / ESS of the mean, in draws; iat_reliable: N >= 50 iat. frozen: all draws
    of every chain are equal; frozen_chains: how many chains are.
    """

    chains: int
    draws: int
    ess_bulk: float | None = None
    ess_tail: float | None = None
    rhat_rank: float | None = None
    rhat_split: float | None = None
    mcse_mean: float | None = None
    iat: float | None = None
    iat_reliable: bool = False
    frozen: bool = False
    frozen_chains: int = 0
    converged: bool | None = None
    reason: str | None = None


def is_constant(series: NDArray[np.float64]) -> bool:
    """Whether max - min <= 1e-12 max|x|: a variance is no test, that of 1000 equal float32 numbers is not 0."""
    return bool(np.ptp(series) <= 1e-12 * np.abs(series).max())


def diagnose(series: NDArray[np.float64]) -> Diagnostics:
    """Diagnostics of an (M, N) array: M independent chains, N draws each.

    >>> diagnose(np.full((2, 100), 0.5)).reason
    'constant_chain'
    """
    series = np.asarray(series, dtype=np.float64)
    chains, draws = series.shape
    none = Diagnostics(chains, draws)
    if draws == 0 or chains == 0:
        return none._replace(reason="too_few_draws")
    if not np.isfinite(series).all():
        return none._replace(reason="not_finite")
    stuck = sum(is_constant(chain) for chain in series)
    none = none._replace(frozen=stuck == chains, frozen_chains=stuck)
    if stuck == chains:
        if is_constant(series):
            return none._replace(reason="constant_chain")
        return none._replace(reason="stuck_at_different_values", converged=False)
    if draws < MIN_DRAWS:
        return none._replace(reason="too_few_draws")
    rhats = {"rhat_rank": max(_arviz("rhat", series, "rank"), _arviz("rhat", series, "folded")),
             "rhat_split": _arviz("rhat", series, "split")}
    found = none._replace(**{name: _finite(value) for name, value in rhats.items()})
    found = found._replace(converged=None if found.rhat_rank is None else found.rhat_rank < 1.01)
    if stuck:  # a frozen chain has no effective sample size, so neither have they together
        return found._replace(reason="constant_chain", converged=False)
    ess_mean = _finite(_arviz("ess", series, "mean"))
    iat = chains * draws / ess_mean if ess_mean else None
    return found._replace(
        ess_bulk=_finite(_arviz("ess", series, "bulk")),
        ess_tail=_finite(_arviz("ess", series, "tail", prob=(0.05, 0.95))),
        mcse_mean=_finite(_arviz("mcse", series, "mean")),
        iat=iat,
        iat_reliable=iat is not None and draws >= LONG_ENOUGH * iat,
        reason=None if iat is not None else "not_estimable",
    )


def _arviz(name: str, series: NDArray[np.float64], method: str, **more: Any) -> float:
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    return float(getattr(array_stats, name)(series, chain_axis=0, draw_axis=1, method=method, **more))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) and value > 0 else None
