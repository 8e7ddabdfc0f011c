"""Draws the stripes of a space-time picture with characters."""

from textwrap import wrap
from typing import Any

import numpy as np

from mlmglauber.pictures.panel import Panel
from mlmglauber.pictures.stripes import MARK, TRAP, Stripes, Values

SHADES = "·░▒▓█"
CHANGE = "|"
WORD = 12
"""Maximum width of the words at the edges."""
UNKNOWN = "?"


def drawn_stripes(panel: Panel, stripes: Stripes, width: int) -> list[str]:
    """The lines of a panel: brackets, a line for each site with its words at both ends, the axis, the legend."""
    n = len(stripes.values)
    left = list(panel.y.ticks[1]) if panel.y.ticks else [str(site) for site in range(n)]
    right = list(stripes.right)
    sides = [min(max(map(len, names), default=0), WORD if width >= 60 else 6) for names in (left, right)]
    cells = max(10, width - sum(sides) - 2)
    low, high = float(stripes.edges[0]), float(stripes.edges[-1])
    cells = min(cells, max(10, int(high - low)))
    margin = " " * (sides[0] + 1)
    lines = [panel.y.label + (" (at the right the last one)" if right else "")]
    lanes = max((bracket.lane for bracket in stripes.brackets), default=-1)
    for lane in range(lanes, -1, -1):
        row = [" "] * cells
        for bracket in stripes.brackets:
            if bracket.lane == lane:
                _bracket(row, bracket, low, high)
        lines.append(margin + "".join(row))
    shades = _shades(stripes)
    for site in range(n):
        name = left[site][: sides[0]].rjust(sides[0])
        end = f" {right[site][: sides[1]]}" if right else ""
        lines.append(f"{name} {_row(stripes, shades[site], site, cells)}{end}")
    ends = [f"{low:g}", f"{high - 1:g}"]
    lines.append(margin + ends[0] + ends[1].rjust(cells - len(ends[0])))
    lines.append(panel.x.label.center(width))
    key = f"  {SHADES[0]}…{SHADES[-1]} {stripes.unit}, {stripes.bounds[0]:.3g} to {stripes.bounds[1]:.3g}"
    lines += [f"  {CHANGE} {MARK}", key]
    lines += [f"  {UNKNOWN} {stripes.missing}"] if stripes.missing else []
    lines += [f"  ┌──┐ {TRAP}, with its steps"] if stripes.brackets else []
    return [part for line in lines for part in _wrapped(line, width)]


def _wrapped(line: str, width: int) -> list[str]:
    """A line in parts of at most `width` characters."""
    return wrap(line, width, subsequent_indent="    ", drop_whitespace=False) if len(line.rstrip()) > width else [line]


def _shades(stripes: Stripes) -> Any:
    """(n, C) the index of each cell's shade, -1 for cells of NaN."""
    values: Values = stripes.values
    low, high = stripes.bounds
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.log(values / low) / np.log(high / low) if stripes.log else (values - low) / (high - low)
    known = np.isfinite(values)
    return np.where(known, np.clip(np.nan_to_num(share) * len(SHADES), 0, len(SHADES) - 1).astype(int), -1)


def _row(stripes: Stripes, shades: Any, site: int, cells: int) -> str:
    """The stripe of a site: a cell with any change shows it, others the token that stands in their middle."""
    low, high = stripes.edges[[0, -1]]
    row = ""
    borders = np.linspace(low, high, cells + 1)
    starts = np.searchsorted(stripes.edges[:-1], borders - 1e-9)
    middles = np.searchsorted(stripes.edges, (borders[:-1] + borders[1:]) / 2, side="right") - 1
    for k in range(cells):
        shade = shades[middles[k]]
        standing = SHADES[shade] if shade >= 0 else UNKNOWN
        row += CHANGE if stripes.changed[site, starts[k] : starts[k + 1]].any() else standing
    return row


def _bracket(row: list[str], bracket: Any, low: float, high: float) -> None:
    """Draw a bracket into a row of characters, with the longest form of its label that fits."""
    cells = len(row)
    first, last = (min(int((step - low) / (high - low) * cells), cells - 1) for step in (bracket.first, bracket.last))
    row[first : last + 1] = "─" * (last - first + 1)
    row[first], row[last] = "┌", "─" if bracket.open else "┐"
    room = last - first - 1
    form = next((form for form in bracket.forms if len(form) <= room), "")
    at = first + 1 + (room - len(form)) // 2
    row[at : at + len(form)] = form
