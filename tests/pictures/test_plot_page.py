"""mlm-plot -o page.html: what the figure of a page says, that no text is more than a text, and sizes."""

import re
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import orjson
import pytest
from test_plot import lines, made, picture_of, read  # noqa: F401 - a fixture
from test_spacetime import WORDS, random_chain, trap
from test_spacetime import state as changed

from mlmglauber.pictures.kinds import KINDS, WITH_PAGE
from mlmglauber.pictures.page import chain_traces, stripe_traces
from mlmglauber.pictures.page.document import document
from mlmglauber.pictures.page.scales import ColorScale

pytestmark = pytest.mark.in_process
HOSTILE = ('</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>&lt;b&gt; <b>bold</b> %{x} $x$ '
           '\u202e\x1b[31m <a href="javascript:alert(3)">link</a> \u2028')
SHOWN = HOSTILE.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b").replace("\u2028", "\\u2028")
LARGEST = 15_000_000
"""Maximum number of bytes of a page of 20,000 states."""


class PageParts(HTMLParser):
    """The text of a page, its scripts by type, its tags, and its Content-Security-Policy."""

    def __init__(self, content):
        super().__init__()
        self.text, self.tags, self.scripts, self.policy, self.addresses = "", [], [], "", []
        self._inside = ""
        self.feed(content.decode())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        self.addresses += [values[name] for name in ("src", "href") if name in values]
        self._inside = tag
        if tag == "script":
            self.scripts.append([values.get("type"), ""])
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"]

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1][1] += data
        elif self._inside != "style":
            self.text += data

    @property
    def figure(self):
        return orjson.loads(self.scripts[0][1])


def page(records, kind=None):
    """(parts, notes) of the page of records."""
    picture = picture_of(records, kind)
    content, notes = document(picture, kind or "plane", picture.notes, "0")
    assert len(content) < LARGEST
    return PageParts(content), notes


def plain(text):
    """What a reader sees of a text of plotly, line by line."""
    return [unescape(re.sub(r"</?b>", "", line)) for line in text.split("<br>")]


def flat(step, x, y, chain=0, **fields):
    """A state in the plane."""
    return {"type": "state", "run": "r", "id": "7", "chain": chain, "step": step, "tau": 1.0, "n": 2, "embedder": "e",
            "embedding": [x, y], "text": f"text {step}", **fields}


def chains_of(figure):
    return [trace for trace in figure["data"] if trace.get("meta") == chain_traces.CHAIN]


def test_a_plane_has_a_trace_for_each_chain_whose_points_say_text_step_drift_and_basin():
    states = [flat(step, step, chain, chain, drift=step / 10, basin=["up", None][chain], tau=1.0)
              for chain in range(2) for step in range(5)]
    parts, notes = page([*states, trap(2, 3) | {"id": "7"}], "plane")
    first, second = chains_of(parts.figure)
    assert plain(first["hovertext"][3]) == ["id 7, chain 0", "step 3", "text 3", "drift 0.300", "basin up"]
    assert plain(second["hovertext"][3]) == ["id 7, chain 1", "step 3", "text 3", "drift 0.300"]
    assert (first["x"], first["y"], second["y"]) == ([0, 1, 2, 3, 4], [0] * 5, [1] * 5)
    assert first["marker"]["color"] == [0, 1, 2, 3, 4]
    assert parts.figure["stops"] == [0, 1, 2, 3, 4]
    assert 'type="range"' not in parts.text
    assert "input" in parts.tags
    assert not notes
    named = {trace["name"] for trace in parts.figure["data"] if trace.get("showlegend")}
    assert named == {"id 7, chain 0", "id 7, chain 1", "basin up", "trap"}
    marked = next(trace for trace in parts.figure["data"] if trace.get("name") == "trap")
    assert (marked["x"], plain(marked["hovertext"][0])) == ([3], ["trap of 2 steps", "steps 2 to 3"])
    ends = [trace for trace in parts.figure["data"] if trace.get("meta") == chain_traces.ENDS]
    assert [(trace["x"], trace["legendgroup"]) for trace in ends] == [([4, 0], "chain 0"), ([4, 0], "chain 1")]


def test_a_state_without_drift_basin_or_text_says_what_it_has():
    bare = [{key: value for key, value in flat(step, step, 0).items() if key != "text"} for step in range(2)]
    (trace,) = chains_of(page(bare, "plane")[0].figure)
    assert [plain(text) for text in trace["hovertext"]] == [["id 7", "step 0", ""], ["id 7", "step 1", ""]]


def test_equal_states_that_follow_each_other_are_one_mark_that_says_its_steps():
    places = [0, 0, 0, 1, 1, 0, 2, 2]
    states = [flat(step, x, 0, text=f"text {x}") for step, x in enumerate(places)]
    (trace,) = chains_of(page(states, "plane")[0].figure)
    assert trace["x"] == [0, 1, 0, 2, 2]
    assert trace["marker"]["color"] == [0, 3, 5, 6, 7]
    assert [plain(text)[1] for text in trace["hovertext"]] == ["steps 0 to 2", "steps 3 to 4", "step 5", "step 6",
                                                               "step 7"]


def test_many_states_are_coarsened_with_a_note_and_keep_first_and_last(monkeypatch):
    monkeypatch.setattr(chain_traces, "MARKS", 30)
    states = [flat(step, step, chain, chain) for chain in range(3) for step in range(40)]
    parts, notes = page(states, "plane")
    assert notes == ["plane: 30 of 120 states are drawn on the page, evenly chosen in each chain"]
    assert "Plane: 30 of 120 states" in parts.text
    for trace in chains_of(parts.figure):
        assert (len(trace["x"]), trace["x"][0], trace["x"][-1]) == (10, 0, 39)
        assert max(b - a for a, b in pairwise(trace["x"])) <= 5


def test_chains_without_room_in_the_legend_share_a_name():
    states = [flat(step, step, chain, chain) for chain in range(50) for step in range(2)]
    parts, notes = page(states, "plane")
    shown = [trace for trace in parts.figure["data"] if trace.get("showlegend")]
    assert len(shown) == chain_traces.NAMED
    assert shown[-1]["name"] == "other chains"
    group = [trace for trace in chains_of(parts.figure) if trace["legendgroup"] == shown[-1]["legendgroup"]]
    assert len(group) == 11
    assert notes == ["plane: the last 11 chains are chosen together in the legend of the page"]
    assert plain(group[-1]["hovertext"][0])[0] == "id 7, chain 49"


def told(figure):
    """(word, log-probability or None, since, site, first, last step) of each cell with its column, from the hover."""
    cells = next(trace for trace in figure["data"] if trace["type"] == "heatmap")
    found = {}
    for site, row in enumerate(cells["customdata"]):
        for word, drawn, since, where in row:
            match = re.fullmatch(r"site (\d+), steps? ([\d,]+)(?: to ([\d,]+))?", where)
            first, last = (int((part or match[2]).replace(",", "")) for part in match.group(2, 3))
            assert int(match[1]) == site
            logp = re.search(r"-[\d.e-]+", drawn)
            found[site, first, last] = (unescape(word), float(logp[0]) if logp else None, int(since.replace(",", "")))
    return found


@pytest.mark.parametrize(("steps", "cells", "width"), [(300, 10**6, 1), (2000, 10**6, 4), (2000, 999, 16)])
def test_every_cell_of_a_space_time_page_says_its_word_and_log_probability(monkeypatch, steps, cells, width):
    """A replay of the chain says what stands at the last step of each column."""
    monkeypatch.setattr("mlmglauber.pictures.page.figure.CELLS", cells)
    records = list(random_chain(steps, n=5))
    parts, notes = page(records, "spacetime")
    found = told(parts.figure)
    standing = [(WORDS[token], None, 0) for token in records[0]["ids"]]
    ends = {last: first for _, first, last in found}
    assert {last - first + 1 for last, first in ends.items() if last < steps} == {width}
    for record in records:
        if "site" in record:
            standing[record["site"]] = (WORDS[record["new"]], record["logp_new"], record["step"])
        for site in range(5) if record["step"] in ends else ():
            word, logp, since = found[site, ends[record["step"]], record["step"]]
            assert (word, since) == (standing[site][0], standing[site][2])
            assert logp == (None if standing[site][1] is None else pytest.approx(standing[site][1], rel=1e-3))
    assert sorted(ends)[-1] == steps
    assert len(found) == 5 * len(ends)
    assert notes == ([f"τ = 1, id 0: {width} steps make one column on the page"] if cells == 999 else [])


def test_marks_of_changes_stand_at_their_steps_and_words_in_their_stays():
    records = [changed(0, [0, 1, 2]), changed(3, [0, 4, 2], 1), changed(7, [5, 4, 2], 0), changed(10, [5, 4, 2], 2)]
    figure = page([*records, trap(3, 10)], "spacetime")[0].figure
    (shape,) = figure["layout"]["shapes"]
    drawn = re.findall(r"M([\d.]+),([\d.-]+)V([\d.-]+)", shape["path"])
    assert {(float(x), round((float(low) + float(high)) / 2)) for x, low, high in drawn} == {(3.0, 1), (7.0, 0)}
    (fitted,) = figure["fitted"]
    words = {(first, last, y, forms[0]) for first, last, y, forms, _ in fitted["texts"] if y >= 0}
    assert words == {(0, 7, 0, "tide"), (7, 11, 0, "clay"), (0, 3, 1, "moon"), (3, 11, 1, "wind"), (0, 11, 2, "rain")}
    brackets = next(trace for trace in figure["data"] if trace.get("name") == "trap")
    assert plain(brackets["hovertext"][0])[:2] == ["trap of 8 steps", "steps 3 to 10"]
    assert [forms for _, _, y, forms, _ in fitted["texts"] if y < 0] == [["8 steps", "8"]]
    assert figure["layout"]["yaxis"]["ticktext"] == ["tide", "moon", "rain"]
    assert figure["layout"]["yaxis2"]["ticktext"] == ["clay", "wind", "rain"]


def test_colours_of_a_space_time_page_are_those_of_the_picture():
    records = list(random_chain(200, n=4))
    ages = page(records, "spacetime")[0].figure
    (cells,) = (trace for trace in ages["data"] if trace["type"] == "heatmap")
    found = told(ages)
    for (site, _, last), (_, _, since) in found.items():
        assert cells["z"][site][last] == pytest.approx(np.log10(last + 1 - since), abs=1e-3)
    axis = ages["layout"]["coloraxis"]
    assert axis["cmin"] == 0
    assert axis["cmax"] == pytest.approx(max(map(max, cells["z"])), abs=1e-3)


def test_cells_of_the_phase_page_are_the_medians_of_the_summaries(made):  # noqa: F811
    records = read(made.folder / "phase")
    figure = page(records, "phase")[0].figure
    cells, missing = (trace for trace in figure["data"] if trace["type"] == "heatmap")
    taus, lengths = (sorted({record[name] for record in records if record["over"] == "group"}) for name in ("tau", "n"))
    count = 0
    for record in records:
        if record["over"] != "group":
            continue
        row, column = lengths.index(record["n"]), taus.index(record["tau"])
        value, hover = cells["z"][row][column], plain(cells["hovertext"][row][column])
        assert hover[:2] == [f"temperature τ: {record['tau']:g}", f"length n: {record['n']}"]
        if record["median"] is None:
            assert (value, missing["z"][row][column], hover[2]) == (None, 1, "over half did not meet")
        else:
            assert 10**value == pytest.approx(record["median_n_log_n"], rel=1e-4)
            assert missing["z"][row][column] is None
            assert hover[2] == f"median meeting time / (n ln n): {record['median_n_log_n']:.4g}"
        count += 1
    assert count == sum(map(len, cells["z"]))
    crossings = [record for record in records if record["over"] == "n" and record["crossover"] is not None]
    marks = [plain(text) for trace in figure["data"] if trace.get("mode") == "markers" for text in trace["hovertext"]]
    assert len(marks) == len(crossings)
    for record in crossings:
        name = [f"n = {record['n']}", f"median = {record['budget']:g} n ln n at τ, 95 %: {record['crossover']:.4g}"]
        assert any(lines[0] == name[0] and lines[1].startswith(name[1]) for lines in marks)


def test_marks_of_the_times_page_are_the_medians_of_the_summaries(made):  # noqa: F811
    summaries = read(made.folder / "phase")
    figure = page(summaries, "times")[0].figure
    hover = [plain(text) for trace in figure["data"] if trace.get("yaxis", "y") == "y"
             for text in trace.get("hovertext", ())]
    for record in summaries:
        if record["over"] == "group":
            name = f"n = {record['n']}, τ = {record['tau']:g}"
            if record["median"] is None:
                said = "median not reached, watched until"
            else:
                said = f"median, 95 %: {record['median']:.4g}"
            assert any(lines[0] == name and lines[1].startswith(said) for lines in hover)


def test_single_times_say_their_pair_and_are_grouped_with_their_length(made, monkeypatch):  # noqa: F811
    records = read(made.folder / "times")
    figure = page(records, "times")[0].figure
    single = [trace for trace in figure["data"] if trace["marker"].get("opacity") == 0.5]
    assert sum(len(trace["x"]) for trace in single) == len(records)
    texts = {tuple(plain(text)) for trace in single for text in trace["hovertext"]}
    met, censored = (next(record for record in records if record["censored"] is value) for value in (False, True))
    for record, steps in ((met, met["meeting"]), (censored, f"not within {censored['max_steps']} steps")):
        assert ("r/" + record["id"], f"n = {record['n']}, τ = {record['tau']:g}", f"meeting time (joint steps): {steps}"
                ) in texts
    groups = {trace["legendgroup"]: trace["name"] for trace in figure["data"] if trace.get("showlegend")}
    assert {groups[trace["legendgroup"]] for trace in single} == {"n = 4", "n = 8", "n = 16"}
    monkeypatch.setattr("mlmglauber.pictures.page.figure.MARKS", 50)
    parts, notes = page(records, "times")
    assert notes == ["1 in 3 of the 144 single values is drawn on the page"]
    single = [trace for trace in parts.figure["data"] if trace["marker"].get("opacity") == 0.5]
    assert 40 <= sum(len(trace["x"]) for trace in single) <= 50 + 2 * len(single)


def hostile():
    """Records of each kind that has a page in which every text is hostile."""
    plane = [flat(step, step, 0, run=HOSTILE, id=HOSTILE, text=HOSTILE, basin=HOSTILE) for step in range(3)]
    run = {"type": "run", "run": HOSTILE, "command": "mlm-sample", "model": HOSTILE}
    words = ["<script>alert(1)</script>", "</script>", "%{x}&lt;"]
    texts = [" ".join(words), " ".join([words[0], words[2], words[2]])]
    chain = [changed(0, [0, 1, 2]) | {"text": texts[0]}, changed(2, [0, 2, 2], 1) | {"text": texts[1]}]
    chain = [record | {"run": HOSTILE, "id": HOSTILE} for record in chain]
    pair = {"type": "pair", "run": HOSTILE, "id": HOSTILE, "pair": 0, "model": HOSTILE, "tau": 1.0, "n": 4,
            "coupling": HOSTILE, "start": HOSTILE, "lag": 0, "meeting": 5, "censored": False, "max_steps": 9}
    cell = {"type": "summary", "of": "pair", "over": "group", "model": HOSTILE, "coupling": HOSTILE, "start": HOSTILE,
            "lag": 0, "tau": 1.0, "n": 4, "median_n_log_n": 1.5, "median": 9}
    return {"plane": plane, "spacetime": [run, *chain], "times": [pair, pair | {"tau": 2.0}],
            "phase": [cell, cell | {"tau": 2.0, "median_n_log_n": None}]}


@pytest.mark.parametrize("kind", WITH_PAGE)
def test_hostile_texts_are_texts(kind):
    picture = picture_of(hostile()[kind], kind)._replace(title=HOSTILE)
    content, _ = document(picture, kind, [HOSTILE], "0")
    parts = PageParts(content)
    assert [kind for kind, _ in parts.scripts] == ["application/json", None, None]
    assert not {"img", "a", "b", "iframe"} & set(parts.tags)
    assert parts.addresses == ["data:,"]
    assert parts.text.count(SHOWN) >= 2  # the title and the note
    assert not set("<>&\u2028\u2029\u202e\x1b") & set(parts.scripts[0][1])
    text = "".join(strings(parts.figure))
    assert "alert(1)" in text
    for tag in re.findall(r"<[^>]*>?", text):
        assert tag in ("<b>", "</b>", "<br>", "<extra>", "</extra>"), tag


def strings(value):
    """All strings of a figure."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def test_words_of_hostile_tokens_and_texts_are_whole():
    figure = page(hostile()["spacetime"], "spacetime")[0].figure
    words = {word for word, _, _ in told(figure).values()}
    assert words == {"<script>alert(1)</script>", "</script>", "%{x}&lt;"}
    (trace,) = chains_of(page(hostile()["plane"], "plane")[0].figure)
    shown = "".join("".join(plain(trace["hovertext"][0])).split())
    assert shown.count("".join(SHOWN.removesuffix("\\u2028").split())) == 2  # its text and its basin


def test_a_page_allows_its_own_scripts_and_no_request(made):  # noqa: F811
    """The hashes of the policy are those of the two scripts, so that no other one runs."""
    from base64 import b64encode
    from hashlib import sha256

    assert made("mlm-plot --kind phase -o page.html phase").err == ""
    parts = PageParts((made.folder / "page.html").read_bytes())
    rules = dict(rule.strip().split(" ", 1) for rule in parts.policy.split(";"))
    allowed = [f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'"
               for kind, code in parts.scripts if not kind]
    assert rules == {"default-src": "'none'", "script-src": " ".join(allowed), "style-src": "'unsafe-inline'",
                     "img-src": "data: blob:"}


@pytest.mark.parametrize(("kind", "records"), [("plane", "plane"), ("spacetime", "spacetime"), ("times", "times"),
                                               ("phase", "phase")])
def test_the_command_writes_equal_pages_for_equal_records(made, kind, records):  # noqa: F811
    done = made(f"mlm-plot --kind {kind} -o one.html {records} && mlm-plot --kind {kind} -o two.HTML {records}")
    assert (done.status, done.out, done.err) == (0, b"", "")
    content = (made.folder / "one.html").read_bytes()
    assert (made.folder / "two.HTML").read_bytes() == content
    assert PageParts(content).figure["data"]


def test_title_and_panels_and_notes_are_taken(made):  # noqa: F811
    done = made("mlm-plot --kind times --panels 2 --title 'Cold & <hot>' -o page.html times")
    assert (done.status, done.err) == (0, "")
    parts = PageParts((made.folder / "page.html").read_bytes())
    assert parts.text.count("Cold & <hot>") == 2
    assert parts.figure["layout"]["yaxis"]["title"]["text"] == "time / (n ln n)"
    assert "yaxis3" not in parts.figure["layout"]
    refused = made("mlm-plot --kind times --panels 9 -o none.html times")
    assert (refused.status, "no panels are called '9'" in refused.err) == (2, True)
    (made.folder / "masked").write_bytes(lines([flat(0, 0, 0), flat(1, 1, 0), flat(2, 1, 0, masked=1)]))
    done = made("mlm-plot --kind plane -o page.html masked")
    assert done.err == "mlm-plot: 1 state with masked sites was left out\n"
    assert "1 state with masked sites was left out." in PageParts((made.folder / "page.html").read_bytes()).text


NAMES = "a page is made of the kinds phase, plane, spacetime and times"


@pytest.mark.parametrize(("line", "said"), [
    *((f"mlm-plot --kind {kind} -o x.html exact", f"x.html: {NAMES}, not of {kind}; use -o FILE.png")
      for kind in KINDS if kind not in WITH_PAGE),
    ("mlm-plot -o x.html exact", f"x.html: {NAMES}, and these records are drawn as exact; use -o FILE.png"),
    ("mlm-plot -o x.html drift", f"x.html: {NAMES}, and these records are drawn as drift; use -o FILE.png"),
    ("mlm-plot -o x.html --width 7 phase", "--style, --width and --dpi are for PNG, SVG and PDF"),
    ("mlm-plot -o x.html --dpi 300 phase", "--style, --width and --dpi are for PNG, SVG and PDF"),
    ("mlm-plot -o x.html --style paper phase", "--style, --width and --dpi are for PNG, SVG and PDF"),
    ("mlm-plot -o x.html --terminal phase", "x.html: --terminal draws with characters"),
    ("mlm-plot -o x.htm phase", "x.htm: the suffix is not that of a picture; use .png, .svg, .pdf, .html"),
])
def test_what_has_no_page_is_a_usage_error(made, line, said):  # noqa: F811
    done = made(line)
    assert (done.status, done.out) == (2, b"")
    assert said in done.err
    assert len([text for text in done.err.splitlines() if text.startswith("mlm-plot: ")]) == 1
    assert not (made.folder / "x.html").exists()


def test_records_of_several_kinds_make_the_one_that_has_a_page(made):  # noqa: F811
    """States with a drift and a place in the plane are drawn as drift or as plane."""
    (made.folder / "both").write_bytes(lines(flat(step, step, 0, drift=step / 9) for step in range(5)))
    assert "choose with --kind" in made("mlm-plot -o x.png both").err
    assert made("mlm-plot -o both.html both").status == 0
    assert chains_of(PageParts((made.folder / "both.html").read_bytes()).figure)


def test_without_plotly_the_error_names_the_extra(made):  # noqa: F811
    start = "import sys; sys.modules['{}'] = None; from mlmglauber.commands.plot.command import main; main()"
    done = made(f'python -c "{start.format("plotly")}" -o none.html phase')
    assert (done.status, done.out) == (1, b"")
    assert done.err == "mlm-plot: pages need plotly; pip install 'mlmglauber[html]'\n"
    done = made(f'python -c "{start.format("matplotlib")}" -o page.html phase')
    assert (done.status, done.err) == (0, "")


def test_nothing_heavy_is_imported_for_a_page(made):  # noqa: F811
    modules = made("python -X importtime -m mlmglauber.commands.plot.command -o page.html phase").err
    assert "plotly" in modules
    assert not any(f" {name}\n" in modules for name in ("torch", "matplotlib", "sklearn"))


def test_a_page_of_20_000_states_is_small_whatever_they_are():
    """Texts of 300 characters in the plane; six chains that change at every step; many sites."""
    generator = np.random.default_rng(0)
    places = generator.normal(size=(20_000, 2)).cumsum(axis=0)
    plane = [flat(k // 4, *xy, k % 4, text=f"{k} " + 40 * "a word ") for k, xy in enumerate(places.tolist())]
    notes = page(plane, "plane")[1]
    assert notes == ["plane: 5,000 of 20,000 states are drawn on the page, evenly chosen in each chain"]
    page([record | {"chain": k} for k in range(6) for record in random_chain(3333, n=20, seed=k)], "spacetime")
    few = list(random_chain(2000, n=500))
    assert page(few, "spacetime")[1] == ["τ = 1, id 0: 16 steps make one column on the page"]


def test_a_scale_whose_values_are_all_equal_has_two_ends():
    assert ColorScale("Blues", 3.0, 3.0, "u").ends == (2.5, 3.5)
    assert ColorScale("Blues", 10.0, 10.0, "u", log=True).ends == (0.5, 1.5)
    scale = ColorScale("Blues", 1.0, 100.0, "u", log=True)
    assert scale.axis()["colorbar"]["ticktext"] == ["1", "2", "5", "10", "20", "50", "100"]
    assert scale.is_dark(np.array([1.0, 100.0, np.nan])).tolist() == [False, True, False]


def test_stripes_are_halved_without_losing_a_change():
    from test_spacetime import stripes_of

    stripes = stripes_of(list(random_chain(100, n=3)))[0]
    while stripes.values.shape[1] > 2:
        half = stripe_traces._halved(stripes)
        columns = half.values.shape[1]
        assert columns == -(-stripes.values.shape[1] // 2)
        assert (half.edges[0], half.edges[-1], len(half.edges)) == (stripes.edges[0], stripes.edges[-1], columns + 1)
        for k in range(columns):
            pair = slice(2 * k, 2 * k + 2)
            assert half.changed[:, k].tolist() == stripes.changed[:, pair].any(axis=1).tolist()
            assert half.standing.tokens[:, k].tolist() == stripes.standing.tokens[:, pair][:, -1].tolist()
        stripes = half
