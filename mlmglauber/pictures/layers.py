"""Draws the layers of a panel on matplotlib's axes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mlmglauber.pictures.palette import GREY, HEAT, MARKED, PALE, STAND, TIME, category
from mlmglauber.pictures.panel import Bars, Cloud, Curve, Ground, Heat, Panel, Points, Rule, Values
from mlmglauber.pictures.stripes import Stripes, TrapBracket

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Entries = list[tuple[Any, str]]
"""Handles of a legend with their labels."""


class Fitted(NamedTuple):
    """A text between two places of the horizontal axis: the longest of its forms with room is written."""

    artist: Any
    low: float
    high: float
    forms: Sequence[str]
    margin: float = 2.0
    """Points that stay free."""


class DrawnLayer(NamedTuple):
    """The legend entries of a drawn layer, in the order of `labels`, and the artist that a colour bar describes.

    fitted: texts that are written when the width of the axes is known.
    """

    entries: Entries
    mapped: Any = None
    fitted: Sequence[Fitted] = ()


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
        case Stripes():
            return _stripes(axes, layer)
    raise TypeError(type(layer))


def labels(layer: Any) -> list[str]:
    """The labels that a layer adds to the legend."""
    if isinstance(layer, Ground):
        return list(layer.names)
    if isinstance(layer, Heat):
        return [layer.missing] if layer.missing else []
    if isinstance(layer, Stripes):
        return layer.labels()
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


def _stripes(axes: "Axes", stripes: Stripes) -> DrawnLayer:
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.path import Path

    norm = (LogNorm if stripes.log else Normalize)(*stripes.bounds, clip=True)
    colors = colormaps[STAND].with_extremes(bad=PALE)
    n = len(stripes.values)
    cells = axes.pcolormesh(stripes.edges, np.arange(n + 1) - 0.5, np.ma.masked_invalid(stripes.values), cmap=colors,
                            norm=norm, rasterized=stripes.values.size > 10_000)
    axes.hlines(np.arange(1, n) - 0.5, *stripes.edges[[0, -1]], color="white", linewidth=min(1.0, 16 / n))
    sites, columns = np.nonzero(stripes.changed)
    x = stripes.edges[columns]
    ends: Any = np.stack([np.stack([x, sites - 0.46], 1), np.stack([x, sites + 0.46], 1)], 1)
    marks = LineCollection(ends,
                           colors=MARKED, linewidths=0.7, rasterized=len(x) > 5_000)
    axes.add_collection(marks, autolim=False)
    fitted = []
    for first, last, site, word in stripes.words:
        column = int(np.searchsorted(stripes.edges, (first + last) / 2)) - 1
        value = stripes.values[site, max(column, 0)]
        shade = colors(norm(value)) if np.isfinite(value) else (1, 1, 1, 1)
        dark = float(np.dot(shade[:3], (0.3, 0.6, 0.1))) < 0.55
        text = axes.text((first + last) / 2, site, "", ha="center", va="center_baseline", clip_on=True,
                         color="white" if dark else "black", fontsize=min(6.5, 90 / n))
        fitted.append(Fitted(text, first, last, [word], 3.0))
    for bracket in stripes.brackets:
        fitted.append(_bracket(axes, stripes, bracket))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=2)
    axes.tick_params(axis="y", length=0)
    handles: list[Any] = [Line2D([], [], color=MARKED, linewidth=0.9, marker="|", linestyle="none", markersize=7)]
    shape = Path([(-1.0, -0.3), (-1.0, 0.3), (1.0, 0.3), (1.0, -0.3)])
    handles += [Line2D([], [], color="black", marker=shape, markerfacecolor="none", linestyle="none", markersize=9)
                ] * bool(stripes.brackets)
    handles += [Patch(color=PALE, linewidth=0)] * bool(stripes.missing)
    return DrawnLayer(list(zip(handles, stripes.labels(), strict=True)), cells, fitted)


def _bracket(axes: "Axes", stripes: Stripes, bracket: TrapBracket) -> Fitted:
    """Draw a bracket above the stripes, with its label above it."""
    base = -0.5 - stripes.lane * bracket.lane
    line, foot = base - 0.35 * stripes.lane, base - 0.05 * stripes.lane
    axes.plot([bracket.first, bracket.first, bracket.last, bracket.last],
              [foot, line, line, line if bracket.open else foot], color="black", linewidth=1.0, solid_capstyle="butt",
              clip_on=False)
    text = axes.text((bracket.first + bracket.last) / 2, line - 0.08 * stripes.lane, "", ha="center", va="bottom",
                     fontsize=7)
    return Fitted(text, bracket.first, bracket.last, bracket.forms)
