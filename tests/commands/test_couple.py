"""mlm-couple through a real shell: pairs, their records, and what they say together."""

import os
import signal
import subprocess
import time

import numpy as np
import orjson
import pytest
from conftest import PATH, ROOT
from oracles import TABLE_A, law_after
from scipy.stats import chisquare

from mlmglauber.models.conditionals import TableConditional

pytestmark = [pytest.mark.in_process, pytest.mark.usefixtures("tables")]
A = TableConditional(TABLE_A)
TEXTS = "printf '%s\\n' 'a b' 'c c' 'a a' 'b c' 'c a' 'b b'"
TABLE = "mlm-couple -m a.json --seed 1"


def pairs_of(done):
    return [record for record in done.records if record["type"] == "pair"]


def without_run(records):
    return [{**record, "run": ""} for record in records if record["type"] != "run"]


def test_head_and_pairs(sh):
    done = sh(f"{TEXTS} | {TABLE} --tau 0.5,1 --max-steps 50")
    assert (done.status, done.err) == (0, "")
    run, *pairs = done.records
    assert (run["type"], run["command"], run["seed"], run["model"]) == ("run", "mlm-couple", 1, "a.json")
    assert (run["options"]["start"], run["options"]["coupling"]) == ("pair", "maximal")
    assert [(pair["id"], pair["tau"]) for pair in pairs] == [
        (name, tau) for name in ("0+1", "2+3", "4+5") for tau in (0.5, 1.0)]
    for pair in pairs:
        assert (pair["pair"], pair["n"], pair["seed"], pair["lag"], pair["replicas"]) == (0, 2, 1, 0, 2)
        assert pair["censored"] == (pair["meeting"] is None)
        assert pair["max_steps"] == 50
        assert len(pair["steps"]) == len(pair["hamming"])
        if pair["meeting"] is not None:
            assert (pair["steps"][-1], pair["hamming"][-1]) == (pair["meeting"], 0)
            assert all(pair["hamming"][:-1])
    assert pairs[0]["hamming"][0] == 2


def test_equal_starts_have_met(sh):
    (pair,) = pairs_of(sh(f"printf '%s\\n' 'a b' 'a b' | {TABLE}"))
    assert (pair["meeting"], pair["censored"], pair["steps"], pair["hamming"]) == (0, False, [0], [0])


def test_a_frozen_pair_is_censored(sh):
    (pair,) = pairs_of(sh(f"printf '%s\\n' 'a a' 'c c' | {TABLE} --tau 0 --max-steps 100000"))
    assert (pair["meeting"], pair["censored"], pair["max_steps"], pair["last_change"]) == (None, True, 100_000, 0)
    assert "differed" in pair["reason"]
    assert set(pair["hamming"]) == {2}
    group = sh(f"printf '%s\\n' 'a a' 'c c' | {TABLE} --tau 0 | mlm-couple --summary").records[0]
    assert (group["met"], group["frozen"], group["median"]) == (0, 1, None)


def test_horizons(sh):
    (short,) = pairs_of(sh(f"printf '%s\\n' 'a a' 'c c' | {TABLE} --tau 0 --horizon 100"))
    assert short["max_steps"] == 139  # 100 x 2 ln 2 = 138.6
    assert sh(f"printf '%s\\n' 'a a' 'c c' | {TABLE} --tau 0").records[1]["max_steps"] == 35


@pytest.mark.parametrize("coupling", ["maximal", "race", "quantile"])
def test_pair_k_is_the_same_alone_or_in_a_batch(sh, coupling):
    """Whatever --pairs, --batch-size, the cache and the other temperatures and inputs are."""
    common = f"{TABLE} --start random --coupling {coupling} --max-steps 60"
    whole = without_run(sh(f"{TEXTS} | {common} --tau 0.2,1 --pairs 6").records)
    assert len(whole) == 6 * 2 * 6
    one = without_run(sh(f"{TEXTS} | {common} --pairs 2 --batch-size 1 --cache-mb 0").records)
    assert one == [pair for pair in whole if pair["tau"] == 1 and pair["pair"] < 2]
    other = without_run(sh(f"""echo '{{"id":"3","text":"b c"}}' | {common} --tau 0.2 --pairs 3""").records)
    assert other == [pair for pair in whole if (pair["tau"], pair["id"]) == (0.2, "3") and pair["pair"] < 3]


def test_arrival_does_not_matter(sh):
    lines = "for k in 1 2 3 4; do echo 'a b'; sleep {}; echo 'c a'; done"
    assert sh(f"({lines.format(0.1)}) | {TABLE}").out == sh(f"({lines.format(0)}) | {TABLE}").out


def test_pairs_of_consecutive_inputs(sh):
    """--pairs are pairs in all; what is left over is told of; a bad input's place is taken by the next."""
    done = sh(f"{TEXTS} | {TABLE} --pairs 2")
    assert [pair["id"] for pair in pairs_of(done)] == ["0+1", "2+3"]
    assert done.err == "mlm-couple: 2 texts unused: --pairs 2 was reached\n"
    odd = sh(f"{TEXTS} | head -n 5 | {TABLE}")
    assert [pair["id"] for pair in pairs_of(odd)] == ["0+1", "2+3"]
    assert odd.err == "mlm-couple: 1 text at the end of the input unused: too few for a pair\n"
    bad = sh(f"printf '%s\\n' 'a b' 'x y' 'c c' | {TABLE} -q")
    assert [pair["id"] for pair in pairs_of(bad)] == ["0+2"]
    assert (bad.status, bad.err.count("\n")) == (65, 1)
    twice = sh(f"""printf '%s\\n' '{{"id":1,"text":"a b"}}' '{{"id":"1","text":"b b"}}' 'c c' | {TABLE}""")
    assert twice.status == 65
    assert [pair["id"] for pair in pairs_of(twice)] == ["1+2"]


def test_starts(sh):
    """One input and random tokens; two draws after a burn-in; K sites redrawn."""
    def first(options):
        records = sh(f"echo 'a b' | {TABLE} --pairs 300 --every 1000 --max-steps 1 {options}").records
        return [np.array([r["ids"] for r in records if r["type"] == "state" and (r["chain"], r["step"]) == (k, 0)])
                for k in (0, 1)]

    text, tokens = first("--start random")
    assert np.unique(text, axis=0).tolist() == [[0, 1]]
    assert chisquare(np.bincount(tokens @ [3, 1], minlength=9)).pvalue > 1e-3  # fixed seed, error rate 1e-3
    for burned in first("--start burned --burn-in 3"):
        counts = np.bincount(burned @ [3, 1], minlength=9)
        assert chisquare(counts, law_after(A, 1.0, "random", 1, 3) * 300).pvalue > 1e-3
    text, damaged = first("--start perturb:1")
    assert np.unique(text, axis=0).tolist() == [[0, 1]]
    assert ((text != damaged).sum(axis=1) == 1).all()
    assert len(np.unique(damaged, axis=0)) == 4


def test_damage(sh):
    done = sh(f"echo 'a b' | {TABLE} --start perturb:2 --pairs 20 --tau 0,1")
    for pair in pairs_of(done):
        assert (pair["damage"], pair["hamming"][0]) == (2, 2)
        assert pair["healed"] == (pair["meeting"] is not None)
    assert {pair["healed"] for pair in pairs_of(done)} == {True, False}
    too_many = sh(f"echo 'a b' | {TABLE} --start perturb:3")
    assert (too_many.status, pairs_of(too_many)) == (65, [])
    assert "give fewer" in too_many.err


def test_replicas(sh):
    done = sh(f"{TEXTS} | {TABLE} --coupling race --replicas 3 --every 1 --max-steps 60")
    pairs = pairs_of(done)
    assert [pair["id"] for pair in pairs] == ["0+1+2", "3+4+5"]
    for pair in pairs:
        last = [state["ids"] for state in done.states if state["id"].startswith(pair["id"] + "/")
                and state["step"] == pair["meeting"]]
        assert len(last) == 3
        assert last[0] == last[1] == last[2]


def test_lag_gives_the_bound(sh):
    """400 pairs of Table A from 00, within 4 standard errors of the exact bound at lag 5."""
    done = sh(f"echo 'a a' | {TABLE} --lag 5 --pairs 400 --horizon 200")
    pairs = pairs_of(done)
    assert {(pair["start"], pair["lag"]) for pair in pairs} == {("text", 5)}
    assert min(pair["meeting"] for pair in pairs) == 6  # tau > L
    assert all(pair["wasserstein"][-1] == 0 for pair in pairs)
    group = sh("mlm-couple --summary --eps 0.25,0.001", stdin=done.out).records[0]
    bound = {row["t"]: row for row in group["bound"]}
    for t, exact in ((0, 1.2274), (1, 0.6942), (2, 0.5261), (4, 0.3008), (8, 0.0985), (12, 0.0325)):
        assert abs(bound[t]["tv"] - exact) < 4 * max(bound[t]["tv_error"], 0.005)
    assert group["tmix"][0]["t"] in (4, 5, 6)
    assert group["tmix"][1]["t_high"] is None  # 400 pairs cannot tell 0.001


def test_a_censored_pair_leaves_no_bound_and_a_short_lag_is_told_of(sh):
    done = sh(f"echo 'a a' | {TABLE} --lag 1 --pairs 50 --max-steps 3 | mlm-couple --summary")
    assert done.records[0]["bound"] is None
    assert "did not meet: no bound" in done.records[0]["bound_reason"]
    told = sh(f"echo 'a a' | {TABLE} --lag 1 --pairs 50 --tau 0.2 --horizon 10000 | mlm-couple --summary")
    assert told.records[0]["lag_to_try"] > 1
    assert f"try --lag {told.records[0]['lag_to_try']}" in told.err
    assert sh("mlm-couple --summary -q", stdin=done.out).err == ""


def test_emitted_states_are_two_chains_to_the_end(sh):
    done = sh(f"printf '%s\\n' 'a b' 'c c' | {TABLE} --tau 0.5,1 --every 5 --max-steps 40")
    assert [record["type"] for record in done.records].count("pair") == 2
    for pair in pairs_of(done):
        chains = [[state for state in done.states if (state["tau"], state["chain"]) == (pair["tau"], k)]
                  for k in (0, 1)]
        for x, y in zip(*chains, strict=True):
            assert x["id"] == y["id"] == f"0+1/{pair['tau']}/2/0"
            assert x["coupled"] == y["coupled"] == pair["id"]
            assert (x["ids"] == y["ids"]) == (x["step"] >= pair["meeting"])
        assert [state["step"] for state in chains[0]] == [*range(0, 41, 5)]
    plain = sh(f"printf '%s\\n' 'a b' 'c c' | {TABLE} --tau 0.5,1 --max-steps 40")
    assert [pair["meeting"] for pair in pairs_of(plain)] == [pair["meeting"] for pair in pairs_of(done)]


def test_fields_pass_through(sh):
    line = '{"id":"x","text":"a b","topic":"t","foo":[1,{"y":null}],"drift":1}\n{"id":"y","text":"c c","bar":2}\n'
    (pair,) = pairs_of(sh(TABLE, stdin=line.encode()))
    assert (pair["topic"], pair["foo"], pair["bar"]) == ("t", [1, {"y": None}], 2)
    assert "drift" not in pair
    assert "text" not in pair


def test_resume_gives_the_file_of_an_uninterrupted_run(sh):
    """Cut anywhere, also within a line and before the head: the joined file is the same, byte for byte."""
    for options in ("", "--every 9"):
        lines = f"""({TEXTS}; echo '{{"type":"summary","x":1}}'; echo 'a c'; echo 'b a')"""
        command = f"{lines} | {TABLE} --tau 0.3,1 --max-steps 30 {options}"
        whole = sh(command).out
        ends = [k + 1 for k, byte in enumerate(whole) if byte == 10]
        for cut in (7, ends[0], ends[3] + 5, ends[-2]) if options else (0, ends[1], len(whole)):
            (sh.folder / "part").write_bytes(whole[:cut])
            done = sh(f"{command.replace('--seed 1', '' if cut > ends[0] else '--seed 1')} --resume part")
            assert (done.status, done.out) == (0, b"")
            assert (sh.folder / "part").read_bytes() == whole, cut


def test_a_killed_run_goes_on(sh):
    command = f"yes 'a b' | head -n 800 | {TABLE} --start random --tau 0.3,1 --max-steps 100"
    whole = sh(command).out
    process = subprocess.Popen(["bash", "-c", f"{command} --resume part"], cwd=sh.folder,
                               env={**os.environ, "PATH": PATH}, start_new_session=True)
    part = sh.folder / "part"
    deadline = time.monotonic() + 60
    while (not part.exists() or part.stat().st_size < 20_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert 20_000 <= part.stat().st_size < len(whole)
    sh(f"{command} --resume part")
    assert part.read_bytes() == whole


def test_a_file_of_another_run_is_refused(sh):
    sh(f"{TEXTS} | {TABLE} --resume part")
    before = (sh.folder / "part").read_bytes()
    other = sh(f"{TEXTS} | {TABLE} --tau 2 --resume part")
    assert (other.status, (sh.folder / "part").read_bytes()) == (2, before)
    assert "tau" in other.err


@pytest.mark.parametrize("options", [
    "--start perturb:0", "--start nowhere", "--start text", "--max-steps 5 --horizon 3", "--replicas 3",
    "--coupling race --replicas 3 --lag 2", "--lag 2 --start perturb:1", "--burn-in 5", "--length 8,8", "--length 0",
    "--resume a -o b",
])
def test_options_that_make_no_sense(sh, options):
    done = sh(f"echo 'a b' | {TABLE} {options}")
    assert (done.status, done.out) == (2, b"")
    assert done.err.count("\n") == 2


def test_summary_reads_pairs_alone_and_no_model(sh):
    """Other records are left out, the same pair counts once, and neither torch nor a model is opened."""
    pairs = sh(f"{TEXTS} | {TABLE} --tau 0.5,1,2").out
    summary = sh("python -X importtime -m mlmglauber.commands.couple.command --summary -m nowhere", stdin=pairs)
    assert [record["over"] for record in summary.records] == ["group"] * 3 + ["tau"] * 3 + ["n", "all"] * 3
    assert "scipy" in summary.err
    assert "torch" not in summary.err
    more = pairs + b'{"type":"state","ids":[1]}\n{"type":"pair","model":"m"}\n'
    again = sh("mlm-couple --summary", stdin=pairs + more)
    assert again == sh("mlm-couple --summarize", stdin=pairs + more)
    assert (again.status, again.out) == (65, summary.out)
    assert "stdin:22: " in again.err
    assert sh("mlm-couple --summary") == (0, b"", "")


def test_tables_for_people(sh):
    done = sh(f"{TEXTS} | {TABLE} --tau 0.5,1")
    lagged = sh(f"echo 'a a' | {TABLE} --lag 5 --pairs 30")
    table = sh("mlm-couple --summary --table", stdin=done.out + lagged.out).out.decode()
    assert "Meeting times" in table
    assert "Crossover" in table
    assert "L-lag bounds" in table
    assert "Growth" not in table  # one length
    assert "\x1b" not in table


def test_a_real_model_at_two_lengths(sh):
    """Batches of two lengths, temperatures and pairs together give what each gives alone; short texts are skipped."""
    passages = ROOT / "examples" / "passages.jsonl"
    (sh.folder / "texts").write_bytes(b"".join(passages.read_bytes().splitlines(True)[:2]) + b'{"text":"a dog"}\n')
    common = "mlm-couple texts --seed 1 --start random --max-steps 8"
    whole = sh(f"{common} --tau 1,3 --length 4,6 --pairs 2", OMP_NUM_THREADS="1")
    assert whole.err == "mlm-couple: 1 start with fewer tokens than --length was skipped\n"
    assert len(pairs_of(whole)) == 2 * 2 * 2 * 2
    part = sh(f"{common} --tau 3 --length 6 --batch-size 8", OMP_NUM_THREADS="1")
    assert without_run(pairs_of(part)) == without_run(
        [pair for pair in pairs_of(whole) if (pair["tau"], pair["n"], pair["pair"]) == (3, 6, 0)])
    assert orjson.loads(passages.read_bytes().splitlines()[0])["title"] == pairs_of(whole)[0]["title"]
