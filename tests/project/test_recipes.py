"""The recipes: every block of examples/recipes.md is run, in order, in one folder."""

import re
import shutil

import pytest
from conftest import ROOT

TEXT = (ROOT / "examples" / "recipes.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
RUN = {"sh": "sh -e block", "python": "python -W error::FutureWarning block"}


def test_no_block_is_left_out():
    assert 2 * len(BLOCKS) == len(re.findall("^```", TEXT, re.MULTILINE))
    assert {language for language, _ in BLOCKS} == set(RUN)
    for name in ("jq", "import pandas", "import duckdb", "arviz_stats", "jsonschema"):
        assert any(name in block for _, block in BLOCKS), name


def test_the_recipes_run(sh):
    """No error, no word on standard error, and something to show or to keep."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    shutil.copy(ROOT / "examples" / "passages.jsonl", sh.folder)
    shutil.copy(ROOT / "man" / "mlm-records.schema.json", sh.folder)
    for language, block in BLOCKS:
        (sh.folder / "block").write_text(block)
        before = set(sh.folder.iterdir())
        done = sh(RUN[language])
        assert (done.status, done.err) == (0, ""), block
        assert done.out or set(sh.folder.iterdir()) - before, block
