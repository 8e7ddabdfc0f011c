"""What a picture shows, before figure.py or characters.py draw it: panels of layers, in plain arrays."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.pictures.palette import BLACK, GREY

Values = NDArray[np.float64]


class Curve(NamedTuple):
    """A line through (x, y), with a band from low to high where they are given; not-a-number breaks it.

    stairs: the value stays until the next x.
    """

    x: Values
    y: Values
    label: str = ""
    color: str = BLACK
    low: Values | None = None
    high: Values | None = None
    dashed: bool = False
    stairs: bool = False
    faint: bool = False


class Points(NamedTuple):
    """Marks at (x, y), with error bars from low to high, upwards or sideways; an end that is not-a-number is open."""

    x: Values
    y: Values
    label: str = ""
    color: str = BLACK
    mark: str = "o"
    low: Values | None = None
    high: Values | None = None
    sideways: bool = False
    hollow: bool = False
    faint: bool = False


class Bars(NamedTuple):
    """A histogram: edges (B + 1,), heights (B,)."""

    edges: Values
    heights: Values
    label: str = ""
    color: str = BLACK


class Rule(NamedTuple):
    """A straight line: at a height, or upright at an x."""

    at: float
    label: str = ""
    color: str = GREY
    upright: bool = False


class Heat(NamedTuple):
    """A matrix as colours: values (Y, X) of cells around x (X,) and y (Y,); not-a-number is a hatched cell.

    unit: of the values. missing: what a hatched cell means. written: numbers in the cells.
    """

    x: Values
    y: Values
    values: Values
    unit: str
    log: bool = False
    written: bool = False
    bounds: tuple[float, float] | None = None
    missing: str = ""


class Cloud(NamedTuple):
    """Points coloured by a value, with a colour bar in its unit."""

    x: Values
    y: Values
    values: Values
    unit: str


class Ground(NamedTuple):
    """Regions of the plane: codes (Y, X) of the cells around x and y, -1 for none, and the regions' names."""

    x: Values
    y: Values
    codes: NDArray[np.int64]
    names: Sequence[str]


Layer = Curve | Points | Bars | Rule | Heat | Cloud | Ground


class Axis(NamedTuple):
    """A quantity with its unit; ticks: places and what they read, None for round numbers; low, high: its ends."""

    label: str
    log: bool = False
    ticks: tuple[Sequence[float], Sequence[str]] | None = None
    low: float | None = None
    high: float | None = None
    downwards: bool = False


class Panel(NamedTuple):
    """One pair of axes. square: a step right is as long as a step up."""

    title: str
    x: Axis
    y: Axis
    layers: Sequence[Layer]
    square: bool = False


class Picture(NamedTuple):
    """Panels from top to bottom, and what is to be said of what they leave out."""

    panels: Sequence[Panel]
    notes: Sequence[str] = ()


PANELS = 6
"""More than a page of a column holds would not be read."""
SERIES = 8
"""So many lines can be told apart."""


def some(found: Sequence[Any], most: int) -> list[Any]:
    """At most so many, evenly chosen, first and last among them.

    >>> some(range(10), 4)
    [0, 3, 6, 9]
    """
    if len(found) <= most:
        return list(found)
    return [found[k] for k in np.linspace(0, len(found) - 1, most).round().astype(int).tolist()]


def chosen(found: Sequence[Any], most: int, what: str, notes: list[str]) -> list[Any]:
    """`some`, and a note where that is not all."""
    if len(found) > most:
        notes.append(f"{most} of {len(found)} {what} are drawn; select records for the others")
    return some(found, most)


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "trap"), counted(2, "trap")
    ('1 trap', '2 traps')
    """
    return f"{number} {what}" + "s" * (number != 1)


def shortened(text: str, most: int = 28) -> str:
    """A text that fits into a legend.

    >>> shortened("the cat sat on the mat", 12)
    'the cat sat…'
    """
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def tau_axis(taus: Sequence[float]) -> Axis:
    """The temperature: logarithmic where it spans a factor above 5, with a tick at each one that was looked at."""
    low, high = min(taus), max(taus)
    log = low > 0 and high / low > 5
    scaled = [np.log(tau) if log else tau for tau in sorted(set(taus))]
    kept: list[int] = []
    for k, place in enumerate(scaled):  # ticks need room: a tenth of the axis each
        if not kept or place - scaled[kept[-1]] >= 0.1 * (scaled[-1] - scaled[0]):
            kept.append(k)
    ticks = [sorted(set(taus))[k] for k in kept]
    return Axis("temperature τ (the model's own: 1)", log, (ticks, [f"{tau:g}" for tau in ticks]))


def beside(taus: Values, axis: Axis, k: int, count: int) -> Values:
    """Temperatures moved a little, so that the k-th of `count` series does not hide the others."""
    width = 0.02 * (k - (count - 1) / 2)
    every = np.asarray(axis.ticks[0] if axis.ticks else taus, dtype=np.float64)
    if axis.log:
        span = np.log(every.max() / every.min()) or 1.0
        return np.asarray(taus * np.exp(width * span))
    return np.asarray(taus + width * ((every.max() - every.min()) or 1.0))
