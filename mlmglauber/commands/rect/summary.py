"""The statistics of |delta| in the summary records of mlm-rect."""

from mlmglauber.commands.shared.nullable import interval_fields, optional_reason
from mlmglauber.measures.rectangle.summary import NOISE_FACTOR, Deltas, summarise
from mlmglauber.stream.records import Record


def delta_fields(deltas: Deltas) -> Record:
    """Mean, median, root mean square and quantiles of |delta|, and how much of it is above the noise floor."""
    summary = summarise(deltas)
    noise = summary.noise
    return {
        "count": summary.rectangles, "texts": summary.texts, **interval_fields("mean", summary.mean),
        "median": summary.median, "rms": summary.rms, "max": summary.max,
        "quantiles": {f"{q:g}": value for q, value in summary.quantiles},
        "noise_count": noise.measured, "noise_quantile": noise.quantile, "noise_factor": NOISE_FACTOR,
        "rounding": noise.rounding, "noise_floor": noise.floor, "above_noise": noise.above,
        **optional_reason("noise_reason", noise.reason),
    }
