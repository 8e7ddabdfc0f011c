"""The tour for notebooks: it runs, and prints what is stored in it.

The chains are the same on every machine, so words and whole numbers are compared as they are. Decimal numbers come from
the floating-point arithmetic of a model and are compared to 0.02. Pictures depend on the fonts of a machine; only their
number is compared.
"""

import importlib.util
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT

FOLDER = ROOT / "examples" / "notebooks"
spec = importlib.util.spec_from_file_location("notebook_build", FOLDER / "build.py")
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)

SMALLER = {"sweeps=8": "sweeps=2", "horizon=10": "horizon=1", "* 100, tau=1.0": "* 4, tau=1.0", "count=30": "count=2"}
"""Sizes of the tour and those of `make test`, which does not compare what the changed cells and the cells that use them
print."""
DEPENDENT = ("drift_summary", "mg.rectangles", "mg.meeting_times")


@pytest.fixture
def tour(tmp_path):
    """A copy of the notebook in a folder with the records that it reads."""
    shutil.copytree(ROOT / "examples" / "phase-diagram", tmp_path / "phase-diagram")
    shutil.copy(ROOT / "examples" / "passages.jsonl", tmp_path)
    (tmp_path / "notebooks").mkdir()
    return Path(shutil.copy(build.TOUR, tmp_path / "notebooks"))


def compare(found, stored, left_out=()):
    """Compare the printed texts and the number of pictures of each code cell; the number of compared cells."""
    compared = 0
    for cell, old in zip(found.cells, stored.cells, strict=True):
        if cell.cell_type != "code":
            continue
        assert not any(output.output_type == "stream" and output.name == "stderr" for output in cell.outputs)
        pictures = [sum("image/png" in output.get("data", {}) for output in one.outputs) for one in (cell, old)]
        assert pictures[0] == pictures[1], cell.source
        if not any(name in cell.source for name in left_out):
            words, numbers = split(build.printed(cell))
            old_words, old_numbers = split(build.printed(old))
            assert words == old_words, cell.source
            assert numbers == pytest.approx(old_numbers, abs=0.02)
            compared += 1
    return compared


def split(text):
    """The text without its decimal numbers, and these.

    >>> split("after 3 steps 0.25 [-0.5, 1]")
    ('after 3 steps # [#, 1]', [0.25, -0.5])
    """
    numbers = re.compile(r"-?\d+\.\d+")
    return numbers.sub("#", text), [float(number) for number in numbers.findall(text)]


def test_the_tour_holds_its_outputs_and_nothing_of_a_machine():
    text = build.TOUR.read_text()
    stored = nbformat.read(build.TOUR, as_version=4)
    nbformat.validate(stored)
    codes = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in codes] == list(range(1, len(codes) + 1))
    assert all(cell.outputs for cell in codes)
    assert sum("image/png" in output.get("data", {}) for cell in codes for output in cell.outputs) == 6
    assert stored.metadata == build.KERNEL
    assert str(ROOT) not in text
    assert "site-packages" not in text
    assert all(stored.cells[k - 1].cell_type == "markdown" for k, cell in enumerate(stored.cells)
               if cell.cell_type == "code")


@pytest.mark.soak
def test_a_short_form_of_the_tour_runs_and_prints_what_is_stored(tour):
    text = tour.read_text()
    for size, smaller in SMALLER.items():
        assert text.count(size) == 1
        text = text.replace(size, smaller)
    tour.write_text(text)
    assert compare(build.run(tour), nbformat.read(build.TOUR, as_version=4), DEPENDENT) >= 7


@pytest.mark.soak
def test_the_tour_runs_and_prints_what_is_stored(tour):
    compare(build.run(tour), nbformat.read(build.TOUR, as_version=4))
