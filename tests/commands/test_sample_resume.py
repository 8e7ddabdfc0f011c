"""mlm-sample --resume and --from-run: interrupted, repeated and foreign runs."""

import os
import signal
import subprocess
import time

import numpy as np
import orjson
import pytest

pytestmark = [pytest.mark.in_process, pytest.mark.usefixtures("tables")]
RESUMED = "mlm-sample -m a.json -t 0.5,1 --chains 3 --batch-size 12 --seed 3"


@pytest.mark.parametrize("options", ["--steps 60 --on-change", "--sweeps 30", "--steps 40 --every 7",
                                     "--steps 40 --every 1 --burn-in 5"])
def test_a_resumed_file_equals_an_uninterrupted_one(sh, options):
    (sh.folder / "in").write_text('{"type":"run","note":"of another command"}\n' + "a b\nc c\n" * 3)
    whole = sh(f"{RESUMED} {options} in").out
    lines = whole.count(b"\n")
    random = np.random.default_rng(1)
    cuts = [0, 10, whole.index(b"\n") + 1, len(whole) - 1, len(whole), *random.integers(0, len(whole), 8)]
    for cut in cuts:
        (sh.folder / "part").write_bytes(whole[:cut])
        done = sh(f"{RESUMED} {options} --resume part in")
        finished = "mlm-sample: part: the run was complete already; nothing was added\n"
        assert (done.status, done.out, done.err) == (0, b"", finished if cut == len(whole) else "")
        assert (sh.folder / "part").read_bytes() == whole, f"cut at {cut} of {len(whole)} bytes, {lines} lines"


@pytest.mark.parametrize("texts", [12, pytest.param(50, marks=pytest.mark.soak)])
def test_a_killed_run_resumes_with_the_seed_that_it_drew(sh, texts):
    (sh.folder / "in").write_text("a b\nc c\n" * texts)
    common = "mlm-sample -m a.json --chains 4 --steps 400 --every 1"
    process = subprocess.Popen(["bash", "-c", f"exec {common} --resume part in"], cwd=sh.folder,
                               env={**os.environ, "PATH": os.pathsep.join([sh_path(), os.environ["PATH"]])})
    part = sh.folder / "part"
    deadline = time.monotonic() + 60
    while (not part.exists() or part.stat().st_size < 200_000) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = part.read_bytes()
    seed = orjson.loads(left[: left.index(b"\n")])["seed"]
    assert sh(f"{common} --resume part in").status == 0
    assert part.read_bytes().startswith(left[: left.rindex(b"\n") + 1])
    assert part.read_bytes() == sh(f"{common} --seed {seed} in").out
    assert len(left) < part.stat().st_size  # it was killed before its end


def sh_path():
    import sys

    return os.path.dirname(sys.executable)


def test_a_file_of_another_run_is_not_gone_on_with(sh):
    sh("echo 'a b' | mlm-sample -m a.json --seed 1 --steps 5 --resume r")
    before = (sh.folder / "r").read_bytes()
    done = sh("echo 'a b' | mlm-sample -m a.json --seed 1 --steps 6 -t 2 --resume r")
    assert done.status == 2
    assert "tau" in done.err
    assert "options.steps" in done.err
    assert (sh.folder / "r").read_bytes() == before


def test_one_file_has_one_writer(sh):
    done = sh("(sleep 0.2; echo 'a b'; sleep 1.5) | mlm-sample -m a.json --seed 1 --steps 2 --resume r & sleep 1; "
              "echo 'a b' | mlm-sample -m a.json --seed 1 --steps 2 --resume r; echo $?; wait")
    assert done.out == b"75\n"
    assert "another run is writing to it" in done.err


def test_a_run_again_from_its_records(sh, tables):
    line = "printf 'a b\\nc a\\n' | mlm-sample"
    whole = sh(f"{line} -m a.json -t 0.5,1 --seed 4 -c 2 --sweeps 3 --every 1 --freeze 0 | tee run.jsonl")
    assert sh(f"{line} --from-run run.jsonl").out == whole.out
    assert sh(f"{line} --from-run run.jsonl --check") == (
        0, b"", "mlm-sample: every record is the same as in run.jsonl\n")
    sh("sed 's/\"step\":3/\"step\":4/' run.jsonl > other.jsonl; head -n 9 run.jsonl > short.jsonl")
    sh("cat run.jsonl run.jsonl > long.jsonl")
    for name, said in (("other", "other.jsonl:15: this run gives another record here"),
                       ("short", "short.jsonl:10: this run gives another record here"),
                       ("long", "the file has more lines")):
        done = sh(f"{line} --from-run {name}.jsonl --check")
        assert (done.status, done.out) == (1, b"")
        assert said in done.err
    input_differs = sh("echo 'b b' | mlm-sample --from-run run.jsonl")
    assert (input_differs.status, input_differs.out) == (1, b"")
    assert "the first record of the input" in input_differs.err
    sh("cp b.json a.json")
    assert "the weights of the run had the hash" in sh(f"{line} --from-run run.jsonl").err
    assert sh(f"{line} --check").status == 2
    assert sh("mlm-sample --from-run a.json", stdin=b"a").status == 2
