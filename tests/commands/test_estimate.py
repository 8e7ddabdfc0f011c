"""mlm-estimate: stationary means through the command, by their definition and on tables whose law is solved."""

from itertools import pairwise

import numpy as np
import orjson
import pytest
from conftest import ROOT
from oracles import TABLE_A, TABLE_B, site_kernels, stationary

import mlmglauber as mg
from mlmglauber.models.conditionals import TableConditional

pytestmark = pytest.mark.in_process

PAIRS = "mlm-couple -m a.json --tau 1 --lag 7 --on-change --until 30 --seed 2"


def law_of(tables, tau=1.0):
    """(n-dimensional) the stationary law of the random scan."""
    table = TableConditional(tables)
    return stationary(site_kernels(table, tau).mean(axis=0)).reshape((table.vocab_size,) * table.sites)


def lines_of(done):
    return [orjson.dumps(record) + b"\n" for record in done.records]


def whole(records, name, chain, lag, end, of):
    """of(state) at every step of a chain, up to `end`; behind the meeting Y is X `lag` steps later."""
    mine = {record["step"]: of(record) for record in records
            if record["type"] == "state" and record["id"] == name and record["chain"] == chain}
    values = [mine[0]]
    while len(values) <= end:
        values.append(mine.get(len(values), values[-1]))
    return values


def by_definition(records, pair, k, m, of):
    """H_{k:m} and the plain average of a pair, step by step."""
    lag, meeting = pair["lag"], pair["meeting"]
    name = f"{pair['id']}/{pair['tau']}/{pair['n']}/{pair['pair']}"
    x = whole(records, name, 0, lag, max(meeting, m) + 1, of)
    y = whole(records, name, 1, lag, meeting - lag, of)
    total = 0.0
    for first in range(k, m + 1):
        total += x[first]
        late = first + lag
        while late < meeting:
            total += x[late] - y[late - lag]
            late += lag
    return total / (m - k + 1), np.mean(x[k : m + 1])


@pytest.mark.parametrize(("options", "k", "m"), [("", 7, 30), ("--k 0 --m 3", 0, 3), ("--k 12", 12, 30),
                                                 ("--k 30 --m 30", 30, 30)])
def test_the_estimate_is_what_the_definition_gives(sh, tables, options, k, m):
    """Pairs of two texts, with meetings before and after m."""
    pairs = sh(f"printf 'a b\\nc c\\n' | {PAIRS} --pairs 12")
    found, = sh(f"mlm-estimate --of count:b {options}", stdin=pairs.out).records
    ended = [record for record in pairs.records if record["type"] == "pair"]
    assert len(ended) == found["pairs"] == 24
    assert min(pair["meeting"] for pair in ended) < 12 < max(pair["meeting"] for pair in ended)
    both = [by_definition(pairs.records, pair, k, m, lambda state: state["text"].split().count("b")) for pair in ended]
    unbiased, plain = np.array(both).T
    error = unbiased.std(ddof=1) / np.sqrt(24)
    assert (found["k"], found["m"], found["lag"]) == (k, m, 7)
    assert (found["mean"], found["plain"], found["error"]) == pytest.approx((unbiased.mean(), plain.mean(), error))
    assert found["high"] - found["mean"] == pytest.approx(2.0686576 * error)  # Student's t of 23 degrees of freedom
    costs = [7 + 2 * (pair["meeting"] - 7) + max(0, m - pair["meeting"]) for pair in ended]
    assert found["mean_meeting"] == pytest.approx(np.mean([pair["meeting"] for pair in ended]))
    assert found["mean_cost"] == pytest.approx(np.mean(costs))
    assert found["inefficiency"] == pytest.approx(
        np.mean(costs) * unbiased.var(ddof=1) / ((m - k + 1) * plain.var(ddof=1)))


@pytest.mark.parametrize("model", [TABLE_A, TABLE_B])
@pytest.mark.parametrize("coupling", ["maximal", "race", "quantile"])
def test_the_stationary_law_of_incompatible_tables(sh, model, coupling):
    """Right after the start, where a plain average is far off: within 4.5 standard errors of the solved law.

    Ten such numbers of a right program fail with a chance below 1e-4; the seed is fixed.
    """
    letters = "abc"[: len(model[0][0])]
    (sh.folder / "m.json").write_bytes(orjson.dumps({"tokens": list(letters), "tables": model}))
    law = law_of(model)
    pairs = sh(f"echo 'a a' | mlm-couple -m m.json --lag 2 --on-change --until 4 --pairs 1500 --coupling {coupling} "
               "--seed 4")
    found = sh("mlm-estimate --k 1 --of ids.0=0 --tokens 9", stdin=pairs.out).records
    first = found[0]
    assert abs(first["mean"] - law[0].sum()) < 4.5 * first["error"]
    assert abs(first["plain"] - law[0].sum()) > 6 * first["plain_error"]  # the bias of the start
    rows = {(record["site"], record["token"]): record for record in found[1:]}
    assert len(rows) == 3 * len(letters)
    for token, letter in enumerate(letters):
        exact = [law.take(token, axis=site).sum() for site in (0, 1)]
        for site, truth in ((0, exact[0]), (1, exact[1]), (None, np.mean(exact))):
            assert abs(rows[site, letter]["mean"] - truth) < 4.5 * rows[site, letter]["error"]
    assert sum(rows[0, letter]["mean"] for letter in letters) == pytest.approx(1)
    assert rows[0, "a"]["mean"] == pytest.approx(first["mean"])
    assert rows[0, "a"]["error"] == pytest.approx(first["error"])


@pytest.mark.parametrize("every", [1, 2, 3, 6])
def test_states_some_steps_apart(sh, tables, every):
    """Between two states the first counts as if it stayed: still H_{k:m}, of chains that are seen every few steps."""
    pairs = sh("printf 'a b\\nc c\\n' | mlm-couple -m a.json --lag 6 --every "
               f"{every} --until 31 --pairs 12 --seed 2")
    found, = sh("mlm-estimate --of count:b", stdin=pairs.out).records
    ended = [record for record in pairs.records if record["type"] == "pair"]
    assert found["pairs"] == len(ended) == 24
    assert {record["step"] % every for record in pairs.records if record["type"] == "state"} == {0}
    met = [pair | {"meeting": -(-pair["meeting"] // every) * every} for pair in ended]  # as the states show it
    both = [by_definition(pairs.records, pair, 6, 31, lambda state: state["text"].split().count("b")) for pair in met]
    unbiased, plain = np.array(both).T
    assert (found["mean"], found["plain"]) == pytest.approx((unbiased.mean(), plain.mean()))
    assert found["error"] == pytest.approx(unbiased.std(ddof=1) / np.sqrt(24))
    many = sh(f"echo 'a a' | mlm-couple -m a.json --lag 6 --every {every} --until 6 --pairs 1500 --seed 4").out
    truth = law_of(TABLE_A)[0].sum()
    record, = sh("mlm-estimate --of ids.0=0 --k 0 --m 2", stdin=many).records
    assert abs(record["mean"] - truth) < 4.5 * record["error"]
    assert abs(record["plain"] - truth) > 6 * record["plain_error"]


def test_the_function_of_python_is_the_command(sh, tables):
    pairs = sh(f"echo 'a b' | {PAIRS} --pairs 9")
    record, = sh("mlm-estimate --of ids.0=1", stdin=pairs.out).records
    found = mg.stationary_mean(mg.open_model(str(tables / "a.json")), "a b", lambda ids: ids[0] == 1, lag=7, until=30,
                               pairs=9, seed=2)
    for name in ("pairs", "mean", "error", "low", "high", "plain", "plain_error", "inefficiency"):
        assert record[name] == pytest.approx(getattr(found, name), abs=1e-12), name
    with pytest.raises(ValueError, match="did not meet"):
        mg.stationary_mean(mg.open_model(str(tables / "a.json")), "a b", lambda ids: 1.0, tau=0.05, lag=1, until=2,
                           max_steps=1, pairs=9, seed=2)
    with pytest.raises(ValueError, match="must be finite"):
        mg.stationary_mean(mg.open_model(str(tables / "a.json")), "a b", lambda ids: np.nan, lag=1, pairs=1, seed=2)


def test_fields_of_filters_between(sh, tables):
    """A field that jq adds, nested ones, booleans, and the pseudo-log-likelihood of mlm-score."""
    sh(f"printf 'a b\\nc c\\n' | {PAIRS} --pairs 6 > p")
    added = sh('jq -c \'if .type == "state" then .x = {y: [1, {z: (.ids[0] * 2)}], b: (.ids[1] == 2)} else . end\' p | '
               "mlm-score -m a.json --by text | mlm-estimate --of x.y.1.z,x.b,pll,ids.0,words")
    assert (added.status, added.err) == (0, "")
    nested, boolean, pll, first, words = added.records
    assert nested["mean"] == pytest.approx(2 * first["mean"])
    assert (words["mean"], words["error"]) == (2, 0)
    assert words["inefficiency_reason"] == "the plain averages of all pairs are equal"
    pairs = sh("cat p").records
    model = TableConditional(TABLE_A)

    def log_likelihood(state):
        return float(sum(model.log_probs(np.array([state["ids"]]), np.array([site]))[0][state["ids"][site]]
                         for site in (0, 1)))

    ended = [record for record in pairs if record["type"] == "pair"]
    wanted = np.mean([by_definition(pairs, pair, 7, 30, log_likelihood)[0] for pair in ended])
    assert pll["mean"] == pytest.approx(wanted)
    wanted = np.mean([by_definition(pairs, pair, 7, 30, lambda state: state["ids"][1] == 2)[0] for pair in ended])
    assert boolean["mean"] == pytest.approx(wanted)


def test_a_pair_that_did_not_meet_leaves_no_estimate(sh, tables):
    """Of nine pairs some are censored: a mean over the others would be biased."""
    done = sh("echo 'a b' | mlm-couple -m a.json --tau 0.3 --lag 3 --on-change --until 4 --max-steps 12 --pairs 9 "
              "--seed 1 | mlm-estimate --of words --tokens 2 --target-se 0.1")
    assert (done.status, done.err) == (0, "")
    for record in done.records:
        assert 0 < record["censored"] < 9
        assert record["pairs"] + record["censored"] == 9
        for name in ("mean", "error", "low", "high", "plain", "inefficiency", "pairs_needed"):
            assert record[name] is None
            assert f"{record['censored']} of 9 pairs did not meet" in record[f"{name}_reason"]


def test_how_many_pairs_an_error_needs(sh, tables):
    pairs = sh(f"echo 'a b' | {PAIRS} --pairs 40").out
    found, = sh("mlm-estimate --of count:a --target-se 0.01", stdin=pairs).records
    assert found["pairs_needed"] == int(np.ceil(40 * (found["error"] / 0.01) ** 2))
    assert sh("mlm-estimate --of count:a --target-se 0", stdin=pairs).status == 2
    alone, = sh(f"echo 'a b' | {PAIRS} --pairs 1 | mlm-estimate --of count:a --target-se 0.01").records
    assert (alone["pairs_needed"], alone["pairs_needed_reason"]) == (None, "one pair has no standard error")
    assert alone["mean"] is not None


def without(lines, chosen):
    return [line for k, line in enumerate(lines) if k != chosen]


def spoiled(lines, number, **fields):
    """Lines in which one state has other fields."""
    states = [k for k, line in enumerate(lines) if b'"type":"state"' in line]
    chosen = states[number]
    return [*lines[:chosen], orjson.dumps(orjson.loads(lines[chosen]) | fields) + b"\n", *lines[chosen + 1 :]]


def first_pair(lines):
    return next(k for k, line in enumerate(lines) if b'"type":"pair"' in line)


BAD = {
    "no state in the middle": (lambda lines: without(lines, 3), "came before this pair record"),
    "no first state": (lambda lines: without(lines, 1), "not of step 0"),
    "no pair record": (lambda lines: without(lines, first_pair(lines)), "has no pair record"),
    "the input ends in a pair": (lambda lines: lines[: first_pair(lines) + 3], "has no pair record"),
    "no run record": (lambda lines: lines[1:], "no run record came before the states"),
    "a field is missing": (lambda lines: spoiled(lines, 4, ids=[]), 'has no field "ids.0"'),
    "a value is null": (lambda lines: spoiled(lines, 4, ids=[None, 1]), "null, not a finite number"),
    "a value is a word": (lambda lines: spoiled(lines, 4, ids=["a", 1]), "not a finite number"),
    "a value is too large": (lambda lines: spoiled(lines, 4, ids=[1.5e308, 1]), "not a finite number"),
    "two states are exchanged": (lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]], "comes after step"),
    "a pair comes twice": (lambda lines: [*lines, *lines[1:]], "it is the same pair again"),
    "a pair record alone": (lambda lines: [lines[0], *lines[first_pair(lines) :]],
                            "a pair record without the states of the pair"),
    "another chain": (lambda lines: spoiled(lines, 4, chain=2), "not a state of a pair"),
    "half a line": (lambda lines: [*lines[:-1], lines[-1][:40]], ""),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_told_once_and_leaves_no_number(sh, tables, kind):
    """Each spoils the first of three pairs or all; none gives a mean of the pairs that are left."""
    lines = lines_of(sh(f"echo 'a b' | {PAIRS} --pairs 3"))
    spoil, message = BAD[kind]
    done = sh("mlm-estimate --of ids.0", stdin=b"".join(spoil(lines)))
    assert done.status == 65
    assert message in done.err
    told = done.err.count("\n")
    assert told == (3 if kind == "a pair comes twice" else 2 if kind == "half a line" else 1)
    if kind == "a pair comes twice":  # the first copy of each is whole
        assert [record["pairs"] for record in done.records] == [3]
    else:
        assert all(record["mean"] is None and record["mean_reason"] for record in done.records)


@pytest.mark.parametrize(("made", "message"), [
    ("mlm-sample -m a.json --on-change --steps 20 --seed 1", "did not write the states"),
    ("mlm-couple -m a.json --start random --on-change --seed 1", "have no lag"),
    ("mlm-couple -m a.json --lag 5 --every 1 --max-steps 40 --seed 1", "did not write the states"),
])
def test_states_of_other_commands_are_refused(sh, tables, made, message):
    done = sh(f"echo 'a b' | {made} | mlm-estimate --of words")
    assert (done.status, done.records) == (65, [])
    assert message in done.err


def test_kinds_of_pairs_are_kept_apart(sh, tables):
    """Temperatures, lengths and models; two seeds of one kind are pooled."""
    sh(f"printf 'a b\\n' | {PAIRS} --pairs 3 > one; printf 'a b\\n' | {PAIRS} --pairs 4 --seed 9 > two; "
       "printf 'a b\\n' | mlm-couple -m b.json --tau 1,2 --lag 7 --on-change --until 30 --seed 2 > three")
    found = sh("mlm-estimate --of words one two three").records
    assert [(record["model"], record["tau"], record["pairs"]) for record in found] == [
        ("a.json", 1.0, 7), ("b.json", 1.0, 1), ("b.json", 2.0, 1)]


def test_usage(sh, tables):
    assert "give --of FIELD" in sh("mlm-estimate", stdin=b"").err
    assert sh("mlm-estimate --of a,a", stdin=b"").status == 2
    assert sh("mlm-estimate --of words", stdin=b"").status == 0
    pairs = sh(f"echo 'a b' | {PAIRS}").out
    late = sh("mlm-estimate --of words --m 31", stdin=pairs)
    assert (late.status, "they run to step 30, but --m is 31" in late.err) == (65, True)
    assert "k <= m" in sh("mlm-estimate --of words --k 9 --m 8", stdin=pairs).err
    for wrong, message in (("--until 9", "--until needs --lag, and --on-change or --every"),
                           ("--lag 5 --every 2 --until 20", "is no multiple of --every 2"),
                           ("--on-change --every 2", "exclude each other"),
                           ("--on-change --lag 3 --until 20 --max-steps 5", "is too small")):
        assert message in sh(f"echo 'a b' | mlm-couple -m a.json {wrong}").err


def test_the_table(sh, tables):
    pairs = sh(f"echo 'a b' | {PAIRS} --pairs 5").out
    shown = sh("mlm-estimate --of words --tokens 1 --table", stdin=pairs).out.decode()
    assert "Stationary means" in shown
    assert "pairs needed" not in shown
    rows = sh("mlm-estimate --of words --tokens 1 --csv --target-se 1", stdin=pairs).out.decode().splitlines()
    assert "pairs needed" in rows[0]
    assert len(rows) == 1 + 4  # words, the likeliest token of all sites and of each


def test_what_mlm_couple_writes(sh, tables):
    """Every state differs from the one before it of its chain, but for first and last ones; a killed run goes on."""
    pairs = sh(f"echo 'a b' | {PAIRS} --pairs 3")
    states = [record for record in pairs.records if record["type"] == "state"]
    for ended in (record for record in pairs.records if record["type"] == "pair"):
        name = f"0/1.0/2/{ended['pair']}"
        chains = [[state for state in states if (state["id"], state["chain"]) == (name, chain)] for chain in (0, 1)]
        assert [len(chain) for chain in chains] == ended["states"]
        assert chains[0][-1]["step"] == ended["last_step"] == max(30, ended["meeting"])
        last = chains[1][-1]["step"]
        assert last == ended["meeting"] - 7 or (last, ended["meeting"]) == (0, 8)  # X_7 = Y_0
        assert [state.get("met", False) for state in chains[0]] == [
            state["step"] >= last + 7 for state in chains[0]]
        for chain in chains:
            assert chain[0]["step"] == 0
            for one, other in pairwise(chain[:-1]):
                assert one["ids"] != other["ids"] or other["step"] in (7, last + 7)
    for cut in (len(pairs.out) // 3, len(pairs.out) - 5):
        (sh.folder / "part").write_bytes(pairs.out[:cut])
        assert sh(f"echo 'a b' | {PAIRS} --pairs 3 --resume part").status == 0
        assert (sh.folder / "part").read_bytes() == pairs.out


def test_a_loop_of_batches_ends_at_the_wanted_error(sh, tables):
    """The example script: it is killed in a batch, started again, and leaves what one run leaves."""
    (sh.folder / "texts").write_text("a b\n")
    script = ("MLM_MODEL=a.json TAU=1 LENGTH=2 LAG=7 UNTIL=30 PAIRS=8 OF=count:a SE=0.1 "
              f"sh {ROOT}/examples/until-precise.sh")
    done = sh(f"{script} texts 'a folder'")
    assert (done.status, done.err) == (0, "")
    found, = done.records
    assert found["error"] <= 0.1
    files = sorted((sh.folder / "a folder").glob("pairs-*"))
    assert found["pairs"] == 8 * len(files) >= 16
    before = sh("head -n -1 'a folder'/estimate.jsonl; mlm-estimate --of count:a --target-se 0.1 "
                f"{' '.join(repr(str(path)) for path in files[:-1])}").records[-1]
    assert before["error"] > 0.1  # the last batch was needed
    content = files[1].read_bytes()
    files[1].write_bytes(content[: len(content) // 2])
    again = sh(f"{script} texts 'a folder'")
    assert (again.status, again.out) == (0, done.out)
    assert files[1].read_bytes() == content
    cold = sh(f"{script.replace('TAU=1', 'TAU=0.05').replace('LAG=7', 'LAG=1')} texts cold")
    assert cold.status == 1
    assert "did not meet" in cold.err


def test_how_many_steps_the_drift_needs(sh, tables):
    """mcse_mean falls as 1 / sqrt(steps): by hand from the record; null for chains that stay where they are."""
    chains = sh("printf 'a b\\nc c\\n' | mlm-sample -m a.json --chains 4 --steps 4000 --every 2 --seed 1 | jq -c '"
                'if .type == "state" then .embedding = [.ids[0] + 1, .ids[1] + 1] else . end\' | mlm-drift --summary '
                "--target-se 0.0005").records
    group, = [record for record in chains if record["over"] == "group"]
    found = group["diagnostics"]
    assert found["steps_needed"] == int(np.ceil(4000 * (found["mcse_mean"] / 0.0005) ** 2)) > 4000
    cold = sh("printf 'a b\\nc c\\n' | mlm-sample -m a.json -t 0.01 --chains 4 --steps 400 --every 2 --seed 1 | jq -c '"
              'if .type == "state" then .embedding = [.ids[0] + 1, .ids[1] + 1] else . end\' | mlm-drift --summary '
              "--target-se 0.001").records
    group, = [record for record in cold if record["over"] == "group"]
    assert group["diagnostics"]["steps_needed"] is None
    assert group["diagnostics"]["steps_needed_reason"]
    assert sh("mlm-drift --target-se 1", stdin=b"").status == 2
