"""What many rectangles say together: the law of |delta|, its interval over texts, and its share above rounding."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import cluster_mean

QUANTILES = (0.05, 0.25, 0.75, 0.95)
NOISE_FACTOR = 3.0
NOISE_QUANTILE = 0.95
"""The floor of a |delta| is NOISE_FACTOR times that quantile of the noise of all rectangles of its group. On models
that have a joint law (a GPT-2 in float32 and bfloat16, 320 rectangles each) the largest |delta| was 0.95 and 1.14 times
the quantile."""
EXCESS = 50.0
"""Noise above so many times the rounding of the number format is not rounding: it was 0.05 to 0.9 times."""

Values = NDArray[np.float64]


class Deltas(NamedTuple):
    """R rectangles: |delta|, noise and rounding in nats (not-a-number where not measured), distances |i - j|, texts."""

    sizes: Values
    noise: Values
    rounding: Values
    distances: NDArray[np.int64]
    texts: Sequence[Hashable]

    def at(self, chosen: NDArray[np.bool_]) -> "Deltas":
        """Some of the rectangles."""
        return Deltas(self.sizes[chosen], self.noise[chosen], self.rounding[chosen], self.distances[chosen],
                      [text for text, kept in zip(self.texts, chosen, strict=True) if kept])


def summarise(deltas: Deltas) -> dict[str, Any]:
    """Mean, median, root mean square and quantiles of |delta|, and what stands above the noise floor.

    mean_low, mean_high: the 95 % interval over texts, whose rectangles depend on each other; else None, and mean_reason
    says why. The other fields are those of `floors`.
    """
    sizes = deltas.sizes
    mean = cluster_mean(sizes, deltas.texts)
    return {
        "count": len(sizes), "texts": len(set(deltas.texts)),
        "mean": float(sizes.mean()), "mean_low": mean.low, "mean_high": mean.high,
        **({"mean_reason": mean.reason} if mean.reason else {}), "median": float(np.median(sizes)),
        "rms": float(np.sqrt((sizes**2).mean())), "max": float(sizes.max()),
        "quantiles": {f"{q:g}": float(np.quantile(sizes, q)) for q in QUANTILES}, **floors(deltas),
    }


def floors(deltas: Deltas) -> dict[str, Any]:
    """What rounding explains of |delta|.

    Each rectangle has a floor: NOISE_FACTOR times the NOISE_QUANTILE of all measured noise, or its own rounding where
    that is larger. noise_floor: the median floor. above_noise: the share of |delta| above theirs; None with
    noise_reason where the noise is over EXCESS times what the number format rounds, or neither is known.
    """
    noise, rounding = deltas.noise[~np.isnan(deltas.noise)], deltas.rounding[~np.isnan(deltas.rounding)]
    told: dict[str, Any] = {"noise_count": len(noise), "noise_quantile": None, "noise_factor": NOISE_FACTOR,
                            "rounding": float(np.median(rounding)) if len(rounding) else None}
    if not len(noise) and not len(rounding):
        return {**told, "noise_floor": None, "above_noise": None, "noise_reason": "not measured"}
    common, reason = 0.0, {} if len(noise) else {"noise_reason": "not measured; the floor is rounding alone"}
    if len(noise):
        told["noise_quantile"] = float(np.quantile(noise, NOISE_QUANTILE))
        common = NOISE_FACTOR * told["noise_quantile"]
    floor = np.fmax(common, deltas.rounding)
    told["noise_floor"] = float(np.median(floor))
    if len(noise) and len(rounding) and told["noise_quantile"] > EXCESS * told["rounding"]:
        return {**told, "above_noise": None,
                "noise_reason": f"the noise is over {EXCESS:g} times the rounding of the number format: the model does "
                                "not give the same numbers twice"}
    return {**told, "above_noise": float((deltas.sizes > floor).mean()), **reason}
