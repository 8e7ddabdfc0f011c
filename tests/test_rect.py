"""mlm-rect in a shell: rectangles by name, from records and drawn, their summary, and what must be refused."""

import families
import numpy as np
import orjson
import pytest
from oracles import TABLE_A


def rectangles(done):
    return [record for record in done.records if record["type"] == "rectangle"]


def test_one_rectangle_of_table_a(sh, tables):
    done = sh("echo 'a a' | mlm-rect -m a.json --site 0 --to b --site 1 --to b --seed 1")
    assert (done.status, done.err) == (0, "")
    found, = rectangles(done)
    assert found["delta"] == pytest.approx(0.603535, abs=1e-6)
    assert found["noise"] == 0
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
    ("--site 0 --site 1 --to a --to b", "stands at site 0 already"),
    ("--site 0 --site 1 --to z --to b", "no token of this table"),
    ("--site c --site 1 --to b --to b", "'c' is not in the text"),
    ("--site a --site 1 --to b --to b", "'a' stands at sites 0, 1"),
    ("--site 0 --site 1 --to b --to b --freeze 1", "site 1 is frozen"),
    ("--gap 5", "no two sites stand 5 apart"),
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
    assert (whole["count"], whole["texts"], whole["noise_floor"], whole["above_noise"]) == (150, 3, 0, 1)
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
    assert "stdin:2: 'xylophonist' is no single piece of the model's vocabulary but 'x" in done.err
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
