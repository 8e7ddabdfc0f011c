"""The options of mlm-tokens."""

from dataclasses import dataclass
from typing import Any

from mlmglauber.commands.shared.options import MODEL_OPTIONS, TextOptions


@dataclass(frozen=True, kw_only=True)
class TokensOptions(TextOptions):
    """Values of the options of mlm-tokens."""

    table: str

    def in_run_record(self) -> dict[str, Any]:
        """The options that a run record holds under `options`."""
        return self.recorded(*MODEL_OPTIONS, "table")
