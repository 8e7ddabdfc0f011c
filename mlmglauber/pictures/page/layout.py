"""Where the panels of a page stand: axes, titles, legends and colour bars in a layout of plotly."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.layers import labels
from mlmglauber.pictures.page.escaping import escaped, wrapped
from mlmglauber.pictures.panel import Axis, Heat, Panel
from mlmglauber.pictures.stripes import RIGHT, Stripes
from mlmglauber.pictures.trajectories import Trajectories

FONT = {"family": "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif", "size": 13, "color": "#1a1a1a"}
SMALL = {"size": 12}
TITLE, KEY, FOOT, BAR = 30, 24, 58, 64
"""Heights in pixels: of a panel's title, of a row of its legend, of its horizontal axis, of a colour bar below it."""
LETTER, HANDLE, NARROWEST = 7, 48, 640
"""Widths in pixels: of a letter in a legend, of what stands before a name, and of the narrowest axes."""
HEIGHT, SQUARE = 300, 560
"""Heights in pixels of a panel's axes, and of those of a plane."""
ROW, LOW = 21, 6
"""Heights in pixels of a site with words, and of one of many."""
TALL = 520
"""Maximum height in pixels of the sites of a long text."""
GRID, LINE = "#ececec", "#999999"


def numbered(name: str, number: int) -> str:
    """The name of an axis or a legend of plotly; the first one has no number."""
    return name if number == 1 else f"{name}{number}"


class PanelPlace(NamedTuple):
    """Where a panel stands: its number from 1 on, and the heights of the two ends of its axes.

    Heights are shares of the height of the figure, from below.
    """

    number: int
    bottom: float
    top: float

    @property
    def axes(self) -> dict[str, str]:
        """The names of its axes in a trace."""
        return {"xaxis": numbered("x", self.number), "yaxis": numbered("y", 2 * self.number - 1)}

    @property
    def legend(self) -> str:
        """The name of its legend."""
        return numbered("legend", self.number)


def has_key_above(panel: Panel) -> bool:
    """Whether the legend stands above the axes; it stands beside them otherwise, where it may have many names."""
    return any(isinstance(layer, Stripes | Heat) for layer in panel.layers)


def _rows(panel: Panel) -> int:
    """Number of rows of a legend above the axes, in the narrowest picture."""
    names = [name for layer in panel.layers for name in labels(layer)]
    return max(1, -(-sum(LETTER * len(name) + HANDLE for name in names) // NARROWEST))


def heights(panel: Panel, last: bool) -> tuple[int, int, int]:
    """Heights in pixels above, of, and below the axes of a panel; last: whether no panel stands below it."""
    above = (TITLE if panel.title else 8) + (KEY * _rows(panel) if has_key_above(panel) else 0)
    below, middle = FOOT, SQUARE if panel.square else HEIGHT
    for layer in panel.layers:
        if isinstance(layer, Stripes):
            n, lanes = len(layer.values), max((bracket.lane + 1 for bracket in layer.brackets), default=0)
            middle = max(60, ROW * n if layer.right else min(LOW * n, TALL))
            middle = round(middle * (1 + lanes * layer.lane / n))
            below += BAR * last  # all panels share it
        elif isinstance(layer, Heat):
            middle = max(HEIGHT, 30 * len(layer.y))
        elif isinstance(layer, Trajectories):
            below += BAR
    return above, middle, below


def places(panels: Sequence[Panel]) -> tuple[list[PanelPlace], int]:
    """The places of panels one below the other, and the height of all in pixels."""
    parts = [heights(panel, panel is panels[-1]) for panel in panels]
    whole = sum(map(sum, parts))
    found, at = [], 0
    for number, (above, middle, below) in enumerate(parts, 1):
        found.append(PanelPlace(number, 1 - (at + above + middle) / whole, 1 - (at + above) / whole))
        at += above + middle + below
    return found, whole


def framed(panel: Panel, place: PanelPlace) -> dict[str, Any]:
    """The part of a layout that belongs to a panel."""
    x, y = place.axes.values()
    stripes = next((layer for layer in panel.layers if isinstance(layer, Stripes)), None)
    across = _axis(panel.x) | {"anchor": y, "domain": [0, 1]}
    upward = _axis(panel.y) | {"anchor": x, "domain": [place.bottom, place.top]}
    if panel.square:
        upward |= {"scaleanchor": x, "scaleratio": 1}
    parts: dict[str, Any] = {f"xaxis{x[1:]}": across, f"yaxis{y[1:]}": upward}
    if stripes is not None:
        plain = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "showline": False}
        upward |= plain
        across |= {"showgrid": False, "minallowed": panel.x.low, "maxallowed": panel.x.high}
        if stripes.right:
            names = [escaped(name) for name in stripes.right]
            parts[f"yaxis{2 * place.number}"] = plain | {
                "overlaying": y, "side": "right", "range": upward["range"], "tickvals": list(range(len(names))),
                "ticktext": names, "tickfont": SMALL, "title": {"text": RIGHT, "font": SMALL, "standoff": 8},
                "anchor": x, "automargin": True}
    above = {"x": 0, "xanchor": "left", "y": place.top, "yanchor": "bottom", "orientation": "h"}
    beside = {"x": 1.01, "xanchor": "left", "y": place.top, "yanchor": "top", "orientation": "v"}
    parts[place.legend] = (above if has_key_above(panel) else beside) | {
        "font": SMALL, "bgcolor": "rgba(0,0,0,0)", "tracegroupgap": 2, "itemsizing": "constant"}
    title = f"<b>{wrapped(panel.title)}</b>"
    if panel.title and has_key_above(panel):  # in the legend, so that it is above all of its rows
        parts[place.legend]["title"] = {"text": title, "side": "top", "font": FONT}
    elif panel.title:
        parts["annotations"] = [{
            "text": title, "x": 0, "xref": "paper", "xanchor": "left", "y": place.top, "yref": "paper",
            "yanchor": "bottom", "yshift": 6, "showarrow": False, "align": "left"}]
    return parts


def bar(panel: Panel, place: PanelPlace, height: int) -> dict[str, Any]:
    """The place of the colour bar: beside a matrix, below all else; height: of the figure, in pixels."""
    if any(isinstance(layer, Heat) for layer in panel.layers):
        return {"orientation": "v", "x": 1.01, "xanchor": "left", "y": place.top, "yanchor": "top", "thickness": 14,
                "len": place.top - place.bottom, "lenmode": "fraction"}
    return {"orientation": "h", "x": 0, "xanchor": "left", "y": place.bottom - FOOT / height, "yanchor": "top",
            "thickness": 12, "len": 320, "lenmode": "pixels", "ypad": 0, "xpad": 0}


def _axis(axis: Axis) -> dict[str, Any]:
    """An axis of plotly."""
    made: dict[str, Any] = {
        "title": {"text": escaped(axis.label), "font": SMALL, "standoff": 8}, "type": "log" if axis.log else "linear",
        "gridcolor": GRID, "linecolor": LINE, "showline": True, "ticks": "outside", "ticklen": 4, "tickcolor": LINE,
        "zeroline": False, "tickfont": SMALL, "exponentformat": "none", "separatethousands": True, "automargin": True}
    if axis.log:
        made |= {"tickformat": "~g", "nticks": 6}
    if axis.ticks is not None:
        names = [f"{place:g}" for place in axis.ticks[0]] if axis.spaced else axis.ticks[1]
        made |= {"tickmode": "array", "tickvals": list(axis.ticks[0]), "ticktext": [escaped(name) for name in names]}
    if axis.low is not None and axis.high is not None:
        ends = [float(np.log10(end)) if axis.log else end for end in (axis.low, axis.high)]
        made["range"] = ends[::-1] if axis.downwards else ends
    return made
