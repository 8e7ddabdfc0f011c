"""One run on many processes: shards, workers of dask.distributed, GNU parallel; with the records of one process."""

import os
import shutil
import signal
import subprocess
import time

import orjson
import pytest
from conftest import PATH, ROOT

from mlmglauber.commands.sample.command import main, sample
from mlmglauber.commands.sample.options import SampleOptions
from mlmglauber.commands.shared.options import take_reading, take_table
from mlmglauber.commands.shared.spread.worker import Block, answer
from mlmglauber.stream.records import Line

pytestmark = pytest.mark.in_process

SAMPLE = "mlm-sample -m a.json --seed 3 -t 0.5,1 --steps 40 --every 10"
TEXTS = b"a b\n\nb c\nzz\n" + b'{"id":"x","text":"c c","topic":1}\n{"type":"summary","of":"pair"}\n' + b"a a\n" * 36


@pytest.fixture
def texts(sh, tables):
    (sh.folder / "in").write_bytes(TEXTS)
    return sh.folder


@pytest.mark.parametrize("command", [SAMPLE, "mlm-rect -m a.json --seed 3 --rectangles 3",
                                     "mlm-influence -m a.json --seed 3",
                                     "mlm-couple -m a.json --seed 3 --tau 0.5,1 --max-steps 60",
                                     "mlm-couple -m a.json --seed 3 --start random --pairs 2 --max-steps 60"])
def test_the_shards_together_are_the_whole(sh, texts, command):
    whole = sh(f"{command} in")
    parts = [sh(f"{command} --shard {k}/3 in") for k in (1, 2, 3)]
    assert sorted(part.status for part in parts) == [0, 0, 65]  # the bad line is one part's
    assert "".join(part.err for part in parts) == whole.err
    lines = [line for part in parts for line in part.out.splitlines()]
    runs = {line for line in lines if line.startswith(b'{"type":"run"')}
    assert sorted([*runs, *(line for line in lines if line not in runs)]) == sorted(whole.out.splitlines())


def test_a_shard_is_one_of_its_number(sh, texts):
    for shard in ("0/3", "4/3", "1", "a/b"):
        assert sh(f"{SAMPLE} --shard {shard} in").status == 2
    assert sh(f"{SAMPLE} --shard 1/2 --dask local:1 in").status == 2


def test_blocks_answer_what_the_whole_run_does(sh, texts, monkeypatch):
    """The worker's part without a cluster: every cut of the input gives the same records."""
    monkeypatch.chdir(texts)
    whole = sh(f"{SAMPLE} in")
    contents = [line for line in TEXTS.splitlines()[:12] if line]
    lines = [Line(f"in:{k}", content) for k, content in enumerate(contents)]
    values = main.make_context("mlm-sample", SAMPLE.split()[1:]).params
    for shared in ("files", "output", "strict", "quiet", "verbose", "progress", "no_color", "version", "shard", "dask",
                   "dry_run"):
        values.pop(shared, None)
    take_reading(values)
    take_table(values)
    options = SampleOptions(**values)
    expected = [line for line in whole.out.splitlines() if orjson.loads(line).get("id") in {None, "x", *"012345678"}]
    for size in (1, 4, 11):
        found, opened, reports = [], {}, []
        for start in range(0, len(lines), size):
            block = Block(lines[start : start + size], start, {"text": "a b"})
            given = answer(sample, block, options, strict=False, quiet=False, opened=opened)
            assert given.error is None
            reports += given.reports
            found += given.output.splitlines()
        kept = [line for k, line in enumerate(found) if b'"type":"run"' not in line or line not in found[:k]]
        assert [line for line in kept if orjson.loads(line).get("id") in {None, "x", *"012345678"}] == expected
        assert len(reports) == 1
        assert len(opened) == 1


def test_workers_of_dask_give_the_records_of_one_process(sh, texts):
    pytest.importorskip("distributed")
    whole = sh(f"{SAMPLE} in")
    spread = sh(f"{SAMPLE} --dask local:2 in")
    assert spread == whole
    assert whole.status == 65
    head = sh(f"yes 'a b' | sed 's/$/ /' | {SAMPLE} --dask local:2 | head -n 3; echo ${{PIPESTATUS[2]}}")
    assert (head.out.splitlines()[-1], head.err) == (b"141", "")


@pytest.mark.parametrize("command", [SAMPLE, "mlm-couple -m a.json --seed 3 --start random --max-steps 60"])
def test_an_id_that_comes_again_in_another_block_is_refused_as_in_one_process(sh, texts, command):
    names = [f"t{k}" for k in range(40)]
    names[10], names[25], names[39] = "t9", "t1", "t0"  # in the first block, in the second one, in the last one
    (texts / "ids").write_bytes(b"".join(orjson.dumps({"id": name, "text": "a b"}) + b"\n" for name in names))
    whole, spread = sh(f"{command} ids"), sh(f"{command} --dask local:2 ids")
    assert spread == whole
    assert whole.status == 65
    assert [line.split()[1] for line in whole.err.splitlines()] == ["ids:11:", "ids:26:", "ids:40:"]
    assert whole.err.count("make them differ") == 3


def test_what_needs_all_records_and_a_wrong_address_are_refused(sh, texts):
    pytest.importorskip("distributed")
    done = sh("mlm-rect -m a.json --summary --dask local:2 in")
    assert (done.status, done.out) == (2, b"")
    assert "run mlm-rect without --dask on the output" in done.err
    gone = sh(f"{SAMPLE} --dask tcp://127.0.0.1:1 in")
    assert (gone.status, gone.out) == (1, b"")
    assert sh(f"{SAMPLE} --dask local:2 < /dev/null") == (0, b"", "")


def test_a_worker_that_dies_costs_time_and_no_record(texts):
    """Killed when the first records are out and most blocks are still to come."""
    pytest.importorskip("distributed")
    (texts / "in").write_bytes(TEXTS + b"b a\n" * 60)
    command = SAMPLE.replace("--steps 40 --every 10", "--steps 1000 --every 100")
    environment = {**os.environ, "PATH": PATH}
    whole = subprocess.run(["bash", "-c", f"{command} in"], cwd=texts, env=environment, capture_output=True,
                           check=False)
    process = subprocess.Popen(["bash", "-c", f"exec {command} --dask local:2 in > out"], cwd=texts, env=environment,
                               stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while (not (texts / "out").exists() or not (texts / "out").stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    victims = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "spawn_main"], capture_output=True, text=True,
                             check=True).stdout.split()
    os.kill(int(victims[-1]), signal.SIGKILL)
    _, err = process.communicate(timeout=100)
    assert process.returncode == whole.returncode == 65
    assert (texts / "out").read_bytes() == whole.stdout
    assert err == whole.stderr


def test_a_device_asks_for_the_resource_of_that_name(sh, texts, monkeypatch):
    """A table computes the same on any device, so the resource is tried without one."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.chdir(texts)  # the worker is a thread here, and looks for a.json
    whole = sh(f"{SAMPLE} in")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp",
                                  dashboard_address=None, resources={"CPU": 1}) as cluster:
        address = cluster.scheduler_address
        refused = sh(f"{SAMPLE} --device cuda --dask {address} in")
        assert (refused.status, refused.out) == (1, b"")
        assert "--resources GPU=1" in refused.err
        assert sh(f"{SAMPLE} --dask {address} in") == whole
    assert sh(f"{SAMPLE} --device cuda --dask local:1 in").out == sh(f"{SAMPLE} --device cuda in").out


def test_a_night_of_cron(sh, texts):
    """Silent when all is well; a run that was stopped goes on, to the same bytes; two at once are refused."""
    (texts / "passages.jsonl").write_bytes(b"a b\nb c\nc a\n")
    night = f"MLM_DATA=. MLM_MODEL=a.json STEPS=3000 sh {ROOT}/examples/cron/nightly.sh"
    done = sh(night)
    assert (done.status, done.out, done.err) == (0, b"", "")
    (output,) = texts.glob("chains-*.jsonl")
    whole = output.read_bytes()
    assert whole.count(b"\n") > 1000
    output.write_bytes(whole[: len(whole) // 2])
    assert sh(night) == (0, b"", "")
    assert output.read_bytes() == whole
    second = sh(f"exec 9< {output.name}; flock 9; {night} 9<&-; echo $?")
    assert second.out.splitlines()[0].startswith(b"mlm-sample ended with status 75 on ")
    assert second.out.splitlines()[-1] == b"75"
    (texts / "passages.jsonl").unlink()
    assert sh(night).out.count(b"\n") == 2


def slurm(sh, k, shards=2, more=""):
    """A task of the array, as Slurm would start it; COUNT is what it tells of the part that is queued."""
    return sh(f"SHARDS={shards} SLURM_CPUS_PER_TASK=1 SLURM_ARRAY_TASK_COUNT=1 SLURM_ARRAY_TASK_ID={k} "
              f"MLM_MODEL=a.json LENGTH=2 {more} bash {ROOT}/examples/slurm.sbatch 'in put'")


def test_the_tasks_of_a_slurm_array(sh, texts):
    """Each of any part of the array is the shard that the script says; a file is refused to another shard."""
    (texts / "in put").write_bytes(b"a b\nb c\nc a\n")
    shards = f"bash {ROOT}/examples/shards.sh"
    assert sh(shards).status == 66
    whole = sh("mlm-sample -m a.json --tau 0.5,1,1.5,2 --length 2 --sweeps 500 --on-change --seed 1 'in put'")
    assert slurm(sh, 2)[::2] == (0, "")
    assert sh(shards) == (1, b"finished: 2\nunfinished: \nmissing: 1\n", "")
    assert sh(f"{shards} --rest").out == b"1\n"
    killed = slurm(sh, 1, more="timeout -s KILL 0.1")
    assert killed.status != 0
    (texts / "chains-1-of-2.jsonl").touch()
    assert sh(shards).out == b"finished: 2\nunfinished: 1\nmissing: \n"
    assert slurm(sh, 1)[::2] == (0, "")
    assert sh(f"{shards} --rest") == (0, b"\n", "")
    files = [(texts / f"chains-{k}-of-2.jsonl").read_bytes() for k in (1, 2)]
    assert set(state_lines(b"".join(files))) == set(state_lines(whole.out))
    assert len(state_lines(b"".join(files))) == len(state_lines(whole.out))
    assert [orjson.loads(content.splitlines()[0])["shard"] for content in files] == ["1/2", "2/2"]
    assert slurm(sh, 1).err == "mlm-sample: chains-1-of-2.jsonl: the run was complete already; nothing was added\n"
    assert (texts / "chains-1-of-2.jsonl").read_bytes() == files[0]
    same = "mlm-sample -m a.json --tau 0.5,1,1.5,2 --length 2 --sweeps 500 --on-change --seed 1"
    for wrong in ("2/2", "1/3"):
        done = sh(f"{same} --shard {wrong} --resume chains-1-of-2.jsonl 'in put'")
        assert done.status == 2
        assert "begun by another run (shard differ)" in done.err
    assert "(shard differ)" in sh(f"{same} --resume chains-1-of-2.jsonl 'in put'").err


def state_lines(content):
    return [line for line in content.splitlines() if b'"type":"state"' in line]


def test_gnu_parallel(sh, texts):
    """Bad records, a model that is not there, a file that is not there and a killed shard are told and no status 0."""
    if shutil.which("parallel") is None:
        pytest.skip("GNU parallel is not installed")
    for name in ("in", "in put"):
        (texts / name).write_bytes(TEXTS.replace(b"zz\n", b""))
    whole = sh(f"{SAMPLE} in")
    script = f"SHARDS=2 sh {ROOT}/examples/parallel.sh"
    done = sh(f"{script} 'in put' '{SAMPLE}'")
    assert (done.status, done.err) == (0, "")
    runs = [line for line in done.out.splitlines() if b'"type":"run"' in line]
    assert len(runs) == 2
    assert sorted(done.out.splitlines()) == sorted(whole.out.splitlines())
    (texts / "bad").write_bytes((texts / "in").read_bytes() + b'{"text":7}\n')
    bad = sh(f"{script} bad '{SAMPLE}'")
    assert bad.status == 65
    assert sorted(bad.out.splitlines()) == sorted(whole.out.splitlines())
    assert sh(f"{script} gone '{SAMPLE}'").status == 66
    failed = sh(f"{script} in '{SAMPLE} -m gone.json'")
    assert failed.status == 1
    assert "2 of 2 shards ended, of these failed: 1,2; run it again" in failed.err
    (texts / "dies").write_text('#!/bin/bash\nif [ "$2" = 2/2 ]; then kill -KILL $$; fi\nexec ' + SAMPLE + ' "$@"\n')
    killed = sh(f"chmod +x dies; {script} 'in put' ./dies")
    assert killed.status == 1
    assert "of these failed: 2;" in killed.err
    assert 0 < len(state_lines(killed.out)) < len(state_lines(whole.out))


EXAMPLES = {
    "quickstart.sh": ["mlm-sample", "mlm-embed", "mlm-drift"],
    "political-drift.sh": ["mlm-sample", "mlm-embed", "mlm-basins"],
    "phase-diagram.sh": ["jq", "mlm-couple"],
    "exact-mixing.sh": ["mlm-exact", "mlm-couple", "jq"],
}


@pytest.mark.parametrize(("script", "stage"), [(script, stage) for script in EXAMPLES for stage in EXAMPLES[script]])
def test_an_example_fails_with_each_of_its_stages(sh, script, stage):
    """In a folder with a space; one stage is killed, the others are stubs that read all and succeed."""
    folder = sh.folder / "my examples"
    (folder / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "examples" / script, folder)
    for name in ("passages.jsonl", "topics.jsonl", "starts.jsonl"):
        (folder / name).write_text('{"id":"0","text":"a b"}\n')
    for name in {name for stages in EXAMPLES.values() for name in stages}:
        stub = folder / "bin" / name
        stub.write_text("#!/bin/sh\ncat > /dev/null\n" + ("kill -KILL $$\n" if name == stage else ""))
        stub.chmod(0o755)
    line = f"cd /; PATH='{folder}/bin':$PATH sh '{folder}/{script}' < /dev/null"
    assert sh(line).status != 0
    (folder / "bin" / stage).write_text("#!/bin/sh\ncat > /dev/null\n")
    assert sh(line).status == 0
    assert sorted(path.name for path in sh.folder.iterdir()) == ["my examples"]
