"""Models are untrusted: what is missing, spoilt, foreign, or code, is refused with its reason."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import families
import pytest
import torch
import transformers
from in_process import answer
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from spoiling import (
    MODELS,
    TEXT,
    copied,
    every_model_command,
    reconfigure,
    respoil,
    without,
)

from mlmglauber.models.causal_lm import CausalLM
from mlmglauber.models.embedder import Embedder
from mlmglauber.models.masked_lm import MaskedLM
from mlmglauber.models.opening import open_scorer
from mlmglauber.stream.errors import ModelError


@every_model_command
def test_a_model_without_its_head_is_refused_by_every_command(made, tmp_path, name):
    folder = copied(made("bert"), tmp_path)
    respoil(folder, without("cls.predictions.transform"))
    done = answer(MODELS[name].format("copy"), TEXT.encode(), tmp_path)
    assert (done.status, done.out, done.err.count("\n")) == (69, b"", 1)
    assert "cls.predictions.transform" in done.err
    assert "would be random" in done.err


SPOILT = {
    "missing": (without("attention", "attn"), "are missing and would be random"),
    "not finite": (lambda weights: next(iter(weights.values())).view(-1)[:1].fill_(float("nan")), "not finite"),
    "another shape": (lambda weights: weights.update({key: weight[:3].clone() for key, weight in weights.items()
                                                      if key.endswith("bias")}), "has another shape"),
}


@pytest.mark.parametrize("spoilt", SPOILT)
@pytest.mark.parametrize(("kind", "opened"), [("gpt", CausalLM), ("st", Embedder)])
def test_weights_of_scorers_and_embedders_are_checked_too(made, tmp_path, kind, opened, spoilt):
    change, said = SPOILT[spoilt]
    folder = copied(made(kind), tmp_path)
    respoil(folder, change)
    with pytest.raises(ModelError, match=said) as caught:
        opened.open(str(folder))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("kind", "opened"), [("gpt", CausalLM), ("st", Embedder)])
def test_a_truncated_or_pickled_checkpoint_is_refused(made, tmp_path, kind, opened):
    folder = copied(made(kind), tmp_path)
    content = (folder / "model.safetensors").read_bytes()
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError, match="cannot be opened"):
        opened.open(str(folder))
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"pickles, which can run code.*--allow-pickle|cannot be opened"):
        opened.open(str(folder))
    opened.open(str(folder), allow_pickle=True)


@pytest.mark.parametrize(("kind", "opened", "library"), [
    ("bert", MaskedLM, transformers.BertForMaskedLM), ("gpt", CausalLM, transformers.GPT2LMHeadModel),
    ("st", Embedder, SentenceTransformer)])
def test_a_model_that_answers_otherwise_the_second_time_is_refused(made, monkeypatch, kind, opened, library):
    """A dropout that stays on, as code of a model's own may leave it."""
    opened.open(str(made(kind)))
    monkeypatch.setattr(library, "eval", lambda self: self.train())
    with pytest.raises(ModelError, match="two calls on the same input differ") as caught:
        opened.open(str(made(kind)))
    assert "\n" not in str(caught.value)


@every_model_command
def test_a_folder_that_is_no_model_is_told_so(made, tmp_path, name):
    (tmp_path / "copy").mkdir()
    done = answer(MODELS[name].format("copy"), TEXT.encode(), tmp_path)
    assert (done.status, done.err.count("\n")) == (69, 1)
    assert "the folder has no config.json, so it holds no model; give the folder" in done.err


def test_an_embedder_needs_no_pooler_that_it_does_not_use(made, tmp_path):
    folder = copied(made("st"), tmp_path)
    respoil(folder, without("pooler"))
    vectors = Embedder.open(str(folder)).encode([TEXT]).vectors
    assert (vectors == Embedder.open(str(made("st"))).encode([TEXT]).vectors).all()


@pytest.mark.parametrize("kind", ["gpt", "st"])
def test_a_tokenizer_of_another_model_is_refused(made, tmp_path, kind):
    folder = copied(made(kind), tmp_path)
    tokenizer = families.byte_level() if kind == "gpt" else families.wordpiece()
    tokenizer.add_tokens([f"more{k}" for k in range(60)])
    tokenizer.save_pretrained(folder)
    with pytest.raises(ModelError, match="restore the model's own tokenizer"):
        (CausalLM if kind == "gpt" else Embedder).open(str(folder))


def test_a_tokenizer_that_fell_back_to_letters_is_refused_by_embedders_too(made, tmp_path, monkeypatch):
    monkeypatch.setattr("mlmglauber.models.vocabulary.LETTERS", 100)
    folder = copied(made("st"), tmp_path)
    content = json.loads((folder / "tokenizer.json").read_text())
    kept = {piece: token for piece, token in content["model"]["vocab"].items() if len(piece.removeprefix("##")) == 1}
    whole = content["model"]["vocab"]
    content["model"]["vocab"] = {**{f"@{piece}": token for piece, token in whole.items() if piece not in kept
                                    and not piece.startswith("[")}, **kept,
                                 **{piece: token for piece, token in whole.items() if piece.startswith("[")}}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ModelError, match=r"cuts 16 plain words into \d+ pieces"):
        Embedder.open(str(folder))


@pytest.mark.parametrize("family", families.NAMES)
def test_a_configuration_without_its_tokenizer_class_gives_the_same_ids(made, tmp_path, family):
    folder = copied(made(family), tmp_path)
    reconfigure(folder / "tokenizer_config.json", tokenizer_class=None)
    whole, spoilt = MaskedLM.open(str(made(family))), MaskedLM.open(str(folder))
    assert spoilt.encode(TEXT) == whole.encode(TEXT)
    assert spoilt.prefix == whole.prefix


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_scorers_run_in_float32(made, tmp_path, dtype):
    folder = copied(made("gpt"), tmp_path)
    respoil(folder, lambda weights: weights.update({key: weight.to(dtype) for key, weight in weights.items()}))
    reconfigure(folder / "config.json", dtype=str(dtype).removeprefix("torch."))
    run, *found = answer("rect -m copy --seed 1 --rectangles 3", TEXT.encode(), tmp_path).records
    assert run["dtype"] == "float32"
    assert max(abs(record["delta"]) for record in found) < 1e-3


def test_models_with_code_of_their_own(made, tmp_path):
    """Also on the hub, whose files are in the cache: in the root, in a module's folder, and as a module's class."""
    def spoil(folder, how):
        if how == "root":
            reconfigure(folder / "config.json", auto_map={"AutoModel": "evil.Model"})
        elif how == "module":
            reconfigure(folder / "1_Pooling" / "config.json", auto_map={"AutoModel": "evil.Pooling"})
        else:
            modules = json.loads((folder / "modules.json").read_text())
            modules[1]["type"] = "evil.Pooling"
            (folder / "modules.json").write_text(json.dumps(modules))

    script = ("import sys\nfrom mlmglauber.models.embedder import Embedder\n"
              "for name in sys.argv[1:]:\n"
              "    try:\n        Embedder.open(name)\n    except Exception as error:\n        print(error)\n")
    for how in ("root", "module", "class"):
        for place in (tmp_path / how, tmp_path / "cache" / f"models--us--{how}" / "snapshots" / "c0ffee"):
            spoil(Path(shutil.copytree(made("st"), place)), how)
        refs = tmp_path / "cache" / f"models--us--{how}" / "refs"
        refs.mkdir()
        (refs / "main").write_text("c0ffee")
        with pytest.raises(ModelError, match="--trust-remote-code"):
            Embedder.open(str(tmp_path / how))
    done = subprocess.run([sys.executable, "-c", script, "us/root", "us/module", "us/class"], capture_output=True,
                          text=True, check=False,
                          env={**os.environ, "HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"})
    assert (done.stdout.count("--trust-remote-code"), done.stdout.count("\n"), done.stderr) == (3, 3, "")
    scorer = Path(shutil.copytree(made("gpt"), tmp_path / "gpt"))
    reconfigure(scorer / "config.json", auto_map={"AutoModelForCausalLM": "evil.Model"})
    with pytest.raises(ModelError, match="--trust-remote-code"):
        open_scorer(str(scorer))


def test_local_models_make_no_connection_and_uncached_names_fail_soon(made, tables, monkeypatch):
    def refuse(*_, **__):
        raise OSError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    for name in ("gpt", "bert"):
        open_scorer(str(made(name)))
    Embedder.open(str(made("st")))
    for command in (*MODELS.values(), "embed -m {}"):
        started = time.monotonic()
        done = answer(command.format("nobody/never-was-one"), b"the cat\n", tables)
        assert time.monotonic() - started < 5
        assert (done.status, done.out, done.err.count("\n")) == (69, b"", 1)
        assert "nobody/never-was-one" in done.err
        assert "give a local directory, or fetch the model" in done.err
