"""The options of mlm-rect."""

from dataclasses import dataclass
from typing import Any

from mlmglauber.commands.shared.options import MODEL_OPTIONS, TextOptions


@dataclass(frozen=True, kw_only=True)
class RectOptions(TextOptions):
    """Values of the options of mlm-rect."""

    site: tuple[str, ...]
    to: tuple[str, ...]
    rectangles: int
    gap: int | None
    draw: str
    tau: float
    noise: bool
    summary: bool
    table: str
    fail_above: float | None
    path: bool
    burn_in: int | None
    freeze: list[int] | None
    seed: int | None

    def in_run_record(self) -> dict[str, Any]:
        """The options that a run record holds under `options`."""
        return self.recorded(*MODEL_OPTIONS, "seed", "summary", "table", "fail_above", "path", "burn_in")
