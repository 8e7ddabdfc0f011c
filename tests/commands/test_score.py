"""mlm-score: scores of texts and of states, by closed form through the command, and what a filter owes its records."""

import re

import numpy as np
import orjson
import pytest
from oracles import TABLE_A

from mlmglauber.dynamics.engine import Engine
from mlmglauber.models.masked_lm import MaskedLM
from mlmglauber.models.opening import open_model

pytestmark = pytest.mark.in_process

TEXT = "the food was lovely and the service was good"


def scored(done):
    return [record for record in done.records if "scorer" in record]


def test_a_table_through_the_command(sh, tables):
    done = sh("mlm-score -m a.json", stdin=b'{"id":"x","text":"a b","topic":{"q":1}}\nc c\n')
    assert (done.status, done.err) == (0, "")
    run, first, second = done.records
    assert (run["type"], run["command"], run["options"]["by"]) == ("run", "mlm-score", "token")
    assert {name: first[name] for name in ("id", "text", "topic")} == {"id": "x", "text": "a b", "topic": {"q": 1}}
    assert (first["scorer"], first["scored_tokens"], first["scored_words"]) == (run["run"], 2, 2)
    p = [TABLE_A[0][1][0], TABLE_A[1][0][1]]
    assert first["token_scores"]["logp"] == pytest.approx(np.log(p))
    assert first["token_scores"]["pieces"] == ["a", "b"]
    assert first["token_scores"]["rank"] == [3, 2]
    assert first["token_scores"]["gamma"] == pytest.approx(np.log([0.2 / 0.5, 0.3 / 0.6]))
    assert first["pll"] == first["pll_within_word"] == pytest.approx(np.log(p[0] * p[1]))
    assert first["pseudo_perplexity"] == first["word_pseudo_perplexity"] == pytest.approx((p[0] * p[1]) ** -0.5)
    assert first["margin"] == pytest.approx(np.log(0.2 / 0.5))
    assert (second["token_scores"]["rank"], set(second)) == ([1, 1], set(first) - {"id", "topic"})


def test_what_by_chooses(sh):
    token, word, text = (scored(sh(f"echo '{TEXT}' | mlm-score --by {by}"))[0] for by in ("token", "word", "text"))
    assert {"token_scores"} == set(token) - set(text)
    assert {"word_scores"} == set(word) - set(text)
    words = word["word_scores"]
    assert words["words"] == TEXT.split()
    pieces = token["token_scores"]
    assert pieces["pieces"][3:5] == ["love", "##ly"]
    for name in ("logp", "logp_within_word"):
        assert words[name][3] == pytest.approx(sum(pieces[name][3:5]), abs=1e-4)
        assert sum(words[name]) == pytest.approx(sum(pieces[name]), abs=1e-3)
    assert (words["gamma"][3], words["rank"][3]) == (min(pieces["gamma"][3:5]), max(pieces["rank"][3:5]))
    assert pieces["logp"][4] == pieces["logp_within_word"][4]
    assert pieces["logp"][3] != pieces["logp_within_word"][3]
    assert text["pll"] == pytest.approx(sum(pieces["logp"]), abs=1e-3)
    assert np.log(text["word_pseudo_perplexity"]) == pytest.approx(-text["pll"] / 9)
    assert np.log(text["pseudo_perplexity"]) == pytest.approx(-text["pll"] / 10)
    plain = scored(sh(f"echo '{TEXT}' | mlm-score --by word --no-within-word"))[0]
    assert not [name for name in [*plain, *plain["word_scores"]] if "within" in name]


@pytest.mark.parametrize("options", ["", "--allow a,b", "--freeze 1", "--tau 0.3 --allow a,c --freeze 0"])
def test_states_keep_their_fields_and_get_the_pll_of_mlm_sample(sh, tables, options):
    made = sh(f"echo 'a b' | mlm-sample -m a.json --seed 1 --steps 9 --every 1 --pll 1 {options} | tee s | "
              "mlm-score -m a.json --by text")
    assert (made.status, made.err) == (0, "")
    before = [orjson.loads(line) for line in (tables / "s").read_bytes().splitlines()[1:]]
    after = scored(made)
    assert len(before) == len(after) == 10
    for old, new in zip(before, after, strict=True):
        if old["pll"] is None:
            assert (new["pll"], new["pll_reason"]) == (None, "a token of the text has probability 0")
        else:
            assert new["pll"] == pytest.approx(old["pll"])
            assert "pll_reason" not in new
        assert {name: new[name] for name in old if name not in ("pll", "pll_reason")} == {
            name: value for name, value in old.items() if name not in ("pll", "pll_reason")}
    assert any(old["pll"] is not None for old in before)
    whole = scored(sh("mlm-score -m a.json --all-tokens --by text s"))
    table = Engine(open_model(str(tables / "a.json")))
    assert [record["pll"] for record in whole] == pytest.approx([table.pll(np.array(old["ids"])) for old in before])


def test_states_go_on_to_the_other_commands(sh, tables):
    plain = sh("printf 'a b\\nb c\\n' | mlm-sample -m a.json --seed 1 --steps 40 --every 1 --pll 1 | mlm-embed | "
               "tee e | mlm-drift --summary")
    through = sh("mlm-score -m a.json e | mlm-drift --summary")
    assert (through.status, through.err) == (0, "")
    for one, other in zip(plain.records, through.records, strict=True):
        for name in ("pll_start", "pll_plateau"):
            assert one.get(name) == pytest.approx(other.get(name))


def test_states_of_another_model_are_scored_by_their_text(sh, tables, made):
    (tables / "gpt").symlink_to(made("gpt"))
    (tables / "bert").symlink_to(made("bert"))
    states = sh("echo 'the cat sat on the mat' | mlm-sample -m bert --steps 2 --every 1 --seed 1 --pll 1 | "
                "tee s").states
    other = sh("mlm-score --by text s")
    assert other.status == 0
    run = states[0]["run"]
    assert other.err.splitlines()[0] == f"mlm-score: run {run} was made with the model bert: the texts of its states " \
                                        "are scored"
    texts = b"".join(orjson.dumps({"text": state["text"]}) + b"\n" for state in states)
    assert [record["pll"] for record in scored(other)] == pytest.approx(
        [record["pll"] for record in scored(sh("mlm-score --by text", stdin=texts))], abs=1e-3)
    causal = sh("mlm-score -m gpt s")
    assert (causal.status, causal.err) == (0, "")
    for old, new in zip(states, scored(causal), strict=True):
        assert new["pll"] == old["pll"]  # that of the chain; a causal model has a log-likelihood
        assert new["ids"] == old["ids"]
        assert new["log_likelihood"] == pytest.approx(sum(new["token_scores"]["logp"]), abs=1e-6)
        assert np.log(new["perplexity"]) == pytest.approx(-new["log_likelihood"] / new["scored_tokens"])
        assert not [name for name in new if "pseudo" in name or "within" in name]
    drift = sh("mlm-score -m gpt s | mlm-embed | mlm-drift --summary").records[0]
    assert drift["pll_start"] == pytest.approx(states[0]["pll"] / states[0]["n"])


def test_pll_a_token_is_over_the_tokens_that_were_scored(sh):
    """A state of n tokens scored by another model has scored_tokens tokens there."""
    states = [{"type": "state", "run": "r", "id": "0", "chain": 0, "step": step, "tau": 1.0, "n": 2, "ids": [1, 2],
               "text": "a b", "embedding": [1, step], "embedder": "e", "pll": -12.0, "scored_tokens": 6}
              for step in range(4)]
    lines = b"".join(orjson.dumps(state) + b"\n" for state in states)
    assert sh("mlm-drift --summary", stdin=lines).records[0]["pll_start"] == -2
    del states[0]["scored_tokens"]
    lines = b"".join(orjson.dumps(state) + b"\n" for state in states)
    assert sh("mlm-drift --summary", stdin=lines).records[0]["pll_start"] == -6
    states[0]["scored_tokens"] = "6"
    bad = sh("mlm-drift --summary", stdin=orjson.dumps(states[0]) + b"\n")
    assert (bad.status, bad.err.count("\n")) == (65, 1)
    assert "scored_tokens" in bad.err


def test_masked_states_pass_with_a_reason(sh):
    done = sh("echo 'a good food' | mlm-sample --start mask --steps 9 --every 1 --seed 1 | tee s | mlm-score --by text")
    assert done.status == 0
    masked = [record for record in scored(done) if record.get("masked")]
    assert masked
    assert {(record["pll"], record["pll_reason"]) for record in masked} == {(None, "masked sites: no text")}
    assert f"{len(masked)} states with masked sites were given no score" in done.err
    assert [record["step"] for record in scored(done)] == list(range(10))
    assert all(record["pll"] < 0 for record in scored(done) if not record.get("masked"))
    table = sh("mlm-score --csv --by text s").out.decode().splitlines()
    assert len(table) == 11


def test_unknown_tokens_have_no_score_unless_all_tokens_are_counted(sh):
    done = sh("mlm-score", stdin="the food ☃ was good\n".encode())
    record, = scored(done)
    assert (record["pll"], record["pll_reason"]) == (None, "a token of the text has probability 0")
    assert (record["pseudo_perplexity"], record["margin"], record["unknown"]) == (None, None, 1)
    lists = record["token_scores"]
    assert [[lists[name][2] for name in ("logp", "logp_within_word", "gamma", "rank")]] == [[None] * 4]
    assert all(logp < 0 for k, logp in enumerate(lists["logp"]) if k != 2)
    assert "1 text with unknown tokens" in done.err
    whole = sh("mlm-score --all-tokens", stdin="the food ☃ was good\n".encode())
    assert whole.records[0]["banned"] == 0
    assert scored(whole)[0]["pll"] == pytest.approx(sum(scored(whole)[0]["token_scores"]["logp"]), abs=1e-4)
    assert sh("mlm-score --strict", stdin="the food ☃ was good\n".encode()).status == 65


def test_bad_texts_are_named_and_the_others_are_answered(sh, tables):
    content = b'{"text":5}\n{"x":1}\na b\n{"ids":[9,9]}\na z\n{"text":""}\nb b\n'
    done = sh("mlm-score -m a.json", stdin=content)
    assert done.status == 65
    assert [line.split(": ")[1] for line in done.err.splitlines()] == [f"stdin:{k}" for k in (1, 2, 4, 5, 6)]
    assert [record["text"] for record in scored(done)] == ["a b", "b b"]
    long = sh("mlm-score", stdin=b"the cat " * 300 + b"\nthe cat\n")
    assert long.status == 65
    assert "the text has 600 tokens, but the model takes at most 510" in long.err
    assert len(scored(long)) == 1


def test_length_scores_the_first_tokens_of_texts_and_refuses_to_cut_states(sh):
    done = sh("printf 'the cat sat on the mat\\nthe cat\\nthe cat sat\\n' | mlm-score --length 3 --by text")
    assert (done.status, done.err) == (0, "mlm-score: 1 text of fewer than 3 tokens was skipped\n")
    assert [(record["text"], record["scored_tokens"]) for record in scored(done)] == [
        ("the cat sat on the mat", 3), ("the cat sat", 3)]
    assert scored(done)[0]["pll"] == pytest.approx(scored(done)[1]["pll"], abs=1e-4)
    states = sh("printf 'the cat sat\\nthe cat sat on\\n' | mlm-sample --steps 0 | mlm-score --length 3")
    assert states.status == 65
    assert [state["n"] for state in scored(states)] == [3]
    assert "leave --length out" in states.err


def test_a_second_score_replaces_the_first_and_chains_do_not_inherit_scores(sh, tables):
    again = sh("echo 'a b' | mlm-score -m a.json | mlm-score -m a.json --by word --no-within-word")
    record = scored(again)[0]
    assert record["scorer"] == again.records[1]["run"]
    assert not [name for name in record if "token_scores" in name or "within" in name]
    chain = sh("echo '{\"text\":\"a b\",\"rank\":7}' | mlm-score -m a.json | mlm-sample -m a.json --steps 1 --seed 1")
    assert set(chain.states[0]) == {"type", "run", "id", "chain", "step", "tau", "n", "text", "ids", "rank"}
    own = sh("mlm-sample -m a.json --steps 0", stdin=b'{"text":"a b","margin":3,"perplexity":1}\n')
    assert (own.states[0]["margin"], own.states[0]["perplexity"]) == (3, 1)  # fields of the user, without a scorer


def test_texts_that_come_again_are_not_computed_again(sh, monkeypatch):
    rows = []
    whole = MaskedLM.token_scores
    monkeypatch.setattr(MaskedLM, "token_scores", lambda self, ids, sites, tokens: (
        rows.append(len(ids)), whole(self, ids, sites, tokens))[1])
    done = sh("mlm-score --by text", stdin=b"the cat sat on the mat\nthe dog sat on the mat\n" * 50)
    assert len(scored(done)) == 100
    assert len({record["pll"] for record in scored(done)}) == 2
    assert sum(rows) == 2 * 6 - 1  # the context of cat is that of dog


def test_tables_for_people(sh):
    done = sh(f"echo '{TEXT}' | mlm-score --table").out.decode()
    assert re.search(r"│    3 │ love +│ +-\d+\.\d{3} │ +-\d+\.\d{3} │ +-?\d+\.\d{3} │ +\d+ │", done)
    assert "why none" not in done
    words = sh(f"printf '{TEXT}\\nthe cat\\n' | mlm-score --csv --by word").out.decode().splitlines()
    assert words[0].startswith("table,id,word,text,logp,logp within word,gamma,rank,tokens,words,PLL,")
    assert len(words) == 1 + 9 + 2 + 2
    text = sh(f"echo '{TEXT}' | mlm-score --md --by text --no-within-word").out.decode()
    assert text.startswith("Texts")
    assert "within" not in text
    assert sh("echo '{\"type\":\"pair\"}' | mlm-score --table").status == 65


def test_a_dry_run_counts_and_writes_nothing(sh):
    lines = b"the cat sat on the mat\nthe dog sat on the mat\nthe cat sat on the mat\nso lovely\n"
    done = sh("mlm-score --dry-run", stdin=lines)
    assert (done.status, done.err) == (0, "")
    rows = {cells[1]: cells[2:4] for cells in (re.split(" *│ *", line) for line in done.out.decode().splitlines())
            if len(cells) > 3}
    assert rows["texts"] == ["3", "4"]
    assert rows["conditionals"] == ["15", "22"]  # 6 + 5 + 4, and 3 * 6 + 4; lovely has two pieces
    assert rows["records"] == ["5", "5"]
    assert b'"run"' not in done.out
    assert b"\nrecords,0,0,\n" in sh("mlm-score --dry-run --csv", stdin=lines).out
