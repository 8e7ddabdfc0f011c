"""The options of mlm-score."""

from dataclasses import dataclass
from typing import Any

from mlmglauber.commands.shared.options import MODEL_OPTIONS, TextOptions


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(TextOptions):
    """Values of the options of mlm-score."""

    by: str
    within_word: bool
    all_tokens: bool
    table: str

    @property
    def opening(self) -> dict[str, Any]:
        """As that of ModelOptions, with `all_tokens`."""
        return super().opening | ({"all_tokens": True} if self.all_tokens else {})

    def in_run_record(self) -> dict[str, Any]:
        """The options that a run record holds under `options`."""
        return self.recorded(*MODEL_OPTIONS, "table")
