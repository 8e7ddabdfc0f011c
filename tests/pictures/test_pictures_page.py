"""docs/pictures.md: a section, a picture and a command for every kind; the commands are those of docs/pictures.sh."""

import re

import pytest
from conftest import ROOT
from matplotlib.image import imread

from mlmglauber.pictures.kinds import KINDS

DOCS = ROOT / "docs"
PAGE = (DOCS / "pictures.md").read_text()
SCRIPT = (DOCS / "pictures.sh").read_text()
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def squeezed(text):
    """A text on one line, with one blank between words."""
    return " ".join(text.replace("\\\n", " ").split())


def commands(section):
    return squeezed("\n".join(re.findall(r"^ {4}(.*)$", section, re.MULTILINE)))


def test_every_kind_has_a_section_and_a_picture():
    assert set(SECTIONS) == set(KINDS)
    pictures = sorted(path.name for path in (DOCS / "pictures").iterdir())
    assert pictures == sorted(f"{kind}.png" for kind in KINDS)
    assert sum(path.stat().st_size for path in (DOCS / "pictures").iterdir()) < 600_000
    for kind in KINDS:
        assert imread(DOCS / "pictures" / f"{kind}.png").shape[1] == 371  # 3.375 inches of 110 dots


@pytest.mark.parametrize("kind", KINDS)
def test_a_section_shows_its_picture_and_says_how_to_read_it(kind):
    section = SECTIONS[kind]
    assert re.findall(r"!\[[^\]]{10,}\]\(([^)]+)\)", section) == [f"pictures/{kind}.png"]
    prose = re.sub(r"^( {4}.*|!\[.*)$", "", section, flags=re.MULTILINE)
    assert len(re.findall(r"[.:;](?=\s)", prose)) >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_of_a_picture_is_that_of_the_script(kind):
    shown = commands(SECTIONS[kind])
    assert shown.count(f"mlm-plot --kind {kind} -o {kind}.png") == 1
    assert shown.replace(f"mlm-plot --kind {kind} -o {kind}.png", f"draw {kind}") in squeezed(SCRIPT)


def test_the_records_of_the_page_are_those_of_the_script():
    head = PAGE.split("\n## ")[0]
    for block in re.split(r"\n\n(?! {4})", head):
        assert commands(block) in squeezed(SCRIPT)
    assert "embedded.jsonl" in commands(head)
    assert "table.json" in commands(head)
