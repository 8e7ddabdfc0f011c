"""What mlm-embed writes: prompts, vectors that are not finite, principal components."""

import families
import numpy as np
import orjson
import pytest
from in_process import answer
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from mlmglauber.models.embedder import Embedder
from mlmglauber.stream.vectors import pack

pytestmark = pytest.mark.in_process


@pytest.fixture(scope="module")
def prompted(tmp_path_factory):
    """A small embedder with prompts of its own, a default one among them; beside it the bare model."""
    folder = tmp_path_factory.mktemp("prompted")
    families.save("bert", folder / "lm")
    model = SentenceTransformer(modules=[Transformer(str(folder / "lm")), Pooling(32)], device="cpu")
    model.prompts, model.default_prompt_name = {"query": "the dog ", "passage": "a fox "}, "passage"
    model.save(str(folder / "st"))
    return folder


def test_a_prompt_is_a_text_or_a_name(prompted):
    def opened(**options):
        return Embedder.open(str(prompted / "st"), **options)

    def vector(embedder, text):
        return embedder.encode([text]).vectors[0].tolist()

    bare, named, written, default = opened(prompt=""), opened(prompt_name="query"), opened(prompt="the dog "), opened()
    assert [embedder.prompt for embedder in (bare, named, written, default)] == ["", "the dog ", "the dog ", "a fox "]
    assert vector(bare, "the dog sat") == vector(named, "sat") == vector(written, "sat")
    assert named.identity == written.identity
    assert len({bare.identity, named.identity, default.identity}) == 3


@pytest.mark.parametrize(("options", "said"), [
    ("--prompt query", "that is the name of a prompt"), ("--prompt-name qurey", "no such prompt; its own are query"),
    ("--prompt a --prompt-name query", "exclude each other")])
def test_a_prompt_that_may_be_meant_otherwise_is_refused(prompted, tmp_path, options, said):
    done = answer(f"embed -m {prompted}/st {options}", b"sat\n", tmp_path)
    assert (done.status, done.out) == (2, b"")
    assert said in done.err


def test_the_prompt_is_in_the_run_record_and_basins_embed_their_examples_with_it(prompted, tmp_path):
    (tmp_path / "topics").write_text("".join(f'{{"label":"{label}","text":"{text}"}}\n' for label, text in (
        ("cat", "the cat sat"), ("cat", "the cat sat on"), ("dog", "a quick brown dog"), ("dog", "brown dog"))))
    for options, prompt in (("--prompt-name query", "the dog "), ("", "a fox ")):
        done = answer(f"embed -q -m {prompted}/st {options}".strip(), b"the cat\n", tmp_path)
        assert (done.status, done.err, done.records[0]["prompt"]) == (0, "", prompt)
        assert answer(f"basins --examples topics -m {prompted}/st", done.out, tmp_path)[::2] == (0, "")


def test_a_masked_model_taken_as_an_embedder_is_said(sh, prompted):
    done = answer(f"embed -m {prompted}/lm", b"sat\n", sh.folder)
    assert done.status == 0
    assert "is not a sentence-transformers model; its embedding is the mean of its token vectors" in done.err
    assert answer(f"embed -q -m {prompted}/lm", b"sat\n", sh.folder).err == ""


@pytest.mark.parametrize("options", ["", "--encoding base64", "--pca 1"])
def test_a_vector_that_is_not_finite_is_one_bad_record(prompted, tmp_path, monkeypatch, options):
    forward = Embedder._forward

    def spoilt(self, tokens, width):
        vectors = forward(self, tokens, width)
        vectors[[k for k, row in enumerate(tokens) if len(row) == 4], 3] = np.nan
        return vectors

    monkeypatch.setattr(Embedder, "_forward", spoilt)
    big = b'{"text":"the cat sat","big":123456789012345678901234567890}\n'
    content = b"the cat\n" + big + b"a dog sat on the mat\n"
    done = answer(f"embed -q -m {prompted}/lm {options}".strip(), content, tmp_path)
    assert done.status == 65
    assert done.err == "mlm-embed: stdin:1: the embedding is not finite; shorten the text, or use another model\n"
    assert [record["text"] for record in done.records[1:]] == ["the cat sat", "a dog sat on the mat"]
    assert b"NaN" not in done.out


def test_numbers_beside_a_large_integer_are_written_as_ever():
    from mlmglauber.stream.records import to_line

    vector = np.random.default_rng(0).normal(size=40).astype(np.float32)
    plain = to_line({"v": vector, "x": [0.1, {"y": None}]})
    assert to_line({"v": vector, "x": [0.1, {"y": None}], "big": [2**70]}) == plain[:-2] + b',"big":[%d]}\n' % 2**70
    for bad in ({"big": 2**70, "v": np.array([np.nan])}, {"big": 2**70, "v": [[float("inf")]]}):
        with pytest.raises(AssertionError, match="a number that is missing must be null"):
            to_line(bad)
    with pytest.raises(AssertionError, match="not finite"):
        pack(np.array([1, np.nan], np.float32), "base64")


@pytest.mark.parametrize(("texts", "explained", "size"), [
    (["the cat"], [None, None], None), (["the cat"] * 3, [None, None], None),
    (["the cat", "a dog", "the cat"], [1, None], 1), (["the cat", "a dog", "the mat"], [None, None], 2)])
@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_principal_components_are_as_many_as_there_are(sh, prompted, texts, explained, size, encoding):
    done = answer(f"embed -m {prompted}/st --pca 2 --encoding {encoding}", "\n".join(texts).encode(), sh.folder)
    assert done.status == 0
    head, *records = done.records
    assert [record["text"] for record in records] == texts
    assert ("pca_reason" in head) == (size != 2)
    assert head["pca_explained"] == pytest.approx(explained) if size != 2 else None not in head["pca_explained"]
    for record in records:
        length = {str: lambda value: len(value) // 5, list: len, type(None): lambda _: None}[type(record["embedding"])]
        assert length(record["embedding"]) == size
        assert ("embedding_reason" in record) == (size is None)
    picture = answer("plot --terminal --kind plane", b"".join(orjson.dumps(record | {
        "type": "state", "run": "r", "id": "0", "chain": 0, "step": k}) + b"\n" for k, record in enumerate(records)),
        sh.folder)
    assert (picture.status == 0) == (size == 2)


def test_planes_of_two_clouds_are_told_apart(sh, prompted):
    lines = [answer(f"embed -m {prompted}/st --pca 2", text, sh.folder).records[1]["embedder"]
             for text in (b"the cat\na dog\nthe mat", b"the cat\na dog\nthe mat", b"the cat\na fox\nthe mat")]
    assert lines[0] == lines[1] != lines[2]
