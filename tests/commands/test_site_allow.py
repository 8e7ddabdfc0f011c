"""`allow` of an input, {"SITE": ["WORD", ...]}: its chains draw only these words there, and readers know it."""

import numpy as np
import orjson
import pytest
from oracles import TABLE_A
from scipy.stats import chisquare

pytestmark = [pytest.mark.in_process, pytest.mark.usefixtures("tables")]

INPUT = (b'{"id":"x","text":"a b","allow":{"1":["b","a"]}}\n{"id":"y","text":"a b"}\n'
         b'{"id":"z","text":"c c","allow":{"0":["c"]}}\n')
SAMPLE = "mlm-sample -m a.json --seed 1 --steps 300"


def of(records, name):
    return [record for record in records if record.get("id") == name]


def test_each_text_draws_its_own_words_and_its_states_say_so(sh):
    records = sh(f"{SAMPLE} --every 1 -c 2", stdin=INPUT).records[1:]
    tokens = {name: [{state["ids"][site] for state in of(records, name)} for site in (0, 1)] for name in "xyz"}
    assert tokens == {"x": [{0, 1, 2}, {0, 1}], "y": [{0, 1, 2}, {0, 1, 2}], "z": [{2}, {0, 1, 2}]}
    assert {orjson.dumps(state.get("allow")) for state in of(records, "x")} == {b'{"1":["b","a"]}'}
    assert not any("allow" in state for state in of(records, "y"))
    alone = sh(f"{SAMPLE} --every 1 -c 2", stdin=b'{"id":"y","text":"a b"}\n').states
    assert [state | {"run": None} for state in of(records, "y")] == [state | {"run": None} for state in alone]


@pytest.mark.parametrize("output", ["--every 1", "--on-change", "--every 7 --pll 7"])
def test_both_engines_and_a_resumed_file_are_the_same(sh, output):
    (sh.folder / "in").write_bytes(INPUT)
    whole = sh(f"{SAMPLE} {output} -t 0.3,1 in").out
    assert sh(f"{SAMPLE} {output} -t 0.3,1 --engine plain in").out == whole
    for cut in np.random.default_rng(1).integers(0, len(whole), 6).tolist():
        (sh.folder / "part").write_bytes(whole[:cut])
        assert sh(f"{SAMPLE} {output} -t 0.3,1 --resume part in").status == 0
        assert (sh.folder / "part").read_bytes() == whole


def test_the_law_is_that_of_the_restricted_table(sh):
    """3000 chains, fixed seed; rejects a right sampler with probability 1e-3."""
    states = sh("mlm-sample -m a.json --seed 4 -c 3000 --steps 4 --every 4 --start random --batch-size 1000",
                stdin=b'{"id":"x","text":"a b","allow":{"1":["b","a"]}}').states
    kernel = np.zeros((6, 6))  # states (x, y), y in 0, 1
    table = [np.array(TABLE_A[0]), np.array(TABLE_A[1])]
    for x in range(3):
        for y in range(2):
            for v in range(3):
                kernel[2 * x + y, 2 * v + y] += table[0][y][v] / 2
            kept = table[1][x][:2] / table[1][x][:2].sum()
            for v in range(2):
                kernel[2 * x + y, 2 * x + v] += kept[v] / 2
    law = np.full(6, 1 / 6) @ np.linalg.matrix_power(kernel, 4)
    last = np.array([state["ids"] for state in states if state["step"] == 4]) @ [2, 1]
    assert chisquare(np.bincount(last, minlength=6), law * 3000).pvalue > 1e-3


def test_exact_solves_that_chain(sh):
    text = b'{"id":"x","text":"a b","allow":{"1":["b","a"]}}'
    (sh.folder / "chains").write_bytes(
        sh("mlm-sample -m a.json --seed 1 -c 20 --steps 400 --on-change", stdin=text).out)
    exact = sh("mlm-exact -m a.json --allow a,b,c --compare chains", stdin=text).records[1]
    assert (exact["choices"], exact["states"]) == ([["a", "b", "c"], ["a", "b"]], 6)
    assert exact["compare"]["p_value"] > 1e-3  # fixed seed; a right sampler fails with probability 1e-3
    whole = sh("mlm-exact -m a.json --allow a,b,c --compare chains", stdin=b'{"id":"x","text":"a b"}').records[1]
    assert "draws other tokens" in whole["compare"]["reason"]


@pytest.mark.parametrize("start", ["random", "perturb:2", "text --lag 5", "burned"])
def test_coupled_chains_draw_their_words_only(sh, start):
    done = sh(f"mlm-couple -m a.json --seed 1 --start {start} --pairs 6 --every 2 --max-steps 40", stdin=INPUT)
    records = done.records
    late = [state for state in records if state["type"] == "state" and state["step"] >= 20]
    assert {state["ids"][1] for state in late if state["coupled"] == "x"} == {0, 1}
    if start == "perturb:2":  # site 0 of z has its one word already, so there is no other copy
        assert "a site has no other token that may be drawn" in done.err
    else:
        assert {state["ids"][0] for state in late if state["coupled"] == "z"} == {2}
    assert all("meeting" in record for record in records if record["type"] == "pair")


def test_a_pair_of_texts_has_one_law(sh):
    same = b'{"text":"a a","allow":{"1":["a","b"]}}\n{"text":"b b","allow":{"01":["b","a","b"]}}\n'
    assert len(sh("mlm-couple -m a.json --seed 1", stdin=same).records) == 2
    done = sh("mlm-couple -m a.json --seed 1", stdin=INPUT)
    assert done.status == 65
    assert "have different `allow`" in done.err


def test_traps_are_scored_among_the_words_of_their_chain(sh):
    """At site 1 only b and a remain: the escape of a state is that of the renormalised table."""
    states = sh("mlm-sample -m a.json --seed 1 -t 0.5 --steps 3000 --on-change",
                stdin=b'{"id":"x","text":"a b","allow":{"1":["b","a"]}}\n{"id":"y","text":"a b"}').out
    traps = [trap for trap in sh("mlm-traps -m a.json --min-steps 5 --radius 0", stdin=states).records
             if trap["type"] == "trap"]
    table = [np.array(TABLE_A[0]) ** 2, np.array(TABLE_A[1]) ** 2]
    seen = set()
    for trap in traps:
        x, y = trap["ids"]
        first, second = table[0][y], table[1][x][:2] if trap["id"] == "x" else table[1][x]
        stay = (first[x] / first.sum() + second[y] / second.sum()) / 2
        assert trap["escape"] == pytest.approx(1 - stay, rel=1e-9)
        seen.add(trap["id"])
    assert seen == {"x", "y"}
    summaries = sh("mlm-traps -m a.json --min-steps 5 --summary", stdin=states).records
    assert [one["chains"] for one in summaries if one["type"] == "summary"] == [2]


def test_commands_of_one_text_measure_the_restricted_conditionals(sh):
    text = b'{"id":"x","text":"a b","allow":{"1":["b","a"]}}\n{"id":"y","text":"a b"}'
    with_words, plain = (record["matrix"] for record in
                         sh("mlm-influence -m a.json --seed 1 --matrix --draw top", stdin=text).records[1:])
    rows = np.array(TABLE_A[1])[:, :2] / np.array(TABLE_A[1])[:, :2].sum(1, keepdims=True)
    assert with_words[1][0] == pytest.approx(np.abs(rows[0] - rows[1:]).sum(1).max() / 2)
    assert plain[1][0] == pytest.approx(0.5)
    ends = sh("mlm-traps find -m a.json", stdin=b'{"id":"x","text":"c b","allow":{"1":["b","a"]}}').records[1]
    assert ends["ids"][1] in (0, 1)


@pytest.mark.parametrize(("allow", "reason"), [
    ('"a"', '"allow" is "a"'), ('{"1":[]}', "give the words of some sites"), ('{"x":["a"]}', "give the words"),
    ('{"-1":["a"]}', "give the words"), ('{"1":["a",2]}', "give the words"),
    ('{"2":["a"]}', "names site 2, but the text"), ('{"1":["a"],"01":["b"]}', "names a site twice"),
    ('{"1":["zebra"]}', "\"allow\" of site 1: 'zebra' is not a token")])
@pytest.mark.parametrize("command", ["sample --steps 2", "couple --lag 1", "exact --top 2", "influence", "rect"])
def test_another_form_is_a_bad_record(sh, command, allow, reason):
    done = sh(f"mlm-{command} -m a.json", stdin=f'{{"text":"a b","allow":{allow}}}\n{{"text":"a b"}}\n'.encode())
    assert done.status == 65
    assert done.err.splitlines()[0].startswith(f"mlm-{command.split()[0]}: stdin:1: ")
    assert reason in done.err
    assert len(done.out.splitlines()) > 1


def test_a_frozen_site_has_no_words(sh):
    done = sh(f"{SAMPLE} --freeze 1", stdin=INPUT)
    assert done.status == 65
    assert "which is frozen" in done.err
