"""Glauber dynamics on masked language models: functions for Python, and Unix filters.

    import mlmglauber as mg

    model = mg.open_model("tiny-en")
    for state in mg.sample(model, "the cat sat on the mat", tau=0.5, steps=200, seed=1):
        print(state.step, state.text)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlmglauber.api.chains import State, Trajectory, open_model, sample, states_to_arrays
    from mlmglauber.api.drifts import DriftSummary, drift, drift_summary, embed
    from mlmglauber.api.estimates import stationary_mean
    from mlmglauber.api.measures import exact, influence, margins, rectangle, rectangles, traps
    from mlmglauber.api.meetings import MeetingTimes, VariationBound, meeting_times, variation_bound
    from mlmglauber.api.records import load, plot, state_records
    from mlmglauber.api.restrictions import truncate
    from mlmglauber.api.scores import score
    from mlmglauber.measures.statistics.diagnostics import diagnose
    from mlmglauber.models.conditionals import TableConditional

__version__ = "0.1.0"

_PLACES = {
    "mlmglauber.api.chains": ("State", "Trajectory", "open_model", "sample", "states_to_arrays"),
    "mlmglauber.api.drifts": ("DriftSummary", "drift", "drift_summary", "embed"),
    "mlmglauber.api.estimates": ("stationary_mean",),
    "mlmglauber.api.measures": ("exact", "influence", "margins", "rectangle", "rectangles", "traps"),
    "mlmglauber.api.meetings": ("MeetingTimes", "VariationBound", "meeting_times", "variation_bound"),
    "mlmglauber.api.records": ("load", "plot", "state_records"),
    "mlmglauber.api.restrictions": ("truncate",),
    "mlmglauber.api.scores": ("score",),
    "mlmglauber.measures.statistics.diagnostics": ("diagnose",),
    "mlmglauber.models.conditionals": ("TableConditional",),
}
"""The module of each public name. It is imported when the name is first used, so that the package imports at once."""

__all__ = [
    "DriftSummary", "MeetingTimes", "State", "TableConditional", "Trajectory", "VariationBound", "diagnose", "drift",
    "drift_summary", "embed", "exact", "influence", "load", "margins", "meeting_times", "open_model", "plot",
    "rectangle", "rectangles", "sample", "score", "state_records", "states_to_arrays", "stationary_mean",
    "traps", "truncate", "variation_bound",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in _PLACES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(module), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
