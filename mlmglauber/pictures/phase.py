"""The phase diagram: median meeting times by temperature and length, and where they pass a budget."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.layers import edges
from mlmglauber.pictures.panel import PANELS, Axis, Curve, Heat, Panel, Picture, Points, beside, chosen, tau_axis
from mlmglauber.pictures.reading import number, perhaps, with_interval

LIMIT = 50_000
LOOKS = (("#D55E00", "o"), ("#CC79A7", "s"), ("#56B4E9", "^"), ("#FFFFFF", "v"), ("#000000", "D"))
"""Colours that are visible on the whole colour map, and marks, one of each for a budget."""


class PhaseCell(NamedTuple):
    """Median meeting time / (n ln n) at one temperature and length, None where over half did not meet."""

    tau: float
    n: int
    median: float | None


class BudgetCrossing(NamedTuple):
    """The temperature at which the median meeting time is budget x n ln n, with its 95 % interval."""

    n: int
    budget: float
    tau: float
    low: float | None
    high: float | None


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """A cell, or a crossing, of a summary of mlm-couple."""
    kind = ", ".join([str(record["model"]), f"{record['coupling']} coupling", f"start {record['start']}"]
                     + ([f"lag {record['lag']}"] if record["lag"] else []))
    if record["over"] == "group":
        yield kind, PhaseCell(number(record, "tau"), int(number(record, "n")), perhaps(record, "median_n_log_n"))
    elif record["over"] == "n" and record["crossover"] is not None:
        yield kind, BudgetCrossing(int(number(record, "n")), number(record, "budget"), number(record, "crossover"),
                             perhaps(record, "crossover_low"), perhaps(record, "crossover_high"))


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """A panel for each model and way of coupling."""
    del threshold
    notes: list[str] = []
    kinds = [kind for kind, found in kept.items() if any(isinstance(item, PhaseCell) for item in found)]
    return Picture([_panel(str(kind), kept[kind]) for kind in chosen(kinds, PANELS, "kinds of pairs", notes)], notes)


def _panel(kind: str, found: Sequence[Any]) -> Panel:
    cells = [item for item in found if isinstance(item, PhaseCell)]
    crossings = sorted(item for item in found if isinstance(item, BudgetCrossing))
    taus, lengths = sorted({cell.tau for cell in cells}), sorted({cell.n for cell in cells})
    values = np.full((len(lengths), len(taus)), np.nan)
    for cell in cells:
        if cell.median is not None:
            values[lengths.index(cell.n), taus.index(cell.tau)] = cell.median
    axis = tau_axis(taus)
    log = bool((values > 0).any() and not (values <= 0).any())
    missing = "over half did not meet" if np.isnan(values).any() else ""
    layers: list[Any] = [Heat(np.array(taus), np.array(lengths, dtype=np.float64), values,
                              "median meeting time / (n ln n)", log, missing=missing)]
    budgets = sorted({crossing.budget for crossing in crossings})
    upward = Axis("length n (tokens)", min(lengths) > 0 and max(lengths) / min(lengths) > 3,
                  ([float(n) for n in lengths], [str(n) for n in lengths]))
    for k, budget in enumerate(budgets):
        mine = [crossing for crossing in crossings if crossing.budget == budget]
        x, y = np.array([c.tau for c in mine]), np.array([c.n for c in mine], dtype=np.float64)
        y = beside(y, upward, k, len(budgets), widest=0.06)
        low, high = (np.array([np.nan if end is None else end for end in ends]) for ends in
                     ([c.low for c in mine], [c.high for c in mine]))
        color, mark = LOOKS[k % len(LOOKS)]
        hover = [f"n = {c.n}\nmedian = {budget:g} n ln n at τ, 95 %: {with_interval(*ends)}"
                 for c, *ends in zip(mine, x, low, high, strict=True)]
        layers += [Curve(x, y, "", color), Points(x, y, f"median = {budget:g} n ln n, 95 %", color, mark, low, high,
                                                  sideways=True, hollow=True, hover=hover)]
    ends = edges(np.array(taus), axis.log)  # an interval that goes on beyond them is cut off there
    return Panel(kind, axis._replace(low=float(ends[0]), high=float(ends[-1])), upward, layers)
