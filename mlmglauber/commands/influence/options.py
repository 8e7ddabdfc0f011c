"""The options of mlm-influence."""

from dataclasses import dataclass
from typing import Any

from mlmglauber.commands.shared.options import MODEL_OPTIONS, TextOptions


@dataclass(frozen=True, kw_only=True)
class InfluenceOptions(TextOptions):
    """Values of the options of mlm-influence."""

    tau: list[float] | None
    draw: str
    replacements: int
    eps: float
    matrix: bool
    summary: bool
    table: str
    keep_mb: int
    freeze: list[int] | None
    seed: int | None

    def in_run_record(self) -> dict[str, Any]:
        """The options that a run record holds under `options`."""
        return self.recorded(*MODEL_OPTIONS, "seed", "summary", "keep_mb", "matrix", "table")
