"""mlm-drift through a real shell, on embeddings written by hand."""

from itertools import pairwise

import numpy as np
import orjson
import pytest

from mlmglauber.stream.vectors import pack


def states(chains, embedder="e", n=4, encoding="float"):
    """State records of {(id, chain, tau): [(step, vector), ...]} as bytes."""
    lines = [{"type": "run", "schema": "mlm/1", "run": "r"}]
    for (name, chain, tau), series in chains.items():
        for step, vector in series:
            lines.append({"type": "state", "run": "r", "id": name, "chain": chain, "step": step, "tau": tau, "n": n,
                          "text": "t", "embedding": pack(np.array(vector, np.float32), encoding), "embedder": embedder})
    return b"".join(orjson.dumps(line, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n" for line in lines)


TURN = [(0, [1, 0]), (4, [1, 1]), (8, [0, 1]), (12, [-1, 0])]


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_drift_takes_the_place_of_the_embedding(sh, encoding):
    done = sh("mlm-drift", stdin=states({("a", 0, 1.0): TURN, ("b", 0, 1.0): [(0, [0, 2]), (4, [0, 2])]}, "e", 4,
                                        encoding))
    assert (done.status, done.err) == (0, "")
    assert done.records[0] == {"type": "run", "schema": "mlm/1", "run": "r"}
    assert [state["drift"] for state in done.states] == pytest.approx([0, 1 - 0.5**0.5, 1, 2, 0, 0])
    assert not any("embedding" in state or "embedder" in state for state in done.states)
    previous = sh("mlm-drift --reference previous", stdin=states({("a", 0, 1.0): TURN})).states
    assert [state["drift"] for state in previous] == pytest.approx([0, 1 - 0.5**0.5, 1 - 0.5**0.5, 1])


def test_references_from_a_file(sh):
    (sh.folder / "one").write_bytes(states({("z", 0, 1.0): [(0, [0, 1])]}))
    one = sh("mlm-drift --reference one", stdin=states({("a", 0, 1.0): TURN}))
    assert [state["drift"] for state in one.states] == pytest.approx([1, 1 - 0.5**0.5, 0, 1])
    (sh.folder / "two").write_bytes(states({("a", 0, 1.0): [(0, [0, 1])], ("z", 0, 1.0): [(0, [1, 0])]}))
    two = sh("mlm-drift --reference two", stdin=states({("a", 0, 1.0): TURN, ("b", 0, 1.0): TURN}))
    assert [state["drift"] for state in two.states] == pytest.approx([1, 1 - 0.5**0.5, 0, 1])
    assert two.status == 65
    assert "no reference for the id 'b'" in two.err
    assert sh("mlm-drift --reference gone", stdin=states({("a", 0, 1.0): TURN})).status == 66


def test_undefined_drift_is_null_with_a_reason(sh):
    text = states({("a", 0, 1.0): [(0, [1, 0]), (1, [0, 0]), (2, [0, 1])]})
    done = sh("mlm-drift", stdin=text)
    assert [(state["drift"], state.get("drift_reason")) for state in done.states] == [(0, None), (None, "zero_norm"),
                                                                                       (1, None)]
    chain = sh("mlm-drift --summary", stdin=text).records[0]
    assert (chain["undefined"], chain["count"], chain["hitting"][0]["step"]) == (1, 3, 2)


def test_embeddings_of_two_models_are_refused(sh):
    text = states({("a", 0, 1.0): TURN}) + states({("b", 0, 1.0): TURN}, embedder="f")
    done = sh("mlm-drift", stdin=text)
    assert done.status == 65
    assert "embeddings of two models (e and f)" in done.err
    uneven = states({("a", 0, 1.0): [(0, [1, 0]), (1, [1, 0, 0]), (2, [0, 1])]})
    done = sh("mlm-drift", stdin=uneven)
    assert (done.status, len(done.states)) == (65, 2)
    assert "stdin:3: an embedding of 3 dimensions, its reference has 2" in done.err


def test_bad_embeddings_are_told(sh):
    lines = b'{"embedding":"x"}\n{"embedding":[NaN]}\n{"embedding":[1,0]}\nplain\n{"embedding":null}\n{"text":"t"}\n'
    done = sh("mlm-drift", stdin=lines)
    assert done.status == 65
    assert [line.split(": ")[1] for line in done.err.splitlines()] == [f"stdin:{k}" for k in (1, 2, 4, 5)]
    assert done.records == [{"drift": 0.0}, {"text": "t"}]


def test_summary_by_hand(sh):
    stuck = [(0, [1, 0]), (4, [1, 0]), (8, [1, 0]), (12, [1, 0])]
    done = sh("mlm-drift --summary --threshold 0.25,1",
              stdin=states({("a", 0, 1.0): TURN, ("a", 1, 1.0): stuck, ("b", 0, 0.5): stuck}))
    one, two, cold, *groups = done.records
    unit = 4 * np.log(4)
    assert one["final"] == pytest.approx(2)
    assert one["plateau"] == pytest.approx(1.5)
    assert not one["frozen"]
    assert one["hitting"] == [{"threshold": 0.25, "step": 4, "n_log_n": pytest.approx(4 / unit), "censored": False},
                              {"threshold": 1.0, "step": 8, "n_log_n": pytest.approx(8 / unit), "censored": False}]
    assert two["frozen"]
    assert two["hitting"][0] == {"threshold": 0.25, "step": None, "n_log_n": None, "censored": True}
    assert (cold["tau"], cold["frozen"]) == (0.5, True)
    assert [(group["over"], group["tau"]) for group in groups] == [("group", 0.5), ("group", 1.0), ("tau", 0.5),
                                                                   ("tau", 1.0)]
    frozen, hot = groups[:2]
    assert frozen["frozen_chains"] == 1
    assert (frozen["diagnostics"]["ess_bulk"], frozen["diagnostics"]["reason"]) == (None, "too_few_draws")
    assert frozen["hitting"][0]["c_reason"] == "median_not_reached"
    assert (hot["chains"], hot["texts"], hot["frozen_chains"], hot["plateau"]) == (2, 1, 1, pytest.approx(0.75))
    assert (hot["hitting"][0]["hits"], hot["hitting"][0]["censored"]) == (1, 1)
    assert hot["hitting"][0]["restricted_mean"] == pytest.approx(4 + 8 / 2)
    assert hot["hitting"][0]["resolution"] == 4


def test_summary_of_uneven_steps_reads_them_once_a_sweep(sh):
    uneven = {("a", 0, 1.0): [(0, [1, 0]), (3, [1, 1]), (16, [1, 1])],
              ("a", 1, 1.0): [(0, [1, 0]), (7, [0, 1]), (9, [1, 1]), (16, [1, 1])]}
    group = next(r for r in sh("mlm-drift --summary", stdin=states(uneven)).records if r["over"] == "group")
    assert group["diagnostics"]["resampled"]
    assert group["diagnostics"]["draws"] == 3  # steps 8, 12, 16


def test_a_table_for_people(sh):
    done = sh("mlm-drift --summary --table", stdin=states({("a", 0, 1.0): TURN, ("b", 0, 2.0): TURN}))
    text = done.out.decode()
    assert "plateau drift" in text
    assert "1.00" in text
    assert "\x1b" not in text


def test_nothing_in_nothing_out_and_unsorted_chains_are_told(sh):
    assert sh("mlm-drift --summary < /dev/null") == (0, b"", "")
    shuffled = states({("a", 0, 1.0): [TURN[0], TURN[2], TURN[1]]})
    done = sh("mlm-drift --summary", stdin=shuffled)
    assert done.status == 65
    assert "step 4 does not come after" in done.err


def test_no_torch(sh):
    code = ("import sys; from mlmglauber.commands.drift import main\ntry: main(['--summary', '--table', 'in'])\n"
            "except SystemExit: pass\nassert not {'torch', 'transformers'} & set(sys.modules)")
    rng = np.random.default_rng(0)
    (sh.folder / "in").write_bytes(states({("a", k, 1.0): [(s, rng.normal(size=3)) for s in range(20)]
                                           for k in range(2)}))
    done = sh(f'python -c "{code}"')
    assert (done.status, done.err) == (0, "")
    assert b"R-hat" in done.out


def test_order_is_kept(sh):
    text = states({("a", 0, 1.0): TURN, ("b", 0, 1.0): TURN})
    steps = [(state["id"], state["step"]) for state in sh("mlm-drift", stdin=text).states]
    assert all(a < b for a, b in pairwise(steps))
