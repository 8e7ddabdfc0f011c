"""How residence times grow as the temperature falls: steps on a logarithmic axis over 1 / tau.

A barrier gives a straight line there.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.palette import ordered
from mlmglauber.pictures.panel import PANELS, Axis, Curve, Panel, Picture, Points, chosen, counted
from mlmglauber.pictures.reading import number, perhaps

LIMIT = 1000


class Stays(NamedTuple):
    """Residence times of one length.

    at: (tau, mean steps in a trap, median 1 / escape) of each temperature. intercept, slope: of the fitted line; low,
    high: 95 % interval of the slope. states: number of states with escape probabilities.
    """

    title: str
    at: Sequence[tuple[float, float, float]]
    intercept: float | None
    slope: float | None
    low: float | None
    high: float | None
    states: int


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """One summary over temperatures."""
    n, radius, least = (int(number(record, name)) for name in ("n", "radius", "min_steps"))
    model = record.get("model") or "model not known"
    at = [(number(one, "tau"), _steps(one, "residence"), _steps(one, "expected")) for one in record["at"]]
    if not all(tau > 0 for tau, _, _ in at):
        raise ValueError('"tau" is 0')
    where = "one state" if radius == 0 else f"within {counted(radius, 'change')}"
    intercept, slope, low, high = (perhaps(record, f"residence_{name}")
                                   for name in ("intercept", "slope", "slope_low", "slope_high"))
    yield n, Stays(f"{model}, n = {n}, {where}, at least {counted(least, 'step')}", at, intercept,
                   slope, low, high, int(number(record, "states")))


def _steps(one: Mapping[str, Any], name: str) -> float:
    value = perhaps(one, name)
    if value is not None and value <= 0:
        raise ValueError(f'"{name}" is not a number of steps above 0')
    return np.nan if value is None else value


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """A panel for each law and length."""
    del threshold
    notes: list[str] = []
    found = [stays for key in sorted(kept, key=str) for stays in kept[key]]
    return Picture([_panel(stays) for stays in chosen(found, PANELS, "lengths", notes)], notes)


def _panel(stays: Stays) -> Panel:
    taus, residence, expected = (np.array(part, dtype=np.float64) for part in zip(*sorted(stays.at), strict=True))
    x, (mine, theirs) = 1 / taus, ordered(2)
    layers: list[Any] = [Points(x, residence, "traps: mean steps until left", mine.color)]
    if stays.slope is not None and stays.intercept is not None:
        line = np.linspace(x.min(), x.max(), 50)
        with np.errstate(over="ignore"):
            y = np.exp(stays.intercept + stays.slope * line)
        ends = "" if stays.low is None or stays.high is None else f" [{stays.low:.2f}, {stays.high:.2f}]"
        layers.append(Curve(line, np.where(np.isfinite(y), y, np.nan),
                            f"exp(a + b/τ), b = {stays.slope:.2f}{ends} nats", mine.color, dashed=True))
    if isfinite(np.nanmax(expected, initial=-np.inf)):
        layers.append(Curve(x, expected, f"1 / escape, median of {counted(stays.states, 'state')}", theirs.color))
    return Panel(stays.title, Axis("1/τ (the model's own: 1)"), Axis("time (steps)", log=True), layers)
