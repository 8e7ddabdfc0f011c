"""A picture as a matplotlib Figure, and a Figure as the bytes of a PNG, SVG or PDF: the same for the same input."""

import io
import logging
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from mlmglauber.pictures.palette import DPI, GREY, HEAT, PALE, STYLE, TIME, WIDTH, category
from mlmglauber.pictures.panel import Axis, Bars, Cloud, Curve, Ground, Heat, Panel, Picture, Points, Rule, Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
LETTERS = 56
"""So many letters of a legend fit side by side."""
LETTER = 4.6
"""Points that a letter of an axis takes, about."""
TITLE = 50
"""So many of a title."""
NARROW = 4.0
"""A logarithmic axis spans this factor at least."""


@contextmanager
def style() -> Iterator[None]:
    """Our settings and none of the user's, while a figure is made or saved."""
    import matplotlib.style

    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # a font without a token's letters is no news to a pipe
    with matplotlib.style.context(["default", STYLE]):
        yield


def figure(picture: Picture) -> "Figure":
    """The panels one below the other, a column wide."""
    from matplotlib.figure import Figure

    heights = [sum(_heights(panel)) for panel in picture.panels]
    with style():
        made = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
        axes = made.subplots(len(heights), squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
        for panel, place in zip(picture.panels, axes, strict=True):
            _draw(made, place, panel)
    return made


def content(made: "Figure", form: str, dpi: int = DPI) -> bytes:
    """The bytes of a figure in one of FORMATS: without dates, the same for the same figure."""
    metadata: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    told = io.BytesIO()
    with style():
        made.savefig(told, format=form, dpi=dpi, metadata=metadata[form])
    return told.getvalue()


def _heights(panel: Panel) -> tuple[float, float]:
    """Inches of the axes, more for a matrix of many rows and for a plane, and of what stands above and below them."""
    rows = max((len(layer.y) for layer in panel.layers if isinstance(layer, Heat)), default=0)
    names = [name for layer in panel.layers for name in _labels(layer)]
    lines = -(-len(names) // _columns(names)) if names else 0
    letters = max(map(len, panel.x.ticks[1])) if panel.x.ticks is not None and _upright(panel.x) else 0
    return (max(2.2 if panel.square else 1.5, min(0.15 * rows, 5.0)),
            0.45 + 0.14 * (lines + len(_title(panel))) + 0.05 * letters)


def _labels(layer: Any) -> list[str]:
    """What a layer adds to the legend."""
    if isinstance(layer, Ground):
        return list(layer.names)
    if isinstance(layer, Heat):
        return [layer.missing] if layer.missing else []
    return [layer.label] if getattr(layer, "label", "") else []


def _title(panel: Panel) -> list[str]:
    return textwrap.wrap(panel.title, TITLE)


def _wrapped(label: str, panel: Panel) -> str:
    """A label in as many lines as the height of the axes asks for, all about as long."""
    lines = len(textwrap.wrap(label, int(_heights(panel)[0] * 72 / LETTER)))
    width = next(width for width in range(1, len(label) + 2) if len(textwrap.wrap(label, width)) <= max(lines, 1))
    return textwrap.fill(label, width)


def _columns(names: list[str]) -> int:
    return max(1, min(len(names), 4, LETTERS // (max(map(len, names)) + 6)))


def _draw(made: "Figure", axes: "Axes", panel: Panel) -> None:
    _scale(axes.xaxis, panel.x, axes.set_xscale, axes.set_xlim)
    _scale(axes.yaxis, panel.y, axes.set_yscale, axes.set_ylim)
    axes.set_xlabel(panel.x.label)
    axes.set_ylabel(_wrapped(panel.y.label, panel))
    for layer in panel.layers:
        _layer(made, axes, panel, layer)
    if panel.square:
        axes.set_aspect("equal", adjustable="datalim")
    for axis, limits in ((panel.x, axes.set_xlim), (panel.y, axes.set_ylim)):
        if axis.low is not None or axis.high is not None:
            limits(axis.low, axis.high)
    if panel.y.downwards:
        axes.invert_yaxis()
    for axis, drawn, limits in ((panel.x, axes.xaxis, axes.set_xlim), (panel.y, axes.yaxis, axes.set_ylim)):
        if axis.log and axis.ticks is None:
            low, high = limits()
            if high / low < NARROW:
                low, high = limits(low * (high / low / NARROW) ** 0.5, high * (NARROW * low / high) ** 0.5)
            _log_ticks(drawn, low, high)
    _head(made, axes, panel)


def _head(made: "Figure", axes: "Axes", panel: Panel) -> None:
    """Title and legend above the axes, as wide as the column: they hide nothing."""
    from matplotlib.transforms import blended_transform_factory

    names = [name for layer in panel.layers for name in _labels(layer)]
    if names or panel.title:
        handles = axes.get_legend_handles_labels()[0] if names else []
        left_of_all = blended_transform_factory(made.transFigure, axes.transAxes)
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.005, 1.0), bbox_transform=left_of_all,
                    borderaxespad=0.2, ncols=_columns(names or [""]),
                    title="\n".join(_title(panel)) or None, alignment="left")


def _log_ticks(drawn: Any, low: float, high: float) -> None:
    """Ticks of a logarithmic axis: powers of ten or, where there would be few, 1, 2 and 5 times these."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    few = high / low < 50
    drawn.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=7))
    drawn.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
    drawn.set_minor_formatter(NullFormatter())


def power(value: float) -> str:
    """A number as a tick reads it, with a power of ten where it is far from 1.

    >>> power(0.02), power(1e-7), power(50000)
    ('0.02', '10⁻⁷', '5·10⁴')
    """
    exponent = int(np.floor(np.log10(value) + 1e-9))
    if -3 < exponent < 4:
        return f"{value:g}"
    digit = round(value / 10.0**exponent)
    raised = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return raised if digit == 1 else f"{digit}·{raised}"


def _scale(drawn: Any, axis: Axis, set_scale: Any, set_limits: Any) -> None:
    if axis.log:
        set_scale("log")
    if axis.ticks is not None:
        drawn.set_ticks(axis.ticks[0], axis.ticks[1])
        drawn.set_ticks([], minor=True)
        if drawn.axis_name == "x" and _upright(axis):
            drawn.set_tick_params(rotation=90)


def _upright(axis: Axis) -> bool:
    """Whether the names at a level axis are written upwards, since they have no room side by side."""
    return axis.ticks is not None and sum(len(name) + 1 for name in axis.ticks[1]) > 40


def _shown(values: Values, log: bool) -> Values:
    """Values on a logarithmic axis: 0 has no place there."""
    return np.where(values <= 0, np.nan, values) if log else values


def _layer(made: "Figure", axes: "Axes", panel: Panel, layer: Any) -> None:
    match layer:
        case Curve():
            _curve(axes, panel, layer)
        case Points():
            _points(axes, panel, layer)
        case Bars():
            axes.stairs(layer.heights, layer.edges, fill=True, color=layer.color, alpha=0.2, linewidth=0)
            axes.stairs(layer.heights, layer.edges, color=layer.color, label=layer.label)
        case Rule():
            draw = axes.axvline if layer.upright else axes.axhline
            draw(layer.at, color=layer.color, linestyle=":", linewidth=1.0, label=layer.label or None)
        case Heat():
            _heat(made, axes, panel, layer)
        case Cloud():
            dots = axes.scatter(layer.x, layer.y, c=layer.values, cmap=TIME, s=6, linewidths=0, zorder=2)
            _bar(made, axes, dots, _wrapped(layer.unit, panel))
        case Ground():
            _ground(axes, layer)


def _curve(axes: "Axes", panel: Panel, curve: Curve) -> None:
    x, y = _shown(curve.x, panel.x.log), _shown(curve.y, panel.y.log)
    steps: Any = "post" if curve.stairs else None
    look: dict[str, Any] = {"linewidth": 0.4, "zorder": 1.0} if curve.faint else {"linewidth": 1.2, "zorder": 2.0}
    alone = np.isfinite(x * y).sum() == 1  # a line through one point is a point
    axes.plot(x, y, marker="o" if alone else None, color=curve.color, linestyle="--" if curve.dashed else "-",
              label=curve.label or None, drawstyle="steps-post" if curve.stairs else None, **look)
    if curve.low is not None and curve.high is not None:
        axes.fill_between(x, _shown(curve.low, panel.y.log), _shown(curve.high, panel.y.log), color=curve.color,
                          alpha=0.18, linewidth=0, step=steps)


def _points(axes: "Axes", panel: Panel, points: Points) -> None:
    x, y = _shown(points.x, panel.x.log), _shown(points.y, panel.y.log)
    if points.low is not None and points.high is not None:
        log = panel.x.log if points.sideways else panel.y.log
        low, high = _shown(points.low, log), _shown(points.high, log)
        if points.sideways:
            axes.hlines(y, np.where(np.isnan(low), x, low), np.where(np.isnan(high), x, high), color=points.color,
                        linewidth=0.9)
        else:
            axes.vlines(x, np.where(np.isnan(low), y, low), np.where(np.isnan(high), y, high), color=points.color,
                        linewidth=0.9)
    face = "white" if points.hollow and not points.faint else "none" if points.hollow else points.color
    axes.plot(x, y, points.mark, color=points.color, markerfacecolor=face, label=points.label or None,
              markersize=3 if points.faint else 5, markeredgewidth=0.8, alpha=0.45 if points.faint else 1.0,
              linestyle="none", zorder=2.0 if points.faint else 3.0)


def edges(centres: Values, log: bool) -> Values:
    """The borders of cells around centres: halfway between them.

    >>> edges(np.array([1.0, 2.0, 4.0]), True).round(3).tolist()
    [0.707, 1.414, 2.828, 5.657]
    """
    places = np.log(centres) if log else np.asarray(centres, dtype=np.float64)
    half = np.diff(places) / 2 if len(places) > 1 else np.array([0.5])
    found = np.concatenate([[places[0] - half[0]], places[:-1] + half[: len(places) - 1], [places[-1] + half[-1]]])
    return np.exp(found) if log else found


def _heat(made: "Figure", axes: "Axes", panel: Panel, heat: Heat) -> None:
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.patches import Rectangle

    seen = heat.values[np.isfinite(heat.values)]
    low, high = heat.bounds or ((float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0))
    norm = (LogNorm if heat.log else Normalize)(low, high if high > low else low + 1)
    axes.set_facecolor(PALE)
    x, y = edges(heat.x, panel.x.log), edges(heat.y, panel.y.log)
    cells = axes.pcolormesh(x, y, heat.values, cmap=HEAT, norm=norm, rasterized=heat.values.size > 10_000)
    if heat.missing:
        hatched: dict[str, Any] = {"hatch": "////", "edgecolor": GREY, "facecolor": PALE, "linewidth": 0}
        for row, column in np.argwhere(~np.isfinite(heat.values)).tolist():
            axes.add_patch(Rectangle((x[column], y[row]), x[column + 1] - x[column], y[row + 1] - y[row], **hatched))
        axes.fill_between([], [], label=heat.missing, **hatched)
    if heat.written:
        for row, column in np.argwhere(np.isfinite(heat.values)).tolist():
            value = heat.values[row, column]
            axes.text(heat.x[column], heat.y[row], f"{value:.2f}".removeprefix("0"), ha="center", va="center",
                      fontsize=6, color="black" if norm(value) > 0.5 else "white")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=2)
    _bar(made, axes, cells, _wrapped(heat.unit, panel), heat.log)


def _bar(made: "Figure", axes: "Axes", drawn: Any, unit: str, log: bool = False) -> None:
    bar = made.colorbar(drawn, ax=axes, pad=0.02, fraction=0.06, aspect=25)
    bar.set_label(unit)
    if log:
        _log_ticks(bar.ax.yaxis, *bar.ax.get_ylim())
    for spine in bar.ax.spines.values():
        spine.set_visible(False)


def _ground(axes: "Axes", ground: Ground) -> None:
    from matplotlib.colors import ListedColormap

    colors = [category(k).color for k in range(len(ground.names))]
    shown = np.ma.masked_less(ground.codes, 0)
    axes.pcolormesh(edges(ground.x, False), edges(ground.y, False), shown, cmap=ListedColormap(colors), alpha=0.25,
                    vmin=-0.5, vmax=len(colors) - 0.5, linewidth=0, rasterized=True, zorder=0)
    for name, color in zip(ground.names, colors, strict=True):
        axes.fill_between([], [], color=color, alpha=0.25, linewidth=0, label=name)
