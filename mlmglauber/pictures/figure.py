"""Draws a picture as a matplotlib Figure, and writes a Figure as PNG, SVG or PDF; equal input gives equal bytes."""

import io
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mlmglauber.pictures.layers import DrawnLayer, Fitted, draw
from mlmglauber.pictures.layout import NAMED, Layout, bar_below, broken, height, size, upright
from mlmglauber.pictures.palette import STYLES, WIDTH
from mlmglauber.pictures.panel import Axis, Cloud, Heat, Panel, Picture
from mlmglauber.pictures.stripes import RIGHT, Stripes
from mlmglauber.pictures.trajectory_layers import expanded
from mlmglauber.stream.errors import MlmError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = 1.4
"""Height of a line as a multiple of the font size."""
NARROW = 4.0
"""Minimum factor between the ends of a logarithmic axis."""
SIDE = 3.0
"""Minimum width in inches of a panel that stands beside another."""
DOTS = 100_000_000
"""Maximum number of dots of a PNG."""


class DrawnPanel(NamedTuple):
    """A panel, its axes, and the artist that a colour bar describes, or None."""

    panel: Panel
    axes: "Axes"
    mapped: Any


@contextmanager
def styled(name: str = "default") -> Iterator[None]:
    """Use the settings of one of STYLES, not those of the user, while a figure is made or saved."""
    import matplotlib.style

    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # no warnings about letters that a font lacks
    with matplotlib.style.context(["default", STYLES[name].settings()]):
        yield


def figure(picture: Picture, style: str = "default", width: float = WIDTH,
           dpi: float | None = None) -> "Figure":
    """A figure of a picture, `width` inches wide; style: one of STYLES.

    dpi: dots per inch for those who show or save the figure by themselves, by default that of matplotlib.

    Panels stand side by side where each has SIDE inches, otherwise one below the other.
    """
    from matplotlib.figure import Figure

    picture = expanded(picture)
    side = 1 if picture.stacked else max(1, min(len(picture.panels), int(width / SIDE)))
    layout = Layout(width / side, STYLES[style])
    columns = [list(picture.panels[k::side]) for k in range(side)]
    across = [layout.across(panels) for panels in columns]
    heights = [height(panel) + layout.beside(panel, across[k % side]) for k, panel in enumerate(picture.panels)]
    rows = [max(heights[at : at + side]) for at in range(0, len(heights), side)]
    title = broken(picture.title, 72 * width - 8, layout.style.labels + 1) if picture.title else []
    with styled(style):
        made = Figure(figsize=(width, sum(rows) + 0.18 * len(title)), layout="constrained", dpi=dpi)
        parts: list[Any] = [made] if side == 1 else list(made.subfigures(1, side, squeeze=False)[0])
        if title:
            made.suptitle("\n".join(title), x=4 / 72 / width, ha="left", fontsize=layout.style.labels + 1)
        fitted = []
        for part, panels, room in zip(parts, columns, across, strict=True):
            places = list(part.subplots(len(rows), squeeze=False, gridspec_kw={"height_ratios": rows})[:, 0])
            for place in places[len(panels) :]:
                place.remove()
            drawn = []
            for panel, place in zip(panels, places, strict=False):
                layers = _draw(place, panel, layout, room)
                drawn.append(DrawnPanel(panel, place, next((x.mapped for x in layers if x.mapped is not None), None)))
                fitted += [(place, each) for layer in layers for each in layer.fitted]
            _bars(part, drawn, layout)
        _settle(made, fitted)
        if side > 1:
            _align(made, parts, len(rows))
    return made


def content(made: "Figure", form: str, dpi: int | None = None, style: str = "default") -> bytes:
    """The bytes of a figure in the format png, svg or pdf, without dates: equal for equal
    figures. dpi: by default that of the style.
    """
    metadata: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    dpi = dpi or STYLES[style].dpi
    inches = made.get_size_inches()
    if form == "png" and (inches.prod() * dpi**2 > DOTS or max(inches) * dpi > 1 << 16):
        raise MlmError(f"the picture would have {inches[0] * dpi:,.0f} x {inches[1] * dpi:,.0f} dots; give a lower "
                       "resolution or a smaller width")
    buffer = io.BytesIO()
    with styled(style):
        made.savefig(buffer, format=form, dpi=dpi, metadata=metadata[form])
    return buffer.getvalue()


def _draw(axes: "Axes", panel: Panel, layout: Layout, across: float) -> list[DrawnLayer]:
    """Draw the layers of a panel."""
    style, tall = layout.style, 72 * height(panel)
    _scale(axes.xaxis, panel.x, axes.set_xscale, NAMED, style.ticks)
    _scale(axes.yaxis, panel.y, axes.set_yscale, tall, style.ticks)
    axes.set_xlabel("\n".join(broken(panel.x.label, across, style.labels)))
    axes.set_ylabel(layout.wrapped(panel.y.label, tall))
    drawn = [draw(axes, panel, layer) for layer in panel.layers]
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
    for layer in panel.layers:
        if isinstance(layer, Stripes) and layer.right:
            _right(axes, layer, tall, style.ticks)
    _head(axes, panel, layout, drawn)
    return drawn


def _right(axes: "Axes", stripes: Stripes, tall: float, points: float) -> None:
    """Label the sites at the right edge."""
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(stripes.right)), list(stripes.right))
    right.set_ylabel(RIGHT)
    right.tick_params(length=0, labelsize=min(points, tall / (LINE * len(stripes.right))))
    right.spines[:].set_visible(False)


def _head(axes: "Axes", panel: Panel, layout: Layout, drawn: Sequence[DrawnLayer]) -> None:
    """Draw title and legend above the axes, as wide as the column, so that they hide nothing."""
    from matplotlib.transforms import blended_transform_factory

    entries = [entry for layer in drawn for entry in layer.entries]
    if not entries and not panel.title:
        return
    figure = axes.get_figure(root=False)
    assert figure is not None
    left_of_all = blended_transform_factory(figure.transSubfigure, axes.transAxes)
    names = layout.legend(panel)
    made = axes.legend([handle for handle, _ in entries], ["name"] * len(entries), loc="lower left",
                       bbox_to_anchor=(0.005, 1.0), bbox_transform=left_of_all, borderaxespad=0.2,
                       ncols=layout.columns(panel, names), title="\n".join(layout.title(panel)) or None,
                       alignment="left")
    for text, name in zip(made.get_texts(), names, strict=True):
        text.set_text("\n".join(name))  # legend() would leave out labels that begin with _


def _bars(part: Any, drawn: Sequence[DrawnPanel], layout: Layout) -> None:
    """Draw a colour bar for each panel with colours; consecutive panels with the same meaning share one."""
    k = 0
    while k < len(drawn):
        last = k
        while (drawn[k].mapped is not None and last + 1 < len(drawn)
               and _meaning(drawn[last + 1].panel) == _meaning(drawn[k].panel)):
            last += 1
        if drawn[k].mapped is not None:
            panel, axes = drawn[k].panel, [each.axes for each in drawn[k : last + 1]]
            layer = next(layer for layer in panel.layers if isinstance(layer, Heat | Cloud | Stripes))
            if bar_below(panel):
                bar = part.colorbar(drawn[k].mapped, ax=axes[-1], location="bottom", pad=0.02, fraction=0.05, aspect=50)
                bar.set_label(layout.wrapped(layer.unit, layout.room(panel)))
                ticks = bar.ax.xaxis
            else:
                bar = part.colorbar(drawn[k].mapped, ax=axes if last > k else axes[0], pad=0.02, fraction=0.06,
                                    aspect=25 * (last + 1 - k))
                bar.set_label(layout.wrapped(layer.unit, 72 * height(panel)))
                ticks = bar.ax.yaxis
            if isinstance(layer, Heat | Stripes) and layer.log:
                _log_ticks(ticks, *drawn[k].mapped.get_clim())
            for spine in bar.ax.spines.values():
                spine.set_visible(False)
        k = last + 1


def _meaning(panel: Panel) -> Any:
    """The meaning of a panel's colours: equal for two panels that may share a colour bar."""
    colours = (layer for layer in panel.layers if isinstance(layer, Heat | Stripes) and layer.bounds is not None)
    layer = next(colours, None)
    return object() if layer is None else (layer.unit, layer.log, layer.bounds)


def _settle(made: "Figure", fitted: Sequence[tuple["Axes", Fitted]]) -> None:
    """Lay the figure out, then write each text that depends on room in the longest form that fits, or not at all."""
    if not fitted:
        return
    made.draw_without_rendering()
    for axes, each in fitted:
        (left, _), (right, _) = axes.transData.transform([(each.low, 0.0), (each.high, 0.0)])
        room = abs(right - left) * 72 / made.dpi - each.margin
        form = next((form for form in each.forms if size(form, each.artist.get_fontsize()) <= room), "")
        each.artist.set_text(form)


def _align(made: "Figure", parts: Sequence[Any], rows: int) -> None:
    """Give the axes of a row that stand side by side, and their colour bars, the same top and bottom."""
    made.draw_without_rendering()
    made.set_layout_engine("none")
    places = {axes: axes.get_position(original=True) for part in parts for axes in part.axes}
    bottoms: dict[float, float] = {}
    tops: dict[float, float] = {}
    for row in range(rows):
        beside = [places[part.axes[row]] for part in parts if row < len(part.axes) and not _is_bar(part.axes[row])]
        bottom, top = max(place.y0 for place in beside), min(place.y1 for place in beside)
        bottoms |= {place.y0: bottom for place in beside}
        tops |= {place.y1: top for place in beside}
    for axes, place in places.items():
        bottom, top = (ends[min(ends, key=lambda end: abs(end - at))] for ends, at in ((bottoms, place.y0),
                                                                                    (tops, place.y1)))
        axes.set_position((place.x0, bottom, place.width, top - bottom))


def _is_bar(axes: Any) -> bool:
    return bool(axes.get_label() == "<colorbar>")


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


def _scale(drawn: Any, axis: Axis, set_scale: Any, room: float, points: float) -> None:
    """Set the scale and the ticks of an axis of at least `room` points; points: the size of the font."""
    if axis.log:
        set_scale("log")
    if axis.ticks is None:
        return
    drawn.set_ticks(axis.ticks[0], axis.ticks[1])
    drawn.set_ticks([], minor=True)
    rotated = drawn.axis_name == "x" and upright(axis, points)
    if rotated:
        drawn.set_tick_params(rotation=90)
    if not axis.spaced and (rotated or drawn.axis_name == "y"):  # the largest font with room for all labels
        drawn.set_tick_params(labelsize=min(points, room / (LINE * len(axis.ticks[1]))))
