"""Colours of values on a page: a scale of plotly, with a bar that says what they mean."""

from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.page.escaping import escaped
from mlmglauber.pictures.page.layout import SMALL
from mlmglauber.pictures.panel import Values


class ColorScale(NamedTuple):
    """A scale from `low` to `high`, logarithmic or not; name: of a colour map of plotly; unit: label of the bar."""

    name: str
    low: float
    high: float
    unit: str
    log: bool = False

    def scaled(self, values: Values) -> Values:
        """Values as the figure has them: their decimal logarithms on a logarithmic scale."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log10(np.where(values <= 0, np.nan, values)) if self.log else np.asarray(values, np.float64)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value, scaled, and different from each other."""
        low, high = self.scaled(np.array([self.low, self.high])).tolist()
        return (low, high) if high > low else (low - 0.5, low + 0.5)

    def axis(self, **bar: Any) -> dict[str, Any]:
        """A coloraxis of plotly with its bar."""
        low, high = self.ends
        return {"colorscale": self.name, "cmin": low, "cmax": high, "colorbar": bar | {
            "title": {"text": escaped(self.unit), "side": "right" if bar.get("orientation") != "h" else "top",
                      "font": SMALL}, "tickfont": SMALL, "outlinewidth": 0} | (self._ticks() if self.log else {})}

    def _ticks(self) -> dict[str, Any]:
        """Powers of ten on a long logarithmic scale, also 2 and 5 times them on a short one."""
        low, high = self.ends
        digits = (1,) if high - low > 2 else (1, 2, 5)
        values = [digit * 10.0**power for power in range(int(np.floor(low)), int(np.ceil(high)) + 1)
                  for digit in digits]
        inside = [value for value in values if low - 1e-9 <= np.log10(value) <= high + 1e-9]
        return {"tickmode": "array", "tickvals": [float(np.log10(value)) for value in inside],
                "ticktext": [f"{value:,.10g}" for value in inside]}

    def is_dark(self, values: Values) -> Any:
        """Whether white letters are read more easily than black ones on the colour of each value."""
        from plotly.colors import sample_colorscale, unlabel_rgb

        low, high = self.ends
        share = np.clip(np.nan_to_num((self.scaled(values) - low) / (high - low)), 0, 1)
        levels = np.array([np.dot(unlabel_rgb(color), (0.3, 0.6, 0.1)) < 0.55 * 255
                           for color in sample_colorscale(self.name, [k / 64 for k in range(65)])])
        return levels[np.rint(64 * share).astype(int)] & np.isfinite(values)
