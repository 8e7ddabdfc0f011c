"""Pages of mlm-plot in headless Chromium: hover, slider, legend, zoom; no error, no request."""

from itertools import pairwise

import numpy as np
import pytest
from browser import Browser, needs_browser
from test_plot import made, picture_of, read  # noqa: F401 - a fixture
from test_plot_page import SHOWN, flat, hostile
from test_spacetime import random_chain, trap
from test_spacetime import state as changed

from mlmglauber.pictures.page.document import document

pytestmark = needs_browser
DRAWN = "document.documentElement.dataset.drawn === 'yes'"
SHOWING = "[...document.querySelectorAll('.hoverlayer .hovertext')].map((each) => each.textContent).join('|')"
FIRST = "document.getElementById('picture').data.find(({meta}) => meta === 'chain')"
"""The trace of the first chain."""
WORDS_DRAWN = "[...document.querySelectorAll('g.text text')].map((each) => each.textContent).filter((each) => each)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def show(browser, tmp_path):
    """A function that opens the page of records; at the end, that nothing was asked for and nothing went wrong."""
    browser.requests.clear()
    browser.errors.clear()
    opened = []

    def run(records, kind, title=""):
        path = tmp_path / f"{len(opened)}.html"
        opened.append(path.as_uri())
        picture = picture_of(records, kind)._replace(title=title)
        path.write_bytes(document(picture, kind, picture.notes, "0")[0])
        return browser.open(path, DRAWN)

    yield run
    assert browser.value("performance.getEntriesByType('resource').filter(({name}) => !name.startsWith('data:'))") == []
    assert [address for address in browser.requests if not address.startswith("data:")] == opened
    assert browser.errors == []


def place_of(browser, x, y, axes=("xaxis", "yaxis")):
    """The place in the window of a point of the axes."""
    return browser.value(f"""(() => {{
        const layout = document.getElementById("picture")._fullLayout;
        const box = document.getElementById("picture").getBoundingClientRect();
        const [x, y] = [layout.{axes[0]}, layout.{axes[1]}];
        return [box.x + x._offset + x.d2p({x}), box.y + y._offset + y.d2p({y})];
    }})()""")


def point_at(browser, x, y, axes=("xaxis", "yaxis")):
    """What the page shows when the mouse is at a point."""
    browser.move(1, 1)
    browser.wait(f"{SHOWING} === ''")
    browser.move(*place_of(browser, x, y, axes))
    browser.wait(f"{SHOWING} !== ''")
    return browser.value(SHOWING)


def legend_of(browser, name):
    """The place in the window of a name of the legend."""
    return browser.value(f"""(() => {{
        const entry = [...document.querySelectorAll(".legend .traces")]
            .find((each) => each.querySelector("text").textContent === {name!r});
        const box = entry.querySelector(".legendtoggle").getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    }})()""")


def traces(browser, what):
    """A value of each trace of the figure that is a chain."""
    return browser.value(f"document.getElementById('picture').data.filter(({{meta}}) => meta === 'chain').map("
                         f"(trace) => trace.{what})")


def three_chains(steps=20):
    return [flat(step, float(np.cos(step / 3 + 2 * chain)) + 3 * chain, float(np.sin(step / 3 + chain)), chain,
                 drift=step / steps, basin="up", text=f"text {step} of {chain}")
            for chain in range(3) for step in range(steps)]


def test_a_state_of_a_plane_says_its_text(browser, show):
    show([*three_chains(), trap(5, 9) | {"id": "7"}], "plane")
    state = three_chains()[27]
    assert point_at(browser, *state["embedding"]) == "id 7, chain 1step 7text 7 of 1drift 0.350basin up"


def test_the_slider_shows_the_states_up_to_its_step(browser, show):
    show(three_chains(), "plane")
    assert browser.value("document.getElementById('step').textContent") == "19"
    assert traces(browser, "x.length") == [20, 20, 20]
    browser.value("document.getElementById('time').focus()")
    for k in range(1, 4):
        browser.key("ArrowLeft")
        browser.wait(f"{FIRST}.x.length === {20 - k}")
    assert browser.value("document.getElementById('step').textContent") == "16"
    box = browser.value("(({x, y, width, height}) => [x + width / 4, y + height / 2])"
                        "(document.getElementById('time').getBoundingClientRect())")
    browser.click(*box)
    step = int(browser.value("document.getElementById('step').textContent"))
    assert 3 <= step <= 6
    browser.wait(f"{FIRST}.x.length === {step + 1}")
    last = three_chains()[20 + step]["embedding"]
    assert point_at(browser, *last).startswith(f"id 7, chain 1step {step}text {step} of 1")
    browser.key("End")
    browser.wait(f"{FIRST}.x.length === 20")
    assert traces(browser, "hovertext.length") == traces(browser, "marker.color.length") == [20, 20, 20]


def test_chains_that_begin_later_come_with_the_slider(browser, show):
    show([flat(step, step, chain, chain) for chain in range(2) for step in range(10 * chain, 20)], "plane")
    browser.value("document.getElementById('time').focus()")
    browser.key("Home")
    browser.wait(f"{FIRST}.x.length === 1")
    assert traces(browser, "x.length") == [1, 0]


def test_chains_are_chosen_in_the_legend(browser, show):
    show(three_chains(), "plane")
    browser.click(*legend_of(browser, "id 7, chain 1"))
    browser.wait("document.querySelectorAll('.scatterlayer path.point').length === 44")  # two chains with two ends each
    assert traces(browser, "visible ?? true") == [True, "legendonly", True]


def test_a_cell_of_a_space_time_page_says_its_word_and_its_log_probability(browser, show):
    records = [changed(0, [0, 1, 2]), changed(30, [0, 4, 2], 1), changed(70, [5, 4, 2], 0), changed(100, [5, 4, 2], 2)]
    show([*records, trap(30, 100)], "spacetime")
    assert point_at(browser, 50.5, 1) == "windlog-probability -0.6 natsstands since step 30site 1, step 50"
    assert point_at(browser, 20.5, 1) == "moonthe first token, not drawnstands since step 0site 1, step 20"
    assert set(browser.value(WORDS_DRAWN)) == {"tide", "moon", "rain", "clay", "wind", "71 steps"}
    shapes = "document.querySelectorAll('.shapelayer path').length"
    assert browser.value(shapes) == 1
    browser.click(*legend_of(browser, "a token changed"))
    browser.wait(f"{shapes} === 0")


def test_words_appear_where_a_zoom_gives_them_room(browser, show):
    show(list(random_chain(2000, n=8)), "spacetime")
    before = browser.value(WORDS_DRAWN)
    browser.value("Plotly.relayout('picture', {'xaxis.range': [1000, 1040]}).then(() => true)")
    browser.wait(f"({WORDS_DRAWN}).length > 20")
    after = browser.value(WORDS_DRAWN)
    assert len(after) > len(before)
    boxes = browser.value("[...document.querySelectorAll('g.text text')].filter((each) => each.textContent)"
                          ".map((each) => each.getBoundingClientRect())"
                          ".map(({x, width, y}) => [Math.round(y), x, x + width])")
    for (row, _, end), (other, start, _) in pairwise(sorted(boxes)):
        assert row != other or end < start  # no two words overlap
    browser.value("Plotly.relayout('picture', {'xaxis.range': [0, 2001]}).then(() => true)")
    browser.wait(f"({WORDS_DRAWN}).length <= {len(before) + 5}")


@pytest.mark.parametrize("kind", ["times", "phase"])
def test_marks_and_cells_say_their_numbers(browser, show, made, kind):  # noqa: F811
    show(read(made.folder / "phase"), kind)
    if kind == "phase":
        assert point_at(browser, 2, 16).startswith("temperature τ: 2length n: 16median meeting time / (n ln n): ")
        return
    x, y, hover = browser.value("(({x, y, hovertext}) => [x[2], y[2], hovertext[2]])("
                                "document.getElementById('picture').data.find(({name}) => name === 'n = 8'))")
    assert point_at(browser, x, y) == hover.replace("<br>", "")
    assert "τ = 1.5" in hover


@pytest.mark.parametrize("kind", ["plane", "spacetime", "times", "phase"])
def test_hostile_texts_are_shown_and_never_run(browser, show, kind):
    """A text that ran would open a dialog, ask for an image or break the policy: each of them is noted."""
    show(hostile()[kind], kind, SHOWN)
    assert browser.value("document.querySelector('h1').textContent") == SHOWN
    assert browser.value("document.querySelectorAll('script').length") == 3
    assert browser.value("document.querySelectorAll('main a, main b, main img, main image[*|href^=http]').length") == 0
    if kind == "plane":
        said = point_at(browser, 1, 0)
        assert '<script>alert(1)</script><!--<img' in said
        assert '&lt;b&gt;' in said
        assert "<b>bold</b> %{x} $x$ \\u202e\\x1b[31m" in said
    if kind == "spacetime":
        assert point_at(browser, 0.5, 0).startswith("<script>alert(1)</script>the first token")
        assert point_at(browser, 2.5, 1).startswith("%{x}&lt;log-probability")


def test_what_the_tests_rule_out_is_seen(browser, tmp_path):
    """A page with a picture elsewhere, a script in a text and an error is told from one without."""
    path = tmp_path / "bad.html"
    path.write_text('<!DOCTYPE html><img src="http://127.0.0.1:9/leak.png"><script>alert(1)</script><script>x()</script>')
    browser.errors.clear()
    browser.open(path)
    assert "http://127.0.0.1:9/leak.png" in browser.requests
    assert any("alert" in str(error.get("type", "")) for error in browser.errors if isinstance(error, dict))
    assert any("ReferenceError" in str(error) for error in browser.errors)


def test_a_page_of_20_000_states_opens_about_as_fast_as_a_small_one(browser, show):
    """The script of plotly alone takes most of the time. A page with a mark for each state would take ten times it."""
    generator = np.random.default_rng(0)
    places = generator.normal(size=(20_000, 2)).cumsum(axis=0)
    states = [flat(k // 8, *place, k % 8, text=f"{k} " + 16 * "word ") for k, place in enumerate(places.tolist())]
    small = min(show(states[:80], "plane") for _ in range(2))
    assert show(states, "plane") < 6 * small
    assert browser.value("document.querySelectorAll('.scatterlayer path.point').length") == 5000 + 16
