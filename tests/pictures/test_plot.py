"""mlm-plot: records of the other commands as panels, as pictures that look as they did, and as characters."""

import os
from itertools import product
from math import log
from pathlib import Path

import matplotlib
import numpy as np
import orjson
import pytest
from conftest import ROOT, quick_shell
from in_process import STRICT
from matplotlib.image import imread
from oracles import TABLE_A, TABLE_B

from mlmglauber.pictures.characters import text
from mlmglauber.pictures.figure import content, figure
from mlmglauber.pictures.kinds import KINDS, open_kind
from mlmglauber.pictures.panel import Bars, Curve, Ground, Heat, Points, Rule
from mlmglauber.pictures.records import PictureRecords
from mlmglauber.pictures.thinned_lists import ThinnedLists
from mlmglauber.stream.errors import MlmError

GOLDEN = ROOT / "tests" / "pictures" / "golden"
DPI = 60
TOLERANCE = 0.005
"""Root mean square of differences of 3 x 3 means, of 1."""
DRAWN_BY = (3, 11)
"""The matplotlib of the images: others set letters elsewhere."""

SCRIPT = """
echo "a b" | mlm-exact -m a.json --top 3 -t 0.2,0.3,0.5,1,2,4 > exact
printf 'a b\\nc a\\n' | mlm-influence -m a.json --seed 1 -t 0.25,0.5,1,2 --matrix > influence
echo "a b" | mlm-rect -m a.json --rectangles 60 --draw uniform --seed 1 > rectangles-a
echo "a b" | mlm-rect -m b.json --rectangles 60 --draw uniform --seed 1 > rectangles-b
echo "a b" | mlm-rect -m joint.json --rectangles 60 --draw uniform --seed 1 > rectangles-joint
cat rectangles-a rectangles-b rectangles-joint > rectangles
printf 'a a\\nb c\\n' | mlm-sample -m a.json -t 0.25,0.4 --steps 6000 --on-change --seed 1 > states
mlm-traps -m a.json --min-steps 20 --radius 0 states > residence
printf 'a a\\nb c\\nc c\\nb b\\n' | mlm-sample -m a.json -t 0.2,0.25,0.4,0.6 --steps 6000 --on-change --seed 1 |
    mlm-traps -m a.json --min-steps 3 --radius 0 --summary > slowness
mlm-couple --summarize < times > phase
echo "a b" | mlm-couple -m a.json --lag 5 --pairs 60 --max-steps 1000 -t 0.5,1 --seed 1 | mlm-couple --summarize > lag
mlm-drift < embedded > drift
mlm-drift --summary --threshold 0.4 < embedded > hits
mlm-basins --examples topics --reject 0 --summary --start-field topic < embedded > basins
mlm-basins --examples topics --reject 0 --keep-embedding < embedded > plane
echo "a b c a" | mlm-sample -m copies.json -t 0.8 --steps 500 --on-change --seed 2 > spacetime
mlm-traps -m copies.json --min-steps 40 --radius 1 spacetime > spacetime-traps
cat spacetime-traps >> spacetime
"""
PICTURES = {**{name: (name, None) for name in KINDS}, "plane": ("plane", "plane"), "hits": ("hits", None),
            "plateau": ("hits", "drift"), "medians": ("phase", "times"), "spacetime": ("spacetime", "spacetime")}
"""Golden image: the file of records, and the kind that is asked for."""


def pairs():
    """Pairs whose median is about 2 n ln n when hot and 40 n ln n, mostly given up, when cold, longer ones sooner."""
    generator = np.random.default_rng(0)
    for n in (4, 8, 16):
        for tau in (0.5, 1.0, 1.5, 2.0):
            for k in range(12):
                unit = n * log(n)
                steps = int(unit * generator.exponential(3 if tau > 0.6 + n / 20 else 60) + n)
                limit = int(25 * unit)
                met = steps <= limit
                yield {"type": "pair", "run": "r", "id": str(k), "pair": 0, "model": "m", "tau": tau, "n": n, "seed": 1,
                       "coupling": "maximal", "start": "pair", "replicas": 2, "lag": 0,
                       "meeting": steps if met else None, "censored": not met, "max_steps": limit,
                       "last_change": min(steps, limit)}


def embedded():
    """States in the plane: chains that turn away from their start, the faster the hotter, from one of two topics."""
    generator = np.random.default_rng(1)
    for tau in (0.5, 2.0):
        for n in (4, 8):
            for text_number in range(3):
                angle, turn = text_number * 2.0, generator.choice([-1, 1])
                for step in range(0, 40 * n, n):
                    angle += turn * abs(generator.normal(0, 0.06 * tau))
                    yield {"type": "state", "run": "r", "id": f"{tau}/{n}/{text_number}", "chain": 0, "step": step,
                           "tau": tau, "n": n, "text": "a", "topic": ["up", "down", "down"][text_number],
                           "embedding": [float(np.cos(angle)), float(np.sin(angle))], "embedder": "e"}


def copies():
    """Conditionals of one of four sites given the other three, of three tokens: each copy is worth 1.5 nats."""
    logits = np.array([[1.5 * others.count(token) for token in range(3)] for others in product(range(3), repeat=3)])
    law = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return law.reshape(3, 3, 3, 3).tolist()


def topics():
    for k in range(12):
        angle = k / 2 if k < 6 else -k / 4
        yield {"label": "up" if np.sin(angle) > 0 else "down", "embedding": [np.cos(angle), np.sin(angle)],
               "embedder": "e"}


def lines(records):
    return b"".join(orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n" for record in records)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """`sh` in a folder with records of every kind, made by the commands themselves."""
    sh = quick_shell(tmp_path_factory.mktemp("records"))
    joint = np.array([[0.4, 0.1], [0.2, 0.3]])
    compatible = [(joint / joint.sum(axis=0)).T.tolist(), (joint / joint.sum(axis=1, keepdims=True)).tolist()]
    for name, tokens, tables in (("a", "abc", TABLE_A), ("b", "ab", TABLE_B), ("joint", "ab", compatible),
                                 ("copies", "abc", [copies()] * 4)):
        (sh.folder / f"{name}.json").write_bytes(orjson.dumps({"tokens": list(tokens), "tables": tables}))
    for name, records in (("times", pairs()), ("embedded", embedded()), ("topics", topics())):
        (sh.folder / name).write_bytes(lines(records))
    done = sh(STRICT + SCRIPT)
    assert (done.status, done.err) == (0, "")
    chain = [record for record in read(sh.folder / "plane") if record.get("id") == "2.0/8/0"]
    trap = {"type": "trap", "run": "r", "id": "2.0/8/0", "chain": 0, "tau": 2.0, "n": 8, "first": 64, "last": 96,
            "residence": 33, "censored": False, "radius": 1, "min_steps": 20, "escape": None}
    (sh.folder / "plane").write_bytes(lines([*chain, trap]))
    return sh


def read(path):
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def picture_of(records, asked=None, threshold=0.5):
    seen = PictureRecords(asked)
    for record in records:
        seen.take(record)
    return seen.picture(threshold)


def layers(panel, kind):
    return [layer for layer in panel.layers if isinstance(layer, kind)]


@pytest.fixture(scope="module")
def pictures(made):
    """Every picture that has an image."""
    return {name: picture_of(read(made.folder / file), asked) for name, (file, asked) in PICTURES.items()}


def blurred(image):
    """3 x 3 means of a picture's colours."""
    rows, columns = (size // 3 * 3 for size in image.shape[:2])
    return image[:rows, :columns, :3].reshape(rows // 3, 3, columns // 3, 3, 3).mean(axis=(1, 3))


def difference(one, other):
    if one.shape != other.shape:
        return 1.0
    return float(np.sqrt(((blurred(one) - blurred(other)) ** 2).mean()))


def pixels(picture, folder):
    (folder / "now.png").write_bytes(content(figure(picture), "png", DPI))
    return imread(folder / "now.png")


as_drawn = pytest.mark.skipif(tuple(map(int, matplotlib.__version__.split(".")[:2])) != DRAWN_BY,
                              reason="another matplotlib than the images'")


@as_drawn
@pytest.mark.parametrize("name", PICTURES)
def test_pictures_look_as_they_did(pictures, name, tmp_path):
    """MLM_GOLDEN=write makes the images anew: look at each before it is kept."""
    picture = pictures[name]
    if os.environ.get("MLM_GOLDEN") == "write":
        (GOLDEN / f"{name}.png").write_bytes(content(figure(picture), "png", DPI))
    assert difference(pixels(picture, tmp_path), imread(GOLDEN / f"{name}.png")) < TOLERANCE


@as_drawn
def test_a_picture_that_looks_otherwise_is_seen(made, tmp_path):
    """The tolerance is below what a moved threshold, a lost series and a lost cell change."""
    states, cells = read(made.folder / "drift"), read(made.folder / "phase")
    others = {"drift": [picture_of(states, threshold=0.8), picture_of([s for s in states if s.get("tau") != 2.0])],
              "phase": [picture_of([c for c in cells if (c.get("tau"), c.get("n")) != (2.0, 16)])]}
    for name, pictures in others.items():
        for picture in pictures:
            assert difference(pixels(picture, tmp_path), imread(GOLDEN / f"{name}.png")) > 1.5 * TOLERANCE


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_can_be_drawn_with_characters(pictures, name):
    picture = pictures[name]
    drawn = text(picture, 80)
    assert max(map(len, drawn.splitlines())) <= 80
    for panel in picture.panels:
        assert panel.x.label in drawn
        assert panel.y.label.replace("\u00a0", " ") in drawn


@pytest.mark.parametrize("name", PICTURES)
def test_axes_have_units(pictures, name):
    """A quantity with its unit in brackets, or one that has none."""
    pure = ("time / (n ln n)", "share of", "stationary probability", "bound on total", "α (", "token ", "basin visited",
            "site, with")
    assert pictures[name].panels
    for panel in pictures[name].panels:
        for axis in (panel.x, panel.y):
            assert "(" in axis.label or axis.label.startswith(pure) or axis.label.startswith("principal component")


def test_kinds_have_a_file_each():
    folder = Path(open_kind("drift").__file__).parent
    helpers = {"__init__", "change_grid", "characters", "figure", "kinds", "layers", "layout", "palette", "panel",
               "reading", "records", "stripes", "stripes_text", "thinned_lists", "token_words", "trajectories",
               "trajectory_layers"}
    assert {path.stem for path in folder.glob("*.py")} - helpers == set(KINDS)


def test_exact_values_are_those_of_the_oracles(made):
    law, mixing = picture_of(read(made.folder / "exact")).panels
    taus = [0.2, 0.3, 0.5, 1, 2, 4]
    tmix, bound = layers(mixing, Curve)
    assert (tmix.label, bound.label) == ("mixing time", "bound from α < 1")
    assert (tmix.y[taus.index(1)], bound.y[taus.index(1)]) == (5, 14)
    states = {curve.label: curve.y[taus.index(1)] for curve in layers(law, Curve)}
    assert states["b b"] == pytest.approx(0.224504, abs=1e-6)
    assert states["a a"] == pytest.approx(0.221583, abs=1e-6)


def test_pairs_and_their_summaries_give_one_picture(made):
    """The medians and C that are made here of pairs are those of mlm-couple --summarize."""
    raw, summed = picture_of(read(made.folder / "times")), picture_of(read(made.folder / "phase"), "times")
    for one, other in zip(raw.panels, summed.panels, strict=True):
        for n in (4, 8, 16):
            (a,), (b,) = ([layer for layer in layers(panel, Points) if layer.label == f"n = {n}"]
                          for panel in (one, other))
            np.testing.assert_allclose(a.y, b.y)
            np.testing.assert_allclose(a.low, b.low)
    fit, other = (next(layer for layer in layers(found.panels[1], Points) if layer.label.startswith("C of all"))
                  for found in (raw, summed))
    np.testing.assert_allclose(fit.y, other.y)
    np.testing.assert_allclose(fit.high, other.high)
    censored = sum(record["censored"] for record in read(made.folder / "times"))
    marks = [layer for layer in layers(raw.panels[0], Points) if layer.faint and layer.mark == "2"]
    assert sum(len(layer.x) for layer in marks) == censored > 0


def test_the_phase_diagram_has_the_summaries_numbers(made):
    records = read(made.folder / "phase")
    panel, = picture_of(records).panels
    heat, = layers(panel, Heat)
    for record in records:
        if record["over"] == "group":
            row, column = list(heat.y).index(record["n"]), list(heat.x).index(record["tau"])
            value = record["median_n_log_n"]
            assert np.isnan(heat.values[row, column]) if value is None else heat.values[row, column] == value
    assert heat.missing
    lengths = np.array([4, 8, 16])
    for line in layers(panel, Points):  # a little beside its length, so that no budget hides another
        near = lengths[np.abs(np.log(line.y)[:, None] - np.log(lengths)[None, :]).argmin(axis=1)].tolist()
        crossings = {record["n"]: record["crossover"] for record in records
                     if record["over"] == "n" and line.label == f"median = {record['budget']:g} n ln n, 95 %"}
        assert dict(zip(near, line.x, strict=True)) == {n: tau for n, tau in crossings.items() if tau is not None}
    assert len(layers(panel, Points)) == 3


def test_rectangles_of_a_joint_law_stand_below_all_others(made):
    records = read(made.folder / "rectangles")
    panel, = picture_of(records).panels
    bars = {layer.label.split(":")[0]: layer for layer in layers(panel, Bars)}
    assert set(bars) == {"a.json", "b.json", "joint.json"}
    for layer in bars.values():
        assert layer.heights.sum() == pytest.approx(1)
    assert bars["joint.json"].heights[0] == 1
    assert bars["b.json"].label == "b.json: mean 1.8"  # 1.828127
    sizes = [abs(record["delta"]) for record in records if (record["type"], record["model"]) == ("rectangle", "b.json")]
    k, = np.flatnonzero(bars["b.json"].heights)
    assert bars["b.json"].edges[k] <= max(sizes) < bars["b.json"].edges[k + 1]


def test_noise_is_an_upright_line():
    records = [{"type": "rectangle", "model": "m", "tau": 1, "delta": -0.5, "noise": noise} for noise in (1e-6, 3e-6)]
    panel, = picture_of([*records, {"type": "rectangle", "model": "m", "tau": 1, "delta": None}]).panels
    assert [rule.at for rule in layers(panel, Rule) if np.isfinite(rule.at)] == [3e-6]
    assert layers(panel, Bars)[0].label == "m: mean 0.5"


def test_summaries_of_two_laws_are_not_joined(made):
    """Issue 16, A10: plateaus and times of two models stood in one curve."""
    records = read(made.folder / "hits")
    both = records + [record | {"model": "other"} for record in records]
    assert len(layers(picture_of(both, "drift").panels[0], Curve)) == 2 * len(
        layers(picture_of(records, "drift").panels[0], Curve))
    titles = [panel.title for panel in picture_of(both, "times").panels]
    assert len(titles) == 2 * len(picture_of(records, "times").panels)
    assert titles[2].startswith("other: ")


def test_drift_curves_are_medians_and_the_threshold_is_told(made):
    panels = picture_of(read(made.folder / "drift"), threshold=0.3).panels
    assert [panel.title.split(":")[0] for panel in panels] == ["n = 4", "n = 8"]
    curve = layers(panels[0], Curve)[0]
    assert curve.label == "τ = 0.5"
    at = [record["drift"] for record in read(made.folder / "drift")
          if record.get("n") == 4 and record["tau"] == 0.5 and record["step"] == 80]
    assert curve.y[list(curve.x).index(80)] == pytest.approx(np.median(at))
    assert layers(panels[0], Rule)[0].at == 0.3
    assert len(layers(picture_of(read(made.folder / "drift"), threshold=0.3).panels[0], Curve)) == 2


def test_residence_follows_the_geometric_law_at_radius_0(made):
    """Survival and law of one temperature differ by less than 1.63 / sqrt(N): Kolmogorov and Smirnov's 1 %, as the
    seed is fixed; the mean law over traps is that of each trap's own escape.
    """
    panel, = picture_of(read(made.folder / "residence")).panels
    curves = [curve for curve in layers(panel, Curve) if np.isfinite(curve.x).all()]
    assert len(curves) == 4
    for seen, expected in zip(curves[::2], curves[1::2], strict=True):
        count = int(seen.label.split(", ")[1].split()[0])
        assert count > 20
        inside = np.isfinite(seen.y)
        x, y = seen.x[inside][1:], seen.y[inside][1:]
        there = np.interp(x, expected.x, np.nan_to_num(expected.y))
        assert np.abs(y - there).max() < 1.63 / np.sqrt(count)


def test_influence_matrices_are_labelled_with_words(made):
    records = read(made.folder / "influence")
    first, last, alphas = picture_of(records).panels
    assert [first.title, last.title] == ["id 0: a b, τ = 0.25", "id 0: a b, τ = 2"]
    assert first.x.ticks[1] == ["a", "b"]
    assert layers(first, Heat)[0].values.tolist() == records[1]["matrix"]
    largest = layers(alphas, Curve)[0]
    assert largest.y[2] == max(record["alpha_row"] for record in records if record.get("tau") == 1)


def test_the_plane_marks_traps_and_shades_basins(made):
    records = read(made.folder / "plane")
    panel, = picture_of(records, "plane").panels
    trap = next(layer for layer in layers(panel, Points) if layer.label == "trap")
    middle = next(record for record in records if record.get("step") == 80)
    assert [trap.x[0], trap.y[0]] == pytest.approx(middle["embedding"])
    ground, = layers(panel, Ground)
    state = records[0]
    cell = [np.abs(axis - part).argmin() for axis, part in zip((ground.x, ground.y), state["embedding"], strict=True)]
    assert ground.names[ground.codes[cell[1], cell[0]]] == state["basin"]
    far = ground.codes[np.abs(ground.y).argmin(), np.abs(ground.x).argmin()]
    assert far == -1  # the middle of the circle: no state is near


def test_two_planes_are_refused(made):
    state = {"type": "state", "step": 0, "embedding": [0, 1], "embedder": "e"}
    runs = [{"type": "run", "pca_explained": [share, 0.1]} for share in (0.5, 0.4)]
    assert "50 %" in picture_of([runs[0], state]).panels[0].x.label
    for records in ([*runs, state], [state, {**state, "id": "1", "embedder": "f"}]):
        with pytest.raises(MlmError, match="different planes"):
            picture_of(records)


def test_basins_are_the_starts_rows(made):
    records = [record for record in read(made.folder / "basins") if record.get("over") == "start"]
    panel = picture_of(records).panels[0]
    heat, = layers(panel, Heat)
    assert panel.x.ticks[1] == ["down", "up"]
    assert panel.y.ticks[1] == ["down (2)", "up (1)"]
    rows = [record for record in records if (record["tau"], record["n"]) == (0.5, 4)]
    assert heat.values.tolist() == [[part["visited"] for part in row["basins"]] for row in rows]


def test_lagged_pairs_that_did_not_meet_have_no_bound(made):
    records = read(made.folder / "lag")
    panel, = picture_of(records).panels
    assert [curve.label for curve in layers(panel, Curve)] == ["τ = 0.5", "τ = 1"]
    group = next(record for record in records if record["over"] == "group" and record["tau"] == 1)
    assert layers(panel, Curve)[1].y.tolist() == [part["tv"] for part in group["bound"]]
    group |= {"bound": None, "tmix": None}
    found = picture_of(records)
    assert [curve.label for curve in layers(found.panels[0], Curve)] == ["τ = 0.5"]
    assert "tau 1: no bound" in found.notes[0]


def test_what_is_held_is_bounded_and_even():
    held = ThinnedLists(100)
    for k in range(10_000):
        held.add(k % 5, k)
    assert sum(map(len, held.lists.values())) <= 100
    for key, kept in held.lists.items():
        assert kept == list(range(key, 10_000, 5 * held.stride))
    for k in range(50):
        held.add(f"more {k}", k)
    assert len(held.lists) == 10
    assert held.left_out == 45


def test_long_series_are_thinned_and_it_is_said(made, monkeypatch):
    monkeypatch.setattr("mlmglauber.pictures.drift.LIMIT", 100)
    seen = PictureRecords(None)
    for record in read(made.folder / "drift"):
        seen.take(record)
    assert seen.notes() == ["drift: 1 in 4 values of each series is drawn", "drift: only the first 10 series are drawn"]
    assert len(layers(seen.picture(0.5).panels[0], Curve)[0].x) == 10


def test_formats_are_told_by_the_suffix_and_bytes_are_the_same_each_time(made):
    marks = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for form, mark in marks.items():
        done = made(f"mlm-plot -o one.{form} lag; mlm-plot -o two.{form.upper()} < lag")
        assert (done.status, done.out, done.err) == (0, b"", "")
        one = (made.folder / f"one.{form}").read_bytes()
        assert one.startswith(mark)
        assert one == (made.folder / f"two.{form.upper()}").read_bytes()
        assert b"/CreationDate" not in one
        assert b"<dc:date>" not in one
    assert made("mlm-plot -o - lag").out == (made.folder / "one.png").read_bytes()


@pytest.mark.parametrize(("line", "status", "said"), [
    ("mlm-plot phase", 2, "no place for the picture"),
    ("mlm-plot -o x.gif phase", 2, "the suffix is not that of a picture"),
    ("mlm-plot -o x.png --kind nonsense phase", 2, "nonsense"),
    ("mlm-plot -o x.png < /dev/null", 1, "no records"),
    ("cat phase exact | mlm-plot -o x.png", 1, "(28 summaries of pair, 1 run, 6 exact) can be drawn as phase and as"),
    ("mlm-rect --path --summary states | mlm-plot -o x.png", 1, "summaries of mlm-rect --path are not drawn"),
    ("mlm-rect --path --summary states | sed 's/\"path\"/\"state\"/' | mlm-plot -o x.png", 1, "summaries of path;"),
    ("mlm-plot -o x.png --kind lag exact", 1, "nothing for --kind lag in 1 run, 6 exact"),
    ("echo '{\"type\":\"state\",\"text\":\"a\"}' | mlm-plot -o x.png", 1, "states need mlm-embed and mlm-drift"),
    ("echo '{\"type\":\"exact\",\"tau\":\"hot\"}' | mlm-plot -o x.png", 65, "stdin:1: a record of type exact"),
    ("echo '{bad' | cat phase - | mlm-plot --strict -o x.png", 65, "stdin:"),
    ("mlm-plot -o no/such/x.png phase", 73, "no/such/x.png"),
    ("mlm-plot -o - phase > /dev/full", 74, "cannot write"),
])
def test_what_cannot_be_drawn_is_told_and_leaves_no_file(made, line, status, said):
    done = made(line)
    assert (done.status, done.out) == (status, b"")
    assert said in done.err
    assert not [path for path in made.folder.iterdir() if "x." in path.name]


def test_a_bad_record_is_told_and_the_others_are_drawn(made):
    done = made("echo '{\"type\":\"exact\",\"id\":\"0\"}' | mlm-plot -o bad.png exact -; mlm-plot -o good.png exact")
    assert done.err.count("\n") == 1
    assert "stdin:1" in done.err
    assert (made.folder / "bad.png").read_bytes() == (made.folder / "good.png").read_bytes()
    assert made("echo '{}x' | mlm-plot -q -o bad.png exact -").status == 65


def test_without_matplotlib_the_error_says_how_to_install_it(made):
    start = "import sys; sys.modules['matplotlib'] = None; from mlmglauber.commands.plot.command import main; main()"
    done = made(f'python -c "{start}" -o none.png exact')
    assert done.status == 1
    assert "pip install 'mlmglauber[plot]'" in done.err
    drawn = made(f'python -c "{start}" --terminal exact')
    assert (drawn.status, drawn.err) == (0, "")
    assert drawn.out.decode().startswith("a b: likeliest states\n")
    assert made("mlm-plot --terminal -o drawn.txt exact").out == b""
    assert (made.folder / "drawn.txt").read_bytes() == drawn.out


def test_nothing_heavy_is_imported_for_help_or_for_characters(made):
    modules = made("python -X importtime -m mlmglauber.commands.plot.command --help").err
    assert "mlmglauber.commands.plot.command" not in modules or "numpy" not in modules
    assert not any(f"| {name}\n" in modules for name in ("numpy", "scipy", "rich", "torch", "matplotlib"))
    modules = made("python -X importtime -m mlmglauber.commands.plot.command --terminal exact").err
    assert "numpy" in modules
    assert "matplotlib" not in modules
    assert "torch" not in modules


def test_a_text_with_signs_of_mathematics_is_drawn_as_it_is(made):
    record = {"type": "rectangle", "model": "$x_1^{$", "tau": 1, "delta": 0.5, "noise": None}
    assert b"PNG" in content(figure(picture_of([record])), "png", DPI)[:4]
