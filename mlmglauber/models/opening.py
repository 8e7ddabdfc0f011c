"""From the name of a model to the model."""

from pathlib import Path
from typing import Any

from mlmglauber.models.batch_size import BatchSize
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.importing import uncollected
from mlmglauber.stream.errors import ModelError

BUNDLED = "tiny-en"


def open_model(name: str, **options: Any) -> TextModel:
    """`tiny-en` is the bundled model, FILE.json a table of conditionals, anything else a directory or hub name."""
    if name.endswith(".json"):
        from mlmglauber.models.table_text import TableText

        table = TableText.open(name)
        table.rows = BatchSize(options.get("rows", "auto")).rows
        return table
    from mlmglauber.models.masked_lm import MaskedLM

    if name == BUNDLED:
        folder = Path(__file__).parent / "tiny_en"
        if not (folder / "model.safetensors").exists():
            raise ModelError("the bundled model tiny-en is not in this installation; reinstall, or give --model")
        return MaskedLM.open(str(folder), label=BUNDLED, **options)
    return MaskedLM.open(name, **options)


def open_scorer(name: str, **options: Any) -> TextModel:
    """As open_model, and a causal language model beside: it has no conditionals, but a joint law (CausalLM.joint)."""
    if not name.endswith(".json") and name != BUNDLED:
        from mlmglauber.models.checkpoint import is_causal

        with uncollected():
            if is_causal(name, options.get("revision")):
                from mlmglauber.models.causal_lm import CausalLM

                return CausalLM.open(name, **options)
            return open_model(name, **options)
    return open_model(name, **options)
