"""A picture as a figure of plotly, with what the script of a page needs beside it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.page.chain_traces import chains, stops
from mlmglauber.pictures.page.layout import FONT, GRID, PanelPlace, bar, framed, numbered, places
from mlmglauber.pictures.page.scales import ColorScale
from mlmglauber.pictures.page.stripe_traces import CELLS, stripe_traces
from mlmglauber.pictures.page.traces import MARKS, DrawnTraces, FittedText, Trace, curve, ground, heat, points
from mlmglauber.pictures.panel import Curve, Ground, Heat, Panel, Picture, Points
from mlmglauber.pictures.stripes import Stripes
from mlmglauber.pictures.trajectories import Trajectories

MARGIN = 0.04
"""Free space around the states of a plane, as a share of its width."""


class PageFigure(NamedTuple):
    """A figure of plotly as `data` and `layout`.

    stops: the steps at which the slider stops, none where there is no slider. fitted: by the number of a trace, the
    texts that are written where they have room. notes: sentences about what the page leaves out.
    """

    data: Sequence[Trace]
    layout: dict[str, Any]
    stops: Sequence[float | None]
    fitted: dict[int, list[FittedText]]
    notes: list[str]


def page_figure(picture: Picture) -> PageFigure:
    """The figure of a picture of a kind that has a page."""
    found, height = places(picture.panels)
    layout: dict[str, Any] = {
        "height": height, "margin": {"l": 70, "r": 34, "t": 0, "b": 0}, "font": FONT, "hovermode": "closest",
        "plot_bgcolor": "white", "paper_bgcolor": "white", "dragmode": "zoom", "annotations": [], "shapes": [],
        "hoverlabel": {"align": "left", "bgcolor": "white", "bordercolor": "#555555", "font": FONT, "namelength": -1}}
    made = PageFigure([], layout, [], {}, [])
    data: list[Trace] = []
    scales: dict[ColorScale, str] = {}
    faint = sum(len(layer.x) for panel in picture.panels for layer in panel.layers
                if isinstance(layer, Points) and layer.faint)
    if faint > MARKS:
        made.notes.append(f"1 in {-(-faint // MARKS)} of the {faint:,} single values is drawn on the page")
    striped = sum(isinstance(layer, Stripes) for panel in picture.panels for layer in panel.layers)
    for panel, place in zip(picture.panels, found, strict=True):
        parts = framed(panel, place)
        layout["annotations"] += parts.pop("annotations", [])
        layout |= parts
        for layer in panel.layers:
            drawn = _drawn(layer, panel, place, min(1.0, MARKS / max(faint, 1)), CELLS // max(striped, 1))
            if drawn.scale is not None:
                name = scales.setdefault(drawn.scale, numbered("coloraxis", place.number))
                layout[name] = drawn.scale.axis(**bar(panel, place, height))
                _colored(drawn.traces, name)
            data += drawn.traces
            layout["shapes"] += drawn.shapes
            if drawn.fitted:
                made.fitted[len(data) - 1] = list(drawn.fitted)
            made.notes.extend(drawn.notes)
            if isinstance(layer, Trajectories):
                made = made._replace(stops=stops(layer))
                layout |= _ends(layer, place, parts)
    return made._replace(data=data)


def _drawn(layer: Any, panel: Panel, place: PanelPlace, share: float, cells: int) -> DrawnTraces:
    """The traces of a layer; share: of faint marks that are drawn; cells: the room for those of stripes."""
    match layer:
        case Curve():
            return curve(layer, place)
        case Points():
            return points(layer, place, share)
        case Heat():
            return heat(layer, panel, place)
        case Ground():
            return ground(layer, place)
        case Trajectories():
            return chains(layer, place)
        case Stripes():
            return stripe_traces(layer, panel.title, place, cells)
    raise TypeError(type(layer))


def _colored(traces: Sequence[Trace], name: str) -> None:
    """Give the traces that refer to a colour axis its name."""
    for trace in traces:
        for part in (trace, trace.get("marker", {})):
            if "coloraxis" in part:
                part["coloraxis"] = name


def _ends(layer: Trajectories, place: PanelPlace, parts: dict[str, Any]) -> dict[str, Any]:
    """The axes of a plane with fixed ends, so that a plane does not move while the chains do."""
    found = {}
    sides = [np.concatenate([getattr(chain, side) for chain in layer.chains]) for side in ("x", "y")]
    widest = max(float(np.ptp(side)) for side in sides) or 1.0
    for axis, side in zip(place.axes.values(), sides, strict=True):
        name = f"{axis[0]}axis{axis[1:]}"
        ends = [float(side.min()) - MARGIN * widest, float(side.max()) + MARGIN * widest]
        found[name] = parts[name] | {"range": ends, "zeroline": True, "zerolinecolor": GRID}
    return found
