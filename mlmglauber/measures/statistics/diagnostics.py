"""Convergence diagnostics of chains: effective sample sizes, R-hat, autocorrelations, computed by arviz-stats.

A frozen chain has no effective sample size, and chains that are stuck at different values have not converged: where a
number would mislead it is None, and `reason` says why.
"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MIN_DRAWS = 4
"""Minimum number of draws per chain for R-hat."""
ENOUGH_DRAWS = 10
"""Minimum number of draws per chain for effective sample sizes: with fewer, the estimator returns its own maximum."""
LONG_ENOUGH = 50
"""Minimum length of a chain, in autocorrelation times, for a reliable one (Sokal 1997; the default of emcee)."""
TAILS = (0.05, 0.95)
"""The quantiles whose effective sample size is ess_tail."""


class Diagnostics(NamedTuple):
    """Diagnostics of M chains of N draws of one number.

    ess_bulk, ess_tail: effective sample sizes (Vehtari et al. 2021), in draws. rhat_rank: rank-normalised split R-hat,
    the larger of bulk and folded; rhat_split: plain split R-hat; rhat_basic: R-hat of whole chains, which misses a
    drift that all chains share. rhat_nested: rank-normalised split R-hat of superchains, the chains of one text
    (Margossian et al. 2024), suited to many short chains; nested_reason says why it is None. mcse_mean: Monte Carlo
    standard error of the mean. iat: integrated autocorrelation time, M N / ESS of the mean, in draws; iat_reliable:
    N >= 50 iat. acf: autocorrelations at lags of 1, 2, 4, 8, ... draws, up to N / 2. frozen: whether each chain is
    constant; frozen_chains: number of constant chains. converged: rhat_rank < 1.01.

    reason, the first that holds: "not_finite"; "constant_chain"; "stuck_at_different_values": chains or halves of
    chains are constant at different values, so that R-hat is infinite; "one_chain": only rhat_split is defined;
    "too_few_draws": under 4 there is no R-hat, under 10 no effective sample size, iat or mcse_mean; "capped": an
    effective sample size is at its estimator's maximum, S log10(S) for S draws, and measures nothing; "constant_tail":
    over 5 % of the draws are at the largest value, so there is no ess_tail.
    """

    chains: int
    draws: int
    ess_bulk: float | None = None
    ess_tail: float | None = None
    rhat_rank: float | None = None
    rhat_split: float | None = None
    rhat_basic: float | None = None
    rhat_nested: float | None = None
    nested_reason: str | None = "no texts"
    mcse_mean: float | None = None
    iat: float | None = None
    iat_reliable: bool = False
    acf: Sequence[dict[str, float]] | None = None
    frozen: bool = False
    frozen_chains: int = 0
    converged: bool | None = None
    reason: str | None = None


def is_constant(series: NDArray[np.float64]) -> bool:
    """Whether max - min <= 1e-12 max|x|. A variance is not used: that of 1000 equal float32 numbers is not 0."""
    return bool(np.ptp(series) <= 1e-12 * np.abs(series).max())


def diagnose(series: NDArray[np.float64], texts: Sequence[Hashable] | None = None) -> Diagnostics:
    """Diagnostics of an (M, N) array: M independent chains, N draws each.

    texts: (M,) the text that each chain starts from. The chains of a text form a superchain of rhat_nested, which needs
    equal numbers of chains, two or more: where texts have different numbers, the first chains of each text count.

    >>> import numpy as np
    >>> import mlmglauber as mg
    >>> mg.diagnose(np.full((2, 100), 0.5)).reason
    'constant_chain'
    """
    series = np.asarray(series, dtype=np.float64)
    chains, draws = series.shape
    none = Diagnostics(chains, draws)
    if not np.isfinite(series).all():
        return _without(none, "not_finite", texts)
    if draws < MIN_DRAWS or chains == 0:  # before `frozen`: one draw is equal to itself
        return _without(none, "too_few_draws", texts)
    stuck = sum(is_constant(chain) for chain in series)
    none = none._replace(frozen=stuck == chains, frozen_chains=stuck)
    if stuck == chains:
        if is_constant(series):
            return _without(none, "constant_chain", texts)
        return _without(none, "stuck_at_different_values", texts)._replace(converged=False)
    spread = float(np.ptp(series))
    # arviz-stats takes any range below 1e-15 for constant, and a constant series for M N independent draws.
    series = (series - series.min()) / spread
    result = none._replace(**_rhats(series), **_nested(series, texts), acf=autocorrelations(series))
    if stuck:  # with a frozen chain, the chains together have no effective sample size either
        return result._replace(reason="constant_chain", converged=False)
    if draws < ENOUGH_DRAWS:
        return result._replace(reason=result.reason or "too_few_draws")
    sizes = {method: _arviz("ess", series, method) for method in ("mean", "bulk")}
    counted = chains * 2 * (draws // 2)  # halves of chains, without the middle draw of an odd number
    tail = np.nan if _constant_tail(series) else _arviz("ess", series, "tail", prob=TAILS)
    if not (constant_tail := np.isnan(tail) or tail == counted):  # the size of all draws is that of a constant
        sizes["tail"] = tail
    known = {method: _finite(size) for method, size in sizes.items() if size < counted * np.log10(counted) * (1 - 1e-9)}
    capped = any(np.isfinite(size) and method not in known for method, size in sizes.items())
    ess_mean = known.get("mean")
    iat = chains * draws / ess_mean if ess_mean else None
    return result._replace(
        ess_bulk=known.get("bulk"),
        ess_tail=known.get("tail"),
        mcse_mean=None if ess_mean is None else float(series.std(ddof=1) / np.sqrt(ess_mean)) * spread,
        iat=iat,
        iat_reliable=iat is not None and draws >= LONG_ENOUGH * iat,
        reason=("capped" if capped else "not_estimable" if iat is None else
                result.reason or ("constant_tail" if constant_tail else None)),
    )


def _without(result: Diagnostics, reason: str, texts: Sequence[Hashable] | None) -> Diagnostics:
    """Diagnostics that cannot be computed; where texts are known, nested R-hat is missing for the same reason."""
    return result._replace(reason=reason, nested_reason="no texts" if texts is None else reason)


def autocorrelations(series: NDArray[np.float64]) -> list[dict[str, float]]:
    """The autocorrelation of an (M, N) array at lags k = 1, 2, 4, 8, ... up to N / 2 draws.

    rho_k = mean of (x_t - m) (x_(t+k) - m) over all chains and t, over the same mean at k = 0; m is the mean of all
    draws of all chains, so that chains which stay in different places keep a high autocorrelation at every lag.

    >>> autocorrelations(np.array([[0.0, 1.0] * 4]))
    [{'lag': 1, 'acf': -1.0}, {'lag': 2, 'acf': 1.0}, {'lag': 4, 'acf': 1.0}]
    """
    centred = series - series.mean()
    square = float((centred**2).mean())
    lags = [1 << k for k in range(series.shape[1].bit_length()) if 2 << k <= series.shape[1]]
    return [{"lag": lag, "acf": float((centred[:, :-lag] * centred[:, lag:]).mean()) / square} for lag in lags]


def _nested(series: NDArray[np.float64], texts: Sequence[Hashable] | None) -> dict[str, Any]:
    """rhat_nested of a series that is not constant, or the reason why it is None."""
    if texts is None:
        return {}
    of_text: dict[Hashable, list[int]] = {}
    for chain, text in enumerate(texts):
        of_text.setdefault(text, []).append(chain)
    each = min(map(len, of_text.values()))
    if len(of_text) < 2 or each < 2:
        return {"nested_reason": "nested R-hat needs two texts with two chains each"}
    chosen = [chain for chains in of_text.values() for chain in chains[:each]]
    superchains = np.repeat(np.arange(len(of_text)), each)
    value = _arviz("rhat_nested", series[chosen], "rank", superchain_ids=superchains)
    if np.isfinite(value):
        return {"rhat_nested": value, "nested_reason": None}
    return {"nested_reason": "the chains of each text stay at one value"}


def _rhats(series: NDArray[np.float64]) -> dict[str, Any]:
    """The R-hat fields of a series that is not constant, `converged`, and the reason why an R-hat is None."""
    chains, draws = series.shape
    if chains == 1:
        # arviz-stats 0.8 refuses one chain. Its plain R-hat of the two halves is what its split R-hat would be.
        half = draws // 2
        split = _arviz("rhat", np.vstack([series[:, :half], series[:, -half:]]), "identity")
        if np.isinf(split):
            return {"converged": False, "reason": "stuck_at_different_values"}
        return {"rhat_split": _finite(split), "reason": "one_chain"}
    # "rank" is the larger of bulk and folded already. Folded alone is undefined for two equally frequent values.
    rank, split = _arviz("rhat", series, "rank"), _arviz("rhat", series, "split")
    if np.isinf(rank) or np.isinf(split):
        return {"converged": False, "reason": "stuck_at_different_values"}
    return {"rhat_rank": _finite(rank), "rhat_split": _finite(split),
            "rhat_basic": _finite(_arviz("rhat", series, "identity")),
            "converged": rank < 1.01 if np.isfinite(rank) else None}


def _constant_tail(series: NDArray[np.float64]) -> bool:
    """Whether all draws are at or below the upper quantile; arviz-stats would count them as independent."""
    return bool(np.quantile(series, TAILS[1]) >= series.max())


def _arviz(name: str, series: NDArray[np.float64], method: str, **more: Any) -> float:
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    with np.errstate(divide="ignore", invalid="ignore"):  # R-hat of stuck chains is infinite, which is handled
        return float(getattr(array_stats, name)(series, chain_axis=0, draw_axis=1, method=method, **more))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) and value > 0 else None
