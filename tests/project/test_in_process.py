"""Commands in the test's own process against the same lines in a real shell, and what they may not leave behind."""

import os
import random
import re
import signal
import sys
import warnings

import numpy as np
import pytest
from conftest import quick_shell
from in_process import WORD, pipes_of, process_state, unquoted

from mlmglauber.stream.errors import MlmWarning

LINES = [
    "printf '%s\\n' 'a b' 'c a' | mlm-sample -m a.json --seed 1 -t 0.5,1 --steps 20 --on-change",
    "echo 'a b' | mlm-sample -m a.json --seed 1 --steps 40 --every 4 | mlm-traps -m a.json --summary --table",
    "printf '%s\\n' 'a b' 'x y' 'c c' | mlm-couple -m a.json --seed 1 --max-steps 50 | mlm-couple --summarize",
    "echo 'a a' | mlm-rect -m a.json --site 0 --to b --site 1 --to b --seed 1 -o out",
    "echo 'a b' | mlm-exact -m a.json --top 3 | tail -n 1",
    "echo 'a b' | mlm-influence -m b.json --seed 1 --nope",
    "echo 'a b' | mlm-sample -m gone.json",
    "mlm-drift --summary gone",
    "echo 'a b' > x; mlm-sample -m a.json --seed 1 --steps 5 x > 's s'\n"
    "mlm-traps --no-model < 's s' |\n  tee y | tail -n 2",
    "echo 'a b' | mlm-sample -m gone.json; mlm-drift --summary < /dev/null",
    "echo 'a b' | mlm-sample --steps 3 --seed 1 | mlm-embed --encoding base64",
]


@pytest.mark.parametrize("line", LINES)
def test_a_line_gives_the_same_here_as_in_a_real_shell(real_sh, tables, line):
    """Twice, so that what the first run leaves in the process cannot change the second."""
    expected = real_sh(line)
    assert pipes_of(line) is not None
    for _ in range(2):
        assert quick_shell(tables)(line) == expected


@pytest.mark.parametrize("line", [
    "mlm-sample f 2> g", "mlm-sample f >> g", "mlm-sample f > /dev/full", "mlm-sample f > g | mlm-embed",
    "cd x; mlm-embed f", "mlm-sample f >& g", "mlm-sample <<< f", "mlm-sample < <(cat f)",
    "for k in 1 2; do mlm-embed f; done", "x=1; mlm-embed f",
    "mlm-sample f | head -n 1", "mlm-sample --help",
    "mlm-sample f && mlm-embed", "(sleep 1; echo 'a b') | mlm-sample", "mlm-sample \"$X\"", "mlm-sample *.jsonl",
    "mlm-sample --dask local:2 f", "mlm-sample -o /dev/stdout f", "X=1 mlm-sample f", "python -m x | mlm-embed | true",
    "mlm-sample f || true", "mlm-sample f | (mlm-embed)", "echo 'a b'", "mlm-sample f &",
    "timeout 3 mlm-sample f",
])
def test_other_lines_are_left_to_the_shell(line):
    assert pipes_of(line) is None


def test_words_are_those_of_the_shell(real_sh):
    stage = """mlm-x a 'b c' "d e" --f='g h'i '"' "'" '' "" é"""
    printed = real_sh(stage.replace("mlm-x", "printf '%s\\n' mlm-x")).out.decode()
    assert [unquoted(word) for word in re.findall(WORD, stage)] == printed.split("\n")[:-1]


def test_a_command_leaves_nothing_behind(tables, monkeypatch):
    """Neither settings of the process nor files that are open; and it draws from no global generator."""
    def state():
        return (os.getcwd(), dict(os.environ), sys.stdin, sys.stdout, sys.stderr, warnings.showwarning,
                list(warnings.filters), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM),
                signal.getsignal(signal.SIGALRM), random.getstate(), np.random.get_state()[1].tolist(),
                len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0)

    monkeypatch.setenv("MLM_MODEL", "b.json")  # the test's own is not the command's
    here = quick_shell(tables)
    here("echo 'a b' | mlm-sample -m a.json --steps 2")  # loads what is loaded once
    (tables / "part").write_text("no record\n")
    before = state()
    assert here("echo 'a b' | mlm-sample --steps 2", MLM_MODEL="a.json").records[0]["model"] == "a.json"
    assert here("echo 'a b' | mlm-sample -m a.json --steps 2 --resume part").status == 2
    assert here("echo 'a b' | mlm-sample -m a.json --steps 2 --resume part").status == 2  # not "another run"
    assert here("mlm-sample --nope").status == 2
    assert state() == before


def test_each_command_shows_its_warnings_once(tmp_path, monkeypatch):
    shown = []
    for _ in range(2):
        with process_state(tmp_path, 60):
            monkeypatch.setattr(warnings, "showwarning", lambda message, *_: shown.append(str(message)))
            for _ in range(3):
                warnings.warn("going on", MlmWarning, stacklevel=1)
                warnings.warn("of a library", DeprecationWarning, stacklevel=1)
    assert shown == ["going on"] * 2


def test_a_command_that_does_not_end_is_stopped(tables):
    done = quick_shell(tables)("echo 'a a' | mlm-sample -m a.json --steps 1000000000 --every 1000000", timeout=1)
    assert done.status != 0
    assert "the command ran for 1 seconds" in done.err
