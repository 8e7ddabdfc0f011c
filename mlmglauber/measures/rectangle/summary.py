"""|delta| over many rectangles: its quantiles, its mean with an interval over texts, and its share above rounding."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.statistics.intervals import Interval, cluster_mean

QUANTILES = (0.05, 0.25, 0.75, 0.95)
NOISE_FACTOR = 3.0
NOISE_QUANTILE = 0.95
"""The floor of a |delta| is NOISE_FACTOR times the NOISE_QUANTILE of the noise of all rectangles of its group. On
models that have a joint law (a GPT-2 in float32 and bfloat16, 320 rectangles each) the largest |delta| was 0.95 and
1.14 times the quantile."""
MAX_NOISE = 50.0
"""Maximum noise, in multiples of the rounding of the number format, that rounding can explain; measured on these models
it was 0.05 to 0.9."""

Values = NDArray[np.float64]


class Deltas(NamedTuple):
    """R rectangles: |delta|, noise and rounding in nats (NaN where not measured), distances |i - j|, texts."""

    sizes: Values
    noise: Values
    rounding: Values
    distances: NDArray[np.int64]
    texts: Sequence[Hashable]

    def at(self, chosen: NDArray[np.bool_]) -> "Deltas":
        """The rectangles for which (R,) `chosen` is true."""
        return Deltas(self.sizes[chosen], self.noise[chosen], self.rounding[chosen], self.distances[chosen],
                      [text for text, kept in zip(self.texts, chosen, strict=True) if kept])


class NoiseFloor(NamedTuple):
    """How much of |delta| rounding explains, in nats.

    measured, quantile: number of measured noises and their NOISE_QUANTILE. rounding: median rounding of the number
    format. floor: median floor of the rectangles. above: share of |delta| above their floors; None where rounding does
    not explain the noise, or neither is measured. reason: why a value is None, or what the floor lacks.
    """

    measured: int
    quantile: float | None
    rounding: float | None
    floor: float | None
    above: float | None
    reason: str | None


class DeltaSummary(NamedTuple):
    """Statistics of |delta| in nats over rectangles of `texts` texts; quantiles: (q, value) for QUANTILES.

    mean: with its 95 % interval over texts, since the rectangles of a text depend on each other. rms: root mean square.
    """

    rectangles: int
    texts: int
    mean: Interval
    median: float
    rms: float
    max: float
    quantiles: Sequence[tuple[float, float]]
    noise: NoiseFloor


def summarise(deltas: Deltas) -> DeltaSummary:
    """Statistics of one rectangle or more."""
    sizes = deltas.sizes
    return DeltaSummary(
        len(sizes), len(set(deltas.texts)), cluster_mean(sizes, deltas.texts), float(np.median(sizes)),
        float(np.sqrt((sizes**2).mean())), float(sizes.max()), [(q, float(np.quantile(sizes, q))) for q in QUANTILES],
        noise_floor(deltas))


def noise_floor(deltas: Deltas) -> NoiseFloor:
    """The floor of a rectangle is the larger one of its own rounding and NOISE_FACTOR times the quantile of the noise.

    There is no share above the floors where the noise is over MAX_NOISE times the rounding of the number format.
    """
    noise, rounding = deltas.noise[~np.isnan(deltas.noise)], deltas.rounding[~np.isnan(deltas.rounding)]
    median_rounding = float(np.median(rounding)) if len(rounding) else None
    if not len(noise) and median_rounding is None:
        return NoiseFloor(0, None, None, None, None, "not measured")
    quantile = float(np.quantile(noise, NOISE_QUANTILE)) if len(noise) else None
    floor = np.fmax(0.0 if quantile is None else NOISE_FACTOR * quantile, deltas.rounding)
    median = float(np.median(floor))
    if quantile is not None and median_rounding is not None and quantile > MAX_NOISE * median_rounding:
        return NoiseFloor(len(noise), quantile, median_rounding, median, None,
                          f"the noise is over {MAX_NOISE:g} times the rounding of the number format: the model does "
                          "not give the same numbers twice")
    return NoiseFloor(len(noise), quantile, median_rounding, median, float((deltas.sizes > floor).mean()),
                      None if len(noise) else "not measured; the floor is rounding alone")
