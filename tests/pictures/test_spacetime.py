"""Space-time pictures: every change is visible, traps are brackets, chains are panels; memory; what is refused."""

import re
import tracemalloc
import zlib

import numpy as np
import orjson
import pytest
from conftest import ROOT, quick_shell
from in_process import STRICT
from matplotlib.image import imread
from oracles import TABLE_A
from test_plot import layers, lines, picture_of, read

from mlmglauber.pictures.characters import text
from mlmglauber.pictures.figure import content, figure
from mlmglauber.pictures.palette import MARKED
from mlmglauber.pictures.records import PictureRecords
from mlmglauber.pictures.stripes import Stripes
from mlmglauber.stream.errors import MlmError

pytestmark = pytest.mark.in_process
DPI = 200
WORDS = ["tide", "moon", "rain", "salt", "wind", "clay"]


def state(step, ids, site=None, chain=0, **more):
    """A state record of a chain whose tokens are WORDS."""
    drawn = {} if site is None else {"site": site, "new": ids[site], "logp_new": -0.5 - 0.1 * site}
    return {"type": "state", "run": "r", "id": "0", "chain": chain, "step": step, "tau": 1.0, "n": len(ids),
            "text": " ".join(WORDS[token] for token in ids), "ids": list(ids), **drawn, **more}


def trap(first, last, chain=0, **more):
    return {"type": "trap", "run": "r", "id": "0", "chain": chain, "tau": 1.0, "n": 3, "first": first, "last": last,
            "residence": last - first + 1, "censored": False, **more}


def rare(steps=100_000):
    """A long chain of three sites with three changes."""
    return [state(0, [0, 1, 2]), state(17, [0, 3, 2], 1), state(50_001, [4, 3, 2], 0), state(99_400, [4, 3, 5], 2),
            state(steps, [4, 3, 5], 0)]


def random_chain(steps, n=8, seed=0):
    """A chain that changes at every step."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(0, len(WORDS), n).tolist()
    yield state(0, ids)
    for step in range(1, steps + 1):
        site = int(generator.integers(n))
        ids = [*ids[:site], (ids[site] + 1) % len(WORDS), *ids[site + 1 :]]
        yield state(step, ids, site)


def stripes_of(records):
    return [layers(panel, Stripes)[0] for panel in picture_of(records, "spacetime").panels]


@pytest.fixture
def folder(sh):
    """`sh` with a table model and a file of rare changes."""
    (sh.folder / "a.json").write_bytes(orjson.dumps({"tokens": ["a", "b", "c"], "tables": TABLE_A}))
    (sh.folder / "rare").write_bytes(lines(rare()))
    return sh


def test_three_changes_in_a_hundred_thousand_steps_are_all_visible(tmp_path):
    """Dots of the colour of changes stand in the PNG at each change, in the row of its site, and nowhere else."""
    found = figure(picture_of(rare(), "spacetime"))
    (tmp_path / "rare.png").write_bytes(content(found, "png", DPI))
    image = imread(tmp_path / "rare.png")[:, :, :3]
    found.set_dpi(DPI)
    found.draw_without_rendering()
    axes = found.axes[0]
    left, right = (axes.transData.transform((step, 0))[0] for step in (0, 100_000))
    color = np.array([int(MARKED[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    marked = np.abs(image - color).max(axis=2) < 0.35
    marked = marked[:, int(left) - 4 : int(right) + 4]  # without words and legend
    places = {}
    for site in range(3):
        middle = int(len(image) - axes.transData.transform((0, site))[1])  # rows go downwards
        places[site] = np.flatnonzero(marked[middle - 3 : middle + 4].all(axis=0)) + int(left) - 4
    for site, step in ((1, 17), (0, 50_001), (2, 99_400)):
        at = axes.transData.transform((step, site))[0]
        assert len(places[site]), site
        assert np.abs(places[site] - at).max() < 5, site


def test_rare_changes_are_visible_with_characters():
    drawn = text(picture_of(rare(), "spacetime"), 80).splitlines()
    rows = [next(line for line in drawn if line.startswith(f"{WORDS[site]} ")) for site in range(3)]
    assert [row.count("|") for row in rows] == [1, 1, 1]
    assert [row.split()[-1] for row in rows] == ["wind", "salt", "clay"]
    places = [(row.index("|") - 5) / (len(row) - 10) for row in rows]
    assert places == pytest.approx([0.5, 0, 0.994], abs=0.03)


def test_no_change_is_lost_when_columns_are_joined():
    """Each cell of a condensed grid has a mark if and only if its site changed in one of its steps."""
    records = [record for record in random_chain(2000) if record["step"] < 900 or record["step"] > 1900]
    records[900:] = [record | {"ids": records[899]["ids"]} for record in records[900:1000]]
    records += [state(2001, [(records[899]["ids"][0] + 1) % len(WORDS), *records[899]["ids"][1:]], 0)]
    grid, = stripes_of(records)
    expected = np.zeros_like(grid.changed)
    for record in [*records[1:900], records[-1]]:
        expected[record["site"], np.searchsorted(grid.edges, record["step"], side="right") - 1] = True
    assert (grid.changed == expected).all()
    assert not grid.changed.all(axis=0).all()
    assert grid.edges[1] - grid.edges[0] == 4  # 2002 steps in at most 720 columns


def test_memory_does_not_grow_with_the_chain():
    peaks = []
    for steps in (3_000, 15_000):
        tracemalloc.start()
        seen = PictureRecords("spacetime")
        for record in random_chain(steps):
            seen.take(record)
        seen.picture(0.5)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_ages_and_log_probabilities_are_those_of_the_states():
    records = [state(0, [0, 1]), state(3, [2, 1], 0), state(4, [2, 3], 1), state(6, [2, 3], 1)]
    grid, = stripes_of(records)
    assert grid.values.tolist() == [[1, 2, 3, 1, 2, 3, 4], [1, 2, 3, 4, 1, 2, 3]]
    seen = PictureRecords("spacetime", "logp")
    for record in records:
        seen.take(record)
    panel, = seen.picture(0.5).panels
    values = layers(panel, Stripes)[0].values
    nan = float("nan")
    np.testing.assert_allclose(values, [[nan] * 3 + [-0.5] * 4, [nan] * 4 + [-0.6] * 3], atol=1e-6)


def test_states_that_skip_changes_are_refused_in_one_line(folder):
    done = folder("echo 'a b' | mlm-sample -m a.json -t 2 --steps 100 --every 10 --seed 1 > every")
    assert done.status == 0
    for options in ("", "--color-by logp", "--terminal"):
        where = "" if "--terminal" in options else "-o no.png"
        done = folder(f"mlm-plot --kind spacetime {options} {where} every")
        assert (done.status, done.out, done.err.count("\n")) == (1, b"", 1)
        assert "skip changes" in done.err
        assert "--on-change" in done.err
    assert not (folder.folder / "no.png").exists()
    done = folder("mlm-plot -o no.png every")
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "--on-change" in done.err


def test_changes_without_log_probabilities_cannot_be_coloured_by_them(folder):
    records = [{key: value for key, value in record.items() if key != "logp_new"} for record in rare()]
    (folder.folder / "bare").write_bytes(lines(records))
    done = folder("mlm-plot --kind spacetime --color-by logp -o bare.png bare")
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert '"logp_new"' in done.err
    assert folder("mlm-plot --kind spacetime -q -o bare.png bare") == (0, b"", "")


def test_traps_are_brackets_above_their_chain():
    """Brackets that overlap stand above one another; one that the records end before has no right foot."""
    traps = [trap(10, 30), trap(20, 60), trap(70, 99, censored=True), trap(5, 9, chain=1)]
    chains = [[state(0, [0, 1, 2], chain=k), state(4, [0, 3, 2], 1, chain=k), state(99, [0, 3, 2], 0, chain=k)]
              for k in range(2)]
    picture = picture_of([*chains[0], *chains[1], *traps, trap(1, 2, chain=7)], "spacetime")
    first, second = (layers(panel, Stripes)[0].brackets for panel in picture.panels)
    assert [(each.first, each.last, each.lane, each.open) for each in first] == [
        (10, 31, 0, False), (20, 61, 1, False), (70, 100, 0, True)]
    assert [(each.first, each.last, each.forms[0]) for each in second] == [(5, 10, "5 steps")]
    assert "1 trap of chains that are not drawn" in picture.notes
    shown = {each.get_text() for each in figure(picture, width=7).axes[0].texts}
    assert {"21 steps", "41 steps", "30 steps"} <= shown
    many = [trap(first, first + 1) for first in range(0, 60, 3)] + [trap(70, 90)]
    picture = picture_of([*chains[0], *many], "spacetime")
    assert len(layers(picture.panels[0], Stripes)[0].brackets) == 12
    assert any("the 12 longest of 21 traps" in note for note in picture.notes)


def test_two_chains_are_two_panels_whatever_the_order_of_their_states():
    chains = [[record | {"chain": k} for record in random_chain(60, seed=k)] for k in range(2)]
    one = picture_of([*chains[0], *chains[1]], "spacetime")
    mixed = picture_of([record for pair in zip(*chains, strict=True) for record in pair], "spacetime")
    assert [panel.title for panel in one.panels] == ["τ = 1, id 0, chain 0", "τ = 1, id 0, chain 1"]
    assert content(figure(one), "png", 60) == content(figure(mixed), "png", 60)
    assert len(figure(one, width=12).axes) == 3  # below each other at any width, with one colour bar
    assert [axes.get_subplotspec().colspan.start for axes in figure(one, width=12).axes[:2]] == [0, 0]


def test_more_chains_than_panels_are_told(folder):
    (folder.folder / "many").write_bytes(lines(record | {"chain": k} for k in range(9) for record in rare()))
    done = folder("mlm-plot --kind spacetime --terminal many")
    assert done.status == 0
    assert "the first 6 of 9 chains are drawn" in done.err
    assert done.out.decode().count("chain ") == 6


def test_a_state_out_of_order_is_reported_and_left_out(folder):
    records = rare()
    (folder.folder / "shuffled").write_bytes(lines([*records[:2], records[0], *records[2:]]))
    done = folder("mlm-plot --kind spacetime -q -o shuffled.png shuffled")
    assert done.status == 65
    assert folder("mlm-plot --kind spacetime -o sorted.png -q rare").status == 0
    assert (folder.folder / "shuffled.png").read_bytes() == (folder.folder / "sorted.png").read_bytes()


def test_masked_states_are_left_out_and_the_rest_is_drawn():
    """A chain from masks begins where no site is masked any more."""
    records = list(random_chain(20, n=3))
    masked = [record | {"masked": 3 - record["step"]} if record["step"] < 3 else record for record in records]
    seen = PictureRecords("spacetime")
    for record in masked:
        seen.take(record)
    panel, = seen.picture(0.5).panels
    assert (layers(panel, Stripes)[0].edges[[0, -1]] == [3, 21]).all()
    assert seen.notes() == ["3 states with masked sites were left out"]
    with pytest.raises(MlmError, match="states with masked sites were left out"):
        picture_of(masked[:3])


def test_chains_from_random_starts_are_drawn(folder):
    done = folder(f"{STRICT}echo 'a b' | mlm-sample -m a.json --init random --chains 2 --steps 40 --on-change --seed 1 "
                  "> states\nmlm-plot -q -o start.png states\nmlm-plot -q --terminal states")
    assert (done.status, done.err) == (0, "")
    assert [f"chain {k}" in done.out.decode() for k in range(2)] == [True, True]
    picture = picture_of(read(folder.folder / "states"), "spacetime")
    for k, panel in enumerate(picture.panels):
        changes = {(record["site"], record["step"]) for record in read(folder.folder / "states")
                   if record.get("chain") == k and record.get("changed") and not record.get("masked")}
        grid = layers(panel, Stripes)[0]
        assert {(site, int(grid.edges[column])) for site, column in np.argwhere(grid.changed).tolist()} == changes


def pdf_texts(data):
    """The texts of a PDF whose fonts are embedded, as a reader would copy them."""
    streams = []
    for match in re.finditer(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL):
        try:
            streams.append(zlib.decompress(match[1]))
        except zlib.error:
            streams.append(match[1])
    maps = [stream for stream in streams if b"begincmap" in stream]
    identity = set()
    for low, high in re.findall(rb"<(\w{4})> <\w{4}> \[<(\w{4})>", b"".join(maps)):
        identity |= {low == high}
    assert True in identity
    page = next(stream for stream in streams if b"BT" in stream)
    shown = re.findall(rb"\[((?:\((?:[^()\\]|\\.)*\)|[^\]()])*)\]\s+TJ", page, re.DOTALL)
    parts = [b"".join(re.findall(rb"\(((?:[^()\\]|\\.)*)\)", each, re.DOTALL)) for each in shown]
    return [re.sub(rb"\\(.)", rb"\1", part, flags=re.DOTALL).decode("utf-16-be", "replace") for part in parts]


@pytest.mark.parametrize("style", ["default", "paper"])
def test_a_pdf_has_its_fonts_embedded_and_its_text_can_be_copied(folder, style):
    done = folder(f"mlm-plot -q --kind spacetime --style {style} --title 'Salt and wind' -o rare.pdf rare")
    assert (done.status, done.err) == (0, "")
    data = (folder.folder / "rare.pdf").read_bytes()
    fonts = data.count(b"/Subtype /Type0")
    assert fonts > 0
    assert fonts == data.count(b"/FontFile2") == data.count(b"/ToUnicode") == data.count(b"/Subtype /CIDFontType2")
    assert b"/Type3" not in data
    texts = pdf_texts(data)
    assert {"Salt and wind", "tide", "moon", "rain", "salt", "its last token"} <= set(texts)


def test_text_in_svg_is_text_in_the_paper_style(folder):
    done = folder("mlm-plot -q --kind spacetime --style paper -o paper.svg rare; "
                  "mlm-plot -q --kind spacetime -o default.svg rare")
    assert (done.status, done.err) == (0, "")
    paper, default = ((folder.folder / f"{name}.svg").read_text() for name in ("paper", "default"))
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", paper)
    assert {"tide", "moon", "rain", "its last token"} <= set(texts)
    assert {size for size in re.findall(r"font-size: ([\d.]+)px|font: ([\d.]+)px", paper) for size in size if size} <= {
        "8", "9", "6.5", "7"}
    assert "<text" not in default


@pytest.mark.parametrize(("options", "said"), [
    ("--panels chain", "2 panels are called 'chain'; choose from 1 \"τ = 1, id 0, chain 0\", 2 "),
    ("--panels nonsense", "no panels are called 'nonsense'"),
    ("--panels 3", "no panels are called '3'"),
    ("--panels ''", "no panels are called ''"),
    ("--width 31", "31"),
    ("--width 1", "1"),
    ("--width nan", "nan"),
    ("--dpi 5000", "5000"),
    ("--style poster", "poster"),
    ("--terminal --width 7", "--width"),
])
def test_a_wrong_look_is_wrong_usage(folder, options, said):
    (folder.folder / "two").write_bytes(lines(record | {"chain": k} for k in range(2) for record in rare()))
    done = folder(f"mlm-plot -q --kind spacetime -o two.png {options} two")
    assert (done.status, done.out) == (2, b"")
    assert said in done.err
    assert not (folder.folder / "two.png").exists()


def test_panels_are_chosen_in_their_order_and_the_title_stands_above(folder):
    (folder.folder / "two").write_bytes(lines(record | {"chain": k} for k in range(2) for record in rare()))
    both = folder("mlm-plot -q --kind spacetime --terminal --panels 'chain 1,1' --title 'Salt  and wind' two")
    assert (both.status, both.err) == (0, "")
    drawn = both.out.decode()
    assert drawn.startswith("Salt and wind\n")
    assert drawn.index("chain 1") < drawn.index("chain 0")
    one = folder("mlm-plot -q --kind spacetime --terminal --panels 2 two").out.decode()
    assert "chain 0" not in one


def test_a_picture_of_too_many_dots_is_refused(folder):
    done = folder("mlm-plot -q --kind spacetime --width 30 --dpi 1200 -o huge.png rare")
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "36,000 x" in done.err
    assert not (folder.folder / "huge.png").exists()
    assert folder("mlm-plot -q --kind spacetime --width 30 --dpi 20 -o wide.png rare").status == 0
    assert imread(folder.folder / "wide.png").shape[1] == 600


@pytest.mark.parametrize("steps", [100, pytest.param(400, marks=pytest.mark.soak)])
def test_the_example_draws_a_chain_that_falls_into_a_trap(tmp_path, steps):
    """With a quarter of its steps, so that the trap is at its beginning; in the soak as it stands."""
    sh = quick_shell(tmp_path)
    script = (ROOT / "examples" / "spacetime.sh").read_text()
    assert script.count("--steps 400") == 1
    (sh.folder / "spacetime.sh").write_text(script.replace("--steps 400", f"--steps {steps}"))
    (sh.folder / "passages.jsonl").write_bytes((ROOT / "examples" / "passages.jsonl").read_bytes())
    (sh.folder / "out").mkdir()
    done = sh("bash spacetime.sh out", OMP_NUM_THREADS="1")
    assert (done.status, done.out) == (0, b"")
    assert sorted(path.name for path in (sh.folder / "out").iterdir()) == ["spacetime.jsonl", "spacetime.png"]
    records = read(sh.folder / "out" / "spacetime.jsonl")
    assert {"state", "trap"} <= {record["type"] for record in records} or steps < 400
    grid, = stripes_of(records)
    assert grid.edges[-1] == steps + 1
    assert steps < 400 or [bracket.forms[0] for bracket in grid.brackets] == ["321 steps"]
    assert imread(sh.folder / "out" / "spacetime.png").shape[1] == 1400
