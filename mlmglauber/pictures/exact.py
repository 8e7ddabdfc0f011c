"""A small chain exactly: its stationary law, and its mixing time beside the bound from influences."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.palette import category
from mlmglauber.pictures.panel import SERIES, Axis, Curve, Panel, Picture, Points, chosen, shortened, tau_axis
from mlmglauber.pictures.reading import number, perhaps

LIMIT = 20_000
STATES = 6


class Solved(NamedTuple):
    """One text at one temperature: likeliest states, mixing time (a lower bound where not exact), bound, eps."""

    text: str
    tau: float
    likeliest: Sequence[tuple[str, float]]
    tmix: float | None
    exact: bool
    bound: float | None
    eps: float


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """What one exact record says."""
    states = [(str(state["text"]), number(state, "probability")) for state in record["likeliest"] or []]
    yield (str(record["id"]),), Solved(str(record["text"]), number(record, "tau"), states, perhaps(record, "tmix"),
                                       bool(record["tmix_exact"]), perhaps(record, "bound"), number(record, "eps"))


def picture(held: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """The likeliest states of the first text, and the mixing times of all, against temperature."""
    del threshold
    notes: list[str] = []
    every = [solved for found in held.values() for solved in found]
    axis = tau_axis([solved.tau for solved in every])
    texts: list[Any] = chosen(list(held), SERIES // 2, "texts", notes)
    if len(held) > 1:
        notes.append(f"the stationary law is that of the first text, {texts[0][0]}")
    panels = [_law(sorted(held[texts[0]], key=lambda solved: solved.tau), axis),
              _mixing([(key[0], held[key]) for key in texts], axis)]
    return Picture([panel for panel in panels if panel.layers], notes)


def _law(found: Sequence[Solved], axis: Axis) -> Panel:
    """A state that is not among the likeliest at a temperature has no point there."""
    most: dict[str, float] = {}
    for solved in found:
        for text, probability in solved.likeliest:
            most[text] = max(most.get(text, 0.0), probability)
    layers: list[Any] = []
    for k, text in enumerate(sorted(most, key=lambda text: -most[text])[:STATES]):
        y = np.array([dict(solved.likeliest).get(text, np.nan) for solved in found])
        x, look = np.array([solved.tau for solved in found]), category(k)
        layers += [Curve(x, y, "", look.color), Points(x, y, shortened(text), look.color, look.mark)]
    return Panel(f"{shortened(found[0].text, 40)}: likeliest states", axis,
                 Axis("stationary probability μ", low=0), layers)


def _mixing(texts: Sequence[tuple[str, Sequence[Solved]]], axis: Axis) -> Panel:
    layers: list[Any] = []
    for k, (name, found) in enumerate(texts):
        look, tell = category(k), f"{shortened(name, 12)}: " if len(texts) > 1 else ""
        found = sorted(found, key=lambda solved: solved.tau)
        x = np.array([solved.tau for solved in found])
        tmix, bound = (np.array([np.nan if part is None else part for part in parts]) for parts in
                       ([s.tmix for s in found], [s.bound for s in found]))
        exact = np.array([solved.exact for solved in found])
        if not np.isnan(tmix).all():
            layers.append(Curve(x, tmix, "", look.color))
        if (exact & ~np.isnan(tmix)).any():
            layers.append(Points(x[exact], tmix[exact], f"{tell}exact", look.color, look.mark))
        if (~exact & ~np.isnan(tmix)).any():
            layers.append(Points(x[~exact], tmix[~exact], f"{tell}at least", look.color, "^", hollow=True))
        if not np.isnan(bound).all():
            layers.append(Curve(x, bound, f"{tell}bound from α < 1", look.color, dashed=True))
    eps = sorted({solved.eps for _, found in texts for solved in found})
    return Panel("", axis, Axis(f"mixing time, ε = {', '.join(f'{e:g}' for e in eps)} (steps)", log=True), layers)
