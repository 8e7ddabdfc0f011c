"""The layers of a panel as traces of plotly."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.layers import edges
from mlmglauber.pictures.page.escaping import escaped, wrapped
from mlmglauber.pictures.page.layout import PanelPlace
from mlmglauber.pictures.page.scales import ColorScale
from mlmglauber.pictures.palette import HEAT, PALE, category
from mlmglauber.pictures.panel import Curve, Ground, Heat, Panel, Points, Values, some

SYMBOLS = {"o": "circle", "s": "square", "D": "diamond", "v": "triangle-down", "^": "triangle-up", "P": "cross",
           "X": "x", "*": "star", "x": "x-thin-open", "2": "y-up-open"}
"""The symbols of plotly for the marks of matplotlib."""
MARKS = 5_000
"""Maximum number of faint marks of a figure; a browser takes a second for more."""
DIGITS = 6
"""Number of significant digits of a place."""

Trace = dict[str, Any]


class FittedText(NamedTuple):
    """A text from x = `first` to `last` at height y: the page writes the longest of its forms that has room there."""

    first: float
    last: float
    y: float
    forms: Sequence[str]
    color: str


class DrawnTraces(NamedTuple):
    """The traces of a layer, and shapes above them.

    scale: what its colours mean. fitted: texts of the last trace, which are written where they have room.
    """

    traces: list[Trace]
    scale: ColorScale | None = None
    fitted: Sequence[FittedText] = ()
    notes: Sequence[str] = ()
    shapes: Sequence[dict[str, Any]] = ()


def numbers(values: Values) -> list[float | None]:
    """Values with six significant digits; None for those that are not finite.

    >>> numbers(np.array([1 / 3, 1e7, np.nan]))
    [0.333333, 10000000.0, None]
    """
    return [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in values.tolist()]


def curve(line: Curve, place: PanelPlace) -> DrawnTraces:
    """A line without marks."""
    return DrawnTraces([place.axes | {
        "type": "scatter", "mode": "lines", "x": numbers(line.x), "y": numbers(line.y), "hoverinfo": "skip",
        "line": {"color": line.color, "width": 1.5, "dash": "dash" if line.dashed else "solid",
                 "shape": "hv" if line.stairs else "linear"}} | _named(line, place)])


def points(marks: Points, place: PanelPlace, share: float) -> DrawnTraces:
    """Marks with error bars; share: of faint ones that are drawn."""
    kept: Any = list(range(len(marks.x)))
    if marks.faint:
        kept = some(kept, max(2, int(len(kept) * share)))
    x, y = marks.x[kept], marks.y[kept]
    symbol = SYMBOLS[marks.mark]
    stroked = symbol.endswith("-open")
    face = "white" if marks.hollow and not stroked else marks.color
    trace: Trace = place.axes | {
        "type": "scatter", "mode": "markers", "x": numbers(x), "y": numbers(y),
        "marker": {"symbol": symbol, "size": 6 if marks.faint else 9, "color": face,
                   "line": {"color": marks.color, "width": 1.5 if stroked or marks.hollow else 0},
                   "opacity": 0.5 if marks.faint else 1}} | _named(marks, place)
    trace |= ({"hoverinfo": "text", "hovertext": [wrapped(marks.hover[k]) for k in kept]} if marks.hover
              else {"hoverinfo": "skip"})
    if marks.low is not None or marks.high is not None:
        middle = x if marks.sideways else y
        up, down = (np.nan_to_num(sign * (end[kept] - middle)) if end is not None else np.zeros(len(middle))
                    for sign, end in ((1, marks.high), (-1, marks.low)))
        trace["error_x" if marks.sideways else "error_y"] = {
            "type": "data", "symmetric": False, "array": numbers(up), "arrayminus": numbers(down),
            "color": marks.color, "thickness": 1.2, "width": 4}
    return DrawnTraces([trace])


def _named(layer: Curve | Points, place: PanelPlace) -> Trace:
    """Name and group: layers of a panel with one colour are chosen together in the legend."""
    group = {"legendgroup": f"{place.number}{layer.color}", "legend": place.legend, "showlegend": bool(layer.label)}
    return group | {"name": escaped(layer.label)} if layer.label else group


def heat(matrix: Heat, panel: Panel, place: PanelPlace) -> DrawnTraces:
    """A matrix whose cells say their value, and an entry of the legend for cells without one."""
    seen = matrix.values[np.isfinite(matrix.values)]
    low, high = matrix.bounds or ((float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0))
    scale = ColorScale(HEAT.capitalize(), low, high, matrix.unit, matrix.log)
    across, upward = (axis.label.split(" (")[0] for axis in (panel.x, panel.y))
    hover = [[wrapped(f"{across}: {x:g}\n{upward}: {y:g}\n"
                      + (f"{matrix.unit}: {value:.4g}" if np.isfinite(value) else matrix.missing))
              for x, value in zip(matrix.x.tolist(), row, strict=True)]
             for y, row in zip(matrix.y.tolist(), matrix.values.tolist(), strict=True)]
    cells: Trace = place.axes | {
        "type": "heatmap", "x": numbers(edges(matrix.x, panel.x.log)), "y": numbers(edges(matrix.y, panel.y.log)),
        "hoverinfo": "text", "hovertext": hover, "hoverongaps": False}
    values = {"z": [numbers(row) for row in scale.scaled(matrix.values)], "coloraxis": "coloraxis"}
    traces = [cells | values]
    if matrix.missing:
        traces.append(cells | pale(matrix.values, matrix.missing, place))
    return DrawnTraces(traces, scale)


def pale(values: Values, label: str, place: PanelPlace) -> Trace:
    """The part of a heat map's trace that draws cells of NaN pale, with an entry in the legend."""
    return {"z": [[1 if np.isnan(value) else None for value in row] for row in values.tolist()], "name": escaped(label),
            "colorscale": [[0, PALE], [1, PALE]], "showscale": False, "showlegend": True, "legend": place.legend}


def ground(regions: Ground, place: PanelPlace) -> DrawnTraces:
    """Shaded regions, one trace for each name."""
    traces = []
    for k, name in enumerate(regions.names):
        mine = regions.codes == k
        rows, columns = (np.flatnonzero(mine.any(axis=axis)) for axis in (1, 0))
        if not len(rows):
            continue
        box = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
        color = category(k).color
        cells = [[1 if inside else None for inside in row] for row in mine[box].tolist()]
        traces.append(place.axes | {
            "type": "heatmap", "x": numbers(regions.x[box[1]]), "y": numbers(regions.y[box[0]]), "z": cells,
            "colorscale": [[0, color], [1, color]], "showscale": False, "opacity": 0.22, "hoverinfo": "skip",
            "name": f"basin {escaped(name)}", "legend": place.legend, "showlegend": True})
    return DrawnTraces(traces)
