"""Draws a picture with characters for a terminal: series as letters, matrices as shades."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlmglauber.pictures.panel import Axis, Bars, Cloud, Curve, Ground, Heat, Panel, Picture, Points, Rule, Values
from mlmglauber.pictures.stripes import Stripes
from mlmglauber.pictures.stripes_text import drawn_stripes
from mlmglauber.pictures.trajectory_layers import expanded
from mlmglauber.stream.printable import printable

HEIGHT = 16
LETTERS = "ox+*#%&@sdvpz"
SHADES = " ░▒▓█"
BAND = "·"
WRITTEN = 5
"""Minimum width of a cell with a number."""


def text(picture: Picture, width: int = 80) -> str:
    """A picture as text: title and panels one below the other, in lines of at most `width` characters."""
    title = [_cut(picture.title, width) + "\n"] if picture.title else []
    return "\n".join([*title, *(_panel(panel, width) for panel in expanded(picture).panels)])


def _panel(panel: Panel, width: int) -> str:
    heat = next((layer for layer in panel.layers if isinstance(layer, Heat)), None)
    lines = [panel.title] if panel.title else []
    stripes = next((layer for layer in panel.layers if isinstance(layer, Stripes)), None)
    if stripes is not None:
        lines += drawn_stripes(panel, stripes, width)
    else:
        lines += _matrix(panel, heat, width) if heat is not None else _plot(panel, width)
    return "\n".join(_cut(line, width) for line in lines) + "\n"


def _cut(line: str, width: int) -> str:
    """A line without what a terminal must not get, of at most `width` characters."""
    return printable(line.replace("\u00a0", " "))[:width].rstrip()


class _Scale:
    """Maps values along an axis to cells."""

    def __init__(self, axis: Axis, values: Values) -> None:
        self.log = axis.log
        seen = self._flat(values)
        seen = seen[np.isfinite(seen)]
        ends = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
        fixed_ends = [None if end is None else float(self._flat(np.array([end]))[0]) for end in (axis.low, axis.high)]
        self.low, self.high = (end if fixed is None else fixed for fixed, end in zip(fixed_ends, ends, strict=True))
        if self.high <= self.low:
            self.low, self.high = self.low - 0.5, self.low + 0.5

    def _flat(self, values: Values) -> Values:
        with np.errstate(invalid="ignore"):
            return np.log(np.where(values <= 0, np.nan, values)) if self.log else np.asarray(values, dtype=np.float64)

    def places(self, values: Values, cells: int) -> Values:
        """The cell of each value; NaN for values outside the axis."""
        share = (self._flat(np.asarray(values, dtype=np.float64)) - self.low) / (self.high - self.low)
        return np.where((share >= -1e-9) & (share <= 1 + 1e-9), np.clip(share * cells, 0, cells - 1), np.nan)

    def at(self, share: float) -> str:
        """The value at a place from 0 to 1 of the axis, as a label."""
        value = self.low + share * (self.high - self.low)
        return f"{np.exp(value) if self.log else value:.3g}"


def _xy(layer: Any) -> tuple[list[Values], list[Values]]:
    """The x and y values of a layer that the axes must show."""
    none = np.empty(0)
    match layer:
        case Bars():
            return [layer.edges], [np.concatenate([[0.0], layer.heights])]
        case Rule():
            at = np.array([layer.at])
            return ([at], []) if layer.upright else ([], [at])
        case Curve():
            return [layer.x], [layer.y, *(none if end is None else end for end in (layer.low, layer.high))]
        case _:
            return [layer.x], [layer.y]


def _plot(panel: Panel, width: int) -> list[str]:
    needed = [_xy(layer) for layer in panel.layers]
    across = _Scale(panel.x, np.concatenate([np.empty(0), *(part for parts, _ in needed for part in parts)]))
    upward = _Scale(panel.y, np.concatenate([np.empty(0), *(part for _, parts in needed for part in parts)]))
    margin = 9
    columns = width - margin - 2
    grid = np.full((HEIGHT, columns), " ")
    names: list[str] = []
    letters: dict[str, str] = {}
    for layer in panel.layers:
        _layer(grid, across, upward, layer, letters, names)
    rows = []
    for k, row in enumerate(grid):
        read = upward.at(1 - k / (HEIGHT - 1)) if k in (0, HEIGHT // 2, HEIGHT - 1) else ""
        rows.append(f"{read:>{margin - 1}} │" + "".join(row))
    left, middle, right = (across.at(share) for share in (0, 0.5, 1))
    half = columns // 2
    ends = left.ljust(half - len(middle) // 2) + middle
    below = " " * margin + "└" + "─" * columns
    return [panel.y.label, *rows, below, " " * (margin + 1) + ends + right.rjust(columns - len(ends)),
            panel.x.label.center(width), *(f"  {name}" for name in names)]


def _layer(grid: Any, across: _Scale, upward: _Scale, layer: Any, letters: dict[str, str], names: list[str]) -> None:
    """Draw a layer on the grid; letters: those of the colours so far; names: the legend so far. Both grow."""
    rows, columns = grid.shape
    if isinstance(layer, Ground) or (isinstance(layer, Curve) and layer.faint):
        return  # they would hide the states
    letter_of_color = ""
    if isinstance(layer, Curve | Bars | Points):  # layers of one colour share a letter
        letter_of_color = letters.setdefault(layer.color, LETTERS[len(letters) % len(LETTERS)])

    def put(x: Values, y: Values, letter: str, over: bool = True) -> None:
        c, r = across.places(x, columns), upward.places(y, rows)
        seen = np.isfinite(c) & np.isfinite(r)
        for column, row in zip(c[seen].astype(int), rows - 1 - r[seen].astype(int), strict=True):
            if over or grid[row, column] == " ":
                grid[row, column] = letter

    def named(letter: str, label: str) -> str:
        if label:
            names.append(f"{letter} {label}")
        return letter

    match layer:
        case Rule():
            if layer.upright:
                put(np.full(rows * 2, layer.at), _along(upward, rows), named("¦", layer.label), over=False)
            else:
                letter = named("-" if layer.dash == ":" else "=", layer.label)
                put(_along(across, columns), np.full(columns * 2, layer.at), letter, over=False)
        case Curve():
            x, parts = _dense(layer, across, columns)
            if layer.low is not None:
                for share in np.linspace(0, 1, 2 * rows):
                    put(x, parts[1] + share * (parts[2] - parts[1]), BAND, over=False)
            put(x, parts[0], named("~" if layer.dashed else letter_of_color, layer.label))
        case Bars():
            letter = named(letter_of_color, layer.label)
            left, right = layer.edges[:-1], layer.edges[1:]
            middle = np.sqrt(left * right) if across.log else (left + right) / 2
            for x, height in zip(middle, layer.heights, strict=True):
                if height > 0:
                    y = np.linspace(0, height, 2 * rows)
                    put(np.full(len(y), x), y, letter)
        case Points():
            put(layer.x, layer.y, named("^" if layer.mark == "^" else letter_of_color, layer.label))
        case Cloud():
            share = (layer.values - layer.values.min()) / (np.ptp(layer.values) or 1)
            for k in range(10):
                chosen = (share * 9.999).astype(int) == k
                put(layer.x[chosen], layer.y[chosen], str(k))
            names.append(f"0 … 9 {layer.unit}, {layer.values.min():g} to {layer.values.max():g}")


def _along(scale: _Scale, cells: int) -> Values:
    """Values along a whole axis, two for each cell."""
    places = np.linspace(scale.low, scale.high, 2 * cells)
    return np.exp(places) if scale.log else places


def _dense(curve: Curve, across: _Scale, columns: int) -> tuple[Values, list[Values]]:
    """A curve interpolated at every column between its ends; a curve of one point stays as it is."""
    x = _along(across, columns)
    parts = [part for part in (curve.y, curve.low, curve.high) if part is not None]
    known = np.isfinite(curve.y)
    if known.sum() < 2:
        return curve.x, parts
    order = np.argsort(curve.x[known], kind="stable")
    known_x = curve.x[known][order]
    x = x[(x >= known_x[0]) & (x <= known_x[-1])]
    if curve.stairs:
        return x, [part[known][order][np.searchsorted(known_x, x, side="right") - 1] for part in parts]
    return x, [np.interp(x, known_x, part[known][order]) for part in parts]


def _matrix(panel: Panel, heat: Heat, width: int) -> list[str]:
    seen = heat.values[np.isfinite(heat.values)]
    low, high = heat.bounds or ((float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0))
    rows = _names(panel.y, heat.y)
    columns = _names(panel.x, heat.x)
    margin = max(map(len, rows)) + 1
    cell = max(2, min(8, (width - margin) // max(len(columns), 1)))
    order = range(len(heat.y)) if panel.y.downwards else range(len(heat.y) - 1, -1, -1)
    lines = [f"{panel.y.label} (down), {panel.x.label} (across)"]
    for row in order:
        cells = "".join(_shade(value, low, high, heat.log, cell) for value in heat.values[row])
        lines.append(f"{rows[row]:>{margin - 1}} {cells}")
    lines.append(" " * margin + "".join(f"{name[: cell - 1]:<{cell}}" for name in columns))
    key = "the numbers are" if cell >= WRITTEN else f"{SHADES[1]}…{SHADES[-1]}"
    lines.append(f"  {key} {heat.unit}, {low:.3g} to {high:.3g}")
    return lines + ([f"  ? {heat.missing}"] if heat.missing else [])


def _names(axis: Axis, places: Values) -> Sequence[str]:
    return axis.ticks[1] if axis.ticks is not None and len(axis.ticks[1]) == len(places) else [f"{p:g}" for p in places]


def _shade(value: float, low: float, high: float, log: bool, cell: int) -> str:
    if not np.isfinite(value):
        return "?" * (cell - 1) + " "
    if cell >= WRITTEN:
        return f"{value:.2g}".ljust(cell)
    share = (np.log(value / low) / (np.log(high / low) or 1.0) if log else (value - low) / ((high - low) or 1.0))
    return SHADES[min(int(share * 4) + (value > low), 4)] * cell
