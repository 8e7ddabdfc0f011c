"""The options of mlm-exact."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from mlmglauber.commands.shared.options import MODEL_OPTIONS, TextOptions
from mlmglauber.commands.shared.truncation_options import TRUNCATION_NAMES
from mlmglauber.commands.shared.word_lists import WordList, with_words


@dataclass(frozen=True, kw_only=True)
class ExactOptions(TextOptions):
    """Values of the options of mlm-exact."""

    RECORDED_IF_GIVEN: ClassVar[frozenset[str]] = frozenset({"allow_file", "ban_file", *TRUNCATION_NAMES})
    tau: list[float]
    vocab: str | None
    allow_file: WordList | None
    ban_file: WordList | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    top: int | None
    sites: list[int] | None
    max_states: int
    eps: float
    likeliest: int
    influences: bool
    compare: str | None
    table: str

    def with_files_read(self) -> Self:
        """See Options."""
        return with_words(self)

    def in_run_record(self) -> dict[str, Any]:
        """The options that a run record holds under `options`."""
        return self.recorded(*MODEL_OPTIONS, "table")
