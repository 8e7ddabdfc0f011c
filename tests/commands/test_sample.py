"""mlm-sample through a real shell, on tables whose answers are exact."""

from itertools import pairwise

import numpy as np
import orjson
import pytest
from oracles import TABLE_A, law_after
from scipy.stats import chisquare

from mlmglauber.models.conditionals import TableConditional

pytestmark = [pytest.mark.in_process, pytest.mark.usefixtures("tables")]


def test_head_and_states(sh):
    done = sh("echo 'a b' | mlm-sample -m a.json --seed 1 --steps 4 --every 2")
    assert (done.status, done.err) == (0, "")
    run, *states = done.records
    assert run["type"] == "run"
    assert (run["schema"], run["seed"], run["tau"]) == ("mlm/1", 1, 1.0)
    assert run["model"] == "a.json"
    assert [state["step"] for state in states] == [0, 2, 4]
    assert states[0] == {"type": "state", "run": run["run"], "id": "0", "chain": 0, "step": 0, "tau": 1.0, "n": 2,
                         "text": "a b", "ids": [0, 1]}
    assert list(states[1]) == [*states[0], "site", "old", "new", "changed"]


@pytest.mark.parametrize("scan", ["random", "permutation", "systematic"])
def test_the_law_of_the_command_is_the_enumerated_kernel(sh, scan):
    """4000 chains, fixed seed; rejects a right sampler with probability 1e-3."""
    done = sh(f"echo 'a b' | mlm-sample -m a.json -t 0.5 --seed 5 --scan {scan} --chains 4000 --steps 4 --burn-in 0 "
              "--every 4 --batch-size 1024")
    last = [state["ids"] for state in done.states if state["step"] == 4]
    assert len(last) == 4000
    counts = np.bincount(np.array(last) @ [3, 1], minlength=9)
    assert chisquare(counts, law_after(TableConditional(TABLE_A), 0.5, scan, 1, 4) * 4000).pvalue > 1e-3


def test_log_probabilities_are_those_of_the_table(sh):
    states = sh("echo 'a b' | mlm-sample -m a.json --seed 2 --steps 200 --every 1").states
    assert len(states) == 201
    for before, after in pairwise(states):
        law = np.log(TABLE_A[after["site"]][before["ids"][1 - after["site"]]])
        assert after["old"] == before["ids"][after["site"]]
        assert after["new"] == after["ids"][after["site"]]
        expected = [law[after["old"]], law[after["new"]]]
        assert [after["logp_old"], after["logp_new"]] == pytest.approx(expected, abs=1e-12)
        assert after["changed"] == (after["old"] != after["new"])


def test_on_change_is_the_whole_trajectory(sh):
    """Filling the gaps of --on-change gives --every 1."""
    common = "mlm-sample -m a.json -t 0.5,1 --seed 4 --chains 3 --steps 150"
    full = sh(f"echo 'a b' | {common} --every 1").states
    thin = sh(f"echo 'a b' | {common} --on-change").states
    assert len(thin) < len(full)
    by_chain = {}
    for state in thin:
        by_chain.setdefault((state["tau"], state["chain"]), {})[state["step"]] = state
    for state in full:
        seen = by_chain[state["tau"], state["chain"]]
        latest = max(step for step in seen if step <= state["step"])
        assert seen[latest]["ids"] == state["ids"]
        if state.get("changed") or state["step"] in (0, 150):
            assert {**seen[state["step"]], "run": ""} == {**state, "run": ""}


def test_the_first_chain_is_the_same_alone_or_beside_others(sh):
    one = sh("echo 'a b' | mlm-sample -m a.json --seed 1 --chains 1 --steps 100").states
    four = sh("printf '%s\n' 'c c' 'a b' | mlm-sample -m a.json --seed 1 --chains 4 --steps 100 --batch-size 3").states
    other = sh("""echo '{"id":"1","text":"a b"}' | mlm-sample -m a.json --seed 1 --steps 100""").states
    key = ("step", "ids", "site", "old", "new")
    chain = [[state.get(k) for k in key] for state in four if (state["id"], state["chain"]) == ("1", 0)]
    assert [[state.get(k) for k in key] for state in other] == chain
    assert one != other
    assert one == [state for state in sh("echo 'a b' | mlm-sample -m a.json --seed 1 --chains 4 --steps 100").states
                   if state["chain"] == 0]


def test_output_does_not_depend_on_the_batch_size_or_on_arrival(sh):
    lines = r"for k in 1 2 3 4 5; do echo 'a b'; echo 'c a'; done"
    common = "mlm-sample -m a.json --seed 3 --chains 2 --sweeps 30"
    reference = sh(f"({lines}) | {common}")
    for size in (1, 3, 7, 64, "auto"):
        run, *records = sh(f"({lines}) | {common} --batch-size {size}").records
        assert run["options"]["batch_size"] == size
        assert records == reference.records[1:]
    slow = sh(f"(for k in 1 2 3 4 5; do echo 'a b'; sleep 0.1; echo 'c a'; done) | {common}")
    assert slow.out == reference.out


def test_fields_pass_through_and_stale_ones_do_not(sh):
    states = sh("""echo '{"id":"x","text":"a b","topic":"t","foo":[1,{"y":null}],"embedding":[1],"drift":0.5}' """
                "| mlm-sample -m a.json --seed 1 --steps 4").states
    assert {(state["id"], state["topic"], orjson.dumps(state["foo"])) for state in states} == {
        ("x", "t", b'[1,{"y":null}]')}
    assert not any("embedding" in state or "drift" in state for state in states)


def test_chains_start_from_states(sh):
    done = sh("echo 'a b' | mlm-sample -m a.json --seed 1 --steps 4 --every 2 | "
              "mlm-sample -m a.json --seed 2 --steps 2")
    states = done.states
    assert len({state["id"] for state in states}) == 3
    assert states[0]["id"].endswith("/0/0/0")
    assert done.records[1]["type"] == "run"  # the first run's record is passed on
    assert done.records[1]["seed"] == 1


def test_temperature_zero_is_the_argmax(sh):
    states = sh("echo 'a b' | mlm-sample -m a.json -t 0 --seed 1 --steps 50 --every 1").states
    assert [state["step"] for state in states] == [*range(51)]
    assert any(state["changed"] for state in states[1:])
    for before, after in pairwise(states):
        assert after["new"] == int(np.argmax(TABLE_A[after["site"]][before["ids"][1 - after["site"]]]))
        assert after["logp_new"] == 0
        if after["changed"]:
            assert after["logp_old"] is None
            assert "probability 0" in after["reason"]


@pytest.mark.parametrize("tau", ["nan", "inf", "-1", "1_0", "x", "1,,2", "1,1", ""])
def test_bad_temperatures_are_usage_errors_before_any_load(sh, tau):
    done = sh(f"echo 'a b' | mlm-sample -m no-such-model --tau={tau!r}")
    assert (done.status, done.out) == (2, b"")
    assert "mlm-sample --help" in done.err


@pytest.mark.parametrize("options", ["--steps 1 --sweeps 1", "--every 1 --on-change", "--resume r -o x", "--freeze x",
                                     "--freeze 3-", "--steps -1", "--chains 0", "--scan up", "--nope"])
def test_contradictions_are_usage_errors(sh, options):
    done = sh(f"echo 'a b' | mlm-sample -m a.json {options}")
    assert (done.status, done.out) == (2, b"")
    assert done.err.count("\n") == 2


def test_freeze_and_init(sh):
    frozen = sh("echo 'a b' | mlm-sample -m a.json --seed 1 --steps 40 --freeze 0").states
    assert {state["ids"][0] for state in frozen} == {0}
    assert {state["ids"][1] for state in frozen} == {0, 1, 2}
    starts = [state["ids"] for state in sh("echo 'a b' | mlm-sample -m a.json --seed 1 --chains 300 --steps 0 "
                                           "--start random").states]
    assert chisquare(np.bincount(np.array(starts) @ [3, 1], minlength=9)).pvalue > 1e-3
    assert "no mask token" in sh("echo 'a b' | mlm-sample -m a.json --start mask").err
    for sites, reason in (("0,1", "every site is frozen"), ("2", "names site 2")):
        done = sh(f"echo 'a b' | mlm-sample -m a.json --freeze {sites}")
        assert done.status == 65
        assert reason in done.err


def test_burn_in_writes_the_later_states_of_the_same_chain(sh):
    common = "echo 'a b' | mlm-sample -m a.json --seed 1 --every 1"
    whole = sh(f"{common} --steps 30").states
    assert sh(f"{common} --burn-in 10 --steps 20").states == whole[10:]


def test_the_seed_that_was_drawn_is_recorded(sh):
    first = sh("echo 'a b' | mlm-sample -m a.json --steps 20")
    seed = first.records[0]["seed"]
    assert sh(f"echo 'a b' | mlm-sample -m a.json --steps 20 --seed {seed}").out == first.out
    assert sh("echo 'a b' | mlm-sample -m a.json --steps 20").records[0]["seed"] != seed


def test_short_texts_are_counted_and_bad_records_told(sh):
    text = b'a b\n\n   \n[]\n42\n{"text":7}\n{"text":"caf\xe9"}\n"x"\na b\r\n{"id":"0","text":"a b"}\nq q\n{bad\na b\n'
    done = sh("mlm-sample -m a.json --seed 1 --steps 2", stdin=text)
    assert done.status == 65
    assert [state["id"] for state in done.states if state["step"] == 0] == ["0", "6"]
    for line in (4, 5, 6, 7, 8, 10, 11, 12, 13):  # after broken JSON no line is a text
        assert f"stdin:{line}: " in done.err
    assert done.err.count("\n") == 9
    assert "Traceback" not in done.err
    assert "an input before this one has the id '0' too" in done.err
    strict = sh("mlm-sample -m a.json --seed 1 --steps 2 --strict", stdin=text)
    assert strict.status == 65
    assert strict.err.count("\n") == 1
    short = sh("printf 'a b\na\n' | mlm-sample -m a.json --length 2 --steps 2")
    assert (short.status, short.err) == (0, "mlm-sample: 1 text of fewer than 2 tokens was skipped\n")
    assert sh("printf 'a b\na\n' | mlm-sample -q -m a.json --length 2 --steps 2").err == ""


def test_a_model_that_is_not_there(sh):
    done = sh("echo 'a b' | mlm-sample -m gone.json")
    assert (done.status, done.out) == (69, b"")
    assert "gone.json" in done.err
    (sh.folder / "bad.json").write_text('{"tokens":["a"],"tables":[[0.5]]}')
    assert "must sum to 1" in sh("echo 'a b' | mlm-sample -m bad.json").err
    assert sh("mlm-sample -m gone.json < /dev/null") == (0, b"", "")


@pytest.mark.parametrize("options", ["--on-change", "--every 1", "--every 5 --burn-in 3 --pll 4", ""])
def test_both_engines_write_the_same_bytes(sh, options):
    (sh.folder / "in").write_text("a b\nc c\nb a\n")
    common = f"mlm-sample -m a.json -t 0,0.2,1 -c 3 --steps 120 --seed 3 {options} in"
    reference = sh(f"{common} --engine plain").out
    assert sh(common).out == reference
    assert sh(f"{common} --cache-mb 0 --batch-size 2").records[3:] == [orjson.loads(line)
                                                                       for line in reference.splitlines()[3:]]


def test_pll_is_the_pseudo_log_likelihood(sh):
    done = sh("echo 'a b' | mlm-sample -m a.json -t 0.3 --seed 1 --steps 20 --every 7 --pll 5")
    states = done.states
    assert done == sh("echo 'a b' | mlm-sample -m a.json -t 0.3 --seed 1 --steps 20 --every 7 --energy 5")
    assert done.records[0]["options"]["energy"] == 5
    assert "pll" not in done.records[0]["options"]
    assert list(done.records[0]["options"])[:-1] == sorted(list(done.records[0]["options"])[:-1])
    (sh.folder / "run").write_bytes(done.out)
    again = sh("echo 'a b' | mlm-sample --from-run run --check")
    assert (again.status, again.out) == (0, b"")
    assert [state["step"] for state in states] == [0, 5, 7, 10, 14, 15, 20]
    for state in states:
        if state["step"] % 5 == 0:
            x, y = state["ids"]
            assert state["pll"] == pytest.approx(np.log(TABLE_A[0][y][x]) + np.log(TABLE_A[1][x][y]), abs=1e-12)
        else:
            assert "pll" not in state
