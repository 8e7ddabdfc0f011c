"""What all commands have in common, each point tried on each command.

What depends on processes, pipes, terminals, signals or the locale runs in a real shell (`sh`). What a command makes of
its input runs in the process of the test (`quick`) and is compared with what a real shell gave (`reference`).
"""

import os
import pty
import re
import select
import signal
import subprocess
import time

import orjson
import pytest
from conftest import PATH, ROOT, quick_shell

from mlmglauber.stream.errors import ExitStatus

EMBEDDED = b'{"id":"%d","text":"a b","embedding":[1,%d],"embedder":"e","foo":[1,{"bar":null}]}\n'
COMMANDS = {
    "mlm-sample": "mlm-sample -m a.json --seed 1 --steps 2 --every 1",
    "mlm-embed": "mlm-embed",
    "mlm-drift": "mlm-drift",
    "mlm-influence": "mlm-influence -m a.json --seed 1",
    "mlm-rect": "mlm-rect -m a.json --seed 1 --rectangles 2",
    "mlm-exact": "mlm-exact -m a.json --top 3",
    "mlm-basins": "mlm-basins --examples topics",
    "mlm-couple": "mlm-couple -m a.json --seed 1 --start random --max-steps 50",
    "mlm-traps": "mlm-traps -m a.json",
    "mlm-tokens": "mlm-tokens -m a.json",
    "mlm-score": "mlm-score -m a.json",
}
every_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
QUICK = ("mlm-sample", "mlm-drift", "mlm-rect")
few_commands = pytest.mark.parametrize("command", [
    pytest.param(line, id=name, marks=() if name in QUICK else pytest.mark.soak) for name, line in COMMANDS.items()])
"""For what all commands share and real processes test slowly: three of them in `make test`, all in the soak."""
every_filter = pytest.mark.parametrize("command", [*COMMANDS.values(), "mlm-show"], ids=[*COMMANDS, "mlm-show"])
"""Also mlm-show, which writes text and no records."""
every_name = pytest.mark.parametrize("name", [*COMMANDS, "mlm-show"])

SUMMARY = b'{"type":"summary","of":"pair","x":1.5}\n'
ODD = "x\u2028y\u0085z \U0001f600 \u200f"
REFERENCES = {}


@pytest.fixture
def quick(sh):
    return quick_shell(sh.folder)


@pytest.fixture
def inputs(sh, tables):
    """f and g: three and two records that every command takes, the last with odd characters; s: one that all pass."""
    (sh.folder / "f").write_bytes(b"".join(EMBEDDED % (k, k) for k in range(3)))
    odd = orjson.dumps(orjson.loads(EMBEDDED % (4, 4)) | {"odd": ODD}) + b"\n"
    (sh.folder / "g").write_bytes(EMBEDDED % (3, 3) + odd)
    (sh.folder / "s").write_bytes(SUMMARY)
    (sh.folder / "topics").write_bytes(b"".join(
        b'{"label":"%s","embedding":[%d,%d],"embedder":"e"}\n' % (label, k % 2 + 1, sign * (k % 3 + 1))
        for label, sign in ((b"up", 1), (b"down", -1)) for k in range(6)))
    return sh.folder


@pytest.fixture
def reference(sh, inputs, command):
    """What a command makes of s, f, g and s again: run once for all tests that look at it or compare with it."""
    if command not in REFERENCES:
        REFERENCES[command] = sh(f"cat s f g s | {command}", LC_ALL="C.UTF-8")
    return REFERENCES[command]


@every_name
def test_help_and_version(sh, name):
    for option in ("-h", "--help"):
        done = sh(f"{name} {option}")
        assert (done.status, done.err) == (0, "")
        assert done.out.decode().startswith(f"Usage: {name} ")
    assert re.fullmatch(rf"{name} \(mlmglauber\) \d+\.\d+\.\d+\n", sh(f"{name} --version").out.decode())
    modules = sh(f"python -X importtime -m mlmglauber.commands.{name.removeprefix('mlm-')}.command --help").err
    assert not re.search(r"\| +(torch|transformers|numpy|scipy|rich)\b", modules)


@every_name
def test_wrong_options_are_two_lines_and_status_2(sh, name):
    for arguments in ("--nope", "-o"):
        done = sh(f"{name} {arguments}")
        assert (done.status, done.out) == (2, b"")
        assert done.err.endswith(f"Try '{name} --help'.\n")
        assert done.err.count("\n") == 2


@every_filter
def test_standard_input_files_and_both(sh, quick, inputs, command, reference):
    assert reference.status == 0
    (sh.folder / "-x").write_bytes(SUMMARY)
    for line in (f"{command} s f g s", f"cat f g | {command} s - -- -x"):
        assert quick(line) == reference
    gone = quick(f"{command} f gone")
    assert (gone.status, gone.out) == (66, b"")
    assert "gone" in gone.err


@every_command
def test_every_line_is_strict_json_in_any_locale(sh, inputs, command, reference, jq):
    assert jq("-e -c .", reference.out) is not None
    assert reference.out.endswith(b"\n")
    assert b"\x1b" not in reference.out
    assert sh(f"{command} -o - s f g s", LC_ALL="C", FORCE_COLOR="1").out == reference.out
    assert sh(f"{command} s f g s", LC_ALL="de_DE.UTF-8", LC_NUMERIC="de_DE.UTF-8").out == reference.out


@every_command
def test_odd_characters_and_unknown_fields_pass_through(command, reference):
    own = [record for record in reference.records if record.get("type") != "run" and record.get("of") != "pair"]
    assert own[-1]["odd"] == ODD
    assert all(record["foo"] == [1, {"bar": None}] for record in own)


@every_command
def test_other_records_pass_through_in_their_place(command, reference):
    records = reference.records
    others = [k for k, record in enumerate(records) if record.get("of") == "pair"]
    assert len(others) == 2
    assert others[1] == len(records) - 1
    assert records[others[0]] == orjson.loads(SUMMARY)


@every_filter
def test_empty_input_gives_empty_output(sh, quick, inputs, command):
    assert sh(f"{command} < /dev/null") == (0, b"", "")
    assert quick(f"printf '\\n  \\n\\r\\n' | {command}") == (0, b"", "")


@every_command
def test_a_bad_line_is_told_and_the_good_ones_are_answered(sh, quick, inputs, command, reference):
    bad = b'{bad\n"x"\n{"text":"caf\xe9"}\n{"text":"\\ud800"}\n{"type":"run","schema":"mlm/2"}\n'
    s, f, g = ((sh.folder / name).read_bytes() for name in "sfg")
    done = quick(f"{command} -q", stdin=s + f + bad + g + s)
    assert done.status == 65
    assert [line.split(": ")[1] for line in done.err.splitlines()] == [f"stdin:{k}" for k in (5, 6, 7, 8, 9)]
    assert all(";" in line for line in done.err.splitlines())
    assert 'stdin:9: the records have schema "mlm/2"' in done.err
    assert len(done.records) == len(reference.records)
    strict = quick(f"{command} --strict", stdin=bad + f)
    assert strict.status == 65
    assert strict.err.count("\n") == 1
    assert "Traceback" in quick(f"{command} --strict -v", stdin=bad + f).err


@every_filter
def test_an_output_file_appears_whole_or_not_at_all(sh, quick, inputs, command, reference):
    """And with -q nothing is said."""
    assert quick(f"{command} -q -o out s f g s") == (0, b"", "")
    assert (sh.folder / "out").read_bytes() == reference.out
    sh(f"(cat f; while sleep 0.1; do echo; done) | {command} -o late & victim=$!; "
       "until ls .late.* 2> /dev/null; do sleep 0.1; done; kill -9 $victim; wait", timeout=60)
    assert not (sh.folder / "late").exists()
    for before in list(sh.folder.glob(".late.*")):
        before.unlink()
    quick(f"echo '{{bad' | {command} -o strict --strict")
    assert not [path for path in sh.folder.iterdir() if "strict" in path.name]
    nowhere = quick(f"{command} -o no/such/folder f")
    assert nowhere.status == 73
    full = sh(f"{command} f > /dev/full")
    assert full.status == 74
    assert "cannot write" in full.err


@few_commands
def test_a_closed_pipe_is_quiet(sh, inputs, command):
    done = sh(f"yes '{(EMBEDDED % (0, 0)).decode().strip()}' | sed 's/\"id\":\"0\",//' | {command} | head -n 1; "
              "echo ${PIPESTATUS[2]}", timeout=60)
    first, status = done.out.splitlines()
    assert orjson.loads(first)
    assert (status, done.err) == (b"141", "")
    short = sh(f"{command} -q f | true; echo ${{PIPESTATUS[0]}}", PYTHONUNBUFFERED="1")
    assert short.out in (b"141\n", b"0\n")
    assert short.err == ""


@few_commands
def test_a_slow_producer_is_answered_at_once(inputs, command):
    """The answer to the first record is there while the second is still to come."""
    process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=inputs, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env={**os.environ, "PATH": PATH})
    try:
        process.stdin.write(EMBEDDED % (0, 0))
        process.stdin.flush()
        seen, deadline = b"", time.monotonic() + 60
        while b'"foo"' not in seen and time.monotonic() < deadline:
            if select.select([process.stdout], [], [], 1)[0]:
                seen += os.read(process.stdout.fileno(), 1 << 16)
        assert b'"foo"' in seen
        assert seen.endswith(b"\n")
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(20)


@few_commands
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, ExitStatus.INTERRUPTED), (signal.SIGTERM, 143)])
def test_signals_leave_whole_lines_and_a_status(inputs, command, number, status):
    line = f"yes '{(EMBEDDED % (0, 0)).decode().strip()}' | sed 's/\"id\":\"0\",//' | exec {command} > out"
    process = subprocess.Popen(["bash", "-c", f"{line}; exit ${{PIPESTATUS[2]}}"], cwd=inputs, stderr=subprocess.PIPE,
                               env={**os.environ, "PATH": PATH}, start_new_session=True)
    deadline = time.monotonic() + 60
    while (not (inputs / "out").exists() or not (inputs / "out").stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    victim = subprocess.run(["pgrep", "-s", str(process.pid), "-f", f"bin/{command.split()[0]}"], capture_output=True,
                            text=True, check=True).stdout.split()[0]
    os.kill(int(victim), number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == status
    assert err.decode().count("\n") == 1
    content = (inputs / "out").read_bytes()
    assert content.endswith(b"\n")
    assert all(orjson.loads(line) for line in content.splitlines())


@every_filter
def test_a_terminal_is_told_that_it_is_read(inputs, command):
    master, terminal = pty.openpty()
    process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=inputs, stdin=terminal, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env={**os.environ, "PATH": PATH})
    os.close(terminal)
    os.write(master, b"\x04")
    out, err = process.communicate(timeout=60)
    os.close(master)
    assert (out, err) == (b"", b"reading records from the terminal, Ctrl-D ends\n")


@few_commands
def test_progress_is_for_terminals_and_can_be_refused(inputs, command):
    def on_terminal(options):
        master, terminal = pty.openpty()
        process = subprocess.Popen(["bash", "-c", f"exec {command} {options} f > out"], cwd=inputs,
                                   stdin=subprocess.DEVNULL, stderr=terminal,
                                   env={**os.environ, "PATH": PATH, "TERM": "xterm-256color"})
        os.close(terminal)
        seen = b""
        while True:
            try:
                block = os.read(master, 4096)
            except OSError:
                break
            seen += block
        process.wait(30)
        os.close(master)
        return seen, (inputs / "out").read_bytes()

    seen, reference = on_terminal("")
    name = command.split()[0].encode()
    assert re.search(rb"\x1b\[2K%b:[^\r]* 0[^\r]* (records|conditionals|steps|rectangles)" % name, seen)
    assert on_terminal("-q") == (b"", reference)


def test_escape_sequences_in_a_record_do_not_reach_a_terminal(sh, inputs):
    done = sh("mlm-sample -m a.json", stdin=b'{"text":"a \x1b[31mred"}\n{"id":"\\u001b[2J","text":"\\u001b[31m"}\n')
    assert done.status == 65
    assert "\x1b" not in done.err


def test_flag_over_environment_over_default(sh, inputs):
    assert sh("mlm-sample --steps 0 f", MLM_MODEL="a.json").records[0]["model"] == "a.json"
    assert sh("mlm-sample -m b.json --steps 0 f", MLM_MODEL="a.json").records[0]["model"] == "b.json"
    assert "MLM_MODEL" in sh("mlm-sample --help-all").out.decode()
    assert sh("mlm-embed f", MLM_EMBEDDER="nowhere/at/all").status == 69
    assert sh("mlm-sample f", MLM_DEVICE="tpu", MLM_MODEL="tiny-en").status == 2


def test_a_four_stage_pipe_ends_quietly_when_its_reader_goes(sh, inputs):
    done = sh("yes 'a b' | mlm-sample -m a.json --steps 40 --every 1 | mlm-embed | mlm-drift | head -n 3; "
              "echo ${PIPESTATUS[@]}", timeout=60)
    *lines, statuses = done.out.splitlines()
    assert len(lines) == 3
    assert statuses == b"141 141 141 141 0"
    assert done.err == ""


def test_launchers_of_the_checkout(sh):
    for name in [*COMMANDS, "mlm-show"]:
        assert (ROOT / "bin" / name).read_bytes() == (ROOT / "bin" / "launch").read_bytes()  # links, in an sdist copies
        if (ROOT / ".venv").exists():
            assert sh(f"{ROOT}/bin/{name} --version").out == sh(f"{name} --version").out
