"""The options of mlm-plot."""

from dataclasses import dataclass

from mlmglauber.commands.shared.options import Options


@dataclass(frozen=True, kw_only=True)
class PlotOptions(Options):
    """Values of the options of mlm-plot."""

    kind: str | None
    threshold: float
    terminal: bool
    color_by: str
    style: str
    width: float | None
    dpi: int | None
    title: str | None
    panels: str | None
