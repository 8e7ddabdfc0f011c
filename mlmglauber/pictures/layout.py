"""Sizes of the parts of a figure: what has room in a column of panels, and how texts are broken into lines."""

import logging
from typing import NamedTuple

import numpy as np

from mlmglauber.pictures.palette import FAMILIES, Style
from mlmglauber.pictures.panel import Axis, Cloud, Heat, Panel
from mlmglauber.pictures.stripes import Stripes

BAR = 60.0
"""Width in points of a colour bar with its label."""
HINTED = 1.02
"""Factor by which hinting, which puts letters on whole dots, widens a text."""
HANDLE, GAP = 18.0, 9.0
"""Widths in points of a legend's handle and of the gap between its columns."""
NAMED = 130.0
"""Minimum width in points of a horizontal axis with names."""


class Layout(NamedTuple):
    """The layout of a column of panels that is `width` inches wide."""

    width: float
    style: Style

    def across(self, panels: list[Panel]) -> float:
        """Maximum width in points of the label of a horizontal axis. All axes have the width that names leave."""
        names = max((size(name, self.style.ticks) for panel in panels if panel.y.ticks for name in panel.y.ticks[1]),
                    default=20.0)
        if any(has_bar(panel) for panel in panels):
            return 72 * self.width - 30 - names + BAR
        return min(72 * self.width - 30 - names, 60 * self.width)

    def beside(self, panel: Panel, across: float) -> float:
        """Height in inches of the title, legend and labels above and below the axes."""
        names = self.legend(panel)
        columns = self.columns(panel, names)
        each = -(-len(names) // columns) if names else 0
        lines = max((sum(len(name) for name in names[k : k + each]) for k in range(0, len(names), each or 1)),
                    default=0)
        below = 0.0
        if panel.x.ticks and upright(panel.x, self.style.ticks):
            below = max(size(name, self.style.ticks) for name in panel.x.ticks[1])
        labelled = len(broken(panel.x.label, across, self.style.labels)) - 1
        colours = 0.42 if bar_below(panel) else 0.0
        line = 0.14 * self.style.legend / 7
        return 0.45 + line * (lines + len(self.title(panel))) + below / 72 + 0.12 * labelled + colours

    def legend(self, panel: Panel) -> list[list[str]]:
        """The labels of the legend, each as a list of lines."""
        from mlmglauber.pictures.layers import labels

        return [broken(name, self.room(panel) - HANDLE, self.style.legend)
                for layer in panel.layers for name in labels(layer)]

    def title(self, panel: Panel) -> list[str]:
        """The lines of a panel's title."""
        return broken(panel.title, self.room(panel), self.style.labels) if panel.title else []

    def room(self, panel: Panel) -> float:
        """Maximum width in points of a line above the axes: the column less a colour bar."""
        return 72 * self.width - 8 - (BAR if has_bar(panel) else 0.0)

    def wrapped(self, label: str, room: float) -> str:
        """A label broken into lines of similar length that fit into `room` points."""
        whole = size(label, self.style.labels)
        lines = len(broken(label, room, self.style.labels))
        for width in np.linspace(whole / lines, room, 12).tolist():
            if len(found := broken(label, width, self.style.labels)) <= lines:
                return "\n".join(found)
        return "\n".join(broken(label, room, self.style.labels))

    def columns(self, panel: Panel, names: list[list[str]]) -> int:
        """Number of columns of the legend."""
        widest = max((size(line, self.style.legend) for name in names for line in name), default=0.0)
        return max(1, min(len(names), 4, int((self.room(panel) + GAP) / (widest + HANDLE + GAP))))


def height(panel: Panel) -> float:
    """Height of the axes in inches: larger for a matrix of many rows and for a plane."""
    rows = max((len(layer.y) for layer in panel.layers if isinstance(layer, Heat)), default=0.0)
    for layer in panel.layers:
        if isinstance(layer, Stripes):
            lanes = max((bracket.lane + 1 for bracket in layer.brackets), default=0)
            rows = len(layer.values) + lanes * layer.lane
    return max(2.2 if panel.square else 1.5, min(0.15 * rows, 5.0))


def has_bar(panel: Panel) -> bool:
    """Whether a colour bar stands beside the axes."""
    return any(isinstance(layer, Heat | Cloud) for layer in panel.layers)


def bar_below(panel: Panel) -> bool:
    """Whether a colour bar stands below the axes."""
    return any(isinstance(layer, Stripes) for layer in panel.layers)


def size(text: str, points: float) -> float:
    """Width in points of a text on one line, as matplotlib sets it; points: the size of the font."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    if not text:
        return 0.0
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # no warnings about letters that a font lacks
    font = FontProperties(family=FAMILIES, size=points)
    exact = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    return HINTED * float(exact)


def broken(text: str, room: float, points: float) -> list[str]:
    """A text broken into lines of at most `room` points, between words; too long words between letters."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if size(longer, points) <= room:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append("")
        for letter in word:
            if size(lines[-1] + letter, points) > room:
                lines.append("")
            lines[-1] += letter
    return lines


def upright(axis: Axis, points: float) -> bool:
    """Whether the labels of a horizontal axis are rotated, since two neighbours have no room side by side."""
    if axis.ticks is None or axis.spaced:
        return False
    places, names = (np.log(axis.ticks[0]) if axis.log else np.asarray(axis.ticks[0], dtype=np.float64)), axis.ticks[1]
    apart = np.diff(places) * NAMED / ((places[-1] - places[0]) or 1.0) if len(places) > 1 else np.empty(0)
    if len(places) > 1 and not axis.log:
        apart = apart * (len(places) - 1) / len(places)  # the outer cells reach beyond their centres
    sizes = [size(name, points) for name in names]
    return any((one + other) / 2 + 4 > room for one, other, room in zip(sizes, sizes[1:], apart.tolist(), strict=False)
               ) or max(sizes) > NAMED
