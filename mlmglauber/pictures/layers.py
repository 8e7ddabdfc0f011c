"""Draws the layers of a panel on matplotlib's axes."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mlmglauber.pictures.palette import GREY, HEAT, PALE, TIME, category
from mlmglauber.pictures.panel import Bars, Cloud, Curve, Ground, Heat, Panel, Points, Rule, Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Entries = list[tuple[Any, str]]
"""Handles of a legend with their labels."""


class DrawnLayer(NamedTuple):
    """The legend entries of a drawn layer, in the order of `labels`, and the artist that a colour bar describes."""

    entries: Entries
    mapped: Any = None


def draw(axes: "Axes", panel: Panel, layer: Any) -> DrawnLayer:
    """Draw one layer of a panel."""
    match layer:
        case Curve():
            return _named(_curve(axes, panel, layer), layer.label)
        case Points():
            return _named(_points(axes, panel, layer), layer.label)
        case Bars():
            axes.stairs(layer.heights, layer.edges, fill=True, color=layer.color, alpha=0.2, linewidth=0)
            return _named(axes.stairs(layer.heights, layer.edges, color=layer.color), layer.label)
        case Rule():
            rule = axes.axvline if layer.upright else axes.axhline
            return _named(rule(layer.at, color=layer.color, linestyle=layer.dash, linewidth=1.0), layer.label)
        case Heat():
            return _heat(axes, panel, layer)
        case Cloud():
            points = axes.scatter(layer.x, layer.y, c=layer.values, cmap=TIME, s=6, linewidths=0, zorder=2)
            return DrawnLayer([], points)
        case Ground():
            return _ground(axes, layer)
    raise TypeError(type(layer))


def labels(layer: Any) -> list[str]:
    """The labels that a layer adds to the legend."""
    if isinstance(layer, Ground):
        return list(layer.names)
    if isinstance(layer, Heat):
        return [layer.missing] if layer.missing else []
    return [layer.label] if getattr(layer, "label", "") else []


def _named(handle: Any, label: str) -> DrawnLayer:
    return DrawnLayer([(handle, label)] if label else [])


def shown(values: Values, log: bool) -> Values:
    """Values to draw: NaN in the place of values that a logarithmic axis cannot show."""
    return np.where(values <= 0, np.nan, values) if log else values


def _curve(axes: "Axes", panel: Panel, curve: Curve) -> Any:
    x, y = shown(curve.x, panel.x.log), shown(curve.y, panel.y.log)
    steps: Any = "post" if curve.stairs else None
    look: dict[str, Any] = {"linewidth": 0.5, "zorder": 1.0} if curve.faint else {"linewidth": 1.2, "zorder": 2.0}
    alone = np.isfinite(x * y).sum() == 1  # a line through one point would be invisible
    if curve.mark:
        look |= {"markersize": 5, "markeredgewidth": 0.8, "markerfacecolor": "white" if curve.dashed else curve.color}
    line, = axes.plot(x, y, marker=curve.mark or ("o" if alone else None), color=curve.color,
                      linestyle="--" if curve.dashed else "-", drawstyle="steps-post" if curve.stairs else None, **look)
    if curve.low is not None and curve.high is not None:
        axes.fill_between(x, shown(curve.low, panel.y.log), shown(curve.high, panel.y.log), color=curve.color,
                          alpha=0.18, linewidth=0, step=steps)
    return line


def _points(axes: "Axes", panel: Panel, points: Points) -> Any:
    x, y = shown(points.x, panel.x.log), shown(points.y, panel.y.log)
    if points.low is not None and points.high is not None:
        _intervals(axes, panel, points, x, y)
    face = "white" if points.hollow and not points.faint else "none" if points.hollow else points.color
    line, = axes.plot(x, y, points.mark, color=points.color, markerfacecolor=face,
                      markersize=3 if points.faint else 5, markeredgewidth=0.8, alpha=0.45 if points.faint else 1.0,
                      linestyle="none", zorder=2.0 if points.faint else 3.0)
    return line


def _intervals(axes: "Axes", panel: Panel, points: Points, x: Values, y: Values) -> None:
    """Error bars in front of their marks; sideways ones have a white edge. Closed ends have caps, open ends none."""
    from matplotlib.patheffects import Normal, Stroke

    log = panel.x.log if points.sideways else panel.y.log
    middle = x if points.sideways else y
    ends = [shown(end, log) for end in (points.low, points.high) if end is not None]
    low, high = (np.where(np.isnan(end), middle, end) for end in ends)
    bars = axes.hlines(y, low, high) if points.sideways else axes.vlines(x, low, high)
    bars.set(color=points.color, linewidth=0.9, zorder=3.5)
    if points.sideways:
        bars.set_path_effects([Stroke(linewidth=1.9, foreground="white"), Normal()])
    for end in ends:
        place = (end, y) if points.sideways else (x, end)
        axes.plot(*place, "|" if points.sideways else "_", color=points.color, markersize=4, markeredgewidth=0.9,
                  linestyle="none", zorder=3.6)


def edges(centres: Values, log: bool) -> Values:
    """(N + 1,) the borders of cells around N centres, halfway between neighbours.

    >>> edges(np.array([1.0, 2.0, 4.0]), True).round(3).tolist()
    [0.707, 1.414, 2.828, 5.657]
    """
    places = np.log(centres) if log else np.asarray(centres, dtype=np.float64)
    half = np.diff(places) / 2 if len(places) > 1 else np.array([0.5])
    ends = np.concatenate([[places[0] - half[0]], places[:-1] + half[: len(places) - 1], [places[-1] + half[-1]]])
    return np.exp(ends) if log else ends


def _heat(axes: "Axes", panel: Panel, heat: Heat) -> DrawnLayer:
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.patches import Rectangle

    seen = heat.values[np.isfinite(heat.values)]
    low, high = heat.bounds or ((float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0))
    norm = (LogNorm if heat.log else Normalize)(low, high if high > low else low + 1)
    axes.set_facecolor(PALE)
    x, y = edges(heat.x, panel.x.log), edges(heat.y, panel.y.log)
    cells = axes.pcolormesh(x, y, heat.values, cmap=HEAT, norm=norm, rasterized=heat.values.size > 10_000)
    entries: Entries = []
    if heat.missing:
        hatched: dict[str, Any] = {"hatch": "////", "edgecolor": GREY, "facecolor": PALE, "linewidth": 0}
        for row, column in np.argwhere(~np.isfinite(heat.values)).tolist():
            axes.add_patch(Rectangle((x[column], y[row]), x[column + 1] - x[column], y[row + 1] - y[row], **hatched))
        entries.append((Rectangle((0, 0), 1, 1, **hatched), heat.missing))
    if heat.written:
        for row, column in np.argwhere(np.isfinite(heat.values)).tolist():
            value = heat.values[row, column]
            axes.text(heat.x[column], heat.y[row], f"{value:.2f}".removeprefix("0"), ha="center", va="center",
                      fontsize=6, color="black" if norm(value) > 0.5 else "white")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=2)
    return DrawnLayer(entries, cells)


def _ground(axes: "Axes", ground: Ground) -> DrawnLayer:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colors = [category(k).color for k in range(len(ground.names))]
    masked = np.ma.masked_less(ground.codes, 0)
    axes.pcolormesh(edges(ground.x, False), edges(ground.y, False), masked, cmap=ListedColormap(colors), alpha=0.25,
                    vmin=-0.5, vmax=len(colors) - 0.5, linewidth=0, rasterized=True, zorder=0)
    return DrawnLayer([(Patch(color=color, alpha=0.25, linewidth=0), name)
                  for name, color in zip(ground.names, colors, strict=True)])
