"""README and docs/*.md: every block is run, in order, and what a page shows as printed is what comes out.

tests/pages.py says what a block is, and how a mark changes the way it is run.
"""

import re
import shutil
from importlib import import_module
from importlib.util import find_spec

import orjson
import pytest
from conftest import ROOT, quick_shell
from pages import MARKS, NETWORK, blocks

pytestmark = pytest.mark.in_process

PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))
                        if path.name != "python.md")]  # test_docs.py runs the examples of python.md
FEWER = {r"--steps \d+": "--steps 60", r"--sweeps \d+": "--sweeps 3", r"--chains \d+": "--chains 2",
         r"--pairs \d+": "--pairs 2", r"--length \d+": "--length 8", r"--dask local:\d+": "--dask local:1",
         r"head -n \d+": "head -n 2", r"--rectangles \d+": "--rectangles 2",
         r"--lag \d+": "--lag 40", r"--until \d+": "--until 80"}
"""What is put in the place of options when a long block is run in short."""
TOLERANCE = 1e-4
"""Of numbers, relative, where more digits are shown than float32 has on every machine."""
ROUNDING = 1e-3
"""Numbers below this that are shown with an exponent measure the rounding of float32, which differs by machine."""
TIMES = 8
"""Maximum ratio of two such numbers."""


BLOCKS = {page: blocks(page) for page in PAGES}


def words(line):
    """The words of a line of output, without the frames of tables."""
    return re.findall(r"[^\s━│┃┏┓┗┛┡┩└┘┴┻┳╇─┬┌┐├┤┼╞╡╪]+", line)


def same_word(shown, printed):
    """Whether two words are equal, or numbers equal to the digits shown or to TOLERANCE."""
    number = r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
    if re.sub(number, "#", shown) != re.sub(number, "#", printed):
        return False
    for one, other in zip(re.findall(number, shown), re.findall(number, printed), strict=True):
        sizes = sorted(abs(float(size.replace(",", ""))) for size in (one, other))
        if "e-" in one and sizes[0] > 0 and sizes[1] < ROUNDING and sizes[1] <= TIMES * sizes[0]:
            continue
        digits = len(re.sub(r"e.*", "", one).partition(".")[2])
        if one != other and (digits < 5 or abs(float(one) - float(other)) > TOLERANCE * abs(float(one))):
            return False
    return True


def first_difference(output, printed):
    """The first line of `output` that `printed` lacks; None where all stand there, with gaps only at `...`."""
    lines, place, gap = [words(line) for line in printed.splitlines()], 0, False
    lines = [line for line in lines if line]
    for shown in output.splitlines():
        if shown.strip() == "...":
            gap = True
        elif wanted := words(shown):
            matches = [k for k in range(place, len(lines)) if len(lines[k]) == len(wanted)
                       and all(map(same_word, wanted, lines[k]))]
            if not matches or (not gap and matches[0] > place):
                return shown
            place, gap = matches[0] + 1, False
    return None if gap or place == len(lines) else f"(the end; printed: {' '.join(lines[place])})"


def run_page(page, sh, capsys, monkeypatch, full):
    """Run the blocks of a page in order, in the folder of a shell."""
    monkeypatch.chdir(sh.folder)
    for block in BLOCKS[page]:
        in_short = block.mark == "long" and not full
        if block.mark in ("elsewhere", "wheel") or (block.mark == "soak" and not full):
            continue
        if "--dask" in block.code and find_spec("distributed") is None:
            continue
        before = set(sh.folder.rglob("*"))
        if block.language == "python":
            exec(compile(block.code, page, "exec"), {"__name__": "__main__"})
            if "pyplot" in block.code:
                import_module("matplotlib.pyplot").close("all")
            printed = capsys.readouterr().out
        else:
            code = block.code
            for pattern, fewer in FEWER.items() if in_short else ():
                code = re.sub(pattern, fewer, code)
            done = sh("set -e\n" + code, timeout=3000 if full else 300, OMP_NUM_THREADS="1")
            assert done.status == 0, f"{page}: {code}{done.err}"
            assert "Traceback" not in done.err
            printed = done.out.decode()
        assert printed or set(sh.folder.rglob("*")) - before or " -o " in block.code, f"nothing comes of {block.code}"
        if block.output and not in_short:
            line = first_difference(block.output, printed)
            assert line is None, f"{page}: {block.code}does not print\n{line}\nbut\n{printed}"


def checkout(folder, passages=None):
    """A shell in what looks like a checkout; passages: with the first so many records, and those that a page names."""
    sh = quick_shell(folder)
    shutil.copytree(ROOT / "examples", sh.folder / "examples")
    if passages is not None:
        lines = (ROOT / "examples" / "passages.jsonl").read_text().splitlines(keepends=True)
        named = [line for line in lines[passages:] if re.search(r'"id": "(sauna|light)"', line)]
        (sh.folder / "examples" / "passages.jsonl").write_text("".join(lines[:passages] + named))
    return sh


SLOW = ("docs/results.md", "docs/pictures.md")
"""Pages that only the soak runs."""


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("page", [page for page in PAGES if page not in SLOW])
def test_the_blocks_of_a_page_run(page, tmp_path, capsys, monkeypatch):
    run_page(page, checkout(tmp_path, passages=4), capsys, monkeypatch, full=False)


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_print_what_it_says(page, tmp_path, capsys, monkeypatch):
    run_page(page, checkout(tmp_path), capsys, monkeypatch, full=True)


def test_the_blocks_are_found():
    assert len(BLOCKS["README.md"]) >= 8
    assert [page for page in PAGES if not BLOCKS[page]] == []
    assert {block.mark for page in PAGES for block in BLOCKS[page]} <= {"", *MARKS}
    assert all("\n\n##" not in block.code for page in PAGES for block in BLOCKS[page]), "a block goes on into the text"
    code = "".join(block.code for page in PAGES for block in BLOCKS[page])
    names = [path.name for path in (ROOT / "bin").glob("mlm-*")]
    for command in (*names, "--dask", "--shard", "jq", "import mlmglauber"):
        assert command in code, command
    assert "examples/quickstart.sh" in (ROOT / "Makefile").read_text()


def test_marks_and_outputs_belong_to_blocks():
    for page in PAGES:
        text = (ROOT / page).read_text()
        marked = [block.mark for block in BLOCKS[page] if block.mark and not block.code.startswith(NETWORK)]
        assert re.findall(r"<!-- (\w+) -->", text) == marked, page


@pytest.mark.parametrize(("output", "printed", "line"), [
    ("a 1.50\n", "a 1.50\n", None),
    ("a 1.50\n", "a 1.51\n", "a 1.50"),
    ("│ a │ [1, 2] │\n", "│ a   │   [1, 2] │\n", None),
    ("1.234567\n", "1.234587\n", None),
    ("1.234567\n", "1.234767\n", "1.234567"),
    ("a\n...\nc\n", "a\nb\nc\n", None),
    ("a\nc\n", "a\nb\nc\n", "c"),
    ("a\n", "a\nb\n", "(the end; printed: b)"),
    ("a\n...\n", "a\nb\n", None),
])
def test_an_output_is_compared_word_by_word(output, printed, line):
    assert first_difference(output, printed) == line


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_are_named_exist(page):
    text, folder = (ROOT / page).read_text(), (ROOT / page).parent
    targets = [target for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) if not target.startswith("http")]
    assert [target for target in targets if not (folder / target).exists()] == []
    assert [name for name in re.findall(r"\bexamples/[\w./-]+\w", text) if not (ROOT / name).exists()] == []


def test_the_readme_is_short_and_names_every_page():
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 130
    assert [page for page in [*PAGES[1:], "docs/python.md"] if f"({page})" not in readme] == []
    for command in sorted(path.name for path in (ROOT / "bin").glob("mlm-*")):
        assert f"| `{command}` |" in readme


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
    topics = (ROOT / "examples" / "topics.jsonl").read_bytes().splitlines()
    known |= {orjson.loads(line)["label"] for line in topics}  # columns of mlm-basins
    rows = [row for page in PAGES for row in re.findall(r"^ {4}┃(.*)┃$", (ROOT / page).read_text(), re.MULTILINE)]
    assert len(rows) >= 8
    for row in rows:
        assert {cell.strip() for cell in row.split("┃")} <= known


@pytest.mark.soak
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
