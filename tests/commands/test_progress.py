"""Progress: what is counted, the lines that show it, as JSON and on terminals that several commands share."""

import gzip
import os
import re
from typing import get_type_hints

import orjson
import pytest
from conftest import ROOT
from jsonschema import Draft202012Validator, ValidationError
from record_schema import SCHEMA
from terminal import SGR, on_terminal, read_until, screen

from mlmglauber.commands.shared import progress as module
from mlmglauber.commands.shared.progress import InputLength, Progress, line
from mlmglauber.stream.formats import Reading
from mlmglauber.stream.lines import Lines
from mlmglauber.stream.record_types.progress import ProgressLine

pytestmark = [pytest.mark.in_process, pytest.mark.usefixtures("tables")]
SAMPLE = "mlm-sample -m a.json --seed 1"
LONG = f"{SAMPLE} --batch-size 1 --sweeps 250 --every 250"
"""A run of about a tenth of a second for each text, one after the other."""
TEXTS = b"a b\nc c\n" * 10


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets: clock.now."""
    class Clock:
        now = 100.0

    monkeypatch.setattr(module, "monotonic", lambda: Clock.now)
    return Clock


# What is counted

def test_rate_and_time_left_follow_from_the_counts(clock):
    progress = Progress("steps", total=100)
    assert progress.state()[:6] == (0, 100, False, None, None, 0.0)
    progress.plan(100)
    clock.now += 10
    progress(20)
    state = progress.state()
    assert (state.done, state.rate, state.seconds, state.seconds_left) == (20, 2.0, 10.0, 40.0)
    clock.now += 10
    progress(80)
    assert progress.state().seconds_left == 0.0


def test_the_rate_is_that_of_the_last_thirty_states(clock):
    progress = Progress("steps", total=1e6)
    progress.plan(1)
    for _ in range(60):
        clock.now += 1
        progress(10)
        progress.state()
    for _ in range(29):
        clock.now += 1
        progress(1)
        progress.state()
    clock.now += 1
    progress(1)
    assert progress.state().rate == 1.0
    clock.now += 1
    progress(1)
    assert progress.state(keep=False).rate == progress.state(keep=False).rate == 1.0


def test_the_total_is_estimated_until_the_input_is_read(clock):
    length = InputLength(4.0, False)
    progress = Progress("steps", input_length=lambda: length)
    assert progress.state().total is None
    progress.plan(50)
    assert progress.state()[1:3] == (200, True)
    length = InputLength(1.0, True)
    assert progress.state()[1:3] == (50, False)


def test_an_open_input_has_no_total(clock):
    progress = Progress("records", input_length=lambda: None)
    progress.plan(5)
    clock.now += 1
    progress(5)
    state = progress.state()
    assert (state.total, state.input_open, state.rate, state.seconds_left) == (None, True, 5.0, None)
    assert "input open" in "".join(line("mlm-embed", progress, state, 80))
    assert not Progress("temperatures").state().input_open


def test_what_an_earlier_run_made_counts_as_done_and_not_for_the_rate(clock):
    progress = Progress("steps", input_length=lambda: InputLength(1, True))
    progress.plan(1000, 120)
    clock.now += 10
    progress(80)
    state = progress.state()
    assert (state.done, state.total, state.rate, state.seconds_left) == (200, 1000, 8.0, 100.0)
    assert "resumed at 12%" in "".join(line("mlm-sample", progress, state, 120))


def test_steps_that_a_meeting_saves_are_done_and_not_made(clock):
    progress = Progress("steps", input_length=lambda: InputLength(1, True))
    progress.plan(1000)
    clock.now += 10
    progress(500)
    progress.made = 20
    state = progress.state()
    assert (state.rate, state.seconds_left) == (2.0, 10.0)


# How it is written

def test_a_line_has_what_fits_and_always_its_name(clock):
    progress = Progress("steps", input_length=lambda: InputLength(1.5, False), from_memory=0.4, finished=(3, "texts"))
    progress.plan(2e6, 1e5)
    clock.now += 60
    progress(9e5)
    state = progress.state()
    for cells in range(1, 160):
        whole = "".join(line("mlm-sample", progress, state, cells))
        assert whole.startswith("mlm-sample:")
        assert len(whole) <= max(cells, len("mlm-sample:"))
    assert whole == ("mlm-sample: ━━━━━━━───────────── 1.0M/~3.0M steps, 33%, 15.0k/s, 40% from memory, 2:13 left, "
                     "resumed at 3%, 3 texts")
    assert "".join(line("mlm-sample", progress, state, 39)) == "mlm-sample: ━─── 1.0M/~3.0M steps, 33%"


def test_a_line_is_whole_json_whose_nulls_have_reasons(clock):
    progress = Progress("steps", input_length=lambda: None, finished=(0, "pairs"))
    begun = progress.as_json("mlm-couple", progress.state())
    assert begun == {
        "type": "progress", "command": "mlm-couple", "unit": "steps", "done": 0, "total": None,
        "total_reason": "the input has not ended", "estimated": False, "rate": None,
        "rate_reason": "no work has begun", "seconds": 0.0, "seconds_left": None,
        "seconds_left_reason": "the total is not known", "pairs": 0, "resumed": 0}
    for unknown, why in ((Progress("temperatures"), "it depends on the results"),
                         (Progress("records", input_length=lambda: InputLength(9, False)), "no work is known yet")):
        assert unknown.as_json("x", unknown.state())["total_reason"] == why
    orjson.dumps(begun)


def progress_of(done, command):
    """The lines of --progress=json of one command, which stand among its warnings."""
    lines = [orjson.loads(each) for each in done.err.splitlines() if each.startswith("{")]
    assert all(each["type"] == "progress" for each in lines)
    return [each for each in lines if each["command"] == command]


@pytest.mark.parametrize(("command", "unit", "total", "more"), [
    (f"{SAMPLE} --steps 30 --chains 2 --tau 0.5,1", "steps", 6 * 2 * 2 * 30, {"texts": 6, "resumed": 0}),
    (f"{SAMPLE} --steps 30 --engine plain", "steps", 6 * 30, {"texts": 6, "resumed": 0}),
    ("mlm-couple -m a.json --seed 1 --max-steps 40 --tau 1,2", "steps", 2 * 3 * 40, {"pairs": 6, "resumed": 0}),
    ("mlm-couple -m a.json --seed 1 --max-steps 40 --pairs 2", "steps", 2 * 40, {"pairs": 2, "resumed": 0}),
    ("mlm-rect -m a.json --rectangles 7", "rectangles", 42, {}),
    ("mlm-influence -m a.json --replacements 3", "conditionals", 6 * 2 * (1 + 3), {}),
    ("mlm-tokens -m a.json", "records", 6, {}), ("mlm-embed", "records", 6, {})])
def test_the_last_line_of_json_tells_the_whole_work(sh, command, unit, total, more):
    (sh.folder / "in").write_bytes(b"a b\nc c\na a\nb c\nc a\nb b\n")
    for line_ in (f"{command} --progress=json in", f"cat in | {command} --progress=json"):
        done = sh(line_)
        *_, last = progress_of(done, command.split()[0])
        assert done.status == 0
        assert (last["unit"], last["done"], last["total"], last["estimated"]) == (unit, total, total, False)
        assert {name: last[name] for name in more} == more
        assert last["seconds_left"] == 0
        assert ("from_memory" in last) == (unit == "steps" and "plain" not in command)
        assert last["rate"] >= 0
        assert 0 <= last.get("from_memory", 0) <= 1


def test_the_manual_describes_the_fields():
    section = re.search(r"^\.Sh PROGRESS\n(.*?)^\.Sh ", (ROOT / "man/mlm-records.5").read_text(), re.M | re.S)[1]
    listed = [name for names in re.findall(r"^\.It Va (.*)$", section, re.M) for name in names.split(" , ")]
    assert sorted(listed) == sorted(get_type_hints(ProgressLine))


def test_a_line_has_the_fields_of_the_schema(sh):
    validator = Draft202012Validator({"$ref": "#/$defs/progress", "$defs": SCHEMA["$defs"]})
    for command in (f"{SAMPLE} --steps 5", "mlm-rect -m a.json", "mlm-exact -m a.json", "mlm-couple -m a.json"):
        for each in progress_of(sh(f"printf 'a b\\nb b\\n' | {command} --progress=json"), command.split()[0]):
            validator.validate(each)
            assert set(each) - set(get_type_hints(ProgressLine)) <= {f"{name}_reason" for name in each}
            with pytest.raises(ValidationError, match="unit"):
                validator.validate({key: value for key, value in each.items() if key != "unit"})


def test_a_resumed_run_tells_where_it_resumed(sh):
    (sh.folder / "in").write_bytes(b"a b\nc c\nb b\n")
    whole = sh(f"{SAMPLE} --steps 40 --every 1 in").out
    for share, least, most in ((0.0, 0, 0), (0.5, 40, 80), (1.0, 119, 120)):  # the last state is made again
        (sh.folder / "part").write_bytes(whole[: round(share * len(whole))])
        done = sh(f"{SAMPLE} --steps 40 --every 1 --resume part --progress=json in")
        last = progress_of(done, "mlm-sample")[-1]
        assert (last["done"], last["total"]) == (120, 120)
        assert least <= last["resumed"] <= most
    pairs = sh("mlm-couple -m a.json --seed 1 --start random --max-steps 20 in").out
    (sh.folder / "part").write_bytes(b"".join(pairs.splitlines(keepends=True)[:3]))
    done = sh("mlm-couple -m a.json --seed 1 --start random --max-steps 20 --resume part --progress=json in")
    last = progress_of(done, "mlm-couple")[-1]
    assert (last["resumed"], last["pairs"], last["done"], last["total"]) == (40, 3, 60, 60)


def test_lines_come_every_second_and_the_output_is_the_same(real_sh):
    (real_sh.folder / "in").write_bytes(b"a b\n")
    done = real_sh(f"(echo a b; sleep 5; echo c c) | {SAMPLE} --steps 3 --progress=json")
    assert done.out == real_sh(f"printf 'a b\\nc c\\n' | {SAMPLE} --steps 3").out
    first, *_, last = progress_of(done, "mlm-sample")
    assert (first["total"], first["total_reason"]) == (None, "the input has not ended")
    assert (last["total"], last["done"]) == (6, 6)


def test_progress_in_a_file_is_a_line_now_and_then(sh):
    done = sh(f"echo 'a b' | {SAMPLE} --steps 30 --progress")
    assert re.fullmatch(r"mlm-sample: ━{20} 30/30 steps, 100%, \S+/s, \d+% from memory, 0:00 left, 1 text\n", done.err)


def test_usage(sh):
    for option in ("--progress=yaml", "--progress=", "--progress=json5"):
        done = sh(f"echo 'a b' | {SAMPLE} {option}")
        assert (done.status, done.err.count("\n")) == (2, 2)
        assert "--progress=json" in done.err
    (sh.folder / "json").write_text("a b\n")
    assert sh(f"{SAMPLE} --steps 1 --no-progress --progress json").status == 0  # json is a file here
    assert sh(f"{SAMPLE} --steps 1 --progress=json --no-progress json").err == ""


# How long the input is

@pytest.mark.parametrize("name", ["plain", "packed.gz", "proteins.fasta", "table.csv"])
def test_the_number_of_lines_to_come_is_estimated_from_the_size(tmp_path, name):
    lines = [f"line {k} of the file, which is about as long as the others".encode() for k in range(40_000)]
    content = b"\n".join(lines) + b"\n"
    if "fasta" in name:
        content = b"".join(b">%d\n%b\n%b\n" % (k, b"MKT" * 9, b"ACD" * 9) for k in range(40_000))
    elif "csv" in name:
        content = b"id,text\n" + b"".join(b"%d,%b\n" % (k, each.replace(b",", b"")) for k, each in enumerate(lines))
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if "gz" in name else content)
    read = Lines([str(path), str(path)], Reading(None, None, False))
    total = 80_000
    for taken in (100, 1000, 39_999):
        while read_count(read) < taken:
            read.next()
        assert read.remaining() + taken == pytest.approx(total, rel=0.1)
    while read.next() is not None:
        pass
    assert read.remaining() == 0


def read_count(lines):
    return lines._returned


def test_a_pipe_is_open_until_its_writer_has_gone(tmp_path, monkeypatch):
    source, target = os.pipe()
    monkeypatch.setattr("sys.stdin", os.fdopen(source))
    os.write(target, b"a\nb\nc\n")
    read = Lines([])
    assert read.remaining() is None
    read.next()
    assert read.remaining() is None
    os.close(target)
    assert read.remaining() == 2
    assert [each.content for each in read] == [b"b", b"c"]
    assert read.remaining() == 0


# On terminals

def drawn(text):
    """The progress lines that were drawn on a terminal."""
    return re.findall(r"\r\x1b\[2K(mlm-\w+: [^\r]*)\r(?!\n)", SGR.sub("", text))


def test_a_terminal_shows_the_work_and_is_left_empty(tables):
    (tables / "in").write_bytes(TEXTS)
    with on_terminal(f"exec {LONG} in > out", tables, columns=100) as (_, master):
        text = read_until(master)
    lines = drawn(text)
    assert all(len(each) < 100 for each in lines)
    shape = r"mlm-sample: ━*─* \S+/~?10\.0k steps, \d+%, \S+/s, \d+% from memory, \d+:\d\d left(, \d+ texts?)?"
    assert re.fullmatch(shape, lines[-1])
    assert "\x1b[36m" in text
    assert screen(text) == [""]


@pytest.mark.parametrize("refusal", ["NO_COLOR", "--no-color"])
def test_a_narrow_terminal_without_colour(tables, refusal):
    (tables / "in").write_bytes(TEXTS)
    option, variables = (refusal, {}) if refusal.startswith("-") else ("", {refusal: "1"})
    with on_terminal(f"exec {LONG} {option} in > out", tables, columns=40, **variables) as (_, master):
        text = read_until(master)
    lines = drawn(text)
    assert any("10.0k steps" in each for each in lines)
    assert all(len(each) < 40 for each in lines)
    assert not SGR.search(text)


def test_dumb_terminals_and_quiet_commands_show_nothing(tables):
    (tables / "in").write_bytes(TEXTS[:24])
    for command, more in ((f"exec {LONG} in > out", {"TERM": "dumb"}), (f"exec {LONG} -q in > out", {}),
                          (f"exec {LONG} --no-progress in > out", {})):
        with on_terminal(command, tables, **more) as (_, master):
            assert read_until(master) == ""


def test_the_stages_of_a_pipe_take_turns_and_name_themselves(tables):
    (tables / "in").write_bytes(TEXTS * 2)
    with on_terminal(f"{LONG} in | mlm-tokens -m a.json > out", tables) as (_, master):
        text = read_until(master)
    assert {each.split(":")[0] for each in drawn(text)} == {"mlm-sample", "mlm-tokens"}
    assert screen(text) == [""]


def test_no_line_is_drawn_over_output_and_warnings(tables):
    """The lines of the stage that writes to the terminal are whole, whatever the stage before it draws."""
    (tables / "in").write_bytes(TEXTS + b"no such words\n" * 5 + TEXTS)
    with on_terminal(f"{LONG} --every 3 in | mlm-tokens -m a.json", tables, columns=400) as (_, master):
        text = read_until(master)
    *lines, end = screen(text)
    assert end == ""
    assert {each.split(":")[0] for each in drawn(text)} == {"mlm-sample"}
    records = [each for each in lines if each.startswith("{")]
    assert all(orjson.loads(each) for each in records)
    assert len(records) > 3000
    others = [each for each in lines if not each.startswith("{")]
    assert len(others) == 5
    assert all(each.startswith("mlm-sample: in:") for each in others)


def test_a_command_in_the_background_draws_nothing(tables):
    (tables / "in").write_bytes(TEXTS[:24])
    with on_terminal(f"set -m; {LONG} in > out & wait", tables) as (_, master):
        text = read_until(master)
    assert "Done" in text  # as bash says of a job
    assert "\x1b[2K" not in text


def test_no_line_is_drawn_while_the_input_is_typed(tables):
    """By no stage of the pipe; when the input has ended, they show what is left to do."""
    pipe = f"{SAMPLE} --sweeps 40000 --every 1000 < /dev/tty | mlm-tokens -m a.json > out"
    with on_terminal(pipe, tables) as (_, master):
        assert read_until(master, "Ctrl-D ends\r\n") == "reading records from the terminal, Ctrl-D ends\r\n"
        os.write(master, b"a b\n")
        assert read_until(master, seconds=1) == "a b\r\n"
        os.write(master, b"\x04")
        text = read_until(master)
    assert any(each.startswith("mlm-sample: ") for each in drawn(text))


def test_an_interrupt_leaves_one_line_a_stage(tables):
    (tables / "in").write_bytes(TEXTS * 10)
    with on_terminal(f"trap '' INT; (trap - INT; exec {LONG} in > out); echo $?", tables) as (_, master):
        read_until(master, "from memory")
        os.write(master, b"\x03")
        text = read_until(master)
    assert screen(text)[-3:] == ["mlm-sample: interrupted", "130", ""]
