"""--top-k, --top-p and --min-p through the commands: another chain, whose law mlm-exact solves and chains draw."""

import itertools

import numpy as np
import orjson
import pytest
from oracles import site_kernels, stationary

from mlmglauber.models.conditionals import TableConditional

pytestmark = pytest.mark.in_process

RULES = {"--top-k 2": lambda p: p >= np.sort(p)[..., -2:-1],
         "--min-p 0.4": lambda p: p >= 0.4 * p.max(-1, keepdims=True), "--top-p 0.75": None}


def table_of(seed, letters=4):
    """Two sites; conditionals without ties."""
    generator = np.random.default_rng(seed)
    return [generator.dirichlet(np.ones(letters), letters).round(6) for _ in range(2)]


def tempered(rows, tau):
    weights = rows ** (1 / tau)
    return weights / weights.sum(axis=-1, keepdims=True)


def truncated(rows, option, tau):
    """p_tau of which the rule keeps the likeliest, renormalised: by hand, row by row."""
    p = tempered(np.array(rows), tau)
    if option.startswith("--top-p"):
        order = np.argsort(-p, axis=-1)
        sums = np.take_along_axis(p, order, -1).cumsum(-1)
        before = np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :-1]], axis=-1)
        kept = np.zeros_like(p, bool)
        np.put_along_axis(kept, order, before < float(option.split()[1]), -1)
    else:
        kept = RULES[option](p)
    p = np.where(kept, p, 0.0)
    return p / p.sum(axis=-1, keepdims=True)


def law_of(tables, option, tau):
    """(S,) the stationary law of the random scan on truncated conditionals, from the start's recurrent class."""
    table = TableConditional([truncated(rows, option, tau) for rows in tables])
    return stationary(site_kernels(table, 1.0).mean(axis=0))


@pytest.fixture
def model(sh):
    tables = table_of(3)
    (sh.folder / "m.json").write_bytes(orjson.dumps({"tokens": list("abcd"), "tables": [t.tolist() for t in tables]}))
    return tables


def letters(place):
    return " ".join("abcd"[k] for k in divmod(place, 4))


@pytest.mark.parametrize("option", RULES)
@pytest.mark.parametrize("tau", [0.6, 1.0, 2.5])
def test_the_law_is_that_of_truncated_conditionals(sh, model, option, tau):
    """mlm-exact against own numpy; the same with the states of a chain, which --compare finds of this law."""
    sh(f"echo 'a b' | mlm-sample -m m.json --tau {tau} {option} --chains 8 --steps 1000 --every 1 --seed 5 > s")
    solve = f"echo 'a b' | mlm-exact -m m.json --tau {tau} {option} --top 4 --likeliest 16"
    found = sh(f"{solve} --compare s").of("exact")[0]
    law = law_of(model, option, tau)
    known = {state["text"]: state["probability"] for state in found["likeliest"]}
    assert [known[letters(place)] for place in range(16)] == pytest.approx(law.tolist(), abs=1e-9)
    assert sum(mass == 0 for mass in law) > 0 or option == "--min-p 0.4"
    assert found["compare"]["p_value"] > 1e-4  # nine such tests of a right sampler fail once in a thousand runs
    whole = sh(f"echo 'a b' | mlm-exact -m m.json --tau {tau} --top 4 --compare s").of("exact")[0]["compare"]
    assert (whole["p_value"], "cuts off other tokens" in whole["reason"]) == (None, True)


def test_the_rectangles_do_not_decide_whether_a_truncated_chain_is_reversible(sh):
    """Of a joint law, whose chain is reversible; the two likeliest tokens of each conditional make one that is not."""
    joint = np.random.default_rng(1).dirichlet(np.ones(9)).reshape(3, 3)
    tables = [joint / joint.sum(axis=0), (joint.T / joint.sum(axis=1))]
    model = {"tokens": list("abc"), "tables": [tables[0].T.tolist(), tables[1].T.tolist()]}
    (sh.folder / "joint.json").write_bytes(orjson.dumps(model))
    whole, cut = (sh(f"echo 'a b' | mlm-exact -m joint.json --top 3 {option}").of("exact")[0]
                  for option in ("", "--top-k 2"))
    assert (whole["reversible"], cut["reversible"]) == (True, None)
    assert "cuts off tokens" in cut["reversible_reason"]
    assert "infinite" in cut["entropy_production_reason"]


@pytest.mark.parametrize("option", RULES)
@pytest.mark.parametrize("coupling", ["maximal", "race", "quantile"])
def test_coupled_chains_have_the_truncated_law(sh, model, option, coupling):
    """By the unbiased estimates of 200 pairs: within 4.5 standard errors (nine tests fail with a chance below 1e-4)."""
    pairs = sh(f"echo 'a a' | mlm-couple -m m.json --tau 2.5 {option} --coupling {coupling} --lag 3 --on-change "
               "--until 12 --pairs 200 --seed 2 --max-steps 4000")
    law = law_of(model, option, 2.5).reshape(4, 4)
    for record in sh("mlm-estimate --k 1 --of ids.0=0,ids.1=2", stdin=pairs.out).records:
        truth = law[0].sum() if record["field"] == "ids.0=0" else law[:, 2].sum()
        assert abs(record["mean"] - truth) < 4.5 * record["error"] + 1e-12
        assert record[option.split()[0][2:].replace("-", "_")] == float(option.split()[1])


@pytest.mark.parametrize("options", ["--top-k 5", "--min-p 0.05", "--top-k 40 --top-p 0.95 --tau 0.8"])
def test_both_engines_and_any_batch_give_the_same_chain_of_a_neural_model(sh, options):
    common = f"echo 'the cat sat on the mat' | mlm-sample {options} --chains 2 --steps 24 --on-change --seed 3"
    states = [[(state["chain"], state["step"], state["ids"]) for state in sh(f"{common} {more}").states]
              for more in ("", "--engine plain", "--batch-size 1")]
    assert states[0] == states[1] == states[2]
    assert len(states[0]) > 12
    other = sh("echo 'the cat sat on the mat' | mlm-sample --chains 2 --steps 24 --on-change --seed 3").states
    assert [(state["chain"], state["step"], state["ids"]) for state in other] != states[0]


def test_a_chain_draws_only_what_is_kept(sh):
    """Of tiny-en: each token that a chain draws is among the five likeliest of its conditional."""
    from mlmglauber.models.opening import open_model

    lm = open_model("tiny-en")
    states = sh("echo 'the cat sat on the mat' | mlm-sample --top-k 5 --tau 2 --steps 60 --every 1 --seed 3").states
    for before, state in itertools.pairwise(states):
        row = lm.log_probs_at(np.array([before["ids"]]), np.array([state["site"]]), 1)[0] / 2
        likeliest = np.argsort(-row)[:5]
        assert state["new"] in likeliest
        chances = row[likeliest] - np.logaddexp.reduce(row[likeliest])
        assert state["logp_new"] == pytest.approx(chances[likeliest.tolist().index(state["new"])], abs=1e-4)


def test_what_records_and_readers_say(sh, model):
    chain = sh("echo 'a b' | mlm-sample -m m.json --tau 0.7 --top-k 2 --min-p 0.1 --steps 400 --on-change --seed 1 |"
               " tee s")
    run = chain.records[0]
    assert (run["options"]["top_k"], run["options"]["min_p"], "top_p" in run["options"]) == (2, 0.1, False)
    none = sh("echo 'a b' | mlm-sample -m m.json --top-p 1 --min-p 0 --steps 40 --on-change --seed 1").states
    assert [state["ids"] for state in none] == [state["ids"] for state in sh(
        "echo 'a b' | mlm-sample -m m.json --steps 40 --on-change --seed 1").states]
    production = sh("mlm-rect --path s").records[-1]
    assert (production["entropy_production"], production["production_reason"]) == (None, "truncated")
    influences = sh("mlm-influence -m m.json --seed 1 s")
    assert (influences.status, "influences are those of whole conditionals" in influences.err) == (65, True)
    for wrong in ("--top-k 0", "--top-p 0", "--top-p 1.5", "--min-p -1", "--min-p nan"):
        assert sh(f"echo 'a b' | mlm-sample -m m.json {wrong}").status == 2


def test_the_escape_of_a_trap_is_that_of_the_truncated_chain(sh, model):
    """A trap of a chain of two kept tokens: its escape by hand from the truncated conditionals."""
    found = sh("printf 'a a\nd d\n' | mlm-sample -m m.json --tau 0.5 --top-k 2 --steps 4000 --on-change --seed 1 | "
               "mlm-traps -m m.json --min-steps 4 --radius 0").of("trap")
    rows = [truncated(table, "--top-k 2", 0.5) for table in model]
    assert found
    for trap in found:
        x, y = trap["ids"]
        stay = (rows[0][y][x] + rows[1][x][y]) / 2
        assert trap["escape"] == pytest.approx(1 - stay, abs=1e-9)
