"""Labelling of planted clouds, and mlm-basins through a real shell on embeddings written by hand."""

import numpy as np
import orjson
import pytest
from conftest import ROOT

from mlmglauber.measures.regions.clustering import cluster
from mlmglauber.measures.regions.labelling import NO_NAME, fit, held_out, unit_of
from mlmglauber.stream.vectors import pack

pytestmark = pytest.mark.in_process

METHODS = ("logistic", "centroid")
AXES = {"arts": [1, 0, 0], "food": [0, 1, 0], "politics": [0, 0, 1], "?": [1, 1, 1], "0": [0, 0, 0]}


def clouds(count, spread, labels=("a", "b", "c"), seed=0):
    """`count` unit vectors around each axis."""
    rng = np.random.default_rng(seed)
    points = np.repeat(np.eye(len(labels)), count, axis=0)
    points += rng.normal(scale=spread, size=points.shape)
    return points / np.linalg.norm(points, axis=1, keepdims=True), [label for label in labels for _ in range(count)]


def lines(records):
    return b"".join(orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n" for record in records)


def examples(embedder="e", count=5):
    rng = np.random.default_rng(0)
    return lines({"label": label, "embedding": (np.array(AXES[label]) + rng.normal(scale=0.05, size=3)).tolist(),
                  "embedder": embedder} for label in ("arts", "food", "politics") for _ in range(count))


def states(chains, embedder="e", encoding="float", every=4, **more):
    """State records of {(id, chain): [words of AXES]}."""
    return lines([{"type": "run", "schema": "mlm/1", "run": "r"}] + [
        {"type": "state", "run": "r", "id": name, "chain": chain, "step": every * k, "tau": 1.0, "n": 4, "text": word,
         "embedding": pack(np.array(AXES[word], np.float32), encoding), "embedder": embedder, **more}
        for (name, chain), words in chains.items() for k, word in enumerate(words)])


TOUR = ["food", "politics", "?", "politics", "food", "0"]


@pytest.fixture
def topics(sh):
    (sh.folder / "topics").write_bytes(examples())
    return sh


@pytest.mark.parametrize("method", METHODS)
def test_separable_clouds_are_told_apart_and_mixed_ones_are_not(method):
    """Labels drawn by lot are right one time in three: 60 of them above one half has probability 2e-3, at seed 0 no."""
    found = held_out(*clouds(20, 0.1), method, 0.5)
    assert (found.accuracy, found.high, found.named_accuracy, found.folds) == (1, 1, 1, 5)
    assert found.low == pytest.approx(1 / (1 + 1.959964**2 / 60))  # Wilson, 60 of 60
    assert found.confusion == [[20, 0, 0, 0], [0, 20, 0, 0], [0, 0, 20, 0]]
    units, labels = clouds(20, 0.1)
    lot = held_out(units, [labels[k] for k in np.random.default_rng(0).permutation(60)], method, 0.5)
    assert lot.accuracy < 0.5
    assert lot.log_loss > found.log_loss + 0.5


@pytest.mark.parametrize("method", METHODS)
def test_the_kernel_is_that_of_scikit_learn_or_the_nearest_centroid(method):
    from sklearn.linear_model import LogisticRegression

    units, labels = clouds(15, 0.6)
    for names in (("a", "b", "c"), ("a", "b")):
        rows = [k for k, label in enumerate(labels) if label in names]
        mine, own = units[rows], [labels[k] for k in rows]
        got = fit(mine, own, method).probabilities(units)
        assert got.sum(axis=1) == pytest.approx(np.ones(len(units)))
        if method == "logistic":
            reference = LogisticRegression(C=10.0, max_iter=2000).fit(mine, own).predict_proba(units)
            assert got == pytest.approx(reference, abs=1e-9)
        else:
            means = [mine[[label == name for label in own]].mean(axis=0) for name in names]
            cosines = units @ np.array([mean / np.linalg.norm(mean) for mean in means]).T
            assert (got.argmax(axis=1) == cosines.argmax(axis=1)).all()


@pytest.mark.parametrize("method", METHODS)
def test_what_is_between_regions_is_rejected(method):
    labeller = fit(*clouds(20, 0.05), method)
    for k, axis in enumerate(np.eye(3)):
        assert labeller.label(5 * axis, 0.5)[0] == k
    region, p, reason = labeller.label(np.ones(3), 0.5)
    assert (region, reason) == (NO_NAME, "below_threshold")
    assert p == pytest.approx(1 / 3, abs=0.05)
    assert labeller.label(np.ones(3), 0.2)[0] != NO_NAME
    assert labeller.label(np.zeros(3), 0.0) == (NO_NAME, None, "zero_norm")
    assert labeller.label(np.array([1, np.nan, 0]), 0.0) == (NO_NAME, None, "not_finite")


def test_lengths_of_vectors_do_not_matter():
    for scale in (1e-200, 1e200):
        assert unit_of(scale * np.array([3.0, 4.0]))[0] == pytest.approx([0.6, 0.8])


def test_too_few_examples_are_told():
    units, labels = clouds(2, 0.1, ("a", "b"))
    assert held_out(units, labels, "centroid", 0.5).folds == 2
    alone = held_out(units[:3], labels[:3], "centroid", 0.5)
    assert (alone.accuracy, alone.reason) == (None, "one example of b: none is left to hold out")
    with pytest.raises(ValueError, match="1 label"):
        fit(units[:2], labels[:2], "centroid")


def test_clusters_are_the_clouds_the_largest_first():
    units, _ = clouds(30, 0.1)
    units = units[[*range(10), *range(30, 60), *range(60, 80)]]  # 10, 30 and 20 of them
    found = cluster(units, 3, seed=0)
    assert found.sizes.tolist() == [30, 20, 10]
    assert found.members.tolist() == [2] * 10 + [0] * 30 + [1] * 20
    assert [found.members[k] for k in found.nearest] == [0, 1, 2]
    assert found.silhouette > 0.7
    with pytest.raises(ValueError, match="3 clusters need 3 different vectors, there are 2"):
        cluster(np.repeat(np.eye(2), 5, axis=0), 3, seed=0)


@pytest.mark.parametrize(("encoding", "method"), [("float", "logistic"), ("base64", "centroid")])
def test_basin_takes_the_place_of_the_embedding(topics, encoding, method):
    line = f"mlm-basins --examples topics --method {method} --reject 0.6"
    done = topics(line, stdin=states({("x", 0): TOUR}, encoding=encoding))
    assert (done.status, done.err) == (0, "")
    first, head, *rest = done.records
    assert first == {"type": "run", "schema": "mlm/1", "run": "r"}
    assert (head["type"], head["command"], head["embedder"]) == ("run", "mlm-basins", "e")
    assert head["examples"] == {"arts": 5, "food": 5, "politics": 5}
    assert (head["held_out"]["accuracy"], head["options"]) == (1.0, {"method": method, "reject": 0.6})
    assert [state["basin"] for state in rest] == ["food", "politics", None, "politics", "food", None]
    assert [state.get("basin_reason") for state in rest] == [None, None, "below_threshold", None, None, "zero_norm"]
    assert rest[0]["basin_p"] > 0.6 > rest[2]["basin_p"]
    assert (rest[5]["basin_p"], rest[5]["basin_p_reason"]) == (None, "zero_norm")
    assert not any("embedding" in state or "embedder" in state for state in rest)
    if method == "logistic":
        return
    kept = topics(f"{line} --keep-embedding", stdin=states({("x", 0): TOUR})).states
    assert [state["embedding"] for state in kept] == [AXES[word] for word in TOUR]
    assert {state["embedder"] for state in kept} == {"e"}


def test_summary_through_the_command(topics):
    stdin = states({("x", 0): ["food", "politics", "food", "politics", "food"], ("x", 1): ["food"] * 5,
                    ("y", 0): ["arts", "politics", "arts", "arts", "arts"]}, label="health")
    done = topics("mlm-basins --examples topics --summary", stdin=stdin)
    assert (done.status, done.err) == (0, "")
    head, one, _, _, group, arts, food = done.records
    assert head["command"] == "mlm-basins"
    assert {record["of"] for record in done.records[1:]} == {"basin"}
    assert [(row["basin"], row["visits"], row["revisits"]) for row in one["basins"]] == [
        ("arts", 0, 0), ("food", 3, 2), ("politics", 2, 1)]
    assert (group["over"], group["chains"], group["resolution"]) == ("group", 3, 4)
    matrix = {row["start"]: {cell["basin"]: (cell["visited"], cell["returned"], cell["passed"])
                             for cell in row["basins"]} for row in (arts, food)}
    assert matrix == {"arts": {"arts": (1, 1, 0), "food": (0, 0, 0), "politics": (1, 0, 1)},
                      "food": {"arts": (0, 0, 0), "food": (1, 0.5, 0), "politics": (0.5, 0.5, 0.5)}}
    told = topics("mlm-basins --examples topics --summary --start-field label", stdin=stdin).records
    assert [(row["start"], row["chains"], row["first_agrees"]) for row in told if row.get("over") == "start"] == [
        ("health", 3, 0.0)]
    (topics.folder / "draws").write_bytes(states({("d", 0): ["arts", "arts", "?", "politics"]}))
    drawn = topics("mlm-basins --examples topics --summary --draws draws", stdin=stdin).records
    assert drawn[0]["draws"] == {"arts": 2, "food": 0, "politics": 1, "unnamed": 1}
    assert [row["expected_share"] for row in drawn[-1]["basins"]] == [0.5, 0, 0.25]


def test_tables_for_people(topics):
    stdin = states({("x", 0): TOUR, ("y", 0): ["politics"] * 6}, label="food")
    done = topics("mlm-basins --examples topics --summary --table --start-field label", stdin=stdin)
    text = done.out.decode()
    assert (done.status, done.err) == (0, "")
    held_out = next(line for line in text.splitlines() if line.startswith("│     5 "))
    assert [cell.strip() for cell in held_out.split("│")[1:3]] == ["5", "1.00 [0.80, 1.00]"]
    row = next(line for line in text.splitlines() if line.startswith("│ food "))
    cells = [cell.strip() for cell in row.split("│")[1:-1]]
    assert cells == ["food", "0 0 0 0", "50 50 0 19", "100 0 50 69"]  # as in the row of all starts:
    assert "chains 2, none 12)" in text
    clusters = topics("mlm-basins --clusters 2 --summary --table", stdin=stdin).out.decode()
    assert clusters.startswith("Clusters by k-means\n")


def test_clusters_are_written_in_the_order_of_the_records(topics):
    other = b'{"type":"summary","of":"pair"}\n'
    done = topics("mlm-basins --clusters 3", stdin=states({("x", 0): [*TOUR, "food", "?"]}) + other)
    assert (done.status, done.err) == (0, "")
    head = next(record for record in done.records if record.get("command") == "mlm-basins")
    assert [row["nearest"] for row in head["clusters"]] == ["food", "politics", "?"]
    assert head["options"] == {"method": "k-means", "clusters": 3, "seed": 0}
    assert [state["basin"] for state in done.states] == ["1", "2", "3", "2", "1", None, "1", "3"]
    assert {state["basin_p_reason"] for state in done.states} == {"k-means gives none", "zero_norm"}
    assert done.records[-1] == {"type": "summary", "of": "pair"}
    few = topics("mlm-basins --clusters 5", stdin=states({("x", 0): TOUR}))
    assert few.status == 1
    assert "5 clusters need 5 different vectors, there are 3; ask for fewer" in few.err


def test_embeddings_of_two_kinds_are_refused(topics):
    done = topics("mlm-basins --examples topics", stdin=states({("x", 0): TOUR}, embedder="f"))
    assert done.status == 65
    assert "topics: the embeddings were made otherwise (e) than those of the records (f)" in done.err
    mixed = topics("mlm-basins --examples topics", stdin=states({("x", 0): TOUR}) + states({("y", 0): TOUR}, "f"))
    assert mixed.status == 65
    assert "embeddings of two models (e and f)" in mixed.err
    short = lines([{"embedding": [1, 0], "embedder": "e"}, {"embedding": [0, 1, 0], "embedder": "e"}])
    done = topics("mlm-basins --examples topics", stdin=short)
    assert (done.status, done.records[-1]["basin"]) == (65, "food")
    assert "stdin:1: the embedding has 2 dimensions, the examples have 3" in done.err


def test_bad_examples_and_wrong_options_are_told(topics):
    def err(content, status):
        (topics.folder / "bad").write_bytes(content)
        done = topics("mlm-basins --examples bad", stdin=states({("x", 0): ["food"]}))
        assert done.status == status
        return done.err

    assert 'bad:1: "label" is missing or not a string' in err(b'{"text":"a"}\n' + examples(), 65)
    assert 'bad:1: the record has no "text" and no "embedding"' in err(b'{"label":"a"}\n' + examples(), 65)
    assert "bad: the file has no examples" in err(b"", 1)
    assert "bad: 1 label; regions need two labels or more" in err(
        b'{"label":"a","embedding":[1,0,0],"embedder":"e"}\n', 1)
    twice = b'{"label":"%s","embedding":[1,0,0],"embedder":"e"}\n'
    assert "a text is an example of a and of b" in err(twice % b"a" + twice % b"b", 65)
    assert topics("mlm-basins --examples gone").status == 66
    for wrong in ("", "--examples topics --clusters 2", "--examples topics --start-field label",
                  "--clusters 2 --summary --draws topics", "--examples topics --min-steps 3"):
        assert topics(f"mlm-basins {wrong}").status == 2
    unsorted = states({("x", 0): ["food"]}) + states({("x", 0): ["food"]})
    assert "step 0 does not come after" in topics("mlm-basins --examples topics --summary", stdin=unsorted).err


def test_copies_of_an_example_are_one(topics):
    (topics.folder / "twice").write_bytes(examples() + examples())
    head = topics("mlm-basins --examples twice", stdin=states({("x", 0): ["food"]})).records[1]
    assert head["examples"] == {"arts": 5, "food": 5, "politics": 5}


def test_no_torch_for_embedded_examples(topics):
    code = ("import sys; from mlmglauber.commands.basins.command import main\n"
            "try: main(['--examples', 'topics', '--summary', '--table', 'in'])\nexcept SystemExit: pass\n"
            "assert not {'torch', 'transformers'} & set(sys.modules)")
    (topics.folder / "in").write_bytes(states({("x", 0): TOUR}))
    done = topics(f'python -c "{code}"')
    assert (done.status, done.err) == (0, "")
    assert b"Moves from row to column" in done.out


def test_examples_are_embedded_as_the_stream_was(sh):
    """The treatment comes from mlm-embed's run record; a stream without one is refused when it was another."""
    rows = [orjson.loads(line) for line in (ROOT / "examples" / "topics.jsonl").read_bytes().splitlines()]
    some = [row for row in rows if row["label"] in ("politics", "food") and int(row["id"].split("-")[1]) < 6]
    (sh.folder / "topics").write_bytes(lines(some))
    stdin = b"the president of the united states won the election\nbread is baked from flour and water\n"
    assert sh("mlm-embed --dims 64 --normalize > stream", stdin=stdin, OMP_NUM_THREADS="1").status == 0
    code = ("from mlmglauber.commands.basins.command import main\nfor name in ('stream', 'headless'):\n"
            "    try: main(['--examples', 'topics', '-o', 'of_' + name, name])\n"
            "    except SystemExit as end: print(end.code)")  # one process: torch is slow to import
    done = sh(f'grep -v mlm-embed stream > headless; python -c "{code}"', OMP_NUM_THREADS="1")
    assert done.out.split() == [b"0", b"65"]
    answers = [orjson.loads(line) for line in (sh.folder / "of_stream").read_bytes().splitlines()]
    assert [record["basin"] for record in answers if "basin" in record] == ["politics", "food"]
    assert "topics: the embeddings were made otherwise" in done.err
    assert not (sh.folder / "of_headless").exists()


def test_the_bundled_examples_and_starts_are_whole():
    parts = {name: [orjson.loads(line) for line in (ROOT / "examples" / f"{name}.jsonl").read_bytes().splitlines()]
             for name in ("topics", "starts")}
    for rows, count in zip(parts.values(), (40, 7), strict=True):
        labels = [row["label"] for row in rows]
        assert {label: labels.count(label) for label in labels} == dict.fromkeys(labels, count)
        assert all(row["title"] and row["text"] for row in rows)
    assert not {row["text"] for row in parts["topics"]} & {row["text"] for row in parts["starts"]}
    passages = [orjson.loads(line) for line in (ROOT / "examples" / "passages.jsonl").read_bytes().splitlines()]
    assert not {row["text"] for row in parts["topics"]} & {row["text"] for row in passages}
