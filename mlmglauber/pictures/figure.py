"""Draws a picture as a matplotlib Figure, and writes a Figure as PNG, SVG or PDF; equal input gives equal bytes."""

import io
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from mlmglauber.pictures.layers import Entries, draw, labels
from mlmglauber.pictures.palette import DPI, STYLE, WIDTH
from mlmglauber.pictures.panel import Axis, Cloud, Heat, Panel, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
TICKS, LEGEND, LABELS = 7.0, 7.0, 8.0
"""Font sizes in points, as in STYLE."""
COLUMN = 72 * WIDTH - 8
"""Maximum width in points of a title or a line of a legend."""
BAR = 60.0
"""Width in points of a colour bar with its label."""
HINTED = 1.02
"""Factor by which hinting, which puts letters on whole dots, widens a text."""
HANDLE, GAP = 18.0, 9.0
"""Widths in points of a legend's handle and of the gap between its columns."""
NAMED = 130.0
"""Minimum width in points of a horizontal axis with names."""
LINE = 1.4
"""Height of a line as a multiple of the font size."""
NARROW = 4.0
"""Minimum factor between the ends of a logarithmic axis."""


@contextmanager
def style() -> Iterator[None]:
    """Use the settings of STYLE, not those of the user, while a figure is made or saved."""
    import matplotlib.style

    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # no warnings about letters that a font lacks
    with matplotlib.style.context(["default", STYLE]):
        yield


def figure(picture: Picture, dpi: float | None = None) -> "Figure":
    """A figure with the panels of a picture one below the other, WIDTH inches wide.

    dpi: dots per inch for those who show or save the figure by themselves, by default that of matplotlib.
    """
    from matplotlib.figure import Figure

    across = _across(picture)
    heights = [_height(panel) + _beside(panel, across) for panel in picture.panels]
    with style():
        made = Figure(figsize=(WIDTH, sum(heights)), layout="constrained", dpi=dpi)
        axes = list(made.subplots(len(heights), squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0])
        mapped = [_draw(place, panel, across) for panel, place in zip(picture.panels, axes, strict=True)]
        _bars(made, picture.panels, axes, mapped)
    return made


def content(made: "Figure", form: str, dpi: int = DPI) -> bytes:
    """The bytes of a figure in one of FORMATS, without dates: equal for equal figures."""
    metadata: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    buffer = io.BytesIO()
    with style():
        made.savefig(buffer, format=form, dpi=dpi, metadata=metadata[form])
    return buffer.getvalue()


def _height(panel: Panel) -> float:
    """Height of the axes in inches: larger for a matrix of many rows and for a plane."""
    rows = max((len(layer.y) for layer in panel.layers if isinstance(layer, Heat)), default=0)
    return max(2.2 if panel.square else 1.5, min(0.15 * rows, 5.0))


def _across(picture: Picture) -> float:
    """Maximum width in points of the label of a horizontal axis. All axes have the width that names leave."""
    names = max((_size(name, TICKS) for panel in picture.panels if panel.y.ticks for name in panel.y.ticks[1]),
                default=20.0)
    right = BAR if any(_has_bar(panel) for panel in picture.panels) else 0.0
    return 72 * WIDTH - 30 - names - right + 2 * right if right else min(72 * WIDTH - 30 - names, 200.0)


def _beside(panel: Panel, across: float) -> float:
    """Height in inches of the title, legend and labels above and below the axes."""
    names = _legend(panel)
    columns = _columns(panel, names)
    each = -(-len(names) // columns) if names else 0
    lines = max((sum(len(name) for name in names[k : k + each]) for k in range(0, len(names), each or 1)), default=0)
    below = max(_size(name, TICKS) for name in panel.x.ticks[1]) if panel.x.ticks and _upright(panel.x) else 0.0
    labelled = len(_broken(panel.x.label, across, LABELS)) - 1
    return 0.45 + 0.14 * (lines + len(_title(panel))) + below / 72 + 0.12 * labelled


def _size(text: str, size: float) -> float:
    """Width in points of a text on one line, as matplotlib sets it."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    if not text:
        return 0.0
    with style():
        exact = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0]
    return HINTED * float(exact)


def _broken(text: str, points: float, size: float) -> list[str]:
    """A text broken into lines of at most `points` points, between words; too long words between letters."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if _size(longer, size) <= points:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append("")
        for letter in word:
            if _size(lines[-1] + letter, size) > points:
                lines.append("")
            lines[-1] += letter
    return lines


def _legend(panel: Panel) -> list[list[str]]:
    """The labels of the legend, each as a list of lines."""
    return [_broken(name, _room(panel) - HANDLE, LEGEND) for layer in panel.layers for name in labels(layer)]


def _title(panel: Panel) -> list[str]:
    return _broken(panel.title, _room(panel), LABELS) if panel.title else []


def _room(panel: Panel) -> float:
    """Maximum width in points of a line above the axes: the column less a colour bar."""
    return COLUMN - (BAR if _has_bar(panel) else 0.0)


def _has_bar(panel: Panel) -> bool:
    return any(isinstance(layer, Heat | Cloud) for layer in panel.layers)


def _wrapped(label: str, panel: Panel) -> str:
    """A label broken into lines of similar length that fit into the height of the axes."""
    height, whole = 72 * _height(panel), _size(label, LABELS)
    lines = len(_broken(label, height, LABELS))
    for width in np.linspace(whole / lines, height, 12).tolist():
        if len(found := _broken(label, width, LABELS)) <= lines:
            return "\n".join(found)
    return "\n".join(_broken(label, height, LABELS))


def _columns(panel: Panel, names: list[list[str]]) -> int:
    widest = max((_size(line, LEGEND) for name in names for line in name), default=0.0)
    return max(1, min(len(names), 4, int((_room(panel) + GAP) / (widest + HANDLE + GAP))))


def _draw(axes: "Axes", panel: Panel, across: float) -> Any:
    """Draw a panel; returns the artist that a colour bar describes, or None."""
    _scale(axes.xaxis, panel.x, axes.set_xscale, NAMED)
    _scale(axes.yaxis, panel.y, axes.set_yscale, 72 * _height(panel))
    axes.set_xlabel("\n".join(_broken(panel.x.label, across, LABELS)))
    axes.set_ylabel(_wrapped(panel.y.label, panel))
    entries, mapped = [], None
    for layer in panel.layers:
        drawn = draw(axes, panel, layer)
        entries += drawn.entries
        mapped = drawn.mapped if drawn.mapped is not None else mapped
    if panel.square:
        axes.set_aspect("equal", adjustable="datalim")
    for axis, limits in ((panel.x, axes.set_xlim), (panel.y, axes.set_ylim)):
        if axis.low is not None or axis.high is not None:
            limits(axis.low, axis.high)
    if panel.y.downwards:
        axes.invert_yaxis()
    for axis, ticks, limits in ((panel.x, axes.xaxis, axes.set_xlim), (panel.y, axes.yaxis, axes.set_ylim)):
        if axis.log and axis.ticks is None:
            low, high = limits()
            if high / low < NARROW:
                low, high = limits(low * (high / low / NARROW) ** 0.5, high * (NARROW * low / high) ** 0.5)
            _log_ticks(ticks, low, high)
    _head(axes, panel, entries)
    return mapped


def _head(axes: "Axes", panel: Panel, entries: Entries) -> None:
    """Draw title and legend above the axes, as wide as the column, so that they hide nothing."""
    from matplotlib.transforms import blended_transform_factory

    if not entries and not panel.title:
        return
    figure = axes.get_figure()
    assert figure is not None
    left_of_all = blended_transform_factory(figure.transFigure, axes.transAxes)
    names = _legend(panel)
    made = axes.legend([handle for handle, _ in entries], ["name"] * len(entries), loc="lower left",
                       bbox_to_anchor=(0.005, 1.0), bbox_transform=left_of_all, borderaxespad=0.2,
                       ncols=_columns(panel, names), title="\n".join(_title(panel)) or None, alignment="left")
    for text, name in zip(made.get_texts(), names, strict=True):
        text.set_text("\n".join(name))  # legend() would leave out labels that begin with _


def _bars(made: "Figure", panels: Sequence[Panel], places: Sequence["Axes"], mapped: Sequence[Any]) -> None:
    """Draw a colour bar for each panel with colours; consecutive panels with the same meaning share one."""
    k = 0
    while k < len(panels):
        last = k
        while mapped[k] is not None and last + 1 < len(panels) and _meaning(panels[last + 1]) == _meaning(panels[k]):
            last += 1
        if mapped[k] is not None:
            beside: Any = list(places[k : last + 1]) if last > k else places[k]
            bar = made.colorbar(mapped[k], ax=beside, pad=0.02, fraction=0.06, aspect=25 * (last + 1 - k))
            layer = next(layer for layer in panels[k].layers if isinstance(layer, Heat | Cloud))
            bar.set_label(_wrapped(layer.unit, panels[k]))
            if isinstance(layer, Heat) and layer.log:
                _log_ticks(bar.ax.yaxis, *bar.ax.get_ylim())
            for spine in bar.ax.spines.values():
                spine.set_visible(False)
        k = last + 1


def _meaning(panel: Panel) -> Any:
    """The meaning of a panel's colours: equal for two panels that may share a colour bar."""
    heat = next((layer for layer in panel.layers if isinstance(layer, Heat) and layer.bounds is not None), None)
    return object() if heat is None else (heat.unit, heat.log, heat.bounds)


def _log_ticks(drawn: Any, low: float, high: float) -> None:
    """Set the ticks of a logarithmic axis: powers of ten or, for a short axis, 1, 2 and 5 times powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    few = high / low < 50
    drawn.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=7))
    drawn.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
    drawn.set_minor_formatter(NullFormatter())


def power(value: float) -> str:
    """A number as the label of a tick, with a power of ten where it is far from 1.

    >>> power(0.02), power(1e-7), power(50000)
    ('0.02', '10⁻⁷', '5·10⁴')
    """
    exponent = int(np.floor(np.log10(value) + 1e-9))
    if -3 < exponent < 4:
        return f"{value:g}"
    digit = round(value / 10.0**exponent)
    raised = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return raised if digit == 1 else f"{digit}·{raised}"


def _scale(drawn: Any, axis: Axis, set_scale: Any, points: float) -> None:
    """Set the scale and the ticks of an axis of at least `points` points."""
    if axis.log:
        set_scale("log")
    if axis.ticks is None:
        return
    drawn.set_ticks(axis.ticks[0], axis.ticks[1])
    drawn.set_ticks([], minor=True)
    upright = drawn.axis_name == "x" and _upright(axis)
    if upright:
        drawn.set_tick_params(rotation=90)
    if not axis.spaced and (upright or drawn.axis_name == "y"):  # the largest font with room for all labels
        drawn.set_tick_params(labelsize=min(TICKS, points / (LINE * len(axis.ticks[1]))))


def _upright(axis: Axis) -> bool:
    """Whether the labels of a horizontal axis are rotated, since two neighbours have no room side by side."""
    if axis.ticks is None or axis.spaced:
        return False
    places, names = (np.log(axis.ticks[0]) if axis.log else np.asarray(axis.ticks[0], dtype=np.float64)), axis.ticks[1]
    apart = np.diff(places) * NAMED / ((places[-1] - places[0]) or 1.0) if len(places) > 1 else np.empty(0)
    if len(places) > 1 and not axis.log:
        apart = apart * (len(places) - 1) / len(places)  # the outer cells reach beyond their centres
    sizes = [_size(name, TICKS) for name in names]
    return any((one + other) / 2 + 4 > room for one, other, room in zip(sizes, sizes[1:], apart.tolist(), strict=False)
               ) or max(sizes) > NAMED
