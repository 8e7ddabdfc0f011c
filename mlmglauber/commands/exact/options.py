"""The options of mlm-exact."""

from dataclasses import dataclass
from typing import Any

from mlmglauber.commands.shared.options import MODEL_OPTIONS, TextOptions


@dataclass(frozen=True, kw_only=True)
class ExactOptions(TextOptions):
    """Values of the options of mlm-exact."""

    tau: list[float]
    vocab: str | None
    top: int | None
    sites: list[int] | None
    max_states: int
    eps: float
    likeliest: int
    influences: bool
    compare: str | None
    table: str

    def in_run_record(self) -> dict[str, Any]:
        """The options that a run record holds under `options`."""
        return self.recorded(*MODEL_OPTIONS, "table")
