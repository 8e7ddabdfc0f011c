"""A run that is killed, ended, stopped or out of room at any moment goes on as if nothing had been."""

import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import orjson
import pytest
from conftest import PATH

pytestmark = pytest.mark.usefixtures("tables")
COMMANDS = {
    "mlm-sample": "mlm-sample -m a.json -t 0.5,1 -c 3 --steps 600 --every 1 --seed 3 in",
    "mlm-couple": "mlm-couple -m a.json -t 0.2,1 --start random --pairs 30 --max-steps 300 --every 10 --seed 3 in",
}
SIGNALS = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "interrupt": signal.SIGINT}
STATUSES = {"kill": {-9}, "terminate": {143, -15}, "interrupt": {130, -2}, "full": {74}}
"""The negative ones: the signal came before the command had begun."""
MOMENTS = 50
every_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
WHOLE = {}


@pytest.fixture
def whole(sh, command):
    """What the command writes when nothing happens to it."""
    other = b'{"type":"run","note":"of another command"}'
    (sh.folder / "in").write_bytes(b'a b\n' + other + b'\nc c\nb a\n{"text":"c b","x":[1]}\n')
    if command not in WHOLE:
        WHOLE[command] = sh(command)
        assert WHOLE[command].status == 0
    return WHOLE[command].out


def run(folder, line):
    return subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=folder, stderr=subprocess.PIPE,
                            env={**os.environ, "PATH": PATH})


def end(process, kind, grown, size, draws):
    """Send a signal at a random moment: before the first line is written, or when so much of the output is there."""
    if draws.random() < 0.2:
        time.sleep(draws.uniform(0, 0.4))
    else:
        aim = draws.uniform(0, size)
        while process.poll() is None and grown() < aim:
            time.sleep(0.001)
    process.send_signal(SIGNALS[kind])


def interrupted(folder, line, kind, grown, size, draws):
    """Run a line until it is ended; its status, None for a run that was over before."""
    limit = f"ulimit -f {draws.randint(0, size // 1024)}; exec " if kind == "full" else ""
    process = run(folder, f"bash -c '{limit}{line}'" if limit else line)
    if kind != "full":
        end(process, kind, grown, size, draws)
    _, err = process.communicate(timeout=60)
    if process.returncode == 0:
        return None
    if kind == "interrupt" and b"KeyboardInterrupt" in err:  # the interpreter was still on its way to our first line
        assert b"/mlmglauber/" not in err, err
        return "no more than the interpreter begun"
    assert process.returncode in STATUSES[kind], (process.returncode, err)
    assert process.returncode < 0 or err.count(b"\n") == 1
    return process.returncode


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def resumed(sh, command, whole, kind, draws):
    """One moment of a run with --resume, then the rest of it."""
    part = sh.folder / "part"
    part.unlink(missing_ok=True)
    status = interrupted(sh.folder, f"{command} --resume part", kind, lambda: size_of(part), len(whole), draws)
    left = part.read_bytes() if part.exists() else b""
    assert whole.startswith(left)
    if kind != "kill":
        assert left.endswith(b"\n") or not left, "a torn line"
    done = sh(f"{command} --resume part")
    assert (done.status, done.out, done.err) == (0, b"", "")
    assert part.read_bytes() == whole
    return status


def written(sh, command, whole, kind, draws):
    """One moment of a run with -o, and of one whose output goes to a file by itself or through a pipe."""
    out = sh.folder / "out"
    statuses = []
    for line in (f"{command} -o out", f"{command} > out", f"{command} > >(cat > out)"):
        for path in [out, *sh.folder.glob(".out.*")]:
            path.unlink(missing_ok=True)
        hidden = line.endswith("-o out")
        if kind == "full" and "cat" in line:
            continue
        status = interrupted(sh.folder, line, kind, lambda hidden=hidden: max(
            map(size_of, sh.folder.glob(".out.*" if hidden else "out")), default=0), len(whole), draws)
        statuses.append(status)
        if "cat" in line:
            time.sleep(0.3)  # cat has still to write what it read
        left = out.read_bytes() if out.exists() else b""
        if hidden:
            assert left == whole or (status is not None and not left)  # the end may come just after the file
            assert kind == "kill" or not list(sh.folder.glob(".out.*"))
        else:
            assert whole.startswith(left)
            if kind != "kill":
                assert left.endswith(b"\n") or not left, "a torn line"
    return statuses


@every_command
@pytest.mark.parametrize("kind", STATUSES)
def test_a_run_goes_on_from_a_random_moment(sh, command, whole, kind):
    resumed(sh, command, whole, kind, random.Random(f"{command} {kind}"))


@pytest.mark.parametrize("command", [COMMANDS["mlm-sample"]], ids=["mlm-sample"])
@pytest.mark.parametrize("kind", ["terminate", "full"])
def test_what_is_written_at_a_random_moment(sh, command, whole, kind):
    written(sh, command, whole, kind, random.Random(kind))


@pytest.mark.soak
@every_command
@pytest.mark.parametrize("kind", STATUSES)
def test_fifty_random_moments(sh, command, whole, kind, record_property):
    """--resume, -o and standard output, at 50 moments each."""
    draws, seen = random.Random(), Counter()
    for _ in range(MOMENTS):
        seen[resumed(sh, command, whole, kind, draws)] += 1
    for _ in range(MOMENTS):
        seen.update(written(sh, command, whole, kind, draws))
    told = ", ".join(f"{count} ended with {status}" for status, count in seen.items() if status is not None)
    record_property("survived", f"{command.split()[0]}, {kind}: {MOMENTS} moments of --resume and {MOMENTS} of each "
                    f"other output; {told}; {seen[None]} were over before")
    assert sum(seen.values()) > seen[None] + MOMENTS // 2


@pytest.mark.soak
@every_command
def test_a_disk_that_is_full_in_truth(sh, command, whole):
    """A small tmpfs, filled by somebody else at first; where it may not be mounted the limits above stand for it."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={len(whole) + (1 << 16)}", "none", folder],
                                 capture_output=True, check=False)
        if mounted.returncode:
            pytest.skip("no tmpfs may be mounted here")
        try:
            filler = Path(folder) / "filler"
            for share in range(1, 10):
                filler.write_bytes(bytes(len(whole) * share // 10))
                for where in ("--resume {}/part", "-o {}/out", "> {}/out"):
                    done = sh(f"{command} {where.format(folder)}")
                    assert done.status == 74
                    assert "No space left on device" in done.err
                assert whole.startswith(left := (Path(folder) / "out").read_bytes())
                assert left.endswith(b"\n") or not left  # what --resume wrote may take all room
                assert [path.name for path in Path(folder).iterdir() if path.name.startswith(".")] == []
                (Path(folder) / "out").unlink()
                filler.unlink()
                assert sh(f"{command} --resume {folder}/part").status == 0
                assert (Path(folder) / "part").read_bytes() == whole
                (Path(folder) / "part").unlink()
        finally:
            subprocess.run(["umount", folder], check=True)


@every_command
def test_the_second_of_two_runs_on_one_output_is_refused(sh, command, whole):
    first = subprocess.Popen(["bash", "-c", f"exec {command.removesuffix(' in')} --resume part"], cwd=sh.folder,
                             stdin=subprocess.PIPE, env={**os.environ, "PATH": PATH})
    try:
        first.stdin.write((sh.folder / "in").read_bytes())
        first.stdin.flush()
        while not size_of(sh.folder / "part"):
            time.sleep(0.01)
        second = sh(f"{command} --resume part")
        assert (second.status, second.out, second.err.count("\n")) == (75, b"", 1)
        assert "part: another run is writing to it" in second.err
    finally:
        first.stdin.close()
        assert first.wait(60) == 0
    assert (sh.folder / "part").read_bytes() == whole


@pytest.mark.parametrize("content", [b"my only copy", b"one\ntwo\n", b'{"tokens":["a"]}\n', b"[1]\n", b"\0\0\0\0"])
def test_a_file_that_no_run_began_is_left_alone(sh, content):
    (sh.folder / "mine").write_bytes(content)
    for name in COMMANDS:
        done = sh(f"echo 'a b' | {name} -m a.json --seed 1 --start random --resume mine" if name == "mlm-couple" else
                  f"echo 'a b' | {name} -m a.json --seed 1 --resume mine")
        assert (done.status, done.out) == (2, b"")
        assert "choose another file" in done.err
        assert (sh.folder / "mine").read_bytes() == content


@pytest.mark.parametrize("stage", [1, 2, 3, 4])
def test_a_reader_that_goes_ends_the_stages_before_it_quietly(sh, stage):
    (sh.folder / "in").write_bytes(b"".join(b'{"text":"a b","id":"%d"}\n' % k for k in range(30_000)))
    stages = ["mlm-sample -m a.json --steps 30 --every 1 in", *["mlm-drift -q"] * 3]
    pipe = " | ".join([*stages[:stage], "head -n 2", *stages[stage:]])
    done = sh(f"{pipe}; echo ${{PIPESTATUS[@]}}", timeout=60)
    *lines, statuses = done.out.splitlines()
    assert len(lines) == 2
    assert all(map(orjson.loads, lines))
    assert statuses.split() == [b"141"] * stage + [b"0"] * (5 - stage)
    assert done.err == ""


@pytest.mark.parametrize(("command", "line"), [("mlm-sample -m a.json --steps 100000 --every 1000", "a b"),
                                               ("mlm-drift", "{}")])
def test_two_signals_at_once_are_one(sh, command, line):
    """timeout(1) sends its signal to the command and to its group: no hidden file is left behind."""
    done = sh(f"(while echo '{line}'; do :; done) | timeout 1 {command} -o out; echo ${{PIPESTATUS[1]}}")
    assert (done.out, done.err.splitlines()[-1]) == (b"124\n", f"{command.split()[0]}: terminated")
    assert [path.name for path in sh.folder.iterdir() if "out" in path.name] == []


def test_standard_streams_that_are_closed(sh):
    command = "mlm-sample -m a.json --steps 2 --seed 1"
    (sh.folder / "in").write_text("a b\nq\n")
    reference = sh(f"{command} in")
    quiet = sh(f"{command} in 2>&-")
    assert (quiet.status, quiet.out) == (65, reference.out)
    assert sh(f"{command} in 2> /dev/full").out == reference.out
    gone = sh(f"({command} in 3>&1 1>&2 2>&3 | true) 2> out; cat out")
    assert gone.out == reference.out
    assert sh(f"{command} <&-").status == 66
    assert sh(f"{command} in >&-").status == 74
    assert sh(f"{command} .").status == 66


def test_devices_links_and_folders_as_output(sh):
    command = "echo 'a b' | mlm-sample -m a.json --steps 2 --seed 1"
    reference = sh(command).out
    assert sh(f"{command} -o /dev/stdout | cat").out == reference
    assert sh(f"{command} -o >(cat > there); sleep 0.3; cat there").out == reference
    assert sh(f"mkfifo pipe; cat pipe > there & {command} -o pipe; wait; cat there").out == reference
    assert sh(f"{command} -o /dev/null").status == 0
    assert not Path("/dev/null").is_file()
    assert sh(f"touch target; ln -s target link; {command} -o link; test -L link && cat target").out == reference
    folder = sh(f"{command} -o .")
    assert (folder.status, folder.out) == (73, b"")
