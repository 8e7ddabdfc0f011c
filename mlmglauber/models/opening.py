"""From the name of a model to the model."""

from pathlib import Path
from typing import Any

from mlmglauber.models.conditionals import TextModel
from mlmglauber.stream.errors import ModelError

BUNDLED = "tiny-en"


def open_model(name: str, **options: Any) -> TextModel:
    """`tiny-en` is the bundled model, FILE.json a table of conditionals, anything else a directory or hub name."""
    if name.endswith(".json"):
        from mlmglauber.models.table_text import TableText

        return TableText.open(name)
    from mlmglauber.models.masked_lm import MaskedLM

    if name == BUNDLED:
        folder = Path(__file__).parent / "tiny_en"
        if not (folder / "model.safetensors").exists():
            raise ModelError("the bundled model tiny-en is not in this installation; reinstall, or give --model")
        return MaskedLM.open(str(folder), label=BUNDLED, **options)
    return MaskedLM.open(name, **options)
