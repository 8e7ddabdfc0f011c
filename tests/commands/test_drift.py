"""mlm-drift through a real shell, on embeddings written by hand."""

from itertools import pairwise

import numpy as np
import orjson
import pytest

from mlmglauber.stream.vectors import pack

pytestmark = pytest.mark.in_process


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
    assert (chain["undefined"], chain["count"], chain["hitting"][0]["time"]) == (1, 3, 2)


def test_embeddings_of_two_models_are_refused(sh):
    text = states({("a", 0, 1.0): TURN}) + states({("b", 0, 1.0): TURN}, embedder="f")
    done = sh("mlm-drift", stdin=text)
    assert done.status == 65
    assert "embeddings of two models (e and f)" in done.err
    uneven = states({("a", 0, 1.0): [(0, [1, 0]), (1, [1, 0, 0]), (2, [0, 1])]})
    done = sh("mlm-drift", stdin=uneven)
    assert (done.status, len(done.states)) == (65, 2)
    assert "stdin:3: the embedding has 3 dimensions, its reference has 2" in done.err


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
    assert one["hitting"] == [
        {"threshold": 0.25, "time": 4, "at_least": 1, "n_log_n": pytest.approx(4 / unit), "censored": False},
        {"threshold": 1.0, "time": 8, "at_least": 5, "n_log_n": pytest.approx(8 / unit), "censored": False}]
    assert (one["first_step"], one["last_step"], one["watched"]) == (0, 12, 12)
    assert one["quartiles"] == pytest.approx([1, 1, 2])
    assert two["frozen"]
    assert two["hitting"][0] == {"threshold": 0.25, "time": None, "at_least": None, "n_log_n": None, "censored": True}
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
    assert hot["hitting"][0]["restricted_mean_at_least"] == pytest.approx(1 + 11 / 2)
    assert (hot["plateau_low"], hot["plateau_reason"]) == (None, "an interval needs 4 texts, there are 1")
    assert hot["hitting"][0]["resolution"] == 4


def test_summary_of_uneven_steps_reads_them_once_a_sweep(sh):
    uneven = {("a", 0, 1.0): [(0, [1, 0]), (3, [1, 1]), (16, [1, 1])],
              ("a", 1, 1.0): [(0, [1, 0]), (7, [0, 1]), (9, [1, 1]), (16, [1, 1])]}
    group = next(r for r in sh("mlm-drift --summary", stdin=states(uneven)).records if r["over"] == "group")
    assert group["diagnostics"]["resampled"]
    assert group["diagnostics"]["draws"] == 3  # steps 8, 12, 16


def run_record(command="mlm-sample", run="r", **options):
    return orjson.dumps({"type": "run", "schema": "mlm/1", "run": run, "command": command, "tau": 1.0, "model": "m",
                         "options": options}) + b"\n"


def summaries(done, over):
    assert done.status == 0, done.err
    return [record for record in done.records if record["over"] == over]


def test_times_count_from_the_first_record(sh):
    """Issue 16, A1: after a burn-in of 160 steps a time of 8 was told as 168. The same with --table."""
    late = {("abcd"[k], 0, 1.0): [(160 + step, vector) for step, vector in TURN] for k in range(4)}
    done = sh("mlm-drift --summary --threshold 1", stdin=states(late))
    chain = done.records[0]
    assert (chain["first_step"], chain["last_step"], chain["watched"]) == (160, 172, 12)
    assert (chain["hitting"][0]["time"], chain["hitting"][0]["n_log_n"]) == (8, pytest.approx(2 / np.log(4)))
    hitting = summaries(done, "group")[0]["hitting"][0]
    assert (hitting["median"], hitting["median_at_least"], hitting["horizon"]) == (8, 5, 12)
    assert (hitting["restricted_mean"], hitting["c"]) == (8, pytest.approx(2 / np.log(4)))
    (sh.folder / "zero").write_bytes(states({("z", 0, 1.0): [(0, [1, 0])]}))
    own = sh("mlm-drift --summary --threshold 1 --reference zero", stdin=states(late)).records[0]
    assert own["hitting"][0]["time"] == 168  # the reference is no record of the chain: times are steps


def test_what_looks_leave_open_is_told(sh):
    """A7: looks every 16 steps said 16 [16, 16] of times from 3 to 14."""
    found = {(name, 0, 1.0): [(0, [1, 0]), (16, [0, 1]), (32, [0, 1])] for name in "abcde"}
    table = sh("mlm-drift --summary --csv", stdin=states(found)).out.decode().splitlines()
    text = sh("mlm-drift --table", stdin=states(found)).out.decode()
    assert "<= 16" in text
    assert "16 [" not in text
    row = dict(zip(table[0].split(","), table[1].split(","), strict=True))
    assert (row["seen every"], row["median hitting time"], row["median hitting time at least"]) == ("16", "16.0", "1.0")
    changes = run_record(on_change=True) + states({(name, 0, 1.0): [(0, [1, 0]), (3, [0, 1]), (32, [0, 1])]
                                                   for name in "abcde"})
    exact = summaries(sh("mlm-drift --summary", stdin=changes), "group")[0]["hitting"][0]
    assert (exact["median"], exact["median_at_least"], exact["resolution"]) == (3, 3, 1)


def test_time_weighs_where_every_change_is_recorded(sh):
    """A8: at 0 for 950 of 1,000 steps, then at 1: the plateau of records is 1, that of time is small."""
    series = {("a", 0, 1.0): [(0, [1, 0]), *[(950 + k, [0, 1 + k]) for k in range(0, 50, 10)], (1000, [0, 1])]}
    by_time = sh("mlm-drift --summary", stdin=run_record(on_change=True) + states(series)).records[0]
    assert by_time["plateau"] == pytest.approx(51 / 500.5)
    assert (by_time["frozen"], by_time["quartiles"]) == (False, [0, 0, 0])
    stuck = {("a", 0, 1.0): [(0, [1, 0]), (1000, [1, 0])]}
    assert sh("mlm-drift --summary", stdin=run_record(on_change=True) + states(stuck)).records[0]["frozen"] is True
    looks = sh("mlm-drift --summary", stdin=run_record(every=1000) + states(stuck)).records[0]
    assert (looks["frozen"], looks["frozen_reason"]) == (None, "the second half was not seen twice")
    one = sh("mlm-drift --summary", stdin=states({("a", 0, 1.0): [(0, [1, 0])]})).records[0]
    assert one["frozen"] is None


def test_independent_states_of_different_texts_have_mixed(sh):
    """A5: of drift to their own starts they had R-hat 1.095 and an ESS of 104 of 16,016."""
    rng = np.random.default_rng(1)
    iid = {(f"t{k}", chain, 1.0): [(step, rng.normal(1, 1, 8)) for step in range(1001)]
           for k in range(8) for chain in range(2)}
    found = summaries(sh("mlm-drift --summary", stdin=states(iid, encoding="base64")), "group")[0]["diagnostics"]
    assert (found["chains"], found["draws"]) == (16, 501)
    assert found["rhat_rank"] == pytest.approx(1, abs=0.003)
    assert found["rhat_nested"] == pytest.approx(1, abs=0.003)
    assert found["ess_bulk"] == pytest.approx(16 * 501, rel=0.05)
    assert all(abs(part["acf"]) < 0.05 for part in found["acf"])
    stuck = {(f"t{k}", 0, 1.0): [(step, rng.normal(3 * np.eye(8)[k], 0.3)) for step in range(101)] for k in range(8)}
    apart = summaries(sh("mlm-drift --summary", stdin=states(stuck, encoding="base64")), "group")[0]["diagnostics"]
    assert apart["rhat_rank"] > 1.5
    assert apart["converged"] is False


def test_chains_of_two_models_stand_apart(sh):
    """A10: they were put together in one row; so are chains without a run record, of another model."""
    one = run_record() + states({("a", 0, 1.0): TURN})
    two = orjson.dumps({**orjson.loads(run_record(run="r")), "model": "other", "run": "s"}) + b"\n"
    two += states({("a", 0, 1.0): TURN}).replace(b'"run":"r"', b'"run":"s"')
    scan = run_record(run="u", scan="systematic") + states({("a", 0, 1.0): TURN}).replace(b'"run":"r"', b'"run":"u"')
    bare = states({("a", 0, 1.0): TURN}).replace(b'"run":"r"', b'"run":"t"')
    again = run_record(run="v") + states({("b", 0, 1.0): TURN}).replace(b'"run":"r"', b'"run":"v"')
    done = sh("mlm-drift --summary", stdin=one + two + scan + bare + again)
    groups = summaries(done, "group")
    assert [(group["model"], group.get("scan"), group["chains"]) for group in groups] == [
        ("m", "random", 2), ("other", "random", 1), ("m", "systematic", 1), (None, None, 1)]
    assert [part["model"] for part in summaries(done, "tau")] == ["m", "other", "m", None]
    table = sh("mlm-drift --table", stdin=one + two + scan + bare).out.decode()
    assert "other" in table
    assert "systematic scan" in table


def test_chains_that_have_met_count_once(sh):
    """17.3: mlm-couple --every writes both chains, equal after their meeting."""
    rng = np.random.default_rng(1)
    vectors = {step: rng.normal(size=4).tolist() for step in range(0, 200, 4)}
    lines = [{"type": "state", "run": "r", "id": f"{name}/1.0/4/{pair}", "chain": chain, "step": step, "coupled": name,
              "tau": 1.0, "n": 4, "embedding": vector}
             for name in ("a+b", "c+d") for pair in range(3) for chain in range(2)
             for step, vector in vectors.items()]
    done = sh("mlm-drift --summary", stdin=b"".join(orjson.dumps(line) + b"\n" for line in lines))
    group = summaries(done, "group")[0]
    assert (group["chains"], group["texts"], group["coupled_left_out"]) == (6, 2, 6)
    assert group["diagnostics"]["chains"] == 6
    assert "6 chains left out of the summary: coupled with one that counts" in done.err
    assert len(summaries(done, "chain")) == 12


def test_a_short_chain_is_named(sh):
    """17.5, through the command; under -q nothing is said."""
    looks = {("abcdefgh"[k], 0, 1.0): [(step, [1, step % 3 + k]) for step in range(0, 81 if k == 2 else 1601, 16)]
             for k in range(8)}
    done = sh("mlm-drift --summary", stdin=states(looks))
    assert done.err == ("mlm-drift: tau 1.0, n 4: 1 of 8 chains ends at step 80 of 1600 and is left out of the "
                        "diagnostics\n")
    assert summaries(done, "group")[0]["diagnostics"]["draws"] == 51
    assert sh("mlm-drift --summary -q", stdin=states(looks)).err == ""


def test_pseudo_log_likelihoods_stand_beside_drift(sh):
    """--energy writes pll, of the whole text; here -8 at the start and -12, -16 in the second half, of 4 tokens."""
    lines = [orjson.loads(line) for line in states({(name, 0, 1.0): TURN for name in "abcd"}).splitlines()]
    for line in lines[1:]:
        line["pll"] = {0: -8.0, 4: -100.0, 8: -12.0, 12: -16.0}[line["step"]]
    done = sh("mlm-drift --summary", stdin=b"".join(orjson.dumps(line) + b"\n" for line in lines))
    chain, group = done.records[0], summaries(done, "group")[0]
    assert (chain["pll_start"], chain["pll_plateau"]) == (-2, -3.5)
    assert (group["pll_start"], group["pll_plateau"], group["pll_change"]) == (-2, -3.5, -1.5)
    table = sh("mlm-drift --table", stdin=b"".join(orjson.dumps(line) + b"\n" for line in lines)).out.decode()
    assert "Pseudo-log-likelihood a token" in table
    assert "-3.50" in table


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
    code = ("import sys; from mlmglauber.commands.drift.command import main\n"
            "try: main(['--summary', '--table', 'in'])\n"
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
