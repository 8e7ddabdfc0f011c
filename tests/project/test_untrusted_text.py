"""Text is untrusted: it reaches no terminal raw, and no text becomes a record."""

import os
import pty
import subprocess
from contextlib import suppress

import orjson
import pytest
from conftest import PATH
from in_process import answer
from spoiling import ANSWERS, MODELS, lines

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m[red]x[/red][/no] :smile: \u202e\n{}"
STATE = {"type": "state", "run": HOSTILE, "id": HOSTILE, "chain": HOSTILE, "step": 1, "tau": 1.0, "n": 2,
         "text": HOSTILE, "ids": [0, 1], "site": 1, "old": 0, "new": 1, "changed": True, "logp_old": -1.0,
         "logp_new": -0.5, "label": HOSTILE, "embedding": [1.0, 2.0], "embedder": "e"}
TABLES = {
    "drift --summary --table": [STATE, {**STATE, "step": 2}],
    "rect --summary --table -m a.json": [
        {"type": "rectangle", "run": HOSTILE, "id": HOSTILE, "model": HOSTILE, "tau": 1.0, "i": 0, "j": 1, "delta": 0.5,
         "noise": 0.0, "text": "a b"}],
    "rect --path --summary --table": [{**STATE, "step": step, "old": 1} for step in range(40)],
    "couple --summarize --table": [
        {"type": "pair", "run": HOSTILE, "id": HOSTILE, "pair": HOSTILE, "model": HOSTILE, "tau": tau, "n": n,
         "coupling": HOSTILE, "start": HOSTILE, "replicas": 2, "lag": lag, "meeting": 3, "max_steps": 9,
         "last_change": 2, "wasserstein": [1, 0]} for tau in (1.0, 2.0) for n in (2, 3) for lag in (0, 1)],
    "traps --summary --table --no-model --min-steps 1": [STATE, {**STATE, "step": 9}],
    "basins --examples topics --summary --table --start-field label": [STATE, {**STATE, "step": 2}],
    "basins --clusters 2 --summary --table": [STATE, {**STATE, "step": 2, "embedding": [-1.0, 2.0]}],
    "plot --terminal --kind drift": [{**STATE, "step": step, "drift": step / 9} for step in range(9)],
    "show": [{"type": "run", "run": HOSTILE, "command": HOSTILE}, STATE, {**STATE, "step": 2, "basin": HOSTILE},
             {"type": "trap", "run": HOSTILE, "id": HOSTILE, "first": 3, "last": 9, "text": HOSTILE},
             {**STATE, "run": "r", "step": 2}],
    "show --log --color never": [{**STATE, "step": step, "text": HOSTILE * step, "ids": [step]}
                                 for step in range(1, 8)],
    "plot --terminal --kind rectangles": [
        {"type": "rectangle", "run": HOSTILE, "id": HOSTILE, "model": HOSTILE, "tau": 1.0, "i": 0, "j": 1,
         "delta": 0.1 * k, "noise": 0.0, "text": HOSTILE} for k in range(9)],
}
"""Every table, and records whose texts would like to be more than texts."""


@pytest.mark.parametrize("command", TABLES)
def test_a_table_shows_texts_as_texts(tables, command):
    (tables / "topics").write_bytes(lines(*(
        {"label": label, "embedding": [k % 2 + 1, sign * (k % 3 + 1)], "embedder": "e"}
        for label, sign in ((HOSTILE, 1), ("down", -1)) for k in range(6))))
    done = answer(command, lines(*TABLES[command]), tables)
    assert done.status == 0
    assert not done.err or "--path" in command  # whose states lack their run record, which is told
    assert all(c.isprintable() or c == "\n" for c in done.err)
    shown = done.out.decode()
    assert shown.count("\n") > 4
    assert all(c.isprintable() or c == "\n" for c in shown)
    if "couple" in command or "topics" in command or command.startswith("rect --summary"):
        whole = "".join(c for c in shown if c not in " \n│┃")  # a cell may be wrapped
        assert "[red]x[/red][/no]:smile:" in whole
    with pytest.raises(orjson.JSONDecodeError):  # and no line of it is a record
        [orjson.loads(line) for line in shown.splitlines()]


def test_errors_warnings_and_progress_show_texts_as_texts(tables):
    """On a terminal, where rich draws; with -v also the tracebacks."""
    (tables / "f").write_bytes(lines({"id": HOSTILE, "text": "a b"}, {"id": HOSTILE, "text": "a b"}, {"text": HOSTILE}))
    for command in ("mlm-exact -m a.json --top 3", "mlm-sample -m a.json --steps 2", "mlm-rect -m a.json"):
        master, terminal = pty.openpty()
        process = subprocess.Popen(["bash", "-c", f"exec {command} -v f > out"], cwd=tables, stdin=subprocess.DEVNULL,
                                   stderr=terminal, env={**os.environ, "PATH": PATH, "TERM": "xterm-256color"})
        os.close(terminal)
        seen = b""
        with suppress(OSError):
            while block := os.read(master, 1 << 16):
                seen += block
        assert process.wait(60) == 65
        os.close(master)
        assert b"owned" in seen
        assert b"\x1b]0" not in seen
        assert b"\x1b[2J" not in seen
        assert "\x9b".encode() not in seen
        assert b"\x07" not in seen
        for line in (tables / "out").read_bytes().splitlines():
            orjson.loads(line)


def test_a_text_injects_no_record(tables):
    """A line feed in a text stays in its string, whatever passes it on."""
    content = lines({"id": 'x\n{"type":"summary"}\n', "text": "a b", "foo": '"}\n{"type":"run"}\n\u2028'})
    for command in (MODELS[name].format("a.json") for name in ANSWERS):
        done = answer(command, content, tables)
        assert done.status == 0
        assert {record["type"] for record in done.records} <= {"run", "state", *ANSWERS.values()}
        assert len(done.of("run")) == 1
