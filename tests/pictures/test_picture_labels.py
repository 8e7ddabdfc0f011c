"""Legends and labels of pictures: every entry is there and tells its series, nothing is cut, nothing overlaps."""

from itertools import pairwise

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.text import Text
from test_plot import made, picture_of, read  # noqa: F401 - a fixture

from mlmglauber.pictures.figure import figure
from mlmglauber.pictures.layers import labels
from mlmglauber.pictures.palette import DPI, category
from mlmglauber.pictures.panel import (
    Axis,
    Bars,
    Cloud,
    Curve,
    Ground,
    Heat,
    Panel,
    Picture,
    Points,
    Rule,
    beside,
    tau_axis,
)
from mlmglauber.pictures.trajectory_layers import expanded

NASTY = ["_hidden", "__", "$x_1^{$", "MMMM WWWW " * 8, "x" * 90, "東京都の天気は晴れ時々曇り", "a\nb",
         " ", "a-very/long-name-of-a-model" * 3]
PIXEL = 1.5
pytestmark = pytest.mark.filterwarnings("ignore:Glyph")


def drawn(picture):
    """A figure whose artists know where they stand."""
    found = figure(picture)
    found.set_dpi(DPI)
    FigureCanvasAgg(found).draw()
    return found


def check(picture):
    """What is true of any picture."""
    found = drawn(picture)
    width, height = found.canvas.get_width_height()
    hidden = ticks_outside(found)
    for text in found.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text.get_figure() is not None and text not in hidden:
            box = text.get_window_extent()
            assert min(box.x0, box.y0, width - box.x1, height - box.y1) >= -PIXEL, (text.get_text(), box)
    for axes, panel in zip(found.axes, expanded(picture).panels, strict=False):
        expected = [name for layer in panel.layers for name in labels(layer)]
        legend = axes.get_legend()
        shown = [text.get_text() for text in legend.get_texts()] if legend is not None else []
        assert ["".join(name.split()) for name in shown] == ["".join(name.split()) for name in expected]
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()
                 if label.get_text() and label.get_visible() and label not in hidden]
        boxes.sort(key=lambda box: box.x0)
        for one, other in pairwise(boxes):
            assert one.x1 <= other.x0 + 0.1
    return found


def ticks_outside(whole):
    """Labels of ticks beyond the ends of an axis, which matplotlib does not draw."""
    found = set()
    for axes in whole.axes:
        for axis, (low, high) in ((axes.xaxis, sorted(axes.get_xlim())), (axes.yaxis, sorted(axes.get_ylim()))):
            for which in (axis.get_major_ticks(), axis.get_minor_ticks()):
                found |= {label for tick in which for label in (tick.label1, tick.label2)
                          if not low - 1e-9 <= tick.get_loc() <= high + 1e-9 or not label.get_visible()}
    return found


names = st.sampled_from(["", "τ = 0.5", "n = 16", *NASTY])


@st.composite
def panels(draw):
    x, y = np.array([0.5, 1.0, 2.0]), np.array([1.0, 3.0, 2.0])
    makers = [lambda label: Curve(x, y, label, mark=draw(st.sampled_from(["", "o"])), dashed=draw(st.booleans())),
              lambda label: Points(x, y, label, low=y - 0.5, high=y + 0.5, sideways=draw(st.booleans())),
              lambda label: Bars(np.array([0.5, 1.0, 2.0]), np.array([0.2, 0.8]), label),
              lambda label: Rule(1.0, label, dash="-."),
              lambda label: Cloud(x, y, y, label or "unit"),
              lambda label: Heat(x, y[:2], np.array([[0.1, np.nan, 1.0]] * 2), "share of chains", missing=label),
              lambda label: Ground(x, y[:2], np.zeros((2, 3), np.int64), [label or "a"])]
    layers = [draw(st.sampled_from(makers))(draw(names)) for _ in range(draw(st.integers(1, 6)))]
    ticks = draw(st.none() | st.lists(names, min_size=3, max_size=3))
    axis = Axis("a quantity (unit)", ticks=None if ticks is None else ([0.5, 1.0, 2.0], [name[:24] for name in ticks]))
    upward = draw(st.sampled_from(["drift (1 − cosine)", "bound on total variation, at least"]))
    return Panel(draw(names), axis, Axis(upward), layers)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.lists(panels(), min_size=1, max_size=2))
def test_no_entry_is_lost_and_no_label_is_cut_whatever_they_read(found):
    check(Picture(found))


@pytest.mark.soak
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(panels(), min_size=1, max_size=2))
def test_no_entry_is_lost_and_no_label_is_cut_in_many_more_pictures(found):
    check(Picture(found))


def spoiled(record, name):
    """A record whose names all read otherwise."""
    told = dict(record)
    for key in ("id", "model", "text", "start", "topic", "basin", "coupling"):
        if isinstance(told.get(key), str):
            told[key] = name + told[key]
    if "likeliest" in told:
        told["likeliest"] = [state | {"text": name + state["text"]} for state in told["likeliest"]]
    if "words" in told:
        told["words"] = [name + word for word in told["words"]]
    if isinstance(told.get("basins"), list):
        told["basins"] = [part | {"basin": name + part["basin"]} for part in told["basins"]]
    return told


FILES = ("basins", "drift", "exact", "influence", "lag", "phase", "plane", "rectangles", "residence", "times", "hits")


PLAIN_AND_NASTY = ["", *NASTY]


@pytest.mark.parametrize(("name", "files"), [
    *((name, FILES[k % 8 :: 8]) for k, name in enumerate(PLAIN_AND_NASTY)),
    *(pytest.param(name, FILES, marks=pytest.mark.soak) for name in PLAIN_AND_NASTY)])
def test_every_kind_shows_every_name(made, name, files):  # noqa: F811
    """Each name in an eighth of the kinds, each kind with a name or two; in the soak every name in every kind."""
    for file in files:
        records = [spoiled(record, name) for record in read(made.folder / file)]
        check(picture_of(records, {"hits": None}.get(file, file)))


def test_many_names_at_an_axis_do_not_overlap():
    for count in (3, 12, 20, 40, 60):
        words = [f"word{k}" * (1 + k % 3) for k in range(count)]
        places = np.arange(count, dtype=float)
        axis = Axis("token that is changed", ticks=(places.tolist(), words))
        heat = Heat(places, places, np.eye(count), "influence c (TV), at least", bounds=(0.0, 1.0))
        found = check(Picture([Panel("m", axis, axis._replace(downwards=True), [heat])]))
        boxes = sorted((label.get_window_extent() for label in found.axes[0].get_yticklabels()), key=lambda box: box.y0)
        for one, other in pairwise(boxes):
            assert one.y1 <= other.y0 + 0.1


def entries(panel_axes):
    legend = panel_axes.get_legend()
    return dict(zip([text.get_text().replace("\n", " ") for text in legend.get_texts()], legend.legend_handles,
                    strict=True))


def look(handle):
    """What tells two entries apart: colour, line, mark and its filling."""
    color, face = to_hex(handle.get_color()), to_hex(handle.get_markerfacecolor())
    return color, handle.get_linestyle(), handle.get_marker(), face


@pytest.mark.parametrize("file", ["exact", "lag", "residence", "times", "drift"])
def test_two_entries_of_a_legend_never_look_the_same(made, file):  # noqa: F811
    looks = [[look(handle) for handle in entries(axes).values()]
             for axes in drawn(picture_of(read(made.folder / file))).axes]
    assert sum(map(len, looks)) > 1
    assert all(len(set(each)) == len(each) for each in looks)


def test_the_mixing_time_and_a_single_bound_look_different(made):  # noqa: F811
    records = [record for record in read(made.folder / "exact") if record["type"] == "exact"]
    for record in records[1:]:
        record["bound"] = None
    found = entries(check(picture_of(records)).axes[1])
    time, bound = (look(found[name]) for name in ("mixing time", "bound from α < 1"))
    assert time[0] != bound[0]
    assert time[2] != bound[2]


def test_states_that_read_the_same_are_told_apart(made):  # noqa: F811
    records = [record for record in read(made.folder / "exact") if record["type"] == "exact"]
    for record in records:
        record["likeliest"] = [state | {"text": "\ufffd"} for state in record["likeliest"]]
    panel = picture_of(records).panels[0]
    curves = {curve.label: curve.y for curve in panel.layers}
    assert len(curves) == 6
    ids = records[0]["likeliest"][0]["ids"]
    assert curves[f"\ufffd (ids {ids[0]} {ids[1]})"][0] == records[0]["likeliest"][0]["probability"]


def test_series_stay_nearer_to_their_temperature_than_to_another():
    for taus in ([0.5, 1, 1.25, 1.5, 2], [0.1, 0.11, 10], [1, 1.001, 2], [1]):
        axis = tau_axis(taus)
        for count in (1, 2, 3, 8):
            for k in range(count):
                moved = beside(np.array(taus, dtype=float), axis, k, count)
                scale = np.log if axis.log else np.asarray
                distances = np.abs(scale(moved)[:, None] - scale(np.array(taus, dtype=float))[None, :])
                assert (distances.argmin(axis=1) == np.arange(len(taus))).all()
                nearest = np.sort(distances, axis=1)
                assert len(taus) == 1 or (nearest[:, 0] <= nearest[:, 1] / 2).all()


def test_temperatures_have_a_tick_each_and_a_number_where_there_is_room():
    taus = [0.5, 1, 1.25, 1.5, 1.75, 2, 2.5, 3]
    axis = tau_axis(taus)
    assert axis.ticks[0] == taus
    assert {name for name in axis.ticks[1] if name} <= {f"{tau:g}" for tau in taus}
    assert axis.ticks[1][0] == "0.5"
    heat = Heat(np.array(taus), np.array([8.0, 16.0]), np.ones((2, 8)), "median meeting time / (n ln n)")
    check(Picture([Panel("m", axis, Axis("length n (tokens)"), [heat])]))
    dense = np.linspace(0.1, 4, 40).tolist()
    check(Picture([Panel("m", tau_axis(dense), Axis("y (1)"), [Curve(np.array(dense), np.array(dense), "x")])]))


def test_medians_are_not_joined_and_censored_times_have_a_mark(made):  # noqa: F811
    steps, units = picture_of(read(made.folder / "times")).panels
    assert not [layer for panel in (steps, units) for layer in panel.layers if isinstance(layer, Curve)]
    assert {"censored", "median not reached"} <= {layer.label for layer in steps.layers}
    assert {"C of all lengths, 95 %", "median not reached"} <= {layer.label for layer in units.layers}
    one = [record for record in read(made.folder / "times") if record["n"] == 8]
    assert "C of n = 8, 95 %" in {layer.label for layer in picture_of(one).panels[1].layers}


def test_matrices_of_one_meaning_share_a_colour_bar(made):  # noqa: F811
    basins = drawn(picture_of(read(made.folder / "basins")))
    assert len(basins.axes) == 4 + 1
    influence = drawn(picture_of(read(made.folder / "influence")))
    assert len(influence.axes) == 3 + 1
    panel = picture_of(read(made.folder / "phase")).panels[0]
    assert len(drawn(Picture([panel, panel])).axes) == 2 + 2  # each has ends of its own


def test_chains_without_a_start_are_counted():
    visited = [{"basin": "up", "visited": 1.0}]
    group = {"type": "summary", "of": "basin", "over": "group", "tau": 1.0, "n": 4, "chains": 16, "basins": visited}
    start = {"type": "summary", "of": "basin", "over": "start", "tau": 1.0, "n": 4, "chains": 8, "start": "up",
             "basins": visited}
    picture = picture_of([group, start])
    assert picture.panels[0].title == "τ = 1, n = 4: 8 of 16 chains have no start and no row"
    assert "8 of 16 chains" in picture.notes[0]
    whole = picture_of([group, start, start | {"start": "down"}])
    assert (whole.panels[0].title, list(whole.notes)) == ("τ = 1, n = 4", [])


def test_chains_of_one_start_are_told_apart_and_end_in_a_mark():
    states = [{"type": "state", "run": "r", "id": "7", "chain": chain, "step": step, "tau": 1, "n": 2, "embedder": "e",
               "embedding": [step * (chain + 1), step]} for chain in range(3) for step in range(5)]
    panel, = expanded(picture_of(states, "plane")).panels
    paths = [layer for layer in panel.layers if isinstance(layer, Curve)]
    ends = [layer for layer in panel.layers if isinstance(layer, Points) and layer.label.startswith("last state")]
    assert [end.label for end in ends] == [f"last state, id 7, chain {chain}" for chain in range(3)]
    assert [path.color for path in paths] == [end.color for end in ends] == [category(k).color for k in range(3)]
    assert [(end.x[0], end.y[0]) for end in ends] == [(4 * (chain + 1), 4) for chain in range(3)]
    assert len({end.mark for end in ends}) == 3
    many = [state | {"chain": k, "step": step} for k in range(9) for state in states[:1] for step in range(2)]
    layers = expanded(picture_of(many, "plane")).panels[0].layers
    assert [layer.label for layer in layers if isinstance(layer, Points)] == ["first state", "last state"]


def test_states_with_masked_sites_are_left_out_and_counted(made):  # noqa: F811
    base = {"type": "state", "run": "r", "id": "0", "chain": 0, "tau": 1.0, "n": 4}
    states = [base | {"step": step, "drift": 0.1 * step, "masked": max(0, 2 - step)} for step in range(6)]
    (made.folder / "masked").write_bytes(b"".join(orjson.dumps(state) + b"\n" for state in states))
    done = made("mlm-plot -o masked.png masked; mlm-plot -q -o quiet.png masked")
    assert (done.status, done.err) == (0, "mlm-plot: 2 states with masked sites were left out\n")
    assert list(picture_of(states).panels[0].layers[0].x) == [2, 3, 4, 5]
    none = made("head -n 2 masked | mlm-plot -o none.png")
    assert none.status == 1
    assert "states with masked sites were left out" in none.err


def test_influences_of_byte_pieces_are_labelled_with_pieces(made):  # noqa: F811
    records = read(made.folder / "influence")
    for record in records:
        if "words" in record:
            record |= {"words": ["\ufffd", "\ufffd"], "pieces": ["Ġî", "ĺ"], "id": "sauna", "text": "\ufffd"}
    panel = picture_of(records).panels[0]
    assert panel.x.ticks[1] == ["Ġî", "ĺ"]
    assert panel.title == "id sauna: \ufffd, τ = 0.25"
    for record in records:
        record.pop("pieces", None)
    assert picture_of(records).panels[0].x.ticks[1] == ["site 0", "site 1"]
