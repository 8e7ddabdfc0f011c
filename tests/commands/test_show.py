"""mlm-show: what a state shows, in a pipe and on terminals of several sizes; and mlm-sample on a terminal."""

import os
import re
import select
import subprocess
import time
from contextlib import contextmanager, suppress

import orjson
import pytest
from conftest import PATH
from in_process import answer

SGR = re.compile(r"\x1b\[[0-9;]*m")
STYLES = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[2K")
"""All that mlm-show may write to a terminal beside texts: colours, and an emptied line."""


def state(step, text, ids=None, chain=0, **fields):
    record = {"type": "state", "run": "r", "id": "x", "chain": chain, "step": step, "tau": 0.5, "text": text, **fields}
    return record if ids is None else record | {"ids": ids, "n": len(ids)}


def lines(*records):
    return b"".join(orjson.dumps(record) + b"\n" for record in records)


def shown(tmp_path, *records, options=""):
    done = answer(f"show {options}".strip(), lines(*records), tmp_path)
    assert (done.status, done.err) == (0, "")
    return done.out.decode().splitlines()


@contextmanager
def on_terminal(command, folder, columns=100, rows=24, **environment):
    """A command whose terminal is a pseudo-terminal of this size; its standard input is a pipe."""
    import fcntl
    import pty
    import struct
    import termios

    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    variables = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        ["bash", "-c", command], cwd=folder, stdin=subprocess.PIPE, stdout=terminal, stderr=terminal,
        env={**variables, "PATH": PATH, "TERM": "xterm-256color", **environment}, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0))
    os.close(terminal)
    try:
        yield process, master
    finally:
        process.stdin.close()
        process.kill()
        process.wait()
        os.close(master)


def read_until(master, wanted=None, seconds=120):
    """What the terminal was sent, up to the text that is wanted, or to the end of the command."""
    seen, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                block = os.read(master, 1 << 16)
            except OSError:
                break
            if not block:
                break
            seen += block
        if wanted is not None and wanted in SGR.sub("", seen.decode(errors="ignore")):
            break
    text = seen.decode()
    assert wanted is None or wanted in SGR.sub("", text), text
    return text


def terminal_text(tmp_path, records, options="", columns=100, **environment):
    """What mlm-show writes to a terminal."""
    (tmp_path / "in").write_bytes(lines(*records))
    with on_terminal(f"exec mlm-show {options} in", tmp_path, columns, **environment) as (_, master):
        return read_until(master).replace("\r\n", "\n")


CHAIN = [state(0, "the cat sat", [1, 2, 3]),
         state(3, "the dog sat", [1, 4, 3], site=1, old=2, new=4, changed=True, logp_old=-3.0, logp_new=-0.2),
         state(5, "the dog ran", [1, 4, 5], site=2, old=3, new=5, changed=True, logp_old=-3.0, logp_new=-6.0,
               drift=0.25, basin="pets", basin_p=0.75)]


def test_a_pipe_gets_one_line_a_state_with_its_changes_in_brackets(tmp_path):
    assert shown(tmp_path, *CHAIN) == [
        "x/0  tau 0.5  step 0  the cat sat",
        "x/0  tau 0.5  step 3  the [cat -> dog] sat  -0.20 nats",
        "x/0  tau 0.5  step 5  the dog [sat -> ran]  -6.00 nats  drift 0.25  basin pets 0.75"]


def test_log_writes_one_line_a_change_and_diff_what_differs_from_the_start(tmp_path):
    assert shown(tmp_path, *CHAIN, options="--log") == [
        "x/0  tau 0.5  step 3  site 1  cat -> dog  -0.20 nats", "x/0  tau 0.5  step 5  site 2  sat -> ran  -6.00 nats"]
    back = state(9, "the cat ran", [1, 2, 5])
    assert shown(tmp_path, *CHAIN[:2], back, CHAIN[0] | {"step": 10}, options="--diff") == [
        "x/0  tau 0.5  step 0  as at the start", "x/0  tau 0.5  step 3  ... [cat -> dog] ...",
        "x/0  tau 0.5  step 9  ... [sat -> ran]", "x/0  tau 0.5  step 10  as at the start"]


def test_each_chain_is_compared_with_its_own_former_state(tmp_path):
    """Chains are interleaved, one run has the same names as another, and states are several changes apart."""
    found = shown(tmp_path, state(0, "a b c", [1, 2, 3]), state(0, "d e f", [4, 5, 6], chain=1),
                  state(0, "g h i", [7, 8, 9]) | {"run": "s"}, state(6, "x b y", [8, 2, 9]),
                  state(6, "d e f", [4, 5, 6], chain=1), state(6, "g h k", [7, 8, 1]) | {"run": "s"})
    assert [line.split("  ", 3)[0] for line in found] == ["x/0", "x/1", "s/x/0"] * 2
    assert [line.split("  ", 3)[3] for line in found[3:]] == ["[a -> x] b [c -> y]", "d e f", "g h [i -> k]"]


@pytest.mark.parametrize(("old", "new", "expected"), [
    (("he played on .", 5), ("he plays on .", 5), "he [played -> plays] on ."),  # pieces of words, as of WordPiece
    (("he played on.", 5), ("he plays, on.", 5), "he [played -> plays,] on."),
    (("the mat sat", 3), ("the. sat", 3), "the [mat -> .] sat"),
    (("a b c d", 9), ("a c d", 9), "a [b -> ] c d"),
    (("a c d", 9), ("a b c d", 9), "a [ -> b] c d"),
    (("EVQLV", 5), ("EVQKV", 5), "EVQ[L -> K]V"),  # one letter a token
    (("EVQLVESGGGLVQPGGSLRLSCAAS", 7), ("EVQLVESGGGLVQPGGTLRLSCAAS", 7), "EVQLVESGGGLVQPGG[S -> T]LRLSCAAS"),
    (("我喜欢苹果。", 4), ("我喜欢香蕉。", 4), "我喜欢[苹 -> 香][果 -> 蕉]。"),
    (("[MASK] cat.", 3), ("the cat.", 3), "[[MASK] -> the] cat."),
    (("שלום עולם", 2), ("שלום חתול", 2), "שלום [עולם -> חתול]"),
    (("un ##able", 2), ("un ##cle", 2), "un [##able -> ##cle]"),
])
def test_changes_are_found_by_sites_or_by_words(tmp_path, old, new, expected):
    """A text and its number of tokens; every second id differs, so that the ids alone do not tell the words."""
    before = state(0, old[0], list(range(old[1])))
    after = state(7, new[0], [k + 50 * (k % 2) for k in range(new[1])])
    if " ".join(new[0].split()).count(" ") + 1 == new[1] or len(new[0]) == new[1]:  # ids of words
        changed = [k for k, (a, b) in enumerate(zip(old[0].split(), new[0].split(), strict=False)) if a != b]
        after["ids"] = [k + 50 * (k in changed or " " not in new[0]) for k in range(new[1])]
    assert shown(tmp_path, before, after)[1] == f"x/0  tau 0.5  step 7  {expected}"


def test_a_token_that_changed_without_the_text_is_reported(tmp_path):
    assert shown(tmp_path, state(0, "a b", [1, 2]), state(1, "a b", [1, 3]))[1].endswith(
        "a b  token changed at site 1, text did not")


def test_steps_that_go_back_begin_a_chain_again(tmp_path):
    assert shown(tmp_path, *CHAIN[:2], state(0, "a b c", [7, 8, 9]))[2] == "x/0  tau 0.5  step 0  a b c"


def test_traps_and_runs_are_shown_and_mark_the_states_that_follow(tmp_path):
    trap = {"type": "trap", "run": "r", "id": "x", "chain": 0, "tau": 0.5, "first": 3, "last": 4, "text": "the dog sat"}
    run = {"type": "run", "run": "r", "command": "mlm-sample", "model": "tiny-en", "tau": 0.5, "seed": 3}
    found = shown(tmp_path, run, trap, *CHAIN, {"type": "summary", "of": "pair"})
    assert found[:2] == ["run r  command mlm-sample  model tiny-en  tau 0.5  seed 3",
                         "x/0  tau 0.5  trap  steps 3 to 4  the dog sat"]
    assert [line.endswith("  trap") for line in found[2:]] == [False, True, False]


def test_bad_records_are_reported_and_the_others_shown(tmp_path):
    bad = [state(1, 7), state("1", "a"), state(1, "a") | {"tau": "x"}, state(1, "a", drift="far"), {"type": "state"},
           state(1, "a") | {"ids": "a"}, state(2, "the dog", [1, 4], basin=3),
           state(3, "the dog sat", [1, 4, 3], site="one", logp_new=-1.0)]
    done = answer("show", lines(CHAIN[0], *bad, CHAIN[1]), tmp_path)
    assert done.status == 65
    assert done.out.decode().splitlines() == ["x/0  tau 0.5  step 0  the cat sat",
                                              "x/0  tau 0.5  step 3  the [cat -> dog] sat  -0.20 nats"]
    assert [line.split(": ")[1] for line in done.err.splitlines()] == [f"stdin:{k}" for k in range(2, 10)]
    nothing = answer("show", lines({"type": "pair", "meeting": 1}), tmp_path)
    assert (nothing.status, nothing.out) == (65, b"")
    assert "no states" in nothing.err


@pytest.mark.parametrize("options", ["--follow --log", "--log --diff", "--fps 3", "--follow", "--follow --fps 0",
                                     "--color always --no-color"])
def test_options_that_do_not_go_together_are_refused(tmp_path, options):
    assert answer(f"show {options}", b"", tmp_path).status == 2


def test_memory_does_not_grow_with_the_length_of_a_chain(tmp_path):
    import tracemalloc

    from mlmglauber.commands.show.lines import Form, LineWriter, Place

    for form in Form:
        writer = LineWriter(form, Place(False, False), lambda: None)
        sizes = []
        tracemalloc.start()
        for step in range(9000):
            writer.lines(state(step, f"the w{step} sat", [1, step + 9, 3]))
            if step in (3000, 8999):
                sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert sizes[1] < sizes[0] + 20_000


@pytest.mark.parametrize("columns", [40, 100])
def test_a_terminal_gets_colours_and_whole_words(tmp_path, columns):
    wide = "我喜欢吃苹果和梨子" * 3 + "👨‍👩‍👧 ❤️ " + "x" * 120
    records = [*CHAIN, state(0, wide, list(range(9)), chain=1), state(0, "word " * 30 + "end", chain=2)]
    text = terminal_text(tmp_path, records, columns=columns)
    assert "\x1b[30;42mdog\x1b[0m" in text  # p = 0.82
    assert re.search(r"\x1b\[[0-9;]*41mran\x1b\[0m", text)  # p = 0.002
    plain = STYLES.sub("", text)
    assert plain.count("by the probability" if columns == 100 else "probability") == 1
    assert plain.count("chain x/0  tau 0.5") == 1
    assert "\x1b" not in plain
    assert "\r" not in plain
    from rich.cells import cell_len

    assert max(cell_len(line) for line in plain.splitlines()) <= columns
    assert plain.count("x") > 120  # a word that is wider than the terminal is not cut off
    assert all(word in ("word", "end") for line in plain.split("chain x/2")[1].splitlines()[1:]
               for word in line.removeprefix("step      0").split())


def test_colours_can_be_refused_and_asked_for(tmp_path):
    refusals = (("", {"NO_COLOR": "1"}), ("--no-color", {}), ("--color never", {}), ("", {"TERM": "dumb"}))
    for options, environment in refusals:
        text = terminal_text(tmp_path, CHAIN, options, **environment)
        assert not SGR.search(text), options
        assert "the [cat -> dog] sat" in text
    assert "\x1b[30;42mdog" in terminal_text(tmp_path, CHAIN, "--color always", NO_COLOR="1")
    assert "\x1b[30;42mdog" in "\n".join(shown(tmp_path, *CHAIN, options="--color always"))


@pytest.mark.parametrize("options", ["", "--log", "--diff", "--no-color", "--follow"])
def test_a_text_moves_no_cursor(tmp_path, options):
    hostile = "\x1b[2J\x1b]0;owned\x07 \u202e \x9b31m\r\n"
    records = [state(0, hostile, [1]) | {"id": hostile}, state(1, "a" + hostile, [2], basin=hostile) | {"id": hostile}]
    (tmp_path / "in").write_bytes(lines(*records))
    with on_terminal(f"exec mlm-show {options} in", tmp_path) as (_, master):
        if options == "--follow":
            read_until(master, "end  q end")
            os.write(master, b"q")
        text = read_until(master)
    assert "\x1b[2J\x1b]" not in text
    assert not set(text) & {"\x07", "\u202e", "\x9b"}
    assert "\\u202e" in text


def test_a_state_is_shown_when_it_is_made(tmp_path):
    """The second record comes only after the first was seen."""
    with on_terminal("exec mlm-show", tmp_path) as (process, master):
        for record, wanted in zip(CHAIN, ("the cat sat", "the dog sat", "the dog ran"), strict=True):
            process.stdin.write(lines(record))
            process.stdin.flush()
            assert wanted in SGR.sub("", read_until(master, wanted))


@pytest.mark.parametrize(("columns", "rows"), [(40, 12), (100, 24)])
def test_follow_pauses_steps_and_ends(tmp_path, columns, rows):
    words = [state(k, f"the word{k} sat", [1, k + 9, 3], site=1, old=k + 8, new=k + 9, logp_new=-1.0)
             for k in range(400)]
    (tmp_path / "in").write_bytes(lines(*words))
    with on_terminal("exec mlm-show --follow --fps 20 in", tmp_path, columns, rows) as (process, master):
        read_until(master, "word3")
        os.write(master, b" ")
        seen = read_until(master, "paused")
        place = int(re.findall(r"word(\d+)", seen)[-1])
        os.write(master, b"\x1b[D")
        read_until(master, f"word{place - 1} ")
        os.write(master, b"\x1b[C\x1b[C")
        read_until(master, f"word{place + 1} ")
        os.write(master, b"q")
        end = read_until(master)
        assert process.wait(30) == 0
    assert "\x1b[?1049l" in end  # the screen of before is back
    assert f"the word{place + 1} sat" in STYLES.sub("", end.split("\x1b[?1049l")[1])


def test_follow_shows_chains_in_panes_and_reports_at_the_end(tmp_path):
    records = [state(k, f"text {k} of {chain}", chain=chain) for k in range(3) for chain in range(6)]
    (tmp_path / "in").write_bytes(lines(*records) + b"{bad\n")
    with on_terminal("exec mlm-show -f --fps 50 in", tmp_path) as (process, master):
        seen = SGR.sub("", read_until(master, "end  q end"))
        assert all(f"text 2 of {chain}" in seen for chain in range(6))
        assert "not a JSON object" not in seen
        os.write(master, b"q")
        end = read_until(master)
        assert process.wait(30) == 65
    assert "mlm-show: in:19: not a JSON object" in end
    assert "chain x/5" in SGR.sub("", end)


def test_follow_needs_a_keyboard_of_its_own_and_a_screen(tmp_path):
    (tmp_path / "in").write_bytes(lines(*CHAIN))
    with on_terminal("mlm-show --follow in", tmp_path, TERM="dumb") as (_, master):
        assert "TERM=dumb" in read_until(master)
    with on_terminal("mlm-show --follow < /dev/tty", tmp_path) as (_, master):
        assert "give the records in a file or a pipe" in read_until(master).replace("\r\n", " ")


def test_frames_go_back_as_far_as_they_came(monkeypatch):
    from mlmglauber.commands.show import frames
    from mlmglauber.commands.show.chains import ShownChains

    monkeypatch.setattr(frames, "KEPT", 4)
    chains = ShownChains()
    states = [chains.state(state(step, f"t{step}", chain=chain)) for step in range(10) for chain in range(2)]
    made = frames.Frames(lambda: states.pop(0) if states else None)
    made._past = type(made._past)(maxlen=4)

    def texts(found):
        return [shown.words.text() for shown in found]

    assert [texts(made.forward()) for _ in range(11)] == [[f"t{k}"] * 2 for k in range(10)] + [[]]
    assert [texts(made.back()) for _ in range(4)] == [["t8"] * 2, ["t7"] * 2, ["t6"] * 2, []]
    assert made.place == 7
    assert [texts(made.forward()) for _ in range(4)] == [["t7"] * 2, ["t8"] * 2, ["t9"] * 2, []]


SAMPLE = "mlm-sample -m a.json --seed 1 --steps 6 --every 1"


def test_sample_shows_its_chains_on_a_terminal_and_writes_records_elsewhere(sh, tables):
    (tables / "in").write_bytes(b"a b\n")
    records = sh(f"{SAMPLE} in").out
    with on_terminal(f"exec {SAMPLE} in", tables) as (_, master):
        text = STYLES.sub("", read_until(master))
    assert "chain 0/0  tau 1  2 sites" in text
    assert '{"type"' not in text
    assert [line for line in records.splitlines() if line.startswith(b'{"type":"run"')]
    with on_terminal(f"exec {SAMPLE} --json in", tables) as (_, master):
        there = read_until(master)
    assert records.decode().splitlines()[-1] in there
    for written in ("-o out", "--resume out"):
        with on_terminal(f"exec {SAMPLE} {written} in", tables) as (_, master):
            assert "chain 0/0" not in read_until(master)
        assert (tables / "out").read_bytes() == records
        (tables / "out").unlink()
    with on_terminal(f"exec {SAMPLE} --table in", tables) as (_, master):
        assert "Chains by temperature and length" in read_until(master)
    (tables / "out").write_bytes(records)
    with on_terminal("exec mlm-sample --from-run out --check in", tables) as (_, master):
        assert "every record is the same as in out" in read_until(master)


def test_no_bar_is_drawn_over_records_and_each_stage_names_its_bar(tables):
    """The bar is there until the first record; a bar of another terminal stays."""
    (tables / "in").write_bytes(b"a b\n" * 3)
    for command in (f"exec {SAMPLE} --json in", f"exec {SAMPLE} in", "exec mlm-exact -m a.json --top 3 in"):
        with on_terminal(command, tables) as (_, master):
            text = read_until(master)
        first = min(text.index(mark) for mark in ('{"type"', "chain 0/0") if mark in text)
        assert "━" not in text[first:]
    with on_terminal(f"exec {SAMPLE} in > out", tables) as (_, master):
        assert re.search("mlm-sample: .*steps", SGR.sub("", read_until(master)))


def test_a_closed_pipe_is_quiet(sh, tmp_path):
    done = sh(f"yes '{lines(CHAIN[0]).decode().strip()}' | mlm-show | head -n 1; echo ${{PIPESTATUS[1]}}", timeout=60)
    assert done.out.splitlines()[1:] == [b"141"]
    assert done.err == ""


def test_a_stopped_follow_gives_the_terminal_back(tmp_path):
    """After SIGTERM: the echo of keys and the screen of before."""
    import signal
    import termios

    with on_terminal("exec mlm-show --follow", tmp_path) as (process, master):
        process.stdin.write(lines(CHAIN[0]))
        process.stdin.flush()
        read_until(master, "the cat sat")
        assert not termios.tcgetattr(master)[3] & termios.ECHO
        process.send_signal(signal.SIGTERM)
        end = read_until(master)
        assert process.wait(30) == 143
        with suppress(termios.error):
            assert termios.tcgetattr(master)[3] & termios.ECHO
    assert "\x1b[?1049l" in end
    assert "\x1b[?25h" in end
