"""mlm-rect in a shell: rectangles by name, from records and drawn, their summary, and what must be refused."""

import families
import numpy as np
import orjson
import pytest
from oracles import TABLE_A

from mlmglauber.models.opening import open_model

pytestmark = pytest.mark.in_process


def rectangles(done):
    return [record for record in done.records if record["type"] == "rectangle"]


def test_one_rectangle_of_table_a(sh, tables):
    done = sh("echo 'a a' | mlm-rect -m a.json --site 0 --to b --site 1 --to b --seed 1")
    assert (done.status, done.err) == (0, "")
    found, = rectangles(done)
    assert found["delta"] == pytest.approx(0.603535, abs=1e-6)
    assert (found["noise"], found["noise_reason"]) == (None, "a table is computed in one way only")
    size = -np.log(np.array([0.7, 0.2, 0.2, 0.5, 0.6, 0.3, 0.1, 0.8])).sum()
    assert found["rounding"] == pytest.approx(4 * 2.0**-52 * size)
    assert (found["i"], found["j"], found["tokens"], found["words"]) == (0, 1, [0, 0, 1, 1], ["a", "a", "b", "b"])
    assert np.exp(found["logp_i"]) == pytest.approx(np.array([[0.7, 0.2], [0.2, 0.5]]))
    assert np.exp(found["logp_j"]) == pytest.approx(np.array([[0.6, 0.3], [0.1, 0.8]]))
    cold, = rectangles(sh("echo 'a a' | mlm-rect -m a.json --site 0 --to b --site 1 --to b --tau 0.25"))
    assert cold["delta"] == found["delta"] / 0.25


def test_rectangles_named_in_the_records(sh, tables):
    lines = (b'{"text":"a a","i":0,"j":1,"to_i":"b","to_j":"b","topic":"x"}\n'
             b'{"ids":[0,2],"i":1,"j":0,"to_i":1,"to_j":2}\n{"text":"a b","i":0}\n')
    done = sh("mlm-rect -m a.json", stdin=lines)
    assert done.status == 65
    assert "stdin:3" in done.err
    first, second = rectangles(done)
    assert (first["topic"], first["delta"]) == ("x", pytest.approx(0.603535, abs=1e-6))
    table = np.log(TABLE_A)
    by_hand = ((table[1][0][1] - table[1][0][2]) + (table[0][1][2] - table[0][1][0])
               - (table[0][2][2] - table[0][2][0]) - (table[1][2][1] - table[1][2][2]))
    assert second["delta"] == pytest.approx(by_hand, abs=1e-9)


@pytest.mark.parametrize(("options", "said"), [
    ("--site 0 --site 0 --to b --to b", "both sites are 0"),
    ("--site 0 --site 2 --to b --to b", "there is no site 2"),
    ("--site 0 --site 1 --to a --to b", "is already at site 0"),
    ("--site 0 --site 1 --to z --to b", "not a token of this table"),
    ("--site c --site 1 --to b --to b", "'c' is not in the text"),
    ("--site a --site 1 --to b --to b", "'a' is at sites 0, 1"),
    ("--site 0 --site 1 --to b --to b --freeze 1", "site 1 is frozen"),
    ("--gap 5", "no two sites are 5 apart"),
])
def test_bad_rectangles_are_told_and_the_others_answered(sh, tables, options, said):
    good = b'{"text":"b b","i":0,"j":1,"to_i":"a","to_j":"a"}\n'
    done = sh(f"mlm-rect -m a.json {options}", stdin=b"a a\n")
    assert (done.status, rectangles(done)) == (65, [])
    assert said in done.err
    assert "stdin:1: " in done.err
    if "--site" not in options:
        assert len(rectangles(sh(f"mlm-rect -m a.json {options}", stdin=b"a a\n" + good))) == 1


def test_a_table_with_zeros_gives_null_with_its_reason(sh):
    zero = {"tokens": ["a", "b"], "tables": [[[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]]}
    (sh.folder / "z.json").write_bytes(orjson.dumps(zero))
    done = sh("echo 'a a' | mlm-rect -m z.json --site 0 --to b --site 1 --to b")
    found, = rectangles(done)
    assert (found["delta"], found["reason"], found["logp_i"][1][0]) == (None, "a token has probability 0", None)
    summary = sh("echo 'a a' | mlm-rect -m z.json --site 0 --to b --site 1 --to b --summary")
    assert (summary.status, [record["type"] for record in summary.records]) == (0, ["run"])


def test_drawn_rectangles_do_not_depend_on_their_number_or_on_the_batch(sh, tables):
    few = rectangles(sh("printf 'a a\\nb c\\n' | mlm-rect -m a.json --seed 4 --rectangles 5"))
    many = rectangles(sh("printf 'a a\\nb c\\n' | mlm-rect -m a.json --seed 4 --rectangles 700 --batch-size 3"))
    assert (len(few), len(many)) == (10, 1400)
    same = [k for k in range(1400) if k % 700 < 5]
    for one, other in zip(few, [many[k] for k in same], strict=True):
        assert {**one, "run": ""} == {**other, "run": ""}
    assert {(record["tokens"][0], record["tokens"][1]) for record in many[:700]} == {(0, 0)}


def test_the_summary_of_records_is_that_of_the_run(sh, tables):
    sh("printf 'a a\\nb c\\nc a\\n' | mlm-rect -m a.json --seed 4 --rectangles 50 > r.jsonl")
    direct = sh("printf 'a a\\nb c\\nc a\\n' | mlm-rect -m a.json --seed 4 --rectangles 50 --summary")
    later = sh("shuf --random-source=r.jsonl r.jsonl | mlm-rect --summary")
    run, whole, part = direct.records
    assert (run["type"], whole["over"], part["over"], part["distance"]) == ("run", "model", "distance", 1)
    assert (whole["count"], whole["texts"], whole["noise_count"], whole["above_noise"]) == (150, 3, 0, 1)
    assert whole["noise_floor"] < 1e-13
    found = later.records[0]
    for key in ("count", "texts", "median", "max", "quantiles", "model"):
        assert found[key] == whole[key]
    assert found["mean"] == pytest.approx(whole["mean"])
    table = sh("mlm-rect --summary --table r.jsonl")
    assert b"a.json" in table.out
    assert table.out.count(b"\n") == 6


def test_fail_above_is_status_1_and_the_output_is_whole(sh, tables):
    line = "echo 'a a' | mlm-rect -m a.json --site 0 --to b --site 1 --to b --fail-above"
    high = sh(f"{line} 0.5 -o out")
    assert (high.status, high.out) == (1, b"")
    assert "the mean |delta| is 0.603535 nats, above 0.5" in high.err
    assert (sh.folder / "out").read_bytes().count(b"\n") == 2
    assert sh(f"{line} 0.7").status == 0
    assert sh("echo '{bad' | mlm-rect -m a.json --fail-above 0").status == 65


def test_usage(sh, tables):
    for options in ("--site 0 --to b", "--site 0 --site 1", "--path --site 0", "--burn-in 3", "--tau 0",
                    "--path --fail-above 1"):
        done = sh(f"mlm-rect -m a.json {options} < /dev/null")
        assert (done.status, done.out) == (2, b""), options


def test_words_and_the_bundled_model(sh):
    line = b'{"text":"the cat sat on the mat","i":"cat","to_i":"%s","j":"mat","to_j":"rug"}\n'
    done = sh("mlm-rect", stdin=line % b"dog" + line % b"xylophonist")
    assert done.status == 65
    assert "stdin:2: 'xylophonist' is not one token of the model but 'x" in done.err
    found, = rectangles(done)
    assert found["words"] == ["cat", "mat", "dog", "rug"]
    assert 0 <= found["noise"] < 1e-4 < abs(found["delta"])


def test_a_causal_model_is_the_control(sh):
    families.save_causal(sh.folder / "gpt")
    texts = b"the cat sat on the mat\nthe dog lay on the rug and slept\n"
    done = sh("mlm-rect -m gpt --rectangles 20 --seed 1", stdin=texts)
    assert (done.status, done.err) == (0, "")
    found = rectangles(done)
    assert len(found) == 40
    assert max(abs(record["delta"]) for record in found) < 1e-3
    assert done.records[0]["bos"]
    assert any(record["i"] == 0 for record in found)
    for file, change in (("tokenizer_config.json", {"bos_token": None}), ("tokenizer.json", {"post_processor": None})):
        content = orjson.loads((sh.folder / "gpt" / file).read_bytes())
        (sh.folder / "gpt" / file).write_bytes(orjson.dumps(content | change))
    first = b'{"text":"the cat sat","i":0,"j":2,"to_i":40,"to_j":41}\n'
    bare = sh("mlm-rect -m gpt --rectangles 20 --seed 1", stdin=texts + first)
    assert bare.status == 65
    assert "stdin:3: site 0 has no probability under a causal model without a beginning" in bare.err
    assert bare.records[0]["bos"] == []
    assert len(rectangles(bare)) == 40
    assert all(record["i"] > 0 for record in rectangles(bare))


def test_words_of_several_pieces_are_blocks(sh):
    text = "echo 'the food was lovely and the service was bad' | mlm-rect --seed 1"
    done = sh(f"{text} --site lovely --to xylophonist --site bad --to good")
    assert done.status == 65
    assert ("'xylophonist' has 5 tokens ('x' '##yl' '##op' '##hon' '##ist'), the block has 2 sites; choose a word of 2 "
            "tokens") in done.err
    done = sh(f"{text} --site lovely --to awful --site bad --to good")
    lm = open_model("tiny-en")
    ids = lm.encode("the food was lovely and the service was bad")
    new = lm.encode("awful")
    assert (done.status, done.err, len(ids), len(new)) == (0, "", 10, 2)
    found, = rectangles(done)
    assert (found["i"], found["j"], found["blocks"]) == (3, 9, [[3, 4], [9]])
    assert found["tokens"] == [ids[3:5], ids[9:], new, lm.encode("good")]
    assert found["pieces"][0] == ["love", "##ly"]
    assert found["words"] == ["lovely", "bad", "awful", "good"]

    def gain(state, sites, tokens):
        """Sum over a block's sites of log p(new) - log p(old), from the left, by single conditionals."""
        total, state = 0.0, list(state)
        for site, token in zip(sites, tokens, strict=True):
            row = lm.log_probs(np.array([state]), np.array([site]))[0].astype(float)
            total += row[token] - row[state[site]]
            state[site] = token
        return total

    over_b, over_a = [*ids[:9], *lm.encode("good")], [*ids[:3], *new, *ids[5:]]
    by_hand = (gain(ids, [3, 4], new) + gain(over_a, [9], lm.encode("good"))
               - gain(ids, [9], lm.encode("good")) - gain(over_b, [3, 4], new))
    assert found["delta"] == pytest.approx(by_hand, abs=1e-4)
    assert np.array(found["logp_i"])[0] @ [-1, 1] == pytest.approx(gain(ids, [3, 4], new), abs=1e-4)
    ranged = sh(f"{text} --site 3-4 --to awful --site 9 --to good")
    assert rectangles(ranged)[0]["delta"] == found["delta"]
    line = orjson.dumps({"ids": ids, "i": "3-4", "to_i": new, "j": 9, "to_j": "good"})
    assert rectangles(sh("mlm-rect", stdin=line))[0]["delta"] == pytest.approx(found["delta"], abs=1e-5)


@pytest.mark.parametrize(("options", "said"), [
    ("--site food --to bread --site nice --to good", "'nice' is not in the text; give one of its words, or a site "
     "number: the text has sites 0 'the', 1 'food', 2 'was', 3 'love', 4 '##ly', 5 'and'"),
    ("--site 3-4 --to awful --site 4 --to good", "the blocks 3-4 and 4 have sites in common"),
    ("--site 4-3 --to awful --site 9 --to good", "'4-3' is reversed"),
    ("--site 9-10 --to awful --site 1 --to good", "there is no site 10; the text has sites 0 'the', 1 'food'"),
    ("--site lovely --to lovely --site 1 --to good", "'lovely' is already at sites 3-4"),
    ("--site lovely --to awful --site 9 --to good --freeze 4", "site 4 is frozen"),
])
def test_bad_blocks_are_told_with_sites_and_pieces(sh, options, said):
    done = sh(f"echo 'the food was lovely and the service was bad' | mlm-rect {options}")
    assert (done.status, rectangles(done)) == (65, [])
    assert said in done.err


def test_half_a_word_is_told_of(sh):
    text = "echo 'the food was lovely and the love was bad' | mlm-rect --seed 1"
    done = sh(f"{text} --site 3 --to bad --site food --to bread")
    assert done.status == 0
    assert done.err == ("mlm-rect: stdin:1: site 3 ('love') is a piece of the word 'lovely'; name that word to change "
                        "it whole\n")
    assert rectangles(done)[0]["part_of"] == ["lovely", None]
    whole = sh(f"{text} --site love --to hate --site food --to bread")
    assert (whole.err, rectangles(whole)[0]["i"], "part_of" in rectangles(whole)[0]) == ("", 7, False)
    assert sh(f"{text} --site 3 --to bad --site food --to bread -q").err == ""


def test_summaries_keep_runs_apart_that_differ(sh, tables):
    texts = "printf 'a a\\nb c\\nc a\\na b\\n'"
    sh(f"{texts} | mlm-rect -m a.json --seed 4 --rectangles 50 > one; {texts} | mlm-rect -m a.json --seed 5 "
       "--rectangles 50 > two; printf 'c c\\nb b\\n' | mlm-rect -m a.json --seed 4 --rectangles 50 > more; "
       f"{texts} | mlm-rect -m a.json --seed 4 --rectangles 50 --draw uniform > uniform; "
       f"{texts} | mlm-rect -m a.json --seed 9 --site 0 --to c --site 1 --to c > named")
    done = sh("cat one two uniform | mlm-rect --summary")
    groups = [record for record in done.records if record["over"] == "model"]
    assert [(group["count"], group["seed"], group["draw"], len(group["runs"])) for group in groups] == [
        (200, 4, "conditional", 1), (200, 5, "conditional", 1), (200, 4, "uniform", 1)]
    assert done.err == "mlm-rect: 3 groups of a.json at tau 1 are kept apart; they differ in draw, seed\n"
    alone = [sh(f"mlm-rect --summary {name}").records[0] for name in ("one", "two", "uniform")]
    assert [group["mean"] for group in groups] == [group["mean"] for group in alone]
    joined = sh("cat one more | shuf --random-source=two | mlm-rect --summary")
    whole = joined.records[0]
    assert (whole["count"], whole["texts"], len(whole["runs"])) == (300, 6, 2)
    assert "2 runs of the same settings are joined: " in joined.err
    bare = sh("grep -h rectangle one two | grep -v '\"type\":\"run\"' | mlm-rect --summary")
    assert [record["settings_reason"] for record in bare.records if record["over"] == "model"] == ["no run record"] * 2
    twice = sh("cat one one | mlm-rect --summary")
    assert twice.status == 65
    assert "drew 50 rectangles of '0', and more of them came" in twice.err
    assert twice.records[0]["count"] == 200
    late = sh("head -n 1 one > run; tail -n +2 one > rest; cat rest rest run | mlm-rect --summary")
    assert "has more rectangles of a text than it drew; give each file once" in late.err
    named = sh("cat one named | mlm-rect --summary").records
    assert [record["draw"] for record in named if record["over"] == "model"] == ["conditional", "named"]
    low, _, high = sorted(group["mean"] for group in groups)
    failed = sh(f"cat one two uniform | mlm-rect --fail-above {(low + high) / 2} --summary")
    above = sum(group["mean"] > (low + high) / 2 for group in groups)
    assert (failed.status, failed.err.count("the mean |delta| of model a.json, ")) == (1, above)


def test_texts_and_records_are_not_mixed_in_one_summary(sh, tables):
    sh("echo 'a a' | mlm-rect -m a.json --seed 4 > r; echo 'b c' > t")
    for files, count, bad in (("r t", 20, "t:1"), ("t r", 20, "r:2")):
        done = sh(f"cat {files} > both; mlm-rect -m a.json --seed 4 --summary {files}")
        assert done.status == 65
        assert f"{bad}: the input has texts and rectangle records" in done.err
        assert [record["count"] for record in done.records if record.get("over") == "model"] == [count]
    assert sh("mlm-rect -m a.json --seed 4 r t").status == 0  # a filter passes records on


def test_states_of_one_chain_are_one_text(sh, tables):
    sh("printf 'a a\\nb c\\n' | mlm-sample -m a.json --tau 0.5,2 --steps 5 --every 1 --chains 2 --seed 1 > s")
    done = sh("mlm-rect -m a.json --seed 4 --rectangles 2 s")
    found = rectangles(done)
    runs = {record["of_state"]["run"] for record in found}
    assert len(runs) == 2
    assert {record["of_state"]["id"] for record in found} == {"0", "1"}
    summary = sh("mlm-rect -m a.json --seed 4 --rectangles 2 --summary s").records
    groups = [record for record in summary if record.get("over") == "model"]
    assert [(group["texts"], group["count"], group["states_of"]) for group in groups] == [
        (2, 48, run) for run in dict.fromkeys(record["of_state"]["run"] for record in found)]
