"""The options of mlm-estimate."""

from dataclasses import dataclass
from typing import Any

from mlmglauber.commands.shared.options import Options


@dataclass(frozen=True, kw_only=True)
class EstimateOptions(Options):
    """Values of the options of mlm-estimate."""

    of: tuple[str, ...]
    tokens: int | None
    k: int | None
    m: int | None
    target_se: float | None
    model: str | None
    table: str

    def in_run_record(self) -> dict[str, Any]:
        """The options that a run record holds under `options`."""
        return self.recorded("table", "model")
