"""mlm-report: one page on all records, which shows every text and runs none."""

import os
import shutil
import subprocess
import threading
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
import pytest
from conftest import ROOT, quick_shell
from same_records import assert_same_records

from mlmglauber.commands.report.command_lines import command_line, grouped
from mlmglauber.commands.report.texts import BestOf

pytestmark = pytest.mark.in_process

PASSAGES = f"head -n 4 {ROOT}/examples/passages.jsonl"
HOSTILE = '<script>document.title="run"</script><img src=x onerror=alert(1)>&amp; \u202e\x1b[31m \'"$(id)'
RUN = {"type": "run", "schema": "mlm/1", "run": "r", "command": "mlm-sample", "seed": 1, "tau": 1.0, "model": "m",
       "hash": "h", "dtype": "float32", "precision": "float64", "device": "cpu", "versions": {"mlmglauber": "1"},
       "options": {"steps": 9, "every": 1, "allow": "a b,c", "freeze": [0, 2], "energy": 3, "chains": 1}}
NEVER_CLOSED = {"meta", "link", "img", "br"}
PICTURES = 4
"""Of the experiment: times and phase, rectangles, residence."""


class Page(HTMLParser):
    """What a browser would see: texts, headings, addresses, and whether all elements are closed."""

    def __init__(self, content):
        super().__init__()
        self.text, self.open, self.tags, self.addresses, self.ids, self.handlers = "", [], [], [], [], []
        self.feed(content.decode())
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action", "data")]
        self.ids += [value for name, value in attrs if name == "id"]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in NEVER_CLOSED:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def lines(*records):
    return b"".join(orjson.dumps(record) + b"\n" for record in records)


def state(step, **fields):
    return {"type": "state", "run": "r", "id": "t", "chain": 0, "step": step, "tau": 1.0, "n": 2,
            "text": f"text {step}", "ids": [1, step], **fields}


def trap(text, residence, **fields):
    return {"type": "trap", "run": "r", "id": "t", "chain": 0, "tau": 0.5, "n": 2, "text": text, "ids": [1, 2],
            "first": 0, "last": residence, "residence": residence, "censored": False, "radius": 1, "min_steps": 3,
            "kind": "perfect", "margin": 0.25, "escape": 0.1, "expected": 10.0, **fields}


def report(sh, *records, options=""):
    done = sh(f"mlm-report {options}", stdin=lines(*records))
    return done, Page(done.out) if done.out else None


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """The page on a small experiment with tiny-en, and the files of its records."""
    sh = quick_shell(tmp_path_factory.mktemp("experiment"))
    sh(f"{PASSAGES} | mlm-couple -t 1,3 --length 4 --horizon 2 --seed 1 > pairs.jsonl")
    sh(f"{PASSAGES} | mlm-sample -t 0.4 --length 8 --steps 300 --on-change --pll 50 --seed 1 > states.jsonl")
    sh("mlm-traps --min-steps 20 states.jsonl > traps.jsonl")
    sh("mlm-traps --min-steps 20 --summary states.jsonl > traps-summary.jsonl")
    sh(f"{PASSAGES} | mlm-rect --length 8 --rectangles 3 --seed 1 > rectangles.jsonl")
    done = sh("mlm-report -o page.html pairs.jsonl states.jsonl traps.jsonl traps-summary.jsonl rectangles.jsonl")
    assert (done.status, done.out, done.err) == (0, b"", "")
    return sh, (sh.folder / "page.html").read_bytes()


def test_a_page_holds_tables_pictures_texts_warnings_and_command_lines(experiment):
    sh, content = experiment
    page = Page(content)
    assert page.ids == ["warnings", "runs", "chains", "coupling", "rectangles", "traps"]
    assert {address[1:] for address in page.addresses if address.startswith("#")} == set(page.ids)
    assert page.tags.count("img") == PICTURES
    assert page.tags.count("h1") == 1
    for part in ("Meeting times, steps together", "|delta| of rectangles, nats", "Traps by temperature and length",
                 "pairs of chains were censored", "The longest traps", "The likeliest texts", "The largest rectangles",
                 "mlm-couple --tau 1,3 --length 4 --start pair --horizon 2 --seed 1 --model tiny-en < TEXTS",
                 "mlm-sample --tau 0.4 --steps 300 --on-change --pll 50 --length 8 --seed 1 --model tiny-en < TEXTS",
                 "mlm-traps --min-steps 20 --model tiny-en < STATES", "mlm-couple --summary --table pairs.jsonl",
                 "mlm-couple --summary pairs.jsonl | mlm-plot --kind phase -o phase.png",
                 "mlm-plot --kind residence -o residence.png traps.jsonl"):
        assert part in page.text, part
    assert sh("mlm-report pairs.jsonl states.jsonl traps.jsonl traps-summary.jsonl rectangles.jsonl").out == content


def test_the_tables_are_those_of_the_commands(experiment):
    sh, content = experiment
    text = Page(content).text
    for line in ("mlm-couple --summary --csv pairs.jsonl", "mlm-rect --summary --csv rectangles.jsonl"):
        assert sh(line).status == 0
    medians = [record["median"] for record in sh("mlm-couple --summary pairs.jsonl").records
               if record["over"] == "group" and record["median"] is not None]
    mean = next(record["mean"] for record in sh("mlm-rect --summary rectangles.jsonl").records
                if record.get("over") == "model")
    assert medians
    assert all(f"{median:.0f} [" in text for median in medians)
    assert f"{mean:.3f} [" in text


def test_the_command_lines_of_a_page_make_the_same_chains(experiment):
    sh, content = experiment
    line = next(line for line in Page(content).text.splitlines() if line.startswith("mlm-sample --"))
    again = sh(f"{PASSAGES} > TEXTS; {line}")
    assert_same_records(again.out, (sh.folder / "states.jsonl").read_bytes())


def test_a_page_asks_for_nothing_and_runs_nothing(experiment):
    _, content = experiment
    page = Page(content)
    assert not {"script", "iframe", "object", "form", "base"} & set(page.tags)
    assert not page.handlers
    assert all(address.startswith(("#", "data:")) for address in page.addresses)
    assert b"url(" not in content.split(b"</style>")[0]
    assert b"default-src 'none'" in content


def test_hostile_texts_are_shown(sh):
    states = [state(step, drift=step / 4, pll=-1.0 * step, run=HOSTILE, id=HOSTILE, text=HOSTILE) for step in range(5)]
    rectangle = {"type": "rectangle", "run": HOSTILE, "id": HOSTILE, "model": HOSTILE, "tau": 1.0, "i": 0, "j": 1,
                 "delta": 0.5, "noise": 0.0, "words": [HOSTILE] * 4, "text": HOSTILE}
    run = RUN | {"run": HOSTILE, "model": HOSTILE, "versions": {HOSTILE: HOSTILE}, "options": {"allow": HOSTILE}}
    done, page = report(sh, run, *states, trap(HOSTILE, 9, run=HOSTILE, kind=HOSTILE), rectangle,
                        options="--title '</title><script>'")
    assert (done.status, done.err) == (0, "")
    assert "script" not in page.tags
    assert not page.handlers
    assert all(c.isprintable() or c == "\n" for c in done.out.decode())
    assert page.text.count('<script>document.title="run"</script><img src=x onerror=alert(1)>&amp; \\u202e') > 10
    assert "</title><script>" in page.text


def test_telling_texts_are_the_right_ones(sh):
    states = [state(step, drift=drift, pll=pll) for step, drift, pll in ((0, 0.0, -9.0), (3, 0.45, -1.0),
                                                                           (5, 0.7, -4.0), (9, 0.6, -2.0))]
    _, page = report(sh, RUN, *states, *(trap(f"trap {k}", k) for k in range(5, 25)), trap("trap 24", 7),
                     options="--texts 3")
    for part in ("start, step 0, drift 0.00text 0", "first hit, step 5, drift 0.70text 5",
                 "end, step 9, drift 0.60text 9", "-0.50 nats a token", "-4.50 nats a token",
                 "24 steps, tau 0.5, perfect"):
        assert part in page.text.replace("\n", ""), part
    shown = [text for text in (f"trap {k}" for k in range(5, 25)) if text in page.text]
    assert shown == ["trap 22", "trap 23", "trap 24"]


def test_the_best_are_kept_once():
    best = BestOf(2)
    for value, text in ((1, "a"), (3, "b"), (2, "b"), (4, "b"), (2, "c"), (float("nan"), "d"), (None, "e")):
        best.take(value, text, {"value": value})
    assert [record["value"] for record in best.records] == [4, 2]


def test_warnings(sh):
    other = RUN | {"run": "s", "model": "other", "versions": {"mlmglauber": "2"}}
    weights = RUN | {"run": "u", "hash": "another"}
    moving = [state(step, drift=0.1 * (step % 2), id=f"{k}", unknown=1, truncated=True) for k in range(2)
              for step in range(40)]
    done, page = report(sh, RUN, other, weights, *moving, state(50, masked=1), state(0, run="nobody"),
                        trap("x", 9, censored=True), {"type": "mine"}, {"type": "pair"}, [1])
    assert done.status == 65
    assert [line.split(": ")[1] for line in done.err.splitlines()] == ["stdin:88", "stdin:89"]
    for part in ("2 bad records were left out", "2 versions of mlmglauber: 1, 2", "2 models: m, other",
                 "different weights in different runs: h, another", "1 state with masked sites was left out",
                 "80 texts were longer than the embedder takes", "80 states had tokens that are unknown",
                 "No run record came before 1 state", "1 of 1 trap was cut off", "1 record of other programs",
                 "never reached the drift threshold: 2 of 2 at tau 1, n 2, drift 0.5", "R-hat is not known"):
        assert part in page.text, part


def test_r_hat_and_frozen_chains_are_told(sh):
    generator = iter(range(1, 10**6))
    embedded = [state(step, id=f"{k}", embedder="e", embedding=[1.0, k + 0.01 * (next(generator) * 7 % 10) * (k < 3)])
                for k in range(4) for step in range(40)]
    (sh.folder / "e").write_bytes(lines(RUN, *embedded))
    page = Page(sh("(cat e; mlm-drift --summary e) | mlm-report").out)
    assert "R-hat is above 1.05 in 1 of 1 group" in page.text
    assert "Frozen chains" in page.text
    assert "1 of 4 at tau 1, n 2" in page.text


def test_states_without_a_summary_name_the_command_that_makes_it(sh):
    _, page = report(sh, RUN, *(state(step, basin="food", embedding=[1.0, step]) for step in range(3)), trap("x", 9))
    for part in ("mlm-drift --summary makes its table", "need mlm-basins --summary",
                 "no table of traps by temperature"):
        assert part in page.text, part


def test_an_empty_input_is_an_error_of_one_line(sh):
    for stdin, status in ((b"", 1), (b"\n \n", 1), (b'{"text":"a"}\n', 65), (b"{bad\n", 65)):
        done = sh("mlm-report -o page.html", stdin=stdin)
        assert (done.status, done.out) == (status, b"")
        assert done.err.splitlines()[-1] == ("mlm-report: the input has no records of the suite; give what its other "
                                             "commands write")
        assert len(done.err.splitlines()) == 1 + stdin.startswith(b"{bad")
        assert not (sh.folder / "page.html").exists()
    assert sh("mlm-report gone").status == 66
    strict = sh("mlm-report --strict -o page.html", stdin=lines(RUN) + b"{bad\n")
    assert strict.status == 65
    assert not (sh.folder / "page.html").exists()


FIELDS = [RUN, state(1, drift=0.5, pll=-1.0), trap("x", 9), trap("x", 9, found="cycle", basin_count=2)]


@pytest.mark.parametrize("record", FIELDS, ids=["run", "state", "trap", "fixed point"])
def test_a_record_with_a_wrong_field_is_a_bad_record(sh, record):
    wrong = [{key: value for key, value in record.items() if key != name} for name in record]
    wrong += [record | {name: value} for name in record for value in (None, True, -1, 1e308, "x", [], [1], {}, "")]
    done = sh("mlm-report", stdin=lines(*(each | {"chain": k} if "chain" in each and each["chain"] == 0 else each
                                          for k, each in enumerate(wrong))))
    assert done.status == 65
    assert "Traceback" not in done.err
    assert all(line.startswith("mlm-report: stdin:") for line in done.err.splitlines())
    Page(done.out)


def test_command_lines_name_options_as_they_are_typed():
    first, second = RUN, RUN | {"run": "s", "tau": 0.5}
    assert [len(group) for group in grouped([first, second, RUN | {"seed": 2}])] == [2, 1]
    line = ("mlm-sample --tau 1,0.5 --steps 9 --every 1 --pll 3 --freeze 0,2 --allow 'a b,c' --seed 1 --model m "
            "< TEXTS")
    assert sorted(command_line([first, second]).split(" --")) == sorted(line.split(" --"))
    assert command_line([RUN | {"command": "rm"}]) is None
    traps = {"command": "mlm-traps", "model": "m", "options": {"find": True, "certify": [], "max_sweeps": 7}}
    assert command_line([traps]) == "mlm-traps find --max-sweeps 7 --model m < TEXTS"
    certify = traps | {"options": {"find": False, "certify": ["!", "it's"], "scan_tokens": None}}
    assert command_line([certify]) == """mlm-traps certify --token '!' --token 'it'"'"'s' --model m < TEXTS"""
    rect = {"command": "mlm-rect", "model": "-m", "dtype": "bfloat16", "precision": "float64",
            "options": {"noise": False, "site": []}}
    assert command_line([rect]) == "mlm-rect --no-noise --model=-m --dtype bfloat16 < TEXTS"


def test_a_terminal_gets_no_page_and_help_is_quick(real_sh):
    done = real_sh("script -qec 'mlm-report' /dev/null < /dev/null" if shutil.which("script") else "exit 2")
    assert done.status == 2
    shown = real_sh("mlm-report --help")
    assert (shown.status, shown.err) == (0, "")
    modules = real_sh("python -X importtime -m mlmglauber.commands.report.command --help").err
    assert not any(f" {name}\n" in modules for name in ("torch", "numpy", "scipy", "rich", "jinja2"))


def test_a_page_is_made_without_matplotlib(sh, monkeypatch):
    monkeypatch.setattr("mlmglauber.commands.report.pictures.find_spec", lambda name: None)
    _, page = report(sh, RUN, *(state(step, drift=step / 9) for step in range(9)))
    assert "img" not in page.tags
    assert "threshold 0.5" in page.text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_shows_the_page_without_a_request_or_an_error(experiment, tmp_path):
    """Every address leads to a server of the test, which sees what is asked for; a page with a picture elsewhere shows
    that it would."""
    _, content = experiment
    leaking = content.replace(b"<h1>", b'<img src="http://example.org/leak.png"><h1>')
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            pages = {"/page.html": content, "/leaking.html": leaking.replace(b"Content-Security-Policy", b"x")}
            self.wfile.write(pages.get(self.path, b""))

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        shown = {name: _browse(server.server_port, name, tmp_path) for name in ("page.html", "leaking.html")}
        server.shutdown()
    assert asked == ["/page.html", "/leaking.html", "/leak.png"]
    assert b"CONSOLE" not in shown["page.html"].stderr
    assert Page(shown["page.html"].stdout).tags.count("img") == PICTURES


def _browse(port, name, folder):
    """What chromium makes of a page; all hosts are the server at the port."""
    options = ["headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
               "disable-component-update", "disable-sync", "disable-features=NetworkTimeServiceQuerying",
               "enable-logging=stderr", f"user-data-dir={folder / name}", "dump-dom",
               f"host-resolver-rules=MAP * 127.0.0.1:{port}"]
    return subprocess.run(["chromium", *(f"--{option}" for option in options), f"http://localhost/{name}"],
                          capture_output=True, timeout=120, check=True, env={**os.environ, "HOME": str(folder)})
