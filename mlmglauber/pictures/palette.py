"""The look of pictures: colours that colour-blind people can distinguish, sizes for one column of a paper."""

from collections.abc import Sequence
from typing import Any, NamedTuple

WIDTH = 3.375
"""Width in inches of a column of a two-column paper."""
DPI = 200
"""Resolution of PNG pictures in dots per inch."""

BLACK, GREY, PALE = "#000000", "#777777", "#e4e4e4"
CATEGORIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of series without an order, by Okabe and Ito (2008), without yellow, which is faint on white."""
MARKS = ("o", "s", "D", "v", "P", "X", "*")
"""A mark for each colour, so that series can be distinguished in grey print."""
_VIRIDIS = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962")
"""Colours of ordered series: the darker three quarters of viridis, whose brightness is ordered too."""
HEAT, TIME = "cividis", "viridis"
"""Perceptually uniform colour maps of matplotlib, for matrices and for time."""
STAND, MARKED = "Blues", "#D55E00"
"""The colour map of tokens that stand, light to dark, and the colour of changes."""

FAMILIES = ["DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Arial Unicode MS"]
"""Fonts; matplotlib takes the first that has a letter."""
_RC: dict[str, Any] = {
    "font.family": FAMILIES,
    "axes.titlelocation": "left", "axes.linewidth": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.2, "lines.markersize": 4,
    "legend.frameon": False, "legend.handlelength": 1.6, "legend.columnspacing": 1.2, "legend.borderpad": 0.1,
    "figure.constrained_layout.h_pad": 0.05,
    "text.parse_math": False,  # a $ in a text is a dollar sign
    "svg.hashsalt": "mlmglauber", "pdf.fonttype": 42,  # fonts are embedded as they are: text can be selected
}


class Style(NamedTuple):
    """Sizes of fonts in points, the resolution in dots per inch, and whether an SVG has text or outlines of letters."""

    ticks: float
    legend: float
    labels: float
    dpi: int
    svg_text: bool

    def settings(self) -> dict[str, Any]:
        """The settings of matplotlib."""
        return _RC | {
            "font.size": self.labels, "axes.labelsize": self.labels, "axes.titlesize": self.labels,
            "legend.fontsize": self.legend, "legend.title_fontsize": self.labels, "xtick.labelsize": self.ticks,
            "ytick.labelsize": self.ticks, "savefig.dpi": self.dpi, "svg.fonttype": "none" if self.svg_text else "path",
        }


STYLES = {"default": Style(7.0, 7.0, 8.0, DPI, svg_text=False), "paper": Style(8.0, 8.0, 8.0, 600, svg_text=True)}
"""The styles by name: SVG that looks the same everywhere, or 8 points at axes and in legends, and SVG with text."""


class Look(NamedTuple):
    """The colour and the mark of a series."""

    color: str
    mark: str


def category(k: int) -> Look:
    """The look of the k-th of several series without an order.

    >>> category(0), category(7).color == category(0).color
    (Look(color='#0072B2', mark='o'), True)
    """
    return Look(CATEGORIES[k % len(CATEGORIES)], MARKS[k % len(MARKS)])


def ordered(count: int) -> Sequence[Look]:
    """The looks of `count` ordered series, from dark to light.

    >>> [look.color for look in ordered(3)]
    ['#440154', '#2c728e', '#5ec962']
    """
    if count == 1:
        return [category(0)]
    looks = []
    for k in range(count):
        place = k * (len(_VIRIDIS) - 1) / (count - 1)
        low = min(int(place), len(_VIRIDIS) - 2)
        ends = [[int(color[at : at + 2], 16) for at in (1, 3, 5)] for color in _VIRIDIS[low : low + 2]]
        mixed = [round(a + (b - a) * (place - low)) for a, b in zip(*ends, strict=True)]
        looks.append(Look("#" + "".join(f"{part:02x}" for part in mixed), MARKS[k % len(MARKS)]))
    return looks
