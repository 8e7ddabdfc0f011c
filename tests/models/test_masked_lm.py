"""Conditionals of real architectures against full logits, and the checkpoints that must be refused."""

import functools
import json
import shutil
import subprocess
import sys
import time

import families
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM

from mlmglauber.models import checkpoint, masked_lm
from mlmglauber.models.batch_size import BatchSize
from mlmglauber.models.conditionals import FILL
from mlmglauber.models.masked_lm import MaskedLM
from mlmglauber.models.masked_row import MaskedRow
from mlmglauber.stream.errors import MlmWarning, ModelError, RecordError, UsageError

TEXT = "the cat sat on the mat and the dog sat"


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    made = {}

    def get(name):
        if name not in made:
            made[name] = families.save(name, tmp_path_factory.mktemp(name))
        return made[name]

    return get


@pytest.fixture
def bert(checkpoints, tmp_path):
    """A copy of the BERT checkpoint that a test may spoil."""
    return shutil.copytree(checkpoints("bert")[0], tmp_path / "spoilt")


@functools.cache
def plain_model(folder):
    return AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()


def by_hand(folder, lm, ids, site):
    """The conditional from full logits of one unpadded input, with the tokenizer's own special tokens."""
    model = plain_model(folder)
    whole = [*lm.prefix, *ids, *lm.suffix]
    whole[len(lm.prefix) + site] = lm.tokenizer.mask_token_id
    with torch.no_grad():
        logits = model(torch.tensor([whole])).logits[0, len(lm.prefix) + site].double()
    logits[torch.from_numpy(~lm.allowed)] = -torch.inf
    return torch.log_softmax(logits, 0).numpy()


@pytest.mark.parametrize("name", families.NAMES)
def test_conditionals_are_those_of_full_logits(checkpoints, name):
    folder, _, limit = checkpoints(name)
    lm = MaskedLM.open(str(folder))
    assert lm.max_sites == limit
    ids = lm.encode(TEXT)
    assert 5 < len(ids) < 60
    assert lm.tokenizer.encode(TEXT) == [*lm.prefix, *ids, *lm.suffix]
    rows = np.full((5, len(ids) + 30), FILL)
    generator = np.random.default_rng(0)
    lengths, sites = [len(ids), 1, 3, len(ids) + 30, len(ids)], [2, 0, 2, len(ids) + 11, len(ids) - 1]
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = generator.choice(np.flatnonzero(lm.allowed), length)
    rows[0, : len(ids)] = rows[4, : len(ids)] = ids
    found = lm.log_probs(rows, np.array(sites))
    assert found.dtype == np.float32
    for row, length, site, logp in zip(rows, lengths, sites, found, strict=True):
        expected = by_hand(folder, lm, row[:length].tolist(), site)
        assert (np.isneginf(logp) == ~lm.allowed).all()
        assert np.abs(logp[lm.allowed] - expected[lm.allowed]).max() < 1e-5
        assert abs(np.exp(logp.astype(np.float64)).sum() - 1) < 1e-5
    exact = MaskedLM.open(str(folder), exact_width=True).log_probs(rows, np.array(sites))
    assert np.abs(exact[:, lm.allowed] - found[:, lm.allowed]).max() < 1e-5


@pytest.mark.parametrize(("name", "early"), [("bert", True), ("roberta", True), ("esm", True), ("distilbert", False)])
def test_the_last_layer_is_cut_to_the_masked_row_where_the_family_has_a_place_for_it(checkpoints, name, early):
    lm = MaskedLM.open(str(checkpoints(name)[0]))
    cut = []
    for module in lm.model.modules():
        if module.__class__.__name__.endswith("SelfOutput"):
            module.register_forward_hook(lambda module, arguments, output: cut.append(output.shape[1]))
    lm.log_probs(np.flatnonzero(lm.allowed)[None, :4], np.array([2]))
    assert [rows == 1 for rows in cut] == ([False, True] if early else [])


def test_a_cut_that_would_change_the_conditionals_is_given_up(checkpoints, monkeypatch):
    attach = MaskedRow.attach

    def doubled(module, arguments, output):
        output["last_hidden_state"] = 2 * output[0]
        return output

    def wrong(self, model, early=True):
        hooks = attach(self, model, early)
        if early:
            hooks.append(model.base_model.register_forward_hook(doubled))
        return hooks

    folder = str(checkpoints("bert")[0])
    ids, sites = np.arange(7, 12)[None], np.array([1])
    expected = MaskedLM.open(folder).log_probs(ids, sites)
    monkeypatch.setattr(MaskedRow, "attach", wrong)
    np.testing.assert_allclose(MaskedLM.open(folder).log_probs(ids, sites), expected, atol=1e-5)


def test_the_batch_grows_while_full_calls_become_cheaper(checkpoints, monkeypatch):
    """A call costs 1 second and 0.01 a state: one costs 0.86 by 512 of what it does by 256, 0.92 by 1024."""
    lm = MaskedLM.open(str(checkpoints("bert")[0]))
    clock, called = [0.0], []
    monkeypatch.setattr(masked_lm, "perf_counter", lambda: clock[0])
    logits = lm._logits

    def slow(ids, *rest):
        clock[0] += 1 + len(ids) / 100
        called.append(len(ids))
        return logits(ids, *rest)

    monkeypatch.setattr(lm, "_logits", slow)
    ids = np.full((1 << 14, 2), 7)
    assert lm.log_probs(ids, np.zeros(len(ids), int)).shape == (len(ids), lm.vocab_size)
    assert called[:15] == [size for size in (64, 128, 256, 512, 1024) for _ in range(3)]
    assert set(called[15:-1]) == {lm.rows} == {512}


def test_calls_that_are_not_full_are_not_timed():
    size = BatchSize("auto")
    for _ in range(10):
        size.observe(63, 8, 1e-9)
    assert (size.rows, size.settled) == (64, False)
    size.shrink(5)
    size.observe(5, 8, 1e-9)
    assert (size.rows, size.settled) == (5, True)


@pytest.mark.parametrize("name", ["convbert", "fnet", "esm"])
def test_families_that_padding_would_move_get_none(checkpoints, name):
    folder, _, limit = checkpoints(name)
    lm = MaskedLM.open(str(folder))
    assert lm.max_sites == limit
    rows = np.full((3, 30), FILL)
    for row, length in zip(rows, (11, 30, 1), strict=True):
        row[:length] = np.random.default_rng(0).choice(np.flatnonzero(lm.allowed), length)
    found = lm.log_probs(rows, np.array([10, 4, 0]))
    for row, site, logp in zip(rows, (10, 4, 0), found, strict=True):
        expected = by_hand(folder, lm, row[row != FILL].tolist(), site)
        assert np.abs(logp[lm.allowed] - expected[lm.allowed]).max() < 1e-5


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_the_longest_state_is_answered(checkpoints, name):
    folder, _, limit = checkpoints(name)
    lm = MaskedLM.open(str(folder))
    ids = np.random.default_rng(0).choice(np.flatnonzero(lm.allowed), (1, limit))
    expected = by_hand(folder, lm, ids[0].tolist(), limit - 1)
    found = lm.log_probs(ids, np.array([limit - 1]))[0]
    assert np.abs(found[lm.allowed] - expected[lm.allowed]).max() < 1e-5


def test_padding_stays_within_the_positions(tmp_path):
    lm = MaskedLM.open(str(families.save("bert", tmp_path, max_position_embeddings=50)[0]))
    assert lm.max_sites == 48
    assert np.isfinite(lm.log_probs(np.full((2, 48), 20), np.array([0, 47]))[:, lm.allowed]).all()


@pytest.mark.parametrize("name", families.NAMES)
def test_the_token_at_the_site_has_no_influence_and_the_others_have(checkpoints, name):
    lm = MaskedLM.open(str(checkpoints(name)[0]))
    ids = np.array([lm.encode(TEXT)] * 3)
    ids[1, 4], ids[2, 3] = ids[0, 5], ids[0, 0]
    same, also, other = lm.log_probs(ids, np.full(3, 4))
    assert (same == also).all()
    assert np.abs(same[lm.allowed] - other[lm.allowed]).max() > 1e-3


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["bert", "roberta", "modernbert", "deberta-v2"])
def test_a_row_is_the_same_in_any_company(checkpoints, name, threads):
    """To 1e-5 in float32, as documented; to 1e-11 in float64, which defines the chains."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for options in ({}, {"exact_width": True}):
            lm = MaskedLM.open(str(checkpoints(name)[0]), **options)
            small = MaskedLM.open(str(checkpoints(name)[0]), rows=5, **options)
            generator = np.random.default_rng(1)
            ids = generator.choice(np.flatnonzero(lm.allowed), (64, 13))
            ids[::3, 9:] = FILL
            sites = generator.integers(0, 9, 64)
            for level, most in ((0, 1e-5), (1, 1e-11)):
                full = lm.log_probs_at(ids, sites, level)[:, lm.allowed]
                for size in (1, 2, 3, 5, 9, 31, 64):
                    chosen = generator.permutation(64)[:size]
                    found = lm.log_probs_at(ids[chosen], sites[chosen], level)[:, lm.allowed]
                    assert np.abs(found - full[chosen]).max() < most, (options, size)
                assert np.abs(small.log_probs_at(ids, sites, level)[:, lm.allowed] - full).max() < most
    finally:
        torch.set_num_threads(before)


def test_padding_does_not_shift_the_positions_of_roberta(checkpoints):
    lm = MaskedLM.open(str(checkpoints("roberta")[0]))
    ids = lm.encode(TEXT)
    alone = lm.log_probs(np.array([ids]), np.array([3]))[0]
    for more in (1, 50):
        rows = np.full((2, len(ids) + more), FILL)
        rows[0, : len(ids)] = ids
        rows[1] = 300
        assert np.abs(lm.log_probs(rows, np.array([3, 3]))[0, lm.allowed] - alone[lm.allowed]).max() <= 1e-5


@pytest.mark.parametrize("name", [*families.NAMES, "esm"])
def test_special_tokens_in_a_text_are_plain_text(checkpoints, name):
    lm = MaskedLM.open(str(checkpoints(name)[0]))
    plain = lm.encode(TEXT)
    specials = set(lm.tokenizer.all_special_ids) - {lm.tokenizer.unk_token_id}
    names = lm.tokenizer.all_special_tokens
    for text in ("the [MASK] sat [SEP] it", "a<mask>b and </s> or <pad>", "[CLS]", " ".join(names), "".join(names)):
        ids = lm.encode(text)
        assert not specials & set(ids)
        assert ids
        lm.check_ids(ids)
        lm.tokenizer.encode(text)  # other users of the tokenizer change nothing
        assert lm.encode(text) == ids
    assert lm.encode(TEXT) == plain == lm.tokenizer.encode(TEXT, add_special_tokens=False)
    assert lm.tokenizer.mask_token in lm.decode([lm.mask_id])


@pytest.mark.parametrize("name", families.NAMES)
def test_special_and_unused_tokens_are_never_allowed(checkpoints, name):
    lm = MaskedLM.open(str(checkpoints(name)[0]))
    pieces = lm.tokenizer.convert_ids_to_tokens(range(lm.vocab_size))
    banned = {piece for piece, allowed in zip(pieces, lm.allowed, strict=True) if not allowed}
    assert set(lm.tokenizer.all_special_tokens) <= banned
    assert banned <= {*lm.tokenizer.all_special_tokens, "[unused0]", "[unused1]"}
    if name == "bert":
        assert "[unused1]" in banned
    rows = lm.log_probs(np.array([lm.encode(TEXT)]), np.array([1]))
    assert np.isneginf(rows[0, ~lm.allowed]).all()


def test_ids_that_no_state_holds(checkpoints):
    lm = MaskedLM.open(str(checkpoints("roberta")[0]))
    lm.check_ids([*lm.encode(TEXT), lm.tokenizer.unk_token_id])
    for token in (0, 1, 2, 4, lm.vocab_size, -1):
        with pytest.raises(RecordError, match=f"token id {token} "):
            lm.check_ids([300, token])


def test_half_precision_checkpoints_run_in_float32_unless_asked(checkpoints, tmp_path):
    folder, _, _ = checkpoints("bert")
    ids, sites = np.array([[20, 30, 40, 50]]), np.array([1])
    reference = MaskedLM.open(str(folder)).log_probs(ids, sites)
    for dtype in (torch.float16, torch.bfloat16):
        half = tmp_path / str(dtype)
        shutil.copytree(folder, half)
        AutoModelForMaskedLM.from_pretrained(folder, dtype=dtype).save_pretrained(half)
        lm = MaskedLM.open(str(half))
        assert lm.describe()["dtype"] == "float32"
        assert lm.log_probs(ids, sites).dtype == np.float32
        assert np.abs(np.exp(lm.log_probs(ids, sites)) - np.exp(reference)).max() < 0.1
    low = MaskedLM.open(str(folder), dtype="bfloat16")
    assert low.describe()["dtype"] == "bfloat16"
    assert 0 < np.abs(np.exp(low.log_probs(ids, sites)) - np.exp(reference)).max() < 0.1


def test_not_a_number_is_seen(checkpoints):
    lm = MaskedLM.open(str(checkpoints("bert")[0]))
    lm.model.bert.embeddings.word_embeddings.weight.data[20] = float("nan")  # also the decoder's row, for it is tied
    assert np.isnan(lm.log_probs(np.array([[30, 40]]), np.array([0]))).any(axis=1).all()


def respoil(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def reconfigure(path, **changes):
    config = json.loads(path.read_text())
    for key, value in changes.items():
        if value is None:
            config.pop(key, None)
        else:
            config[key] = value
    path.write_text(json.dumps(config))


def test_a_checkpoint_without_its_head_is_refused(bert):
    def behead(weights):
        for key in [key for key in weights if key.startswith("cls.predictions.transform")]:
            del weights[key]

    respoil(bert, behead)
    with pytest.raises(ModelError, match=r"cls\.predictions\.transform.* are missing and would be random"):
        MaskedLM.open(str(bert))


def test_an_untied_decoder_without_weights_is_refused(bert):
    reconfigure(bert / "config.json", tie_word_embeddings=False)
    with pytest.raises(ModelError, match=r"decoder\.weight"):
        MaskedLM.open(str(bert))


def test_weights_that_are_no_numbers_or_of_another_shape_are_refused(bert):
    key = "bert.encoder.layer.1.output.dense.weight"
    whole = load_file(bert / "model.safetensors")[key]
    respoil(bert, lambda weights: weights.update({key: whole.clone().fill_(float("nan"))}))
    with pytest.raises(ModelError, match="not finite"):
        MaskedLM.open(str(bert))
    respoil(bert, lambda weights: weights.update({key: whole[:, :5].clone()}))
    with pytest.raises(ModelError, match=f"the weight {key} has another shape"):
        MaskedLM.open(str(bert))


def test_a_truncated_file_is_refused(bert):
    content = (bert / "model.safetensors").read_bytes()
    (bert / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError, match="cannot be opened"):
        MaskedLM.open(str(bert))


def test_pickles_are_refused_unless_allowed(bert):
    torch.save(load_file(bert / "model.safetensors"), bert / "pytorch_model.bin")
    (bert / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="pickles, which can run code; save the model again as safetensors"):
        MaskedLM.open(str(bert))
    assert len(MaskedLM.open(str(bert), allow_pickle=True).describe()["hash"]) == 16


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_remote_code_is_refused(bert, file):
    reconfigure(bert / file, auto_map={"AutoModelForMaskedLM": "evil.Model", "AutoTokenizer": ["evil.Cut", None]})
    with pytest.raises(ModelError, match="--trust-remote-code"):
        MaskedLM.open(str(bert))


def test_causal_models_other_tasks_and_maskless_tokenizers_are_refused(bert, tmp_path):
    with pytest.raises(ModelError, match="gpt2 models have no masked-LM head"):
        MaskedLM.open(str(families.save_causal(tmp_path / "gpt2")))
    reconfigure(bert / "tokenizer_config.json", mask_token=None)
    with pytest.raises(UsageError, match="no mask token"):
        MaskedLM.open(str(bert))
    reconfigure(bert / "config.json", is_decoder=True)
    with pytest.raises(ModelError, match="causal"):
        MaskedLM.open(str(bert))
    reconfigure(bert / "config.json", is_decoder=None, architectures=["BertForSequenceClassification"])
    with pytest.raises(ModelError, match="BertForSequenceClassification"):
        MaskedLM.open(str(bert))


def test_a_tokenizer_of_another_model_is_refused(bert, checkpoints):
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(checkpoints("modernbert")[0] / file, bert / file)
    with pytest.raises(ModelError, match="restore the model's own tokenizer"):
        MaskedLM.open(str(bert))


def test_a_tokenizer_that_cuts_words_into_letters_is_refused():
    tokenizer = families.byte_level()
    tokenizer.backend_tokenizer.model = type(tokenizer.backend_tokenizer.model)(tokenizer.get_vocab(), [])
    checkpoint.check_tokenizer("alphabet", tokenizer, 5000)
    tokenizer.add_tokens([f"piece{k}" for k in range(1000)])
    with pytest.raises(ModelError, match=r"cuts 16 plain words into \d+ pieces"):
        checkpoint.check_tokenizer("words", tokenizer, 5000)


def test_names_that_lead_nowhere(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    start = time.monotonic()
    with pytest.raises(ModelError, match="no such directory"):
        MaskedLM.open(str(tmp_path / "gone"))
    with pytest.raises(ModelError, match="give a local directory, or fetch"):
        MaskedLM.open("nobody/never-was-a-model")
    assert time.monotonic() - start < 5
    with pytest.raises(ModelError, match=r"has no config\.json, so it holds no model"):
        MaskedLM.open(str(tmp_path))
    with pytest.raises(UsageError, match="no such device"):
        MaskedLM.open(str(families.save("bert", tmp_path / "b")[0]), device="tpu")
    with pytest.raises(UsageError, match="no such type; auto, float64"):
        MaskedLM.open(str(tmp_path / "b"), dtype="int8")


def test_a_local_directory_makes_no_connection(checkpoints, monkeypatch):
    import socket

    def refuse(*_, **__):
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    MaskedLM.open(str(checkpoints("bert")[0]))


def test_the_libraries_say_nothing(checkpoints):
    """No progress bars, no report of weights that are not needed, no word on the length of a text.

    Afterwards the garbage collector, switched off while they load (`no_garbage_collection`), works again.
    """
    code = ("import gc, sys; from mlmglauber.models.masked_lm import MaskedLM; "
            "MaskedLM.open(sys.argv[1]).encode('a ' * 999); assert gc.isenabled() and gc.get_freeze_count() > 100_000")
    arguments = [sys.executable, "-c", code, str(checkpoints("electra")[0])]
    done = subprocess.run(arguments, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_what_the_run_record_says(checkpoints):
    folder, _, _ = checkpoints("bert")
    told = MaskedLM.open(str(folder), label="small").describe()
    assert told["model"] == "small"
    assert len(told["hash"]) == 16
    assert (told["class"], told["banned"], told["device"]) == ("BertForMaskedLM", 7, "cpu")
    assert told["versions"]["torch"] == torch.__version__
    assert json.dumps(told)


def assert_near(found, expected, allowed):
    assert np.abs(found[:, allowed] - expected[:, allowed]).max() < 1e-5


def test_out_of_memory_halves_the_batch_and_goes_on(checkpoints, monkeypatch):
    lm = MaskedLM.open(str(checkpoints("bert")[0]))
    generator = np.random.default_rng(0)
    ids, sites = generator.choice(np.flatnonzero(lm.allowed), (40, 9)), generator.integers(0, 9, 40)
    whole = lm.log_probs(ids, sites)
    compute, seen = lm._logits, []

    def scarce(ids, *rest):
        seen.append(len(ids))
        if len(ids) > limit:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")
        return compute(ids, *rest)

    limit = 11
    monkeypatch.setattr(lm, "_logits", scarce)
    with pytest.warns(MlmWarning, match="out of memory on a batch of 40 states") as told:
        assert_near(lm.log_probs(ids, sites), whole, lm.allowed)
    assert len(told) == 1
    seen.clear()
    assert_near(lm.log_probs(ids, sites), whole, lm.allowed)
    assert seen == [10] * 4
    limit = 0
    with pytest.raises(ModelError, match="out of memory on one text of 9 tokens"):
        lm.log_probs(ids, sites)
    limit = 11
    monkeypatch.setattr(lm, "_logits", lambda *_: (_ for _ in ()).throw(RuntimeError("another fault")))
    with pytest.raises(RuntimeError, match="another fault"):
        lm.log_probs(ids, sites)
