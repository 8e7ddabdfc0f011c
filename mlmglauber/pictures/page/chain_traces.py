"""Trajectories as traces of plotly, one for each chain, which a reader chooses in the legend and follows in time."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mlmglauber.pictures.page.escaping import escaped, wrapped
from mlmglauber.pictures.page.layout import Place
from mlmglauber.pictures.page.scales import ColorScale
from mlmglauber.pictures.page.traces import MARKS, DrawnTraces, Trace, numbers
from mlmglauber.pictures.palette import TIME, category
from mlmglauber.pictures.panel import shortened, some
from mlmglauber.pictures.trajectories import Trajectories, Trajectory

NAMED = 40
"""Maximum number of chains with a name of their own in the legend."""
NAME = 40
"""Maximum number of characters of such a name."""
STOPS = 200
"""Maximum number of steps at which the slider stops."""
CHAIN, ENDS = "chain", "ends"
"""Marks for the page's script: the trace of a chain, and of its first and last state."""


def chains(layer: Trajectories, place: Place) -> DrawnTraces:
    """Two traces for each chain: its states, coloured by step, and its first and last one."""
    found = [_distinct(chain) for chain in layer.chains]
    count = sum(len(kept) for kept in found)
    notes = []
    if count > MARKS:
        found = [some(kept, max(2, len(kept) * MARKS // count)) for kept in found]
        notes.append(f"plane: {sum(map(len, found)):,} of {count:,} states are drawn on the page, an even choice of each "
                     "chain")
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


def _distinct(chain: Trajectory) -> list[int]:
    """The states of a chain that differ from the one before, each at its first step, and the last state."""
    x, y = chain.x.tolist(), chain.y.tolist()
    new = [k for k in range(1, len(x))
           if (x[k], y[k], chain.hover[k]) != (x[k - 1], y[k - 1], chain.hover[k - 1])]
    return list(dict.fromkeys([0, *new, len(x) - 1]))


def _traces(k: int, chain: Trajectory, kept: Sequence[int], place: Place, count: int) -> list[Trace]:
    color = category(k).color
    alone = count <= NAMED or k < NAMED - 1
    name = escaped(shortened(chain.name, NAME) if alone else "other chains")
    group: dict[str, Any] = place.axes | {
        "type": "scatter", "legendgroup": f"chain {k if alone else NAMED}", "legend": place.legend, "name": name,
        "hoverinfo": "text"}
    hover = [f"<b>{wrapped(chain.name)}</b><br>{_steps(chain, first, last)}<br>{wrapped(chain.hover[first])}"
             for first, last in pairwise([*kept, len(chain.steps)])]
    states = group | {
        "mode": "lines+markers", "meta": CHAIN, "x": numbers(chain.x[kept]), "y": numbers(chain.y[kept]),
        "hovertext": hover, "showlegend": alone or k == NAMED - 1,
        "line": {"color": color, "width": 1}, "marker": {"size": 6, "color": numbers(chain.steps[kept]),
                                                         "coloraxis": "coloraxis", "line": {"width": 0}}}
    ends = [kept[0], kept[-1]]
    marks = group | {
        "mode": "markers", "meta": ENDS, "x": numbers(chain.x[ends]), "y": numbers(chain.y[ends]),
        "hovertext": [hover[0], hover[-1]], "showlegend": False,
        "marker": {"size": [10, 13], "symbol": ["square", "diamond"], "color": ["white", color],
                   "line": {"color": [color, "white"], "width": [2, 1.5]}}}
    return [states, marks]


def _steps(chain: Trajectory, first: int, last: int) -> str:
    """The steps of states that are equal, as words; last: the place of the first state that is another."""
    ends = [chain.steps[first], chain.steps[last - 1]]
    return f"step {ends[0]:,g}" if ends[0] == ends[1] else f"steps {ends[0]:,g} to {ends[1]:,g}"
