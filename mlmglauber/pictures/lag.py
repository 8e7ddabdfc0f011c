"""L-lag bounds: upper bounds of the distance from stationarity over time."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.palette import ordered
from mlmglauber.pictures.panel import PANELS, SERIES, Axis, Curve, Panel, Picture, Rule, Values, chosen
from mlmglauber.pictures.reading import number, perhaps

LIMIT = 5_000
NORMAL = 1.959964
"""The 97.5 % quantile of the normal distribution."""
TOP = 2.0
"""Maximum upper end of the axis; bounds of a total variation above 1 are trivial."""
EPS = 0.25
"""The total variation that counts as mixed, drawn as a line."""


class Bound(NamedTuple):
    """The bound tv (T,) at steps (T,) with its standard errors (T,); None where a pair did not meet."""

    tau: float
    steps: Values | None
    tv: Values | None
    error: Values | None


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """The bound of a group of lagged pairs."""
    if record["over"] != "group":
        return
    kind = f"n = {int(number(record, 'n'))}, lag {record['lag']}, start {record['start']}"
    tau, bounds = number(record, "tau"), record["bound"]
    if bounds is None:
        yield kind, Bound(tau, None, None, None)
        return
    errors = [perhaps(part, "tv_error") for part in bounds]
    yield kind, Bound(tau, np.array([number(part, "t") for part in bounds]),
                      np.array([number(part, "tv") for part in bounds]),
                      np.array([np.nan if error is None else error for error in errors]))


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """A panel for each length, lag and start, a curve for each temperature."""
    del threshold
    notes: list[str] = []
    panels = [_panel(str(kind), kept[kind], notes) for kind in chosen(list(kept), PANELS, "groups", notes)]
    return Picture([panel for panel in panels if len(panel.layers) > 2], notes)


def _panel(kind: str, found: Sequence[Bound], notes: list[str]) -> Panel:
    known = chosen(sorted((b for b in found if b.tv is not None), key=lambda b: b.tau), SERIES, "temperatures", notes)
    for bound in found:
        if bound.tv is None:
            notes.append(f"{kind}, tau {bound.tau:g}: no bound, since a pair did not meet")
    layers: list[Any] = []
    ends = [float(bound.steps[-1]) for bound in known]
    log = bool(ends) and max(ends) > 20 * max(min(ends), 1.0)
    for bound, look in zip(known, ordered(len(known)) if known else [], strict=True):
        seen = bound.steps > 0 if log else bound.steps >= 0
        t, tv, half = bound.steps[seen], bound.tv[seen], NORMAL * bound.error[seen]
        band = (np.maximum(tv - half, 0), tv + half) if np.isfinite(half).all() else (None, None)
        layers.append(Curve(t, tv, f"τ = {bound.tau:g}", look.color, *band))
    layers += [Rule(EPS, f"ε = {EPS:g}", dash="-."), Rule(1.0, "1: a bound above says nothing")]
    top = max([1.1, *(float(bound.tv.max()) for bound in known)])
    return Panel(f"{kind}: mean ± 1.96 s.e.", Axis("step t (updates of one site)", log, low=None if log else 0),
                 Axis("bound on total variation", low=0, high=min(top * 1.03, TOP)), layers)
