"""Whole pipes in a real shell, on the bundled model and passages."""

import shutil

import numpy as np
import orjson
import pytest
from conftest import ROOT, shell
from same_records import assert_same_records

pytestmark = pytest.mark.in_process

SAMPLE = "mlm-sample -t 0.5,2 -c 2 --length 12 --sweeps 4 --seed 1 passages.jsonl"


def write_passages(folder, count=5):
    """The first so many bundled passages as passages.jsonl in a folder; the passages."""
    lines = (ROOT / "examples" / "passages.jsonl").read_bytes().splitlines(keepends=True)[:count]
    (folder / "passages.jsonl").write_bytes(b"".join(lines))
    return [orjson.loads(line) for line in lines]


@pytest.fixture
def passages(sh):
    return write_passages(sh.folder)


@pytest.fixture(scope="module")
def pipes(tmp_path_factory):
    """A shell in a folder where a pipe from passages to drift left what its first two commands wrote; what it gave."""
    run = shell(tmp_path_factory.mktemp("pipes"))
    write_passages(run.folder)
    return run, run(f"{SAMPLE} | tee sampled | mlm-embed --encoding base64 | tee embedded | mlm-drift")


def test_sample_embed_drift(pipes, jq):
    _, done = pipes
    assert (done.status, done.err) == (0, "")
    runs = [record for record in done.records if record["type"] == "run"]
    assert [run["command"] for run in runs] == ["mlm-sample", "mlm-sample", "mlm-embed"]
    assert len(done.states) == 5 * 2 * 2 * 5
    topics = {orjson.loads(line)["topic"] for line in (pipes[0].folder / "passages.jsonl").read_bytes().splitlines()}
    assert {state["topic"] for state in done.states} == topics
    assert all(state["drift"] < 1e-12 for state in done.states if state["step"] == 0)
    assert all(0 <= state["drift"] <= 2 for state in done.states)
    assert jq("-e -c .", done.out).count(b"\n") == len(done.records)
    hot = np.mean([state["drift"] for state in done.states if state["tau"] == 2 and state["step"] == 48])
    cold = np.mean([state["drift"] for state in done.states if state["tau"] == 0.5 and state["step"] == 48])
    assert hot > cold


def test_floats_and_base64_give_the_same_drift(pipes):
    run, base64 = pipes
    floats = run("mlm-embed < sampled | mlm-drift")
    assert (floats.status, len(floats.states)) == (0, len(base64.states))
    assert [state["drift"] for state in floats.states] == pytest.approx(
        [state["drift"] for state in base64.states], abs=1e-6)  # two runs batch texts as they come


def test_summary_of_the_pipe(pipes):
    run, _ = pipes
    *_, cold, hot, _, _ = run("mlm-drift --summary embedded").records
    assert [(group["tau"], group["n"], group["chains"], group["texts"]) for group in (cold, hot)] == [
        (0.5, 12, 10, 5), (2.0, 12, 10, 5)]
    assert hot["hitting"][0]["hits"] == 10
    assert hot["plateau"] > cold["plateau"]


@pytest.mark.parametrize(("steps", "chains"), [(12, 2), pytest.param(30, 3, marks=pytest.mark.soak)])
def test_a_chain_is_the_same_alone_or_among_others_and_at_any_batch_size(sh, passages, steps, chains):
    """On the real model: one thread, any company, texts of 10 to 84 tokens."""
    for passage, words in zip(passages, (8, 14, 99, 99, 20), strict=True):
        passage["text"] = " ".join(passage["text"].split()[:words])
    (sh.folder / "passages.jsonl").write_bytes(b"\n".join(map(orjson.dumps, passages)))
    common = f"mlm-sample --seed 1 --steps {steps} --every 5"
    whole = sh(f"{common} -c {chains} passages.jsonl", OMP_NUM_THREADS="1").states
    small = sh(f"{common} -c {chains} --batch-size 2 passages.jsonl", OMP_NUM_THREADS="1").states
    assert small == whole
    for passage in passages[1:4:2]:
        alone = sh(common, stdin=orjson.dumps(passage), OMP_NUM_THREADS="1").states
        assert [state | {"run": ""} for state in alone] == [
            state | {"run": ""} for state in whole if (state["id"], state["chain"]) == (passage["id"], 0)]


def test_a_resumed_run_of_the_bundled_model_gives_the_same_states(sh, passages):
    common = "mlm-sample --seed 1 -c 2 -t 0.5,1.5 --length 12 --steps 20 --on-change"
    whole = sh(f"{common} passages.jsonl").out
    for cut in (len(whole) // 3, len(whole) - 2):
        (sh.folder / "part").write_bytes(whole[:cut])
        assert sh(f"{common} --resume part passages.jsonl").status == 0
        assert_same_records((sh.folder / "part").read_bytes(), whole)


def test_both_engines_give_the_same_states_on_the_bundled_model(sh, passages):
    common = "mlm-sample --seed 1 -c 2 -t 0.3,1.5 --length 12 --steps 24 --on-change passages.jsonl"
    assert_same_records(sh(common).out, sh(f"{common} --engine plain").out)


def test_masks_as_a_start_grow_into_text(sh, passages):
    states = sh("head -n 1 passages.jsonl | mlm-sample --start mask --freeze 0,1 --length 10 --sweeps 6 "
                "--seed 1").states
    assert states[0]["text"].count("[MASK]") == 8
    assert "[MASK]" not in states[-1]["text"]
    assert states[0]["ids"][:2] == states[-1]["ids"][:2]


def test_hot_chains_draw_no_special_token(sh, passages):
    states = sh("head -n 1 passages.jsonl | mlm-sample -t 10 -c 4 --sweeps 5 --every 1 --length 20 --seed 1").states
    assert len(states) == 4 * 101
    drawn = {state["new"] for state in states if state["step"]}
    assert len(drawn) > 300
    assert min(drawn) > 4  # [PAD] [UNK] [CLS] [SEP] [MASK]


def test_a_text_longer_than_the_model_is_told_and_the_others_are_answered(sh):
    done = sh("mlm-sample --steps 1 --seed 1", stdin=b"one\n" + b"word " * 511 + b"\ntwo\n\xf0\x9f\x98\x80 [MASK]\n")
    assert done.status == 65
    assert "stdin:2: the text has 511 tokens, but the model takes at most 510" in done.err
    assert [state["id"] for state in done.states if state["step"] == 0] == ["0", "2", "3"]
    assert next(state for state in done.states if state["id"] == "3")["text"].endswith("[ mask ]")


@pytest.mark.parametrize("sweeps", [2, pytest.param(25, marks=pytest.mark.soak)])
def test_the_quickstart_runs(sh, sweeps):
    """On one of its eight passages, which lies beside it, and with two sweeps of its 25; in the soak as it stands."""
    write_passages(sh.folder, 1)
    script = (ROOT / "examples" / "quickstart.sh").read_text()
    assert script.count("--sweeps 25") == 1
    (sh.folder / "quickstart.sh").write_text(script.replace("--sweeps 25", f"--sweeps {sweeps}"))
    done = sh("cd / && sh $OLDPWD/quickstart.sh")
    assert (done.status, done.err) == (0, "")
    rows = [line for line in done.out.decode().splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == ["0.50", "1.00", "2.00"]


def test_gnu_parallel(sh, tables):
    if shutil.which("parallel") is None:
        pytest.skip("GNU parallel is not installed")
    done = sh("parallel -k -j 2 \"echo 'a b' | mlm-sample -m a.json --steps 20 --seed {}\" ::: 1 2 3")
    serial = sh("for k in 1 2 3; do echo 'a b' | mlm-sample -m a.json --steps 20 --seed $k; done")
    assert (done.status, done.out) == (0, serial.out)
