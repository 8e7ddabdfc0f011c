"""The commands that read texts through a model, and ways to spoil the models that they are given."""

import json
import shutil
from pathlib import Path

import orjson
import pytest
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

MODELS = {
    "sample": "sample -m {} --seed 1 --steps 4 --every 1",
    "rect": "rect -m {} --seed 1 --rectangles 2",
    "influence": "influence -m {} --seed 1 -r 1",
    "exact": "exact -m {} --top 2 --sites 0,1",
    "couple": "couple -m {} --seed 1 --start random --max-steps 4 --every 1",
    "score": "score -m {}",
    "find": "traps -m {} --find --max-sweeps 3",
    "certify": "traps -m {} --certify the --seed 1 --contexts 2",
}
"""Every command that reads texts through a masked language model."""
ANSWERS = {"sample": "state", "rect": "rectangle", "influence": "influence", "exact": "exact", "couple": "pair"}
TEXT = "the cat sat on the mat"
every_model_command = pytest.mark.parametrize("name", MODELS)
every_answer = pytest.mark.parametrize("name", ANSWERS)


def save_embedder(lm, folder):
    SentenceTransformer(modules=[Transformer(str(lm)), Pooling(32)], device="cpu").save(str(folder))


def copied(folder, tmp_path):
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def respoil(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def reconfigure(path, **changes):
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


def without(*parts):
    def change(weights):
        for key in [key for key in weights if any(part in key for part in parts)]:
            del weights[key]

    return change


def lines(*records):
    return b"".join(orjson.dumps(record) + b"\n" for record in records)
