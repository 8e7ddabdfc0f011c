"""--dry-run: what it says of a run lies around what the run does, and it writes nothing else."""

import re
from statistics import mean

import orjson
import pytest
from in_process import answer

from mlmglauber.commands.shared import dry_chains, dry_run
from mlmglauber.commands.shared.dry_run import MARGIN, Bounds, Timing
from mlmglauber.commands.shared.line_size import NONE, Size, line_size
from mlmglauber.commands.shared.resumable import Cost

pytestmark = [pytest.mark.in_process, pytest.mark.usefixtures("tables")]
TEXTS = b"a b\nc c\na a\nb c\nc a\nb b\n"
ENGLISH = b"the cat sat on the mat\nrain fell on the old town\nthe king lost\n"
MIXED = (b'{"type":"run","run":"12345678","command":"other"}\n'
         b'{"id":"x\\u00e9","text":"the cat sat","source":{"a":[1.5,null]}}\n'
         b'{"type":"summary","of":"nothing"}\n'
         b'{"id":7,"text":"she sold her car last week"}\n')


@pytest.fixture(autouse=True)
def short_trial(monkeypatch):
    """Trials of three rounds or batches: what is tested here does not depend on their length."""
    for module in (dry_run, dry_chains):
        monkeypatch.setattr(module, "SECONDS", 0.01)


def bounds_of(done):
    """The rows of an estimate: name -> (at least, at most)."""
    rows = re.findall(r"│ (\w+) +│ +(\S+) │ +(\S+) │", done.out.decode())
    return {name: tuple(_number(part) for part in ends) for name, *ends in rows}


def _number(text):
    *larger, seconds = text.replace(",", "").split(":")
    return float(seconds) + sum(60 ** (len(larger) - k) * float(part) for k, part in enumerate(larger))


def estimate(command, content, folder):
    """The bounds of a command on an input, after the checks that hold for every estimate."""
    before = {path.name for path in folder.iterdir()}
    done = answer(f"{command} --dry-run -o made", content, folder)
    assert (done.status, done.err) == (0, "")
    assert {path.name for path in folder.iterdir()} == before
    assert done.out.startswith(b"Estimate of mlm-")
    bounds = bounds_of(done)
    assert all(least <= most for least, most in bounds.values()), bounds
    return bounds


def check(command, content, folder):
    """The bounds of a command, and the run that follows, whose records and bytes lie between them."""
    bounds, done = estimate(command, content, folder), answer(command, content, folder)
    assert done.status == 0
    for name, found in (("records", done.out.count(b"\n")), ("bytes", len(done.out))):
        least, most = bounds[name]
        assert least <= found <= most, (name, bounds, found)
    return bounds, done


SAMPLE = "sample -m a.json --seed 1 --tau 0.5,2 --chains 3"


@pytest.mark.parametrize("options", ["--steps 40", "--sweeps 11 --every 3 --burn-in 2", "--steps 30 --every 1",
                                     "--steps 30 --pll 7 --start random", "--steps 0", "--steps 20 --engine plain",
                                     "--steps 25 --every 1 --pll 1"])
def test_states_are_counted_exactly(tmp_path, options):
    bounds, done = check(f"{SAMPLE} {options}", TEXTS, tmp_path)
    records = bounds["records"]
    assert records == (len(done.records),) * 2
    assert (bounds["texts"], bounds["chains"]) == ((6, 6), (36, 36))


def test_texts_of_several_lengths(tmp_path):
    bounds, done = check("sample --sweeps 2 --every 4", ENGLISH, tmp_path)
    assert (bounds["texts"], bounds["steps"]) == ((3, 3), (30, 30))
    assert bounds["records"] == (len(done.records),) * 2


def test_the_steps_are_those_of_all_chains(tmp_path):
    assert estimate(f"{SAMPLE} --steps 40", TEXTS, tmp_path)["steps"] == (6 * 6 * 40,) * 2
    assert estimate(f"{SAMPLE} --sweeps 5", TEXTS, tmp_path)["steps"] == (5 * 6 * 6 * 2,) * 2


def test_states_that_change_are_bounded(tmp_path):
    bounds, done = check(f"{SAMPLE} --steps 50 --on-change", TEXTS, tmp_path)
    assert bounds["records"] == (2 + 36 * 2, 2 + 36 * 51)
    assert 2 + 36 * 2 < len(done.records) < 2 + 36 * 51


@pytest.mark.parametrize("options", ["--sweeps 3 --tau 3", "--sweeps 2 --start mask", "--steps 12 --every 1 --freeze 1",
                                     "--steps 9 --on-change --allow cat,dog,telecommunications"])
def test_states_of_a_neural_model(tmp_path, options):
    _, done = check(f"sample --seed 1 {options}", MIXED, tmp_path)
    assert {record["type"] for record in done.records} == {"run", "summary", "state"}


def test_shards_count_their_own_part(tmp_path):
    parts = [estimate(f"{SAMPLE} --steps 4 --shard {k}/2", TEXTS, tmp_path) for k in (1, 2)]
    assert [part["texts"][0] for part in parts] == [3, 3]


@pytest.mark.parametrize(("options", "pairs"), [
    ("", 3), ("--tau 0.3,1 --max-steps 60", 6), ("--start perturb:1 --pairs 2", 12),
    ("--lag 5 --pairs 2", 12), ("--lag 5 --max-steps 3", 6), ("--start burned --burn-in 7", 6),
    ("--max-steps 20 --every 6", 3), ("--coupling race --replicas 3 --max-steps 9 --every 4 --start random", 6)])
def test_pairs_are_counted_exactly(tmp_path, options, pairs):
    bounds, done = check(f"couple -m a.json --seed 1 {options}".strip(), TEXTS, tmp_path)
    assert bounds["pairs"] == (pairs, pairs)
    assert bounds["records"] == (len(done.records),) * 2
    assert len(done.of("pair")) == pairs
    least, most = bounds["steps"]
    alone = 5 if "--lag" in options else 14 if "--burn-in" in options else 0
    assert least <= sum(alone + _joint(pair, "--every" in options) for pair in done.of("pair")) <= most


def _joint(pair, to_the_end):
    """The joint steps that a pair has made."""
    return pair["max_steps"] if pair["censored"] or to_the_end else pair["meeting"] - pair["lag"]


def test_pairs_of_a_neural_model(tmp_path):
    check("couple --seed 1 --tau 2 --max-steps 30 --every 10", b"the cat sat\nthe dog ran\n", tmp_path)


@pytest.mark.parametrize("options", ["", "--draw uniform --rectangles 3", "--draw top --no-noise",
                                     "--site cat --to dog --site sat --to ran", "--gap 1 --rectangles 600"])
def test_rectangles_are_counted_exactly(tmp_path, options):
    model = "-m a.json" if "--rectangles 600" in options else "--rectangles 4" if "--rec" not in options else ""
    content = TEXTS if "-m" in model else MIXED
    if "--site" in options:
        content = b"the cat sat\na cat sat there\n"
    bounds, done = check(f"rect --seed 1 {model} {options}".replace("  ", " ").strip(), content, tmp_path)
    assert bounds["rectangles"] == (len(done.of("rectangle")),) * 2
    assert bounds["records"] == (len(done.records),) * 2


def test_summaries_have_no_bounds_of_records(tmp_path):
    bounds = estimate("rect -m a.json --seed 1 --summary", b"a b\na c\n", tmp_path)
    assert bounds["rectangles"] == (40, 40)
    assert "bytes" not in bounds
    assert "bytes" not in estimate("influence -m a.json --seed 1 --summary", b"a b\na c\n", tmp_path)


@pytest.mark.parametrize("options", ["-m a.json", "-m a.json --tau 0.5,1,2 --matrix", "-m a.json --draw uniform",
                                     "--draw top --freeze 1", "--draw worst --tau 0.1,3 --replacements 3 --matrix"])
def test_influences_are_counted(tmp_path, options):
    content = TEXTS if "-m" in options else ENGLISH
    bounds, done = check(f"influence --seed 1 {options}", content, tmp_path)
    assert bounds["records"] == (len(done.records),) * 2
    least, most = bounds["conditionals"]
    taus = options.count(",") + 1 if "--tau" in options else 1
    computed = sum(record["changes"] * (len(record["sites"]) - 1) + len(record["sites"])
                   for record in done.of("influence")) / taus
    assert least <= computed <= most


@pytest.mark.parametrize("options", ["", " --encoding base64", " --dims 5 --normalize", " --pca 2"])
def test_embeddings_are_counted_exactly(tmp_path, options):
    content = MIXED + ENGLISH * 3 + b'{"text":"%s"}\n' % (b"long " * 400)
    bounds, done = check(f"embed{options}", content, tmp_path)
    assert bounds["texts"] == (6, 12)
    assert bounds["records"] == (len(done.records),) * 2


def test_a_file_to_resume_is_neither_made_nor_changed(tmp_path):
    for command in ("sample -m a.json --steps 9", "couple -m a.json --max-steps 9"):
        done = answer(f"{command} --resume run --dry-run", TEXTS, tmp_path)
        assert done.err == f"mlm-{command.split()[0]}: --dry-run counts the whole run, also what run holds already\n"
        assert not (tmp_path / "run").exists()
        (tmp_path / "run").write_bytes(b"torn")
        assert answer(f"{command} --resume run --dry-run", TEXTS, tmp_path).status == 0
        assert (tmp_path / "run").read_bytes() == b"torn"
        (tmp_path / "run").unlink()


def test_what_is_wrong_with_the_input_is_reported_as_in_the_run(tmp_path):
    bad = b'a b\n{"text":5}\nc c\n'
    for name in ("sample", "couple", "rect", "influence"):
        done, run = (answer(f"{name} -m a.json --seed 1{more}", bad, tmp_path) for more in (" --dry-run", ""))
        assert (done.status, done.err) == (run.status, run.err) == (65, run.err)
        assert b"Estimate" in done.out
    assert answer("embed --dry-run", bad, tmp_path).err == answer("embed", bad, tmp_path).err


@pytest.mark.parametrize("command", ["sample -m a.json", "couple -m a.json", "rect -m a.json", "influence -m a.json",
                                     "embed"])
def test_an_input_without_work_has_no_estimate(tmp_path, command):
    done = answer(f"{command} --dry-run", b"", tmp_path)
    assert (done.status, done.out, done.err) == (0, b"", "")
    content = b'{"type":"summary","of":"nothing"}\n'
    done, run = (answer(f"{command}{more}", content, tmp_path) for more in (" --dry-run", ""))
    assert (done.out, done.err, done.status) == (b"", run.err, run.status)


def test_nothing_is_said_of_the_ends_of_the_trial(tmp_path):
    """mlm-sample counts chains that end with masked sites; the few chains of a trial are not those of the run."""
    done = answer("sample --start mask --steps 1 --dry-run", ENGLISH, tmp_path)
    assert (done.status, done.err) == (0, "")
    assert "masked" in answer("sample --start mask --steps 1", ENGLISH, tmp_path).err


def test_usage(tmp_path):
    for command, word in (("sample -m a.json --dry-run --dask local:2", "--dask"), ("rect --path --dry-run", "--path"),
                          ("couple --summary --dry-run", "--summary")):
        done = answer(command, TEXTS, tmp_path)
        assert (done.status, word in done.err) == (2, True)


def test_the_estimate_as_csv(tmp_path):
    done = answer("sample -m a.json --seed 1 --steps 3 --dry-run --csv", TEXTS, tmp_path)
    header, *rows = done.out.decode().splitlines()
    assert header == "quantity,at least,at most,how"
    assert "steps,18,18," in rows


def test_the_trial_gives_the_bounds_of_the_time():
    """With times that are known: batches of 1, 2 and 4 seconds a unit, of which the first warms the model up."""
    class Clock:
        began = 0.0

    timing = Timing(Clock())
    timing._start, timing._batches = 10.0, [(1.0, 8.0), (2.0, 8.0), (4.0, 8.0)]
    row = timing.bounds({8: 10}, {8: 20}, "unit", more=5)
    assert row[:3] == Bounds("seconds", (10 + 10 * 2) / MARGIN, (10 + 20 * 4 + 5) * MARGIN)[:3]
    longer = timing.bounds({16: 10}, {16: 20}, "unit")
    assert longer[1:3] == ((10 + 10 * 2) / MARGIN, (10 + 20 * 4 * 2) * MARGIN)
    shorter = timing.bounds({4: 10}, {4: 20}, "unit")
    assert shorter[1:3] == ((10 + 10 * 2 / 2) / MARGIN, (10 + 20 * 4) * MARGIN)


def test_the_time_of_rounds():
    """Rounds of r jobs wait 0.1 + 0.01 r seconds, and a step of a job takes 0.001 s beside that."""
    trial = dry_chains._Trial(start=3.0, rounds=9, first=4, jobs=4, length=8, alone=0.11, together=0.14, own=0.001,
                              pace=1.0, planned=0.0, speed=0)
    costs = [Cost(8, 1, depth, (depth, depth), (1, 1), NONE) for depth in (100, 50, 50, 50)]
    real = 3 + 0.1 * 100 + (0.01 + 0.001) * 250
    assert trial.seconds(costs) == pytest.approx(MARGIN * real)
    real = 3 + 0.1 * 150 + (0.01 + 0.001) * 500  # at best: four jobs are in work as long as there are others
    assert MARGIN * real <= trial.seconds(costs * 2) <= 2 * MARGIN * real
    assert trial._replace(pace=0.5, start=0.0).seconds(costs) == pytest.approx(2 * MARGIN * (0.1 * 100 + 0.011 * 250))
    longer = [cost._replace(n=24) for cost in costs]
    assert trial._replace(start=0.0).seconds(longer) == pytest.approx(3 * MARGIN * (0.1 * 100 + 0.011 * 250))


@pytest.mark.parametrize("record", [
    {"a": 1, "b": "x\u20ac\n", "c": [1, 2, 3], "d": {}, "e": [], "f": None, "g": True, "h": {"i": [[], ["y"]]}}])
def test_the_size_of_a_line_without_floats_is_exact(record):
    size = len(orjson.dumps(record)) + 1
    assert line_size(record) == Size(size, size)


def test_the_size_of_a_line_bounds_its_floats():
    values = [0.0, -0.0, 1.5, 1e-300, -2.2250738585072014e-308, 1.7976931348623157e308, 1 / 3, -1e16]
    size = line_size({"x": [0.0] * len(values)})
    assert size.least <= len(orjson.dumps({"x": values})) + 1 <= size.most
    each = [len(orjson.dumps(value)) for value in values]
    assert (min(each), max(each), size.most - size.least) == (3, 24, 21 * len(values))
    assert mean(each) > 3
