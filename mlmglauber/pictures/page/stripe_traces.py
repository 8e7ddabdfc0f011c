"""Stripes as traces of plotly: cells that say their token, marks of changes, brackets, words that have room."""

from typing import Any

import numpy as np

from mlmglauber.pictures.page.escaping import escaped, wrapped
from mlmglauber.pictures.page.layout import PanelPlace
from mlmglauber.pictures.page.scales import ColorScale
from mlmglauber.pictures.page.traces import DrawnTraces, FittedText, Trace, numbers, pale
from mlmglauber.pictures.palette import MARKED, STAND
from mlmglauber.pictures.panel import Values, shortened
from mlmglauber.pictures.stripes import MARK, TRAP, Stripes, TrapBracket

CELLS = 120_000
"""Maximum number of cells of all stripes of a page."""
SURE = -0.001
"""Log-probability in nats of a token that is as good as sure."""
LETTERS = 24
"""Maximum number of letters of a word in a stripe."""
HOVER = ("<b>%{customdata[0]}</b><br>%{customdata[1]}<br>stands since step %{customdata[2]}"
         "<br>%{customdata[3]}<extra></extra>")


def stripe_traces(stripes: Stripes, title: str, place: PanelPlace, share: int) -> DrawnTraces:
    """Cells, marks, brackets, words; title: of the panel. share: maximum number of cells that are drawn."""
    columns = stripes.values.shape[1]
    while stripes.values.size > share and stripes.values.shape[1] > 2:
        stripes = _halved(stripes)
    notes = []
    if stripes.values.shape[1] < columns:
        notes.append(f"{title}: {stripes.edges[1] - stripes.edges[0]:,g} steps make one column on the page")
    scale = ColorScale(STAND, *stripes.bounds, stripes.unit, stripes.log)
    cells = _cells(stripes, place)
    values = scale.scaled(np.clip(stripes.values, *stripes.bounds))
    traces = [cells | {"coloraxis": "coloraxis", "z": [[None if np.isnan(value) else round(value, 3) for value in row]
                                                       for row in values.tolist()]}]
    if stripes.missing:
        traces.append(cells | pale(stripes.values, stripes.missing, place))
    traces.append(_entry(place))
    if stripes.brackets:
        traces.append(_brackets(stripes, place))
    if stripes.right:  # an axis without a trace is not drawn
        traces.append({"type": "scatter", "x": [None], "y": [None], "showlegend": False, "hoverinfo": "skip",
                       "xaxis": place.axes["xaxis"], "yaxis": f"y{2 * place.number}"})
    traces.append(place.axes | {"type": "scatter", "mode": "text", "x": [None], "y": [None], "hoverinfo": "skip",
                                "showlegend": False, "textfont": {"size": 11}})
    return DrawnTraces(traces, scale, [*_labels(stripes), *(_words(stripes, scale) if stripes.right else [])], notes,
                        [_marks(stripes, place)] * bool(stripes.changed.any()))


def _halved(stripes: Stripes) -> Stripes:
    """Stripes with every two columns in one; the last token of both stands in it, and no change is lost."""
    standing = stripes.standing
    assert standing is not None
    count = stripes.values.shape[1]
    later = np.minimum(np.arange(1, count + 1, 2), count - 1)
    changed = np.pad(stripes.changed, ((0, 0), (0, count % 2)))
    return stripes._replace(
        edges=np.append(stripes.edges[:-1:2], stripes.edges[-1]), values=stripes.values[:, later],
        changed=changed[:, ::2] | changed[:, 1::2],
        standing=standing._replace(tokens=standing.tokens[:, later], since=standing.since[:, later],
                                   logps=standing.logps[:, later]))


def _cells(stripes: Stripes, place: PanelPlace) -> Trace:
    """The trace of the cells, without their values."""
    standing = stripes.standing
    assert standing is not None
    firsts = stripes.edges[:-1].astype(int).tolist()
    lasts = (stripes.edges[1:].astype(int) - 1).tolist()
    steps = [f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"
             for first, last in zip(firsts, lasts, strict=True)]
    words = [wrapped(word) for word in standing.words]
    rows = zip(standing.tokens.tolist(), standing.logps.tolist(), standing.since.tolist(), strict=True)
    told = [[[words[token], _drawn(logp), f"{since:,}", f"site {site}, {when}"]
             for token, logp, since, when in zip(*row, steps, strict=True)] for site, row in enumerate(rows)]
    return place.axes | {"type": "heatmap", "x": numbers(stripes.edges), "y": list(range(len(told))),
                         "ygap": 1 if stripes.right else 0,
                         "customdata": told, "hovertemplate": HOVER, "hoverongaps": False}


def _drawn(logp: float) -> str:
    """How likely a token was, as words.

    >>> _drawn(-1.25), _drawn(-1e-9), _drawn(float("nan"))
    ('log-probability -1.25 nats', 'log-probability above -0.001 nats', 'the first token, not drawn')
    """
    if np.isnan(logp):
        return "the first token, not drawn"
    return f"log-probability {logp:.3g} nats" if logp <= SURE else f"log-probability above {SURE} nats"


def _marks(stripes: Stripes, place: PanelPlace) -> dict[str, Any]:
    """An upright line at the left edge of each cell with a change: one shape, since a trace would be slow to draw."""
    sites, columns = np.nonzero(stripes.changed)
    path = "".join(f"M{at:g},{site - 0.46:g}V{site + 0.46:g}"
                   for site, at in zip(sites.tolist(), stripes.edges[columns].tolist(), strict=True))
    x, y = place.axes.values()
    return {"type": "path", "path": path, "xref": x, "yref": y, "layer": "above",
            "line": {"color": MARKED, "width": 1.2}, "legendgroup": _group(place), "showlegend": False}


def _entry(place: PanelPlace) -> Trace:
    """The entry of the marks in the legend, which hides them and shows them again."""
    return place.axes | {
        "type": "scatter", "mode": "lines", "x": [None], "y": [None], "name": MARK, "hoverinfo": "skip",
        "line": {"color": MARKED, "width": 2}, "legend": place.legend, "legendgroup": _group(place), "showlegend": True}


def _group(place: PanelPlace) -> str:
    return f"changes {place.number}"


def _brackets(stripes: Stripes, place: PanelPlace) -> Trace:
    x: list[float | None] = []
    y: list[float | None] = []
    hover: list[str] = []
    for bracket in stripes.brackets:
        line, foot = _heights(stripes, bracket)
        middle = (bracket.first + bracket.last) / 2
        x += [bracket.first, bracket.first, middle, bracket.last, bracket.last, None]
        y += [foot, line, line, line, line if bracket.open else foot, None]
        hover += [f"<b>trap of {escaped(bracket.forms[0])}</b><br>steps {bracket.first:,g} to {bracket.last - 1:,g}"
                  + ("<br>it goes on after the last state" if bracket.open else "")] * 5 + [""]
    return place.axes | {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": TRAP, "hoverinfo": "text",
                         "hovertext": hover, "line": {"color": "black", "width": 1.5}, "legend": place.legend,
                         "showlegend": True}


def _heights(stripes: Stripes, bracket: TrapBracket) -> tuple[float, float]:
    """Heights of a bracket's line and of its feet."""
    base = -0.5 - stripes.lane * bracket.lane
    return base - 0.35 * stripes.lane, base - 0.05 * stripes.lane


def _labels(stripes: Stripes) -> list[FittedText]:
    """The labels of the brackets."""
    return [FittedText(bracket.first, bracket.last, _heights(stripes, bracket)[0] - 0.3 * stripes.lane,
                       [escaped(form) for form in bracket.forms], "black") for bracket in stripes.brackets]


def _words(stripes: Stripes, scale: ColorScale) -> list[FittedText]:
    """The words of all stays, in cells that follow each other and have one token."""
    standing = stripes.standing
    assert standing is not None
    words = [escaped(shortened(word, LETTERS)) for word in standing.words]
    dark: Values = scale.is_dark(np.clip(stripes.values, *stripes.bounds))
    found: list[FittedText] = []
    for site, since in enumerate(standing.since):
        starts = np.flatnonzero(np.diff(since, prepend=since[0] - 1))
        for first, last in zip(starts.tolist(), [*starts[1:].tolist(), len(since)], strict=True):
            color: Any = "white" if dark[site, (first + last - 1) // 2] else "black"
            found.append(FittedText(float(stripes.edges[first]), float(stripes.edges[last]), site,
                                    [words[standing.tokens[site, first]]], color))
    return found
