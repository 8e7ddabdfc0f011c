"""The recipes: every block of examples/recipes.md is run, in order, in one folder."""

import re
import shutil
import warnings

import pytest
from conftest import ROOT
from in_process import STRICT

pytestmark = pytest.mark.in_process

TEXT = (ROOT / "examples" / "recipes.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_no_block_is_left_out():
    assert 2 * len(BLOCKS) == len(re.findall("^```", TEXT, re.MULTILINE))
    assert {language for language, _ in BLOCKS} == {"sh", "python"}
    for name in ("jq", "import pandas", "import duckdb", "arviz_stats", "jsonschema"):
        assert any(name in block for _, block in BLOCKS), name


def test_the_recipes_run(sh, capsys, monkeypatch):
    """No error, no word on standard error, and something to show or to keep.

    The blocks of Python run in this process, each with names of its own: pandas and the others are imported once.
    """
    monkeypatch.chdir(sh.folder)
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    shutil.copy(ROOT / "examples" / "passages.jsonl", sh.folder)
    shutil.copy(ROOT / "man" / "mlm-records.schema.json", sh.folder)
    for language, block in BLOCKS:
        before = set(sh.folder.iterdir())
        if language == "sh":
            done = sh(STRICT + block)
            assert (done.status, done.err) == (0, ""), block
            shown = done.out
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("error", FutureWarning)
                exec(compile(block, "recipe", "exec"), {"__name__": "__main__"})
            shown, said = capsys.readouterr()
            assert said == "", block
        assert shown or set(sh.folder.iterdir()) - before, block
