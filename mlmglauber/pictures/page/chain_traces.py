"""Trajectories as traces of plotly, one for each chain, which a reader chooses in the legend and follows in time."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mlmglauber.pictures.page.escaping import escaped, wrapped
from mlmglauber.pictures.page.layout import PanelPlace
from mlmglauber.pictures.page.scales import ColorScale
from mlmglauber.pictures.page.traces import MARKS, DrawnTraces, Trace, numbers
from mlmglauber.pictures.palette import CATEGORIES, TIME, category
from mlmglauber.pictures.panel import shortened, some
from mlmglauber.pictures.trajectories import PlaneTrajectory, Trajectories
from mlmglauber.pictures.trajectory_layers import CHAINS

NAMED = 40
"""Maximum number of chains with a name of their own in the legend."""
NAME = 40
"""Maximum number of characters of such a name."""
STOPS = 200
"""Maximum number of steps at which the slider stops."""
CHAIN, ENDS = "chain", "ends"
"""Marks for the page's script: the trace of a chain, and of its last and first state."""
LAST = ("diamond", "triangle-up", "pentagon", "star", "hexagram", "cross")
"""Symbols of last states: one for as many chains as there are colours, then the next one."""
OPACITY = 0.5
"""Of the lines of more than a few chains."""


def chains(layer: Trajectories, place: PanelPlace) -> DrawnTraces:
    """Two traces for each chain: its states, coloured by step, and its last and first one."""
    found = [_distinct(chain) for chain in layer.chains]
    count = sum(len(kept) for kept in found)
    notes = []
    if count > MARKS:
        found = [some(kept, max(2, len(kept) * MARKS // count)) for kept in found]
        notes.append(f"plane: {sum(map(len, found)):,} of {count:,} states are drawn on the page, evenly chosen in "
                     "each chain")
    if len(found) > NAMED:
        notes.append(f"plane: the last {len(found) - NAMED + 1} chains are chosen together in the legend of the page")
    steps = np.concatenate([chain.steps for chain in layer.chains])
    scale = ColorScale(TIME.capitalize(), float(steps.min()), float(steps.max()), layer.unit)
    traces = []
    for k, (chain, kept) in enumerate(zip(layer.chains, found, strict=True)):
        traces += _traces(k, chain, kept, place, len(found))
    return DrawnTraces(traces, scale, notes=notes)


def stops(layer: Trajectories) -> list[float | None]:
    """The steps at which the slider stops, in ascending order."""
    return numbers(np.array(some(np.unique(np.concatenate([chain.steps for chain in layer.chains])).tolist(), STOPS)))


def _distinct(chain: PlaneTrajectory) -> list[int]:
    """The states of a chain that differ from the one before, each at its first step, and the last state."""
    x, y = chain.x.tolist(), chain.y.tolist()
    new = [k for k in range(1, len(x))
           if (x[k], y[k], chain.hover[k]) != (x[k - 1], y[k - 1], chain.hover[k - 1])]
    return list(dict.fromkeys([0, *new, len(x) - 1]))


def _traces(k: int, chain: PlaneTrajectory, kept: Sequence[int], place: PanelPlace, count: int) -> list[Trace]:
    color, symbol = category(k).color, LAST[min(k // len(CATEGORIES), len(LAST) - 1)]
    alone = count <= NAMED or k < NAMED - 1
    name = escaped(shortened(chain.name, NAME) if alone else "other chains")
    group: dict[str, Any] = place.axes | {
        "type": "scatter", "legendgroup": f"chain {k if alone else NAMED}", "legend": place.legend, "name": name,
        "hoverinfo": "text"}
    hover = [f"<b>{wrapped(chain.name)}</b><br>{_steps(chain, first, last)}<br>{wrapped(chain.hover[first])}"
             for first, last in pairwise([*kept, len(chain.steps)])]
    states = group | {
        "mode": "lines+markers", "meta": CHAIN, "x": numbers(chain.x[kept]), "y": numbers(chain.y[kept]),
        "hovertext": hover, "showlegend": False,
        "line": {"color": _faint(color) if count > CHAINS else color, "width": 1},
        "marker": {"size": 6, "color": numbers(chain.steps[kept]), "coloraxis": "coloraxis", "line": {"width": 0}}}
    ends = [kept[-1], kept[0]]
    marks = group | {
        "mode": "markers", "meta": ENDS, "x": numbers(chain.x[ends]), "y": numbers(chain.y[ends]),
        "hovertext": [hover[-1], hover[0]], "showlegend": alone or k == NAMED - 1,
        "marker": {"size": [13, 10], "symbol": [symbol, "square"], "color": [color, "white"], "opacity": 1,
                   "line": {"color": ["white", color], "width": [1.5, 2]}}}
    return [states, marks]


def _faint(color: str) -> str:
    """A colour that lets others through.

    >>> _faint("#0072B2")
    'rgba(0,114,178,0.5)'
    """
    return f"rgba({','.join(str(int(color[at : at + 2], 16)) for at in (1, 3, 5))},{OPACITY})"


def _steps(chain: PlaneTrajectory, first: int, last: int) -> str:
    """The steps of states that are equal, as words; last: the place of the first state that is another."""
    ends = [chain.steps[first], chain.steps[last - 1]]
    return f"step {ends[0]:,g}" if ends[0] == ends[1] else f"steps {ends[0]:,g} to {ends[1]:,g}"
