"""What many rectangles say together: the law of |delta|, its interval over texts, and its share above rounding."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.intervals import interval, places_of

QUANTILES = (0.05, 0.25, 0.75, 0.95)


class Deltas(NamedTuple):
    """R rectangles: |delta| and noise in nats (not-a-number where noise was not measured), distances |i - j|, texts."""

    sizes: NDArray[np.float64]
    noise: NDArray[np.float64]
    distances: NDArray[np.int64]
    texts: Sequence[Hashable]

    def at(self, chosen: NDArray[np.bool_]) -> "Deltas":
        """Some of the rectangles."""
        return Deltas(self.sizes[chosen], self.noise[chosen], self.distances[chosen],
                      [text for text, kept in zip(self.texts, chosen, strict=True) if kept])


def summarise(deltas: Deltas) -> dict[str, Any]:
    """Mean, median, root mean square and quantiles of |delta|, and what stands above the noise floor.

    mean_low, mean_high: the 95 % interval over texts, whose rectangles depend on each other; None with a reason.
    noise_floor: the largest noise of these rectangles; above_noise: the share of |delta| above it.
    """
    sizes = deltas.sizes
    places, texts = places_of(deltas.texts)
    sums, counts = np.bincount(places, weights=sizes), np.bincount(places).astype(np.float64)
    found = interval(lambda drawn: drawn @ sums / (drawn @ counts), texts)
    measured = ~np.isnan(deltas.noise)
    floor = float(deltas.noise[measured].max()) if measured.any() else None
    return {
        "count": len(sizes), "texts": texts, "mean": float(sizes.mean()), "mean_low": found.low,
        "mean_high": found.high, **({"mean_reason": found.reason} if found.reason else {}),
        "median": float(np.median(sizes)), "rms": float(np.sqrt((sizes**2).mean())),
        "max": float(sizes.max()),
        "quantiles": {f"{q:g}": float(np.quantile(sizes, q)) for q in QUANTILES},
        "noise_floor": floor, "above_noise": float((sizes > floor).mean()) if floor is not None else None,
        **({} if floor is not None else {"noise_reason": "not measured"}),
    }
