"""The paper's experiments: every script is sound, and a trial of all of them gives what they say."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import orjson
import pytest
from conftest import PATH, ROOT

PAPER = ROOT / "examples" / "paper"
SCRIPTS = sorted(PAPER.glob("*.sh"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_one_of_a_plain_shell_with_options_that_exist(sh, script):
    assert sh(f"sh -n {script}") == (0, b"", "")
    text = script.read_text()
    for command, options in re.findall(r"(mlm-[a-z]+)((?:[^|\n]|\\\n)*)", text.replace("\\\n", " ")):
        known = sh(f"{command} --help-all").out.decode()
        for option in re.findall(r"--[a-z][a-z-]+", options):
            assert option in known, (command, option)


def test_every_script_is_in_the_table_and_run_by_all():
    parts = {script.stem for script in SCRIPTS} - {"all", "settings"}
    assert parts == set(re.findall(r"^\| `([a-z-]+)\.sh` \|", (PAPER / "README.md").read_text(), re.MULTILINE))
    assert all(part in (PAPER / "all.sh").read_text() for part in parts)


@pytest.mark.parametrize("part", sorted({script.stem for script in SCRIPTS} - {"all", "settings"}))
def test_a_script_fails_with_its_first_stage(sh, part):
    done = sh(f"MODEL=./nope QUICK=1 OUT=trial sh {PAPER / part}.sh")
    assert "'./nope': no such directory" in done.err
    assert done.status != 0


def test_the_settings_can_all_be_given():
    text = (PAPER / "settings.sh").read_text()
    assert all(f"{name}=${{{name}:-" in text for name in ("MODEL", "EMBEDDER", "PASSAGES", "OUT", "QUICK"))
    others = [script for script in SCRIPTS if script.stem not in ("all", "settings")]
    assert all('. "$(dirname "$0")/settings.sh"' in script.read_text() for script in others)


@pytest.mark.skipif(find_spec("datasets") is not None, reason="datasets is installed and would fetch")
def test_the_converter_tells_what_it_needs():
    done = subprocess.run([sys.executable, PAPER / "msmarco.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "msmarco.py needs the package datasets; pip install datasets\n")


def test_the_converter_gives_passages_once(monkeypatch):
    monkeypatch.syspath_prepend(PAPER)
    from msmarco import passages

    rows = [{"query_id": k, "passages": {"passage_text": ["a b\n c", f"x y {k}", "short"]}} for k in range(3)]
    found = list(passages(rows, 3, 3, 3))
    assert [record["text"] for record in found] == ["a b c", "x y 0", "x y 1"]
    assert [record["id"] for record in found] == ["0/0", "0/1", "1/1"]
    assert [record["text"] for record in passages(rows, 9, 1, 2)] == ["short"]


def test_the_converter_tells_its_options():
    done = subprocess.run([sys.executable, PAPER / "msmarco.py", "--help"], capture_output=True, text=True, check=True)
    assert all(option in done.stdout for option in ("--count", "--min", "--max"))


@pytest.mark.soak
def test_a_trial_of_all(tmp_path, record_property):
    """What a few texts can show: |delta| far above rounding, a crossover at each length, traps, chains that move."""
    done = subprocess.run(["sh", PAPER / "all.sh"], cwd=tmp_path, capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": PATH, "QUICK": "1", "OUT": "trial"})
    assert done.returncode == 0, done.stderr
    records = {path.stem: [orjson.loads(line) for line in path.read_bytes().splitlines()]
               for path in (tmp_path / "trial").glob("*.jsonl")}
    rectangles = [record for record in records["rectangles"] if record["type"] == "rectangle"]
    above = [abs(record["delta"]) > record["noise"] for record in rectangles]
    assert sum(above) > 0.9 * len(above) > 100
    assert sum(abs(record["delta"]) for record in rectangles) > 100 * sum(record["noise"] for record in rectangles)
    crossings = [record for record in records["phase-diagram"] if record.get("over") == "n" and record["budget"] == 10]
    assert [1 < record["crossover"] < 3 for record in crossings] == [True] * 3
    assert max(record["residence"] for record in records["traps"] if record["type"] == "trap") > 200
    assert {record["n"] for record in records["drift"] if record.get("over") == "group"} == {8, 16, 32}
    assert {path.stem for path in (tmp_path / "trial").glob("*.png")} == {"rectangles", "drift", "phase-diagram",
                                                                           "traps", "politics"}
    record_property("survived", f"the paper's experiments on tiny-en: {len(rectangles)} rectangles, crossovers "
                    + ", ".join(f"{record['crossover']:.2f} at n = {record['n']}" for record in crossings))
