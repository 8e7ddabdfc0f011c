"""Faults that programs like this one are known for, tried on every command that they concern."""

import os
import signal
import subprocess
import time
from pathlib import Path

import families
import numpy as np
import orjson
import pytest
import torch
from conftest import PATH
from in_process import answer
from oracles import TABLE_A
from spoiling import (
    ANSWERS,
    MODELS,
    TEXT,
    copied,
    every_answer,
    every_model_command,
    lines,
    respoil,
    save_embedder,
)

from mlmglauber.models.causal_lm import CausalLM
from mlmglauber.models.embedder import Embedder
from mlmglauber.models.masked_lm import MaskedLM
from mlmglauber.models.table_text import TableText
from mlmglauber.models.words import token_of
from mlmglauber.stream.errors import RecordError

# Tokens and texts


def test_no_command_makes_a_special_token(made, tmp_path):
    """With equal logits 3 % of the tokens are special or unused: that 1000 draws miss them has probability 1e-10."""
    folder = copied(made("bert"), tmp_path)
    respoil(folder, lambda weights: [weights[key].zero_() for key in weights
                                     if "predictions" in key or "word_emb" in key])
    lm = MaskedLM.open(str(folder))
    banned = set(np.flatnonzero(~lm.allowed).tolist())
    assert len(banned) >= 0.02 * lm.vocab_size
    text = TEXT.encode()
    found = [state["new"] for state in answer("sample -m copy --seed 1 -t 10 --steps 1000 --every 1", text,
                                              tmp_path).of("state")[1:]]
    found += [token for record in answer("rect -m copy --seed 1 --draw uniform --rectangles 250 --no-noise", text,
                                         tmp_path).of("rectangle") for token in record["tokens"][2:]]
    found += [token for state in answer("couple -m copy --seed 1 --start random --pairs 20 --max-steps 30 --every 5",
                                        text, tmp_path).of("state") for token in state["ids"]]
    found += [token for record in answer("traps -m copy --find --max-sweeps 2", text, tmp_path).of("trap")
              for token in record["ids"]]
    assert len(found) > 2000
    assert not banned & set(found)
    choices = answer("exact -m copy --top 6 --sites 0,1", text, tmp_path).of("exact")[0]["choices"]
    assert not {lm.decode([token]) for token in banned} & {word for words in choices for word in words}


def test_words_are_one_piece_of_the_vocabulary_or_refused_by_every_option(made, tmp_path):
    """In the midst of a text where the tokenizer tells that from its beginning; never the first piece of several."""
    folder = copied(made("roberta"), tmp_path)
    lm = MaskedLM.open(str(folder))
    assert [token_of(lm, "cat")] == lm.encode(" cat") != lm.encode("cat")
    pieces = lm.encode(" xylophonist")
    assert len(pieces) > 1
    with pytest.raises(RecordError, match="'xylophonist' is not one token") as caught:
        token_of(lm, "xylophonist")
    assert all(repr(lm.decode([piece])) in str(caught.value) for piece in pieces)
    for command, status in (("rect --site 1 --to xylophonist --site 3 --to cat", 65),
                            ("sample --allow cat,xylophonist", 2), ("couple --start random --allow xylophonist", 2),
                            ("exact --allow the,xylophonist", 2), ("traps --certify xylophonist", 2)):
        name, _, rest = command.partition(" ")
        done = answer(f"{name} -m copy {rest}", TEXT.encode(), tmp_path)
        assert done.status == status
        assert "'xylophonist' is not one token" in done.err
        assert all(record["type"] == "run" for record in done.records)


@every_answer
def test_ids_are_the_state_and_text_is_derived(made, tmp_path, name):
    """Ids whose text would be cut into others, with a text that says something else beside them."""
    lm = MaskedLM.open(str(copied(made("bert"), tmp_path)))
    pieces = lm.tokenizer.get_vocab()
    glued = min(token for piece, token in pieces.items() if piece.startswith("##"))
    ids = [glued, pieces["the"], glued, pieces["cat"]]
    assert lm.encode(lm.decode(ids)) != ids
    done = answer(MODELS[name].format("copy"), lines({"ids": ids, "text": "another text altogether"}), tmp_path)
    assert (done.status, done.err) == (0, "")
    found = done.of(ANSWERS[name])
    assert {record["n"] for record in found} == {4}
    for state in done.of("state"):
        assert len(state["ids"]) == 4
        assert state["text"] == lm.decode(state["ids"])
        assert state.get("text_exact", True) == (lm.encode(state["text"]) == state["ids"])
    if done.of("state"):
        assert any("text_exact" in state for state in done.of("state"))
        assert done.of("state")[0]["ids"] == ids
        # A second command reads the ids, not the text.
        again = answer(MODELS["sample"].format("copy"), lines(done.of("state")[0]), tmp_path)
        assert again.of("state")[0]["ids"] == ids
    elif "text" in found[0]:
        assert found[0]["text"] == lm.decode(ids)


@every_answer
def test_a_text_that_is_too_long_is_told_and_the_others_are_answered(tmp_path, name):
    """RoBERTa's positions start behind its padding id: 34 of them are 32, with two special tokens around 30."""
    lm = MaskedLM.open(str(families.save("roberta", tmp_path / "m", max_position_embeddings=34)[0]))
    word = lm.decode([token_of(lm, "the")])
    texts = [word * 29, word * 30, word * 31, word * 40, word * 3]
    command = MODELS[name].format("m") + (" --max-sweeps 1" if name == "find" else "")
    done = answer(command.replace("-r 1", "-r 1 --freeze 2-28") if name == "influence" else command,
                  lines(*({"id": str(k), "text": text} for k, text in enumerate(texts))), tmp_path)
    assert done.status == 65
    told = [line for line in done.err.splitlines() if "the model takes at most 30" in line]
    assert [line.split(":")[2] for line in told] == ["3", "4"]
    assert "Traceback" not in done.err
    assert {"0", "1", "4"} - {record["id"] for record in done.of(ANSWERS[name])} == (
        {"4"} if name == "influence" else set())


def test_the_scorer_has_its_limit_too(made, tmp_path):
    copied(made("gpt"), tmp_path)
    done = answer("rect -m copy --seed 1 --rectangles 1", b"the " * 500 + b"\n" + TEXT.encode(), tmp_path)
    assert done.status == 65
    assert "stdin:1: the text has 500 tokens" in done.err
    assert "the model takes at most 127" in done.err
    assert [record["id"] for record in done.of("rectangle")] == ["1"]


@every_model_command
def test_ids_that_are_no_tokens_or_special_ones_are_refused(made, tmp_path, name):
    """A padding id in the midst of a text would shift the positions of all tokens behind it."""
    copied(made("roberta"), tmp_path)
    done = answer(MODELS[name].format("copy"), lines({"ids": [300, 1, 301]}, {"ids": [300, 10**7]}, {"ids": [-1, 300]},
                                                      {"ids": [300, 4, 5]}, {"ids": []}), tmp_path)
    assert done.status == 65
    assert [line.split(":")[2] for line in done.err.splitlines()] == ["1", "2", "3", "4", "5"]
    assert {record["type"] for record in done.records} <= {"run"}


@pytest.mark.parametrize("kind", ["gpt", "st"])
def test_special_tokens_written_in_a_text_are_plain_text(made, kind):
    if kind == "gpt":
        lm = CausalLM.open(str(made(kind)))
        ids = lm.encode("the <mask> sat </s> it <pad>")
        special = set(lm.tokenizer.all_special_ids)
    else:
        model = Embedder.open(str(made(kind)))
        ids = model._tokens(["the [MASK] sat [SEP] it [PAD]"])[0][0][1:-1]
        special = set(model.tokenizer.all_special_ids)
        assert model._tokens([TEXT])[0][0] == model.tokenizer.encode(TEXT)
    assert len(ids) > 6
    assert not special & set(ids)


def test_the_special_ids_of_a_model_differ(made):
    for family in families.NAMES:
        tokenizer = MaskedLM.open(str(made(family))).tokenizer
        ids = {tokenizer.mask_token_id, tokenizer.sep_token_id, tokenizer.cls_token_id, tokenizer.pad_token_id}
        assert len(ids) == 4


@every_model_command
def test_the_run_record_tells_what_the_numbers_depend_on(made, tmp_path, name):
    copied(made("bert"), tmp_path)
    run = answer(MODELS[name].format("copy"), TEXT.encode(), tmp_path).of("run")[0]
    assert (run["dtype"], run["device"], len(run["hash"])) == ("float32", "cpu", 16)
    assert run["threads"] == torch.get_num_threads()
    assert run["options"]["batch_size"] == "auto"
    assert {"mlmglauber", "torch", "transformers", "tokenizers"} <= set(run["versions"])


# Draws and temperatures


@pytest.mark.parametrize("command", ["sample -m a.json -t", "rect -m a.json -t", "influence -m a.json -t",
                                     "exact -m a.json --top 2 -t", "couple -m a.json --start random -t",
                                     "traps -m a.json --find -t", "traps -m a.json --certify a -t",
                                     "exact -m a.json --top 2 --eps", "influence -m a.json --eps",
                                     "couple -m a.json --horizon", "couple --summarize --budget",
                                     "couple --summarize --eps", "rect -m a.json --fail-above",
                                     "basins --examples a.json --reject", "drift --summary --threshold",
                                     "plot --terminal --threshold"])
def test_numbers_that_are_none_are_usage_errors(tables, command):
    for value in ("nan", "inf", "-inf", "-1", "1_0", "1e999", "x", ""):
        done = answer(f"{command} {value}", b"a b\n", tables)
        assert (done.status, done.out, done.err.count("\n")) == (2, b"", 2), value


@every_answer
def test_a_temperature_near_zero_is_the_argmax_without_overflow(tables, name):
    command = MODELS[name].format("a.json")
    done, cold = answer(f"{command} -t 1e-40", b"a b\n", tables), answer(f"{command} -t 1e-2", b"a b\n", tables)
    assert (done.status, done.err) == (0, "")
    for record in done.of("state"):
        assert "site" not in record or record["logp_new"] == 0 or name == "couple"
    if name in ("sample", "couple"):
        key = "ids" if name == "sample" else "meeting"
        assert [record[key] for record in done.of(ANSWERS[name])] == [record[key] for record in cold.of(ANSWERS[name])]
    if name == "rect":
        assert all(record["delta"] is None or abs(record["delta"]) > 1e30 for record in done.of("rectangle"))
    if name == "exact":
        assert done.of("exact")[0]["alpha"] == pytest.approx(1)


def test_the_rectangle_of_the_textbook_table(tables):
    """1.828127 nats; the other way round where one token's two values are exchanged, the same where both are."""
    def delta(x, y):
        ids = {"ids": [x, y], "i": 0, "j": 1, "to_i": 1 - x, "to_j": 1 - y}
        return answer("rect -m b.json", lines(ids), tables).of("rectangle")[0]["delta"]

    assert abs(delta(0, 0)) == pytest.approx(1.828127, abs=1e-6)
    assert delta(1, 1) == pytest.approx(delta(0, 0))
    assert delta(0, 1) == delta(1, 0) == pytest.approx(-delta(0, 0))
    (tables / "j.json").write_bytes(orjson.dumps({"tokens": ["a", "b"], "joint": [[0.4, 0.1], [0.2, 0.3]]}))
    found = answer("rect -m j.json --seed 1", b"a b\n", tables).of("rectangle")
    assert max(abs(record["delta"]) for record in found) < 1e-12


def test_the_pseudo_log_likelihood_is_in_nats_and_of_the_text_alone(tmp_path):
    first, second, third = [0.9, 0.1], [0.5, 0.5], [0.1, 0.9]
    joint = np.einsum("i,j,k->ijk", first, second, third).tolist()
    (tmp_path / "j.json").write_bytes(orjson.dumps({"tokens": ["a", "b"], "joint": joint}))
    state = answer("sample -m j.json --steps 0 --energy 1", b"a a a\n", tmp_path).of("state")[0]
    assert state["pll"] == pytest.approx(-3.101093, abs=1e-6)
    assert np.exp(-state["pll"] / state["n"]) == pytest.approx(2.811442, abs=1e-6)
    trap = answer("traps -m j.json --find", b"a a b\n", tmp_path).of("trap")[0]
    assert trap["pll"] == pytest.approx(2 * np.log(0.9) + np.log(0.5))


@every_model_command
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_conditional_that_is_not_finite_ends_its_record_alone(tmp_path, monkeypatch, name, place):
    """Beside c, which the others never lead to, one of the numbers is none."""
    row = [0.6, 0.4, 0]
    (tmp_path / "e.json").write_bytes(orjson.dumps({"tokens": ["the", "b", "c"], "tables": [[row] * 3] * 2}))
    whole = TableText.log_probs

    def spoilt(self, ids, sites):
        rows = whole(self, ids, sites)
        rows[(np.where(np.arange(2) == sites[:, None], 0, ids) == 2).any(axis=1), place] = np.nan
        return rows

    monkeypatch.setattr(TableText, "log_probs", spoilt)
    command = MODELS[name].format("e.json").replace("--top 2 --sites 0,1", "--allow the,b,c --sites 0")
    command = command.replace("--start random", "--lag 1").replace("--contexts", "--draw texts --contexts")
    done = answer(command, b"the the\nthe c\nb b\n", tmp_path)
    assert done.status == 65
    assert "not finite" in done.err or "not a distribution" in done.err
    assert "stdin:2" in done.err or name == "certify"  # which makes its states itself
    if name in ANSWERS:
        assert {record["id"] for record in done.of(ANSWERS[name]) if record.get("step") != 0} == {"0", "2"}
    assert "bug" not in done.err


def test_what_contradicts_itself_is_refused(tables):
    for allowed in ([False] * 3, [True] * 2, [[True] * 3]):
        table = {"tokens": ["a", "b", "c"], "tables": TABLE_A, "allowed": allowed}
        (tables / "n.json").write_bytes(orjson.dumps(table))
        done = answer("sample -m n.json", b"a b\n", tables)
        assert (done.status, done.out) == (69, b"")
    for content in (b"", b"[]", b"{}", b'{"tables":[]}', b'{"tables":[0.5],"tokens":["a"]}', b'{"joint":3,"tokens":[]}',
                    b'{"tokens":[1,2],"tables":[[0.5,0.5]]}', b'{"tokens":["a b","c"],"tables":[[0.5,0.5]]}',
                    b'{"tokens":["",""],"tables":[[0.5,0.5]]}', b'{"tokens":["a","b"],"tables":[[NaN,1]]}', b"\xff"):
        (tables / "n.json").write_bytes(content)
        done = answer("sample -m n.json", b"a b\n", tables)
        assert (done.status, done.out, done.err.count("\n")) == (69, b"", 1), content


@pytest.mark.parametrize("command", ["sample --steps 20 --every 1", "rect", "influence", "couple --start random",
                                     "traps --certify a"])
def test_a_seed_that_is_drawn_is_told_and_no_generator_of_others_is_touched(tables, command):
    name, _, rest = command.partition(" ")
    common = f"{name} -m a.json {rest}".strip()
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    first = answer(common, b"a b\n", tables)
    assert (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before
    assert answer(f"{common} --seed {first.records[0]['seed']}", b"a b\n", tables).out == first.out


def test_a_scan_is_told(tables):
    for scan in ("random", "systematic", "permutation"):
        run = answer(f"sample -m a.json --steps 1 --scan {scan}", b"a b\n", tables).of("run")[0]
        assert run["options"]["scan"] == scan


# Embeddings, distances, diagnostics


def test_a_text_cut_short_is_marked_counted_and_under_strict_refused(tmp_path):
    families.save("bert", tmp_path / "lm", max_position_embeddings=12)
    save_embedder(tmp_path / "lm", tmp_path / "st")
    common = "the cat sat on the mat and the dog sat on the "
    content = lines(*({"id": "1", "text": text} for text in (common + "mat", common + "log", "the")))
    done = answer("embed -m st", content, tmp_path)
    first, second, third = done.records[1:]
    assert first["embedding"] == second["embedding"]
    assert (first["truncated"], first["text_tokens"], second["truncated"]) == (True, 15, True)
    assert not {"truncated", "text_tokens"} & set(third)
    assert done.err == "mlm-embed: 2 texts of more than 12 tokens were cut short (`truncated`)\n"
    drifts = answer("drift", done.out, tmp_path).records[1:]
    assert [drift.get("truncated") for drift in drifts] == [True, True, None]
    assert answer("drift --summary", done.out, tmp_path).records[0]["truncated"] == 2
    strict = answer("embed -m st --strict", content, tmp_path)
    assert strict.status == 65
    assert "stdin:1: the text has 15 tokens, but the model takes at most 12" in strict.err
    (tmp_path / "topics").write_bytes(lines(*({"label": label, "text": f"{word} {common}"} for label, word in
                                              (("up", "cat"), ("up", "dog"), ("down", "fox"), ("down", "log")))))
    named = answer("basins -m st --examples topics", done.out, tmp_path)
    assert "topics: 4 texts longer than the embedder takes were cut short" in named.err


def test_undefined_distances_have_a_reason_whichever_way_a_vector_is_written(tmp_path):
    content = lines({"id": 1, "embedding": [0, 0, 0]}, {"id": 1, "embedding": [1, 0, 0]},
                    *({"id": 2, "embedding": vector} for vector in ([10, 2], [10, 2], "AADAfwAAgD8=")))
    found = answer("drift", content, tmp_path).records
    assert [record["drift"] for record in found[:2]] == [None, None]
    assert {record["drift_reason"] for record in found[:2]} == {"zero_norm"}
    assert found[3]["drift"] == 0
    assert (found[4]["drift"], found[4]["drift_reason"]) == (None, "not_finite")
    nan = answer("drift", b'{"id":1,"embedding":[NaN,1]}\n{"id":1,"embedding":[1,1]}\n', tmp_path)
    assert (nan.status, len(nan.records)) == (65, 1)
    assert "stdin:1: " in nan.err


def test_a_chain_that_stays_has_no_sample_size_and_is_one_long_trap(tables):
    states = [{"type": "state", "run": "r", "id": "0", "chain": 0, "step": step, "tau": 1.0, "n": 2, "ids": [0, 1],
               "text": "a b", "site": 0, "old": 0, "new": 0, "changed": False, "embedding": [0.1, 0.3], "embedder": "e"}
              for step in range(2000)]
    group = next(record for record in answer("drift --summary", lines(*states), tables).records
                 if record.get("over") == "group")
    assert (group["diagnostics"]["ess_bulk"], group["diagnostics"]["reason"]) == (None, "constant_chain")
    trap, = answer("traps -m a.json", lines(*states), tables).of("trap")
    assert (trap["residence"], trap["censored"]) == (1999, True)


# Interruption while libraries are loaded


@pytest.mark.parametrize("command", ["mlm-sample", pytest.param("mlm-embed", marks=pytest.mark.soak)])
def test_ctrl_c_while_torch_is_imported(tmp_path, command):
    process = subprocess.Popen(["bash", "-c", f"exec {command} -o out"], cwd=tmp_path, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PATH": PATH})
    process.stdin.write(b"the cat sat\n")
    process.stdin.flush()
    maps = Path(f"/proc/{process.pid}/maps")
    if not maps.exists():
        pytest.skip("what a process has loaded is read from /proc")
    deadline = time.monotonic() + 60
    while "libtorch" not in maps.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", f"{command}: interrupted\n".encode())
    assert not list(tmp_path.iterdir())
