"""Pictures as panels of layers in plain arrays.

figure.py draws them with matplotlib, characters.py with text, and page/ with plotly.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.pictures.palette import BLACK, GREY
from mlmglauber.pictures.stripes import Stripes
from mlmglauber.pictures.stripes import Values as Values
from mlmglauber.pictures.trajectories import Trajectories


class Curve(NamedTuple):
    """A line through (x, y), with a band from low to high where they are given; NaN breaks the line.

    stairs: each value holds until the next x. mark: at each point, hollow on a dashed line.
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
    mark: str = ""


class Points(NamedTuple):
    """Marks at (x, y), with error bars from low to high, vertical or sideways; an end of NaN is open.

    hover: for each mark what a page shows, in lines of text.
    """

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
    hover: Sequence[str] = ()


class Bars(NamedTuple):
    """A histogram: edges (B + 1,), heights (B,)."""

    edges: Values
    heights: Values
    label: str = ""
    color: str = BLACK


class Rule(NamedTuple):
    """A straight line at height `at` or, if upright, at x = `at`; dash: a line style of matplotlib."""

    at: float
    label: str = ""
    color: str = GREY
    upright: bool = False
    dash: str = ":"


class Heat(NamedTuple):
    """A matrix as colours: values (Y, X) of cells around x (X,) and y (Y,); cells of NaN are hatched.

    unit: label of the values. bounds: values at the ends of the colour map. missing: legend of hatched cells, empty
    where there is none. written: whether numbers are written into the cells.
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
    """Points coloured by a value, with a colour bar; unit: its label."""

    x: Values
    y: Values
    values: Values
    unit: str


class Ground(NamedTuple):
    """Shaded regions of the plane: codes (Y, X) of cells around x and y, indices of names, -1 for no region."""

    x: Values
    y: Values
    codes: NDArray[np.int64]
    names: Sequence[str]


Layer = Curve | Points | Bars | Rule | Heat | Cloud | Ground | Stripes | Trajectories


class Axis(NamedTuple):
    """An axis: label with its unit; ticks: (places, labels), None for round numbers; low, high: its ends.

    spaced: whether the labels have room side by side.
    """

    label: str
    log: bool = False
    ticks: tuple[Sequence[float], Sequence[str]] | None = None
    low: float | None = None
    high: float | None = None
    downwards: bool = False
    spaced: bool = False


class Panel(NamedTuple):
    """One pair of axes with its layers; square: equal scales on both axes."""

    title: str
    x: Axis
    y: Axis
    layers: Sequence[Layer]
    square: bool = False


class Picture(NamedTuple):
    """Panels in the order of reading, and notes for the user about what is not drawn.

    stacked: whether the panels stand one below the other however wide the picture is. title: above all panels.
    """

    panels: Sequence[Panel]
    notes: Sequence[str] = ()
    stacked: bool = False
    title: str = ""


def select_panels(picture: Picture, wanted: Sequence[str]) -> Picture:
    """The wanted panels in the order of `wanted`: by number, from 1 on, or by a part of one title.

    ValueError for what is no panel, or several.

    >>> axis = Axis("")
    >>> panels = [Panel("n = 4: m", axis, axis, []), Panel("n = 8: m", axis, axis, [])]
    >>> [panel.title for panel in select_panels(Picture(panels), ["2", "n = 4"]).panels]
    ['n = 8: m', 'n = 4: m']
    """
    titles = [panel.title or panel.y.label for panel in picture.panels]
    found: list[int] = []
    for each in wanted:
        name = each.strip()
        if name.isdecimal():
            matches = [int(name) - 1] if 1 <= int(name) <= len(titles) else []
        else:
            exact = [k for k, title in enumerate(titles) if title == name]
            matches = exact or [k for k, title in enumerate(titles) if name and name.lower() in title.lower()]
        if len(matches) != 1:
            listed = ", ".join(f'{k + 1} "{shortened(title, 60)}"' for k, title in enumerate(titles))
            raise ValueError(f"{len(matches) or 'no'} panels are called {name!r}; choose from {listed}")
        found += matches
    return picture._replace(panels=[picture.panels[k] for k in dict.fromkeys(found)])


PANELS = 6
"""Maximum number of panels of a picture."""
SERIES = 8
"""Maximum number of lines of a panel; more could not be distinguished."""


def some(items: Sequence[Any], most: int) -> list[Any]:
    """At most `most` items, evenly spaced, with the first and the last.

    >>> some(range(10), 4)
    [0, 3, 6, 9]
    """
    if len(items) <= most:
        return list(items)
    return [items[k] for k in np.linspace(0, len(items) - 1, most).round().astype(int).tolist()]


def chosen(items: Sequence[Any], most: int, what: str, notes: list[str]) -> list[Any]:
    """At most `most` items, see `some`; adds a note where items are left out."""
    if len(items) > most:
        notes.append(f"{most} of {len(items)} {what} are drawn; select records for the others")
    return some(items, most)


def counted(number: int, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "trap"), counted(2, "trap")
    ('1 trap', '2 traps')
    """
    return f"{number} {what}" + "s" * (number != 1)


def shortened(text: str, most: int = 100) -> str:
    """A text of at most `most` characters; a longer one loses its middle.

    >>> shortened("the cat sat on the mat", 12)
    'the ca…e mat'
    """
    text = " ".join(text.split())
    front = most // 2
    return text if len(text) <= most else f"{text[:front]}…{text[len(text) - (most - front - 1):]}"


def distinct_labels(texts: Sequence[str], most: int = 100) -> list[str]:
    """Shortened texts; equal ones are numbered.

    >>> distinct_labels(["a b", "a  b", "c"])
    ['a b (1)', 'a b (2)', 'c']
    """
    short = [shortened(text, most) for text in texts]
    return [f"{name} ({short[: k + 1].count(name)})" if short.count(name) > 1 else name for k, name in enumerate(short)]


DIGIT, BETWEEN, AXIS = 4.45, 5.0, 140.0
"""Widths in points: of a digit, of the gap between two numbers, of the shortest horizontal axis."""


def tau_axis(taus: Sequence[float]) -> Axis:
    """The axis of temperature: logarithmic for a range of a factor above 5, with a tick at each temperature.

    A tick without room for its number has no label.

    >>> tau_axis([1, 1.25, 1.5, 2, 3]).ticks
    ([1, 1.25, 1.5, 2, 3], ['1', '1.25', '', '2', '3'])
    """
    every = sorted(set(taus))
    log = every[0] > 0 and every[-1] / every[0] > 5
    scaled = [float(np.log(tau)) if log else tau for tau in every]
    names: list[str] = []
    end = -np.inf
    for tau, place in zip(every, scaled, strict=True):
        middle = AXIS * (place - scaled[0]) / ((scaled[-1] - scaled[0]) or 1.0)
        half = DIGIT * len(f"{tau:g}") / 2
        room = middle - half >= end
        names.append(f"{tau:g}" if room else "")
        end = middle + half + BETWEEN if room else end
    return Axis("temperature τ (the model's own: 1)", log, (every, names), spaced=True)


def beside(taus: Values, axis: Axis, k: int, count: int, widest: float = 0.02) -> Values:
    """The x positions of the k-th of `count` series, shifted a little so that the series do not hide each other.

    All series together take at most half of the space between two ticks; widest: maximum shift from one series to the
    next, as a share of the axis.
    """
    every = np.asarray(axis.ticks[0] if axis.ticks else taus, dtype=np.float64)
    scaled = np.log(every) if axis.log else every
    span = float(np.ptp(scaled)) or 1.0
    between = float(np.diff(scaled).min()) if len(scaled) > 1 else span
    moved = min(widest * span, 0.5 * between / max(count - 1, 1)) * (k - (count - 1) / 2)
    return np.asarray(taus * np.exp(moved) if axis.log else taus + moved)
