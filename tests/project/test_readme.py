"""The README: every shell block is run, its files exist, and its tables are of the form that the commands write."""

import re
import shutil
from importlib.util import find_spec

import orjson
import pytest
from conftest import ROOT, quick_shell

pytestmark = pytest.mark.in_process

README = (ROOT / "README.md").read_text()
COMMANDS = ("mlm-", "grep ", "echo ", "cat ", "git ")
WORDS = 18
"""Of each passage that the blocks run on: enough for their --length, and quick."""


def blocks():
    """Indented blocks that are shell; the others show what is printed."""
    found = re.findall(r"(?:^|\n)\n((?: {4}.*\n)+)", README)
    return [re.sub(r"^ {4}", "", block, flags=re.MULTILINE) for block in found if block.lstrip().startswith(COMMANDS)]


BLOCKS = blocks()
ELSEWHERE = [block for block in BLOCKS if block.startswith("git clone")]
"""Fetches the repository: what it runs then is tested as the quickstart."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A shell in what looks like a checkout, with few and short passages."""
    sh = quick_shell(tmp_path_factory.mktemp("checkout"))
    examples = sh.folder / "examples"
    examples.mkdir()
    shutil.copytree(ROOT / "examples" / "phase-diagram", examples / "phase-diagram")
    passages = [orjson.loads(line) for line in (ROOT / "examples" / "passages.jsonl").read_bytes().splitlines()]
    some = [passages[0], next(passage for passage in passages if passage["id"] == "sauna")]
    for passage, words in zip(some, (6, WORDS), strict=True):
        passage["text"] = " ".join(passage["text"].split()[:words])
    # As json writes it, with a space after each colon: the README greps for it.
    (examples / "passages.jsonl").write_text("".join(
        orjson.dumps(passage).decode().replace('":"', '": "') + "\n" for passage in some))
    (examples / "passages.txt").write_text(some[1]["text"] + "\n")
    for name in ("tiny-en", "antiberty", "control"):
        record = {"type": "rectangle", "run": "r", "model": name, "tau": 1.0, "i": 0, "j": 1, "text": "a b"}
        (sh.folder / f"{name}.jsonl").write_bytes(b"".join(
            orjson.dumps(record | {"id": str(k), "delta": 0.1 * k, "noise": 1e-6}) + b"\n" for k in range(4)))
    return sh


def test_the_blocks_are_found():
    assert len(BLOCKS) >= 8
    assert len(ELSEWHERE) == 1
    assert all(any(command in block for block in BLOCKS) for command in ("mlm-plot", "--dask", "mlm-traps", "jq"))
    assert "make demo" in ELSEWHERE[0]
    assert "examples/quickstart.sh" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("block", [block for block in BLOCKS if block not in ELSEWHERE], ids=lambda block: block[:40])
def test_a_block_runs(checkout, block):
    """With a twentieth of the steps, two chains for eight, and three sweeps where none are named."""
    block = re.sub(r"--steps (\d+)000\b", lambda match: f"--steps {50 * int(match[1])}", block)
    block = block.replace("--chains 8", "--chains 2").replace("--tau 0.5,1 --seed 1", "--tau 0.5,1 --seed 1 --sweeps 3")
    if "jq" in block and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    if "--dask" in block and find_spec("distributed") is None:
        pytest.skip("dask.distributed is not installed")
    done = checkout(block, timeout=300, OMP_NUM_THREADS="1")
    assert done.status == 0, done.err
    assert "Traceback" not in done.err
    assert done.out or "-o " in block


def test_the_files_that_are_named_exist():
    targets, names = re.findall(r"\]\(([^)#]+)\)", README), re.findall(r"examples/[\w./-]+\w", README)
    assert min(len(targets), len(names)) > 3
    assert not [target for target in targets if not target.startswith("http") and not (ROOT / target).exists()]
    assert not [name for name in names if not (ROOT / name).exists()]


def test_the_passages_are_those_of_the_records():
    records = (ROOT / "examples" / "passages.jsonl").read_bytes().splitlines()[:24]
    texts = (ROOT / "examples" / "passages.txt").read_text().splitlines()
    assert texts == [orjson.loads(line)["text"] for line in records]


def test_tables_have_headings_that_the_commands_write():
    import importlib
    import sys

    sys.path.insert(0, str(ROOT / "man"))
    import build

    modules = [importlib.import_module(f"mlmglauber.commands.{name.removeprefix('mlm-')}.table")
               for name in build.TABLES]
    known = {column.heading for module in modules for table in module.TABLES for column in table.columns}
    rows = re.findall(r"^ {4}┃(.*)┃$", README, re.MULTILINE)
    assert len(rows) >= 4
    for row in rows:
        assert {cell.strip() for cell in row.split("┃")} <= known


def test_the_rectangles_script_needs_no_more_than_it_says(made, sh):
    """In a folder with a space in its name, with models that stand in for the two that it would fetch or make."""
    folder = sh.folder / "a check out" / "examples"
    shutil.copytree(ROOT / "examples" / "rectangles", folder / "rectangles")
    (folder / "passages.jsonl").write_text('{"id": "0", "text": "the cat sat on the mat and the dog lay by the door of '
                                           'the old house near the river all day and all night long"}\n')
    work = sh.folder / "a folder"
    work.mkdir()
    shutil.copytree(made("bert"), work / "antiberty")
    shutil.copytree(made("gpt"), work / "control")
    done = sh("sh 'a check out/examples/rectangles/run.sh' 'a folder'", OMP_NUM_THREADS="1")
    assert done.status == 0, done.err
    assert done.out.decode().startswith("|delta| of rectangles, nats")
    assert {"tiny-en", "antiberty", "control"} <= set(re.findall(r"[\w-]+", done.out.decode()))
    (work / "control" / "model.safetensors").write_bytes(b"")
    broken = sh("sh 'a check out/examples/rectangles/run.sh' 'a folder'", OMP_NUM_THREADS="1")
    assert (broken.status, broken.out) == (69, b"")


def test_the_rectangles_script_says_what_is_missing(sh):
    script = ROOT / "examples" / "rectangles" / "run.sh"
    done = sh(f"PYTHON=/nope sh {script} work")
    assert (done.status, done.out) == (69, b"")
    assert "no Python with torch, transformers and pip among: /nope" in done.err
    none = sh(f"PATH=/usr/bin:/bin; command -v mlm-rect || sh {script} work")
    assert none.status == 69
    assert "no mlm-rect on the PATH" in none.err
