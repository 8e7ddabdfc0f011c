"""Opens the model that a name stands for."""

from pathlib import Path
from typing import Any

from mlmglauber.models.batch_size import BatchSize
from mlmglauber.models.checkpoint import is_causal, no_garbage_collection
from mlmglauber.models.conditionals import TextModel
from mlmglauber.stream.errors import ModelError

BUNDLED = "tiny-en"
"""The model that comes with the package."""


def open_model(name: str, **options: Any) -> TextModel:
    """The model of a name: "tiny-en" is the bundled one, FILE.json a table, others are directories or names on the hub.

    options: those of MaskedLM.open; a table uses `rows` and `all_tokens` only. ModelError where the model is missing or
    cannot be used.
    """
    if name.endswith(".json"):
        from mlmglauber.models.table_text import TableText

        table = TableText.open(name)
        table.rows = BatchSize(options.get("rows", "auto")).rows
        table.allowed |= options.get("all_tokens", False)
        return table
    from mlmglauber.models.masked_lm import MaskedLM

    if name == BUNDLED:
        folder = Path(__file__).parent / "tiny_en"
        if not (folder / "model.safetensors").exists():
            raise ModelError("the bundled model tiny-en is missing; reinstall mlmglauber, or give --model")
        return MaskedLM.open(str(folder), label=BUNDLED, **options)
    return MaskedLM.open(name, **options)


def open_scorer(name: str, **options: Any) -> TextModel:
    """Like open_model, but a causal language model is accepted too: it has `joint` in place of conditionals.

    `all_tokens` has no effect on a causal model: its scores are always over its whole vocabulary.
    """
    if not name.endswith(".json") and name != BUNDLED:
        with no_garbage_collection():
            if is_causal(name, options.get("revision")):
                from mlmglauber.models.causal_lm import CausalLM

                options.pop("all_tokens", None)
                return CausalLM.open(name, **options)
            return open_model(name, **options)
    return open_model(name, **options)
