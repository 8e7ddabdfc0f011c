"""The functions for Python give what the commands give at the same seed, print nothing and name no option."""

import shutil
import subprocess
import sys

import numpy as np
import orjson
import pytest
from conftest import ROOT
from in_process import answer

import mlmglauber as mg
from mlmglauber.stream.errors import InputError, ModelError

TEXT = "a b a"


@pytest.fixture
def folder(tmp_path):
    shutil.copy(ROOT / "tests" / "tables" / "inc.json", tmp_path / "inc.json")
    return tmp_path


@pytest.fixture
def model(folder):
    return mg.open_model(str(folder / "inc.json"))


@pytest.mark.parametrize("options", [{}, {"tau": 0.3, "freeze": [1]}, {"tau": 2.0, "scan": "systematic"},
                                     {"burn_in": 7}, {"every": None}, {"allow": ["a", "b"], "chains": 3},
                                     {"schedule": "2@20,1>0.3@30,0.3"}, {"ban": ["c"]},
                                     {"allow": {0: ["a", "c"], 2: ["b"]}, "tau": 2.0}])
def test_a_seed_gives_the_chain_of_the_command(folder, model, options):
    flags = {"tau": "--tau", "scan": "--scan", "burn_in": "--burn-in", "chains": "--chains",
             "schedule": "--schedule"}
    line = " ".join(f"{flags[name]} {value}" for name, value in options.items() if name in flags)
    line += " --on-change" if "every" in options else " --every 1"
    line += " --freeze 1" if "freeze" in options else ""
    allow = options.get("allow")
    line += " --allow a,b" if isinstance(allow, list) else ""
    line += " --ban-file words" if "ban" in options else ""
    (folder / "words").write_text("c\n")
    command = " ".join(f"sample -m inc.json --seed 5 --steps 60 {line}".split())
    text = {"text": TEXT} | ({"allow": {str(site): allow[site] for site in allow}} if isinstance(allow, dict) else {})
    records = answer(command, orjson.dumps(text), folder).of("state")
    states = list(mg.sample(model, TEXT, steps=60, seed=5, **options))
    assert len(states) == len(records) > 2
    for state, record in zip(states, records, strict=True):
        assert (state.step, state.chain, state.ids.tolist(), state.text) == tuple(
            record[key] for key in ("step", "chain", "ids", "text"))
        assert (state.site, state.old, state.new) == tuple(record.get(key) for key in ("site", "old", "new"))


def test_a_chain_of_tiny_en_is_the_command_s_too(tmp_path):
    text = "the cat sat on the mat"
    records = answer("sample --seed 1 --tau 0.5 --steps 12 --every 1", text.encode(), tmp_path).of("state")
    states = mg.states_to_arrays(mg.sample(mg.open_model("tiny-en"), text, tau=0.5, steps=12, seed=1))
    assert states.ids.tolist() == [record["ids"] for record in records]
    assert states.text == [record["text"] for record in records]
    assert np.isnan(states.logp_new[0])
    assert states.logp_new[1:] == pytest.approx([record["logp_new"] for record in records[1:]], abs=1e-5)


@pytest.mark.parametrize("options", ["", "--coupling race", "--coupling quantile", "--lag 3", "--max-steps 2"])
def test_meeting_times_are_those_of_the_command(folder, model, options):
    words = ["a b a", "b a c", "c c c", "a a a"]
    command = f"couple -m inc.json --seed 2 --tau 1.5 --start pair {options}".strip()
    pairs = answer(command, "".join(f"{text}\n" for text in words).encode(), folder)
    given = {"coupling": options.split()[1]} if "coupling" in options else {}
    given |= {"lag": 3} if "lag" in options else {"max_steps": 2} if "max" in options else {}
    found = mg.meeting_times(model, [(words[0], words[1]), (words[2], words[3])], tau=1.5, seed=2, **given)
    for k, record in enumerate(pairs.of("pair")):
        assert found.censored[k] == record["censored"]
        assert found.steps[k] == (record["max_steps"] + record["lag"] if record["censored"] else record["meeting"])
    assert len(found.steps) == 2


def test_meeting_times_under_a_restriction_are_those_of_the_command(folder, model):
    record, = answer("couple -m inc.json --seed 2 --tau 1.5 --allow a,b", b"a b a\nb a a\n", folder).of("pair")
    assert record["meeting"] is not None
    assert mg.meeting_times(model, [("a b a", "b a a")], tau=1.5, allow=["a", "b"],
                            seed=2).steps.tolist() == [record["meeting"]]


def test_the_bound_on_the_variation_is_that_of_the_command(folder, model):
    """Twelve pairs of one text with a lag of 5, named as the command names them."""
    pairs = answer("couple -m inc.json --seed 1 --tau 1 --lag 5 --start random --pairs 12", b"a b a\n", folder)
    meetings = np.array([record["meeting"] for record in pairs.of("pair")])
    summary, = (record for record in answer("couple --summarize", pairs.out, folder).of("summary")
                if record["over"] == "group")
    times = mg.MeetingTimes(meetings, np.zeros(12, dtype=bool), np.full(12, 3), 1.0, 5)
    steps = [one["t"] for one in summary["bound"]]
    found = mg.variation_bound(times, steps)
    assert found.bound.tolist() == [one["tv"] for one in summary["bound"]]
    assert found.error.tolist() == [one["tv_error"] for one in summary["bound"]]
    assert found.bound[0] > 1


def test_the_bound_lies_above_the_exact_distance(model):
    """400 pairs; the bound may be below the distance by chance, by more than 4 standard errors in 3 of 100,000."""
    steps = range(0, 40, 4)
    solved = mg.exact(model, TEXT, words=["a", "b"], tau=1.0, steps=steps)
    times = mg.meeting_times(model, [(TEXT, TEXT)] * 400, tau=1.0, lag=20, allow=["a", "b"], seed=1)
    found = mg.variation_bound(times, steps)
    assert (found.bound + 4 * found.error >= solved.distances).all()
    assert solved.distances[0] == pytest.approx(1 - solved.law[0b010])
    assert solved.distances[-1] < 0.01
    within = [step for step, distance in zip(steps, solved.distances, strict=True) if distance <= 0.25]
    assert within[0] - 4 < solved.mixing.from_start <= within[0]


@pytest.mark.parametrize("draw", ["conditional", "uniform", "top"])
def test_rectangles_are_those_of_the_command(folder, model, draw):
    records = answer(f"rect -m inc.json --seed 4 --rectangles 7 --draw {draw}", TEXT.encode(), folder).of("rectangle")
    found = mg.rectangles(model, TEXT, count=7, draw=draw, seed=4)
    assert found.sites.tolist() == [[record["i"], record["j"]] for record in records]
    assert found.alternatives.tolist() == [record["tokens"][2:] for record in records]
    assert found.delta.tolist() == [record["delta"] for record in records]
    one, = answer("rect -m inc.json --site 0 --to b --site 2 --to b", TEXT.encode(), folder).of("rectangle")
    assert mg.rectangle(model, TEXT, (0, "b"), (2, 1)).delta == one["delta"]


def test_influences_and_exact_chains_are_those_of_the_commands(folder, model):
    record, = answer("influence -m inc.json --seed 3 --matrix --tau 0.7", TEXT.encode(), folder).of("influence")
    found = mg.influence(model, TEXT, tau=0.7, seed=3)
    assert found.matrix.tolist() == record["matrix"]
    assert found.alpha_row == record["alpha_row"]
    assert found.alpha_spectral == record["alpha_spectral"]
    record, = answer("exact -m inc.json --allow a,b --tau 0.7", TEXT.encode(), folder).of("exact")
    solved = mg.exact(model, TEXT, words=["a", "b"], tau=0.7)
    assert solved.law.max() == pytest.approx(record["likeliest"][0]["probability"])
    assert solved.entropy_production == pytest.approx(record["entropy_production"])


def test_traps_are_those_of_the_command(folder, model):
    chains = answer("sample -m inc.json --seed 1 --tau 0.15 --steps 2000 --on-change --chains 2", TEXT.encode(), folder)
    records = answer("traps -m inc.json --min-steps 50", chains.out, folder).of("trap")
    found = mg.traps(mg.sample(model, TEXT, tau=0.15, steps=2000, chains=2, seed=1), min_steps=50)
    key = sorted((record["chain"], record["first"], record["last"], tuple(record["ids"])) for record in records)
    assert sorted((chain, trap.first, trap.last, trap.state) for chain, trap in found) == key
    assert key


def test_margins_are_those_of_the_command(folder, model):
    chain = answer("sample -m inc.json --seed 1 --tau 0.15 --steps 2000 --on-change", TEXT.encode(), folder)
    records = answer("traps -m inc.json --min-steps 50", chain.out, folder).of("trap")
    for record in records:
        found = mg.margins(model, record["ids"], tau=0.15)
        assert (found.margin, found.gamma.tolist(), found.escape) == (
            record["margin"], record["gamma"], record["escape"])
    assert records


@pytest.mark.parametrize("options", ["--every 4", "--on-change"])
def test_a_drift_summary_is_that_of_the_command(folder, model, options):
    """Embeddings are the one-hot tokens, side by side, so that the commands and the functions have the same ones."""
    texts = ["a b a", "b a c", "c c c", "a a a", "b b c"]
    out = answer(f"sample -m inc.json --seed 3 --tau 0.5,2 --steps 60 --chains 2 {options}",
                 "".join(f"{text}\n" for text in texts).encode(), folder)
    lines = b"".join(orjson.dumps(record | ({"embedding": np.eye(3)[record["ids"]].ravel().tolist()}
                                            if record["type"] == "state" else {})) + b"\n" for record in out.records)
    records = [record for record in answer("drift --summary --threshold 0.5", lines, folder).of("summary")
               if record["over"] == "group"]
    every = None if options == "--on-change" else 4
    chains = [mg.states_to_arrays(mg.sample(model, text, tau=tau, steps=60, every=every, chains=2, seed=3, name=str(k)))
              for tau in (2.0, 0.5) for k, text in enumerate(texts)]
    found = mg.drift_summary(chains, [np.eye(3)[chain.ids].reshape(-1, 9) for chain in chains], threshold=0.5,
                             texts=[*range(5), *range(5)], every_change=every is None)
    assert [row.tau for row in found] == [0.5, 2.0]
    for row, record in zip(found, records, strict=True):
        hitting = record["hitting"][0]
        assert (row.tau, row.n, row.chains, row.texts, row.frozen) == (
            record["tau"], 3, 10, 5, record["frozen_chains"])
        assert (row.plateau, row.plateau_low, row.plateau_high) == pytest.approx(
            (record["plateau"], record["plateau_low"], record["plateau_high"]))
        assert row.hits == hitting["hits"]
        expected = [hitting[name] for name in ("median", "median_low", "median_high", "median_at_least", "c")]
        expected += [record["diagnostics"][name] for name in ("rhat_rank", "ess_bulk")]
        assert row[-7:] == pytest.approx([np.nan if value is None else value for value in expected], nan_ok=True)


def test_drift_from_the_start_of_each_chain():
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    assert mg.drift(vectors, chains=[0, 1, 0, 1]).tolist() == [0.0, 0.0, 1.0, 1.0]


def test_state_records_are_those_of_the_command_and_make_a_picture(folder, model):
    records = answer("sample -m inc.json --seed 5 --steps 20 --every 1 --chains 2", TEXT.encode(), folder).of("state")
    chains = mg.states_to_arrays(mg.sample(model, TEXT, steps=20, chains=2, seed=5))
    drifts = mg.drift(np.eye(3)[chains.ids].reshape(-1, 9), chains=chains.chain)
    found = mg.state_records(chains, drift=drifts)
    for record, expected, drift in zip(found, records, drifts, strict=True):
        assert record["drift"] == drift
        assert {key: record[key] for key in ("type", "id", "chain", "step", "tau", "n", "text", "ids")} == {
            key: expected[key] for key in ("type", "id", "chain", "step", "tau", "n", "text", "ids")}
    assert mg.plot(found).axes[0].get_ylabel() == "drift (1 − cosine)"
    traps = answer("traps --no-model --min-steps 3", b"".join(orjson.dumps(record) + b"\n" for record in found), folder)
    assert traps.of("trap")


def test_drift_is_that_of_the_command(folder):
    vectors = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    lines = b"".join(orjson.dumps({"id": "x", "step": k, "embedding": vector.tolist()}) + b"\n"
                     for k, vector in enumerate(vectors))
    records = answer("drift", lines, folder).records
    assert mg.drift(vectors) == pytest.approx([record["drift"] for record in records])
    assert np.isnan(mg.drift(np.array([[1.0, 0.0], [0.0, 0.0]]))[1])


def test_records_are_loaded_as_columns_or_as_a_frame(folder, monkeypatch):
    out = answer("sample -m inc.json --seed 1 --steps 4 --every 1", TEXT.encode(), folder).out
    (folder / "chains.jsonl").write_bytes(out)
    frame = mg.load(folder / "chains.jsonl")
    assert frame["step"].tolist() == [0, 1, 2, 3, 4]
    monkeypatch.setitem(sys.modules, "pandas", None)
    columns = mg.load(folder / "chains.jsonl", "state")
    assert columns["step"].tolist() == [0, 1, 2, 3, 4]
    assert columns["ids"][0] == [0, 1, 0]
    with pytest.raises(ValueError, match="no records of type pair"):
        mg.load(folder / "chains.jsonl", "pair")


@pytest.mark.parametrize("call", [
    lambda model: list(mg.sample(model, "a z a")),
    lambda model: list(mg.sample(model, "")),
    lambda model: list(mg.sample(model, TEXT, freeze=[0, 1, 2])),
    lambda model: list(mg.sample(model, TEXT, freeze=[7])),
    lambda model: list(mg.sample(model, TEXT, tau=-1.0)),
    lambda model: list(mg.sample(model, TEXT, scan="nowhere")),
    lambda model: list(mg.sample(model, TEXT, allow=["z"])),
    lambda model: mg.sample(model, [0, 1]),
    lambda model: mg.rectangle(model, TEXT, (0, "b"), (0, "c")),
    lambda model: mg.rectangle(model, TEXT, (0, "a"), (1, "c")),
    lambda model: mg.rectangle(model, TEXT, (0, "b"), (9, "c")),
    lambda model: mg.rectangles(model, TEXT, draw="nohow"),
    lambda model: mg.meeting_times(model, [(TEXT, TEXT)], coupling="none"),
    lambda model: mg.exact(model, TEXT, words=["a", "z"]),
    lambda model: mg.exact(model, TEXT, words=["a", "b"], max_states=3),
    lambda model: mg.states_to_arrays([]),
    lambda model: mg.sample(model, TEXT, every=0),
    lambda model: mg.sample(model, TEXT, chains=0),
    lambda model: mg.sample(model, TEXT, steps=-1),
    lambda model: mg.sample(model, TEXT, steps=3, sweeps=9),
    lambda model: mg.sample(model, TEXT, burn_in=-2),
    lambda model: mg.sample(model, TEXT, freeze=[1, 1]),
    lambda model: mg.sample(model, TEXT, allow="ab"),
    lambda model: mg.sample(model, TEXT, allow=["a,b"]),
    lambda model: mg.sample(model, TEXT, allow={3: ["a"]}),
    lambda model: mg.sample(model, TEXT, allow={0: ["a"]}, freeze=[0]),
    lambda model: mg.sample(model, TEXT, allow={0: []}),
    lambda model: mg.sample(model, TEXT, ban=["a", "b", "c"]),
    lambda model: mg.sample(model, TEXT, tau=float("nan")),
    lambda model: mg.rectangle(model, TEXT, (0, -1), (2, "b")),
    lambda model: mg.rectangle(model, TEXT, (0, 99), (2, "b")),
    lambda model: mg.rectangle(model, TEXT, (-3, "b"), (2, "b")),
    lambda model: mg.rectangle(model, TEXT, (0, "b"), (2, "b"), tau=0.0),
    lambda model: mg.rectangles(model, TEXT, count=0),
    lambda model: mg.rectangles(model, TEXT, gap=0),
    lambda model: mg.rectangles(model, TEXT, gap=9),
    lambda model: mg.influence(model, TEXT, replacements=0),
    lambda model: mg.influence(model, TEXT, tau=-1.0),
    lambda model: mg.exact(model, TEXT, words=["a", "b"], sites=[7]),
    lambda model: mg.exact(model, TEXT, words=["a", "b"], sites=[-1]),
    lambda model: mg.exact(model, TEXT, words=["a", "b"], eps=2.0),
    lambda model: mg.exact(model, TEXT, words="ab"),
    lambda model: mg.exact(model, TEXT, words=["a", "b"], tau=-1.0),
    lambda model: mg.meeting_times(model, [(TEXT, "b b b")], lag=-1),
    lambda model: mg.meeting_times(model, [(TEXT, "b b b")], max_steps=-5),
    lambda model: mg.meeting_times(model, [(TEXT, "b b b")], horizon=0.0),
    lambda model: mg.meeting_times(model, [(TEXT, TEXT, TEXT)]),
    lambda model: mg.meeting_times(model, ["ab"]),
    lambda model: mg.meeting_times(model, [(TEXT, "b b b")], names=[]),
    lambda model: mg.traps(mg.sample(model, TEXT, tau=0.3, steps=900, every=7, seed=1)),
    lambda model: mg.traps(mg.sample(model, TEXT, steps=9), min_steps=0),
    lambda model: mg.embed("one text"),
    lambda model: mg.drift(np.empty((0, 3))),
    lambda model: mg.drift(np.array([1.0, 2.0])),
    lambda model: mg.drift(np.ones((2, 3)), np.ones(2)),
    lambda model: mg.open_model(None),
    lambda model: mg.open_model("tiny-en", dtype="float7"),
    lambda model: mg.open_model("tiny-en", device="tpu"),
    lambda model: mg.open_model("tiny-en", rows=0),
    lambda model: mg.sample("tiny-en", TEXT),
    lambda model: mg.sample(model, None),
    lambda model: mg.sample(model, [TEXT]),
    lambda model: mg.sample(model, TEXT, tau=[1.0, 2.0]),
    lambda model: mg.sample(model, TEXT, freeze=1),
    lambda model: mg.rectangle(model, TEXT, ("b", 0), (2, "b")),
    lambda model: mg.rectangle(model, TEXT, None, (2, "b")),
    lambda model: mg.exact(model, TEXT, words=["a", "b"], sites=[]),
    lambda model: mg.exact(model, TEXT, words=["a", "a"]),
    lambda model: mg.traps(mg.states_to_arrays(mg.sample(model, TEXT, steps=3))),
    lambda model: mg.embed(["a text"], dims=1000),
    lambda model: mg.embed([1, 2]),
    lambda model: mg.diagnose(np.ones(5)),
    lambda model: mg.diagnose(np.ones((2, 5)), texts=["a"]),
    lambda model: mg.load(3),
    lambda model: mg.load(ROOT / "README.md"),
    lambda model: mg.plot([]),
    lambda model: mg.plot([{"type": "state"}], "no kind"),
    lambda model: mg.plot([{"type": "pair"}]),
    lambda model: mg.margins(model, TEXT, tau=-1.0),
    lambda model: mg.margins(model, [0, 9, 0]),
    lambda model: mg.exact(model, TEXT, words=["a", "b"], steps=[-1]),
    lambda model: mg.exact(model, "c b a", words=["a", "b"], steps=[1]),
    lambda model: mg.meeting_times(model, [("a b", "b b")], allow="ab"),
    lambda model: mg.variation_bound(mg.meeting_times(model, [(TEXT, "b b b")], seed=1), [0]),
    lambda model: mg.variation_bound(mg.meeting_times(model, [(TEXT, "c c c")], lag=2, max_steps=1, seed=1), [0]),
    lambda model: mg.variation_bound(mg.meeting_times(model, [(TEXT, TEXT)], lag=2, seed=1), [-1]),
    lambda model: mg.variation_bound(mg.meeting_times(model, [(TEXT, TEXT)], lag=2, seed=1), [1], texts=["a", "b"]),
    lambda model: mg.drift(np.ones((2, 3)), np.ones(3), chains=[0, 1]),
    lambda model: mg.drift(np.ones((2, 3)), chains=[0]),
    lambda model: mg.drift_summary([mg.states_to_arrays(mg.sample(model, TEXT, steps=3))], [np.ones((2, 3))]),
    lambda model: mg.drift_summary([mg.states_to_arrays(mg.sample(model, TEXT, steps=3))], []),
    lambda model: mg.state_records(mg.states_to_arrays(mg.sample(model, TEXT, steps=3)), drift=[0.0]),
])
def test_errors_are_value_errors_and_name_no_option(model, call):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - many messages
        call(model)
    assert "--" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("call", [
    lambda model: list(mg.sample(model, "a b", steps=1)), lambda model: list(mg.sample(model, [0, 1], allow=["a"])),
    lambda model: list(mg.sample(model, [0, 1], allow={0: ["a"]})), lambda model: mg.rectangle(
        model, "a b c", (0, "b"), (1, "c")), lambda model: mg.rectangles(model, "a b c"),
    lambda model: mg.influence(model, "a b"), lambda model: mg.exact(model, "a b", words=["a", "b"]),
    lambda model: mg.margins(model, "a b"), lambda model: mg.meeting_times(model, [("a b", "b a")]),
    lambda model: mg.meeting_times(model, [("a b", "b a")], ban=["a"]), lambda model: mg.score(model, ["a b"]),
    lambda model: mg.stationary_mean(model, "a b", float, lag=1), lambda model: mg.truncate(model, top_k=2),
])
@pytest.mark.parametrize("thing", ["tiny-en", ROOT, None, 3, {"tokens": ["a"]}])
def test_what_is_no_model_is_told_in_one_way(call, thing):
    with pytest.raises(ValueError, match="open it with open_model first"):
        call(thing)


def test_what_cannot_be_read_is_an_error_of_its_own():
    with pytest.raises(ModelError, match="give a file"):
        mg.open_model("nothing-there.json")
    with pytest.raises(InputError, match="no such file"):
        mg.load("nothing-there.jsonl")


def test_traps_of_every_change_are_those_of_every_step(model):
    """A trap may end between two changes: it is counted to the change, or to the end of the chain."""
    options = {"tau": 0.15, "steps": 3000, "chains": 2, "seed": 3}
    found = [[(chain, trap.state, trap.first, trap.last, trap.residence)
              for chain, trap in mg.traps(mg.sample(model, TEXT, every=every, **options), min_steps=50)]
             for every in (1, None)]
    assert found[0] == found[1] != []


@pytest.mark.parametrize(("kind", "command"), [
    ("exact", "exact -m inc.json --allow a,b --tau 0.5,1"),
    ("influence", "influence -m inc.json --seed 1 --matrix"),
    ("rectangles", "rect -m inc.json --seed 1"),
    ("times", "couple -m inc.json --seed 1 --tau 1,2"),
    ("phase", "couple -m inc.json --seed 1 --tau 1,2 | couple --summarize"),
    ("lag", "couple -m inc.json --seed 1 --tau 1 --lag 3 --start random --pairs 6 | couple --summarize"),
    ("residence", "sample -m inc.json --seed 1 --tau 0.15 --steps 2000 --on-change | traps -m inc.json --min-steps 50"),
    ("slowness", "sample -m inc.json --seed 1 --tau 0.15,0.3 --steps 3000 --on-change --chains 4"
                 " | traps -m inc.json --min-steps 20 --summary"),
    ("plane", "sample -m inc.json --seed 1 --steps 9 --chains 3 | embed --pca 2"),
    ("drift", "sample -m inc.json --seed 1 --steps 9 --chains 3 | embed | drift"),
    ("basins", "sample -m inc.json --seed 1 --sweeps 30 --chains 4 | embed | basins --clusters 2 --seed 1 --summary"),
])
def test_every_kind_of_picture_is_a_figure(folder, kind, command):
    content = b"a b a\nb b b\na c a\nc c b\n"
    for part in command.split(" | "):
        content = answer(part, content, folder).out
    (folder / "records.jsonl").write_bytes(content)
    assert mg.plot(folder / "records.jsonl", kind).axes


def test_a_picture_is_a_figure_and_an_embedding_is_that_of_the_command(folder):
    axes = mg.plot(ROOT / "examples" / "phase-diagram" / "tiny-en-summary.jsonl").axes
    assert axes
    records = answer("embed", b"the cat sat\na dog\n", folder).records[1:]
    assert mg.embed(["the cat sat", "a dog"]).vectors.tolist() == pytest.approx(
        np.array([record["embedding"] for record in records]), abs=1e-6)


def test_nothing_is_printed_and_progress_counts_the_steps(model, capfd):
    done = []
    list(mg.sample(model, TEXT, steps=50, chains=2, seed=1, progress=done.append))
    assert sum(done) == 100
    assert capfd.readouterr() == ("", "")


def test_progress_of_pairs_counts_the_pairs(model, capfd):
    done = []
    mg.meeting_times(model, [(TEXT, "b b b"), (TEXT, "c c c"), (TEXT, TEXT)], tau=2.0, seed=1, progress=done.append)
    assert sum(done) == 3
    assert capfd.readouterr() == ("", "")


def test_a_bar_shows_progress_on_standard_error(model, capfd):
    for _ in mg.sample(model, TEXT, steps=50, seed=1, progress=True):
        pass
    mg.meeting_times(model, [(TEXT, "b b b")], tau=2.0, seed=1, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "50/50" in err
    assert "1/1" in err


def test_a_bar_that_is_left_unfinished_ends_without_a_traceback(folder):
    """The states are kept in rich's own module, which the interpreter takes apart together with what a bar needs."""
    code = ("import mlmglauber as mg, rich.console;"
            "rich.console.kept = mg.sample(mg.open_model('inc.json'), 'a b a', steps=50, progress=True);"
            "next(rich.console.kept)")
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_the_package_imports_at_once():
    code = "import sys, mlmglauber; dir(mlmglauber); sys.exit('numpy' in sys.modules or 'click' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert all(hasattr(mg, name) for name in mg.__all__ if name != "plot")
    with pytest.raises(AttributeError):
        mg.nothing_of_the_kind  # noqa: B018


def test_a_user_s_file_passes_mypy(tmp_path):
    user = tmp_path / "user.py"
    user.write_text("""
import mlmglauber as mg

model = mg.open_model("tiny-en")
texts: list[str] = [state.text for state in mg.sample(model, "the cat", steps=5)]
times = mg.meeting_times(model, [("a b", "c d")], tau=2.0)
summary: list[mg.DriftSummary] = mg.drift_summary([mg.states_to_arrays(mg.sample(model, "a", steps=5))], [])
print(mg.margins(model, "the cat").gamma.shape, mg.variation_bound(times, [0, 1]).bound.min(), summary[0].plateau + 1)
print(mg.traps(mg.sample(model, "a", progress=True))[0][1].residence, mg.drift(mg.embed(["a"]).vectors).tolist())
exact = mg.exact(model, "the cat", words=["a"], steps=range(3)).distances
assert exact is not None and exact[0] < 1
print(times.steps.max(), mg.rectangle(model, "the cat", (0, "a"), (1, "dog")).delta + 1.0)
""")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", ROOT / ".mypy_cache", user],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
