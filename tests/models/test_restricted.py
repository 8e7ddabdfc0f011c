"""A restricted vocabulary: the law is the model's own, renormalised; nothing else is ever drawn."""

import numpy as np
import pytest
from oracles import TABLE_A
from scipy.special import log_softmax
from scipy.stats import chisquare

from mlmglauber.models.conditionals import TableConditional
from mlmglauber.models.restricted import RestrictedModel, tokens_of
from mlmglauber.models.table_text import TableText
from mlmglauber.stream.errors import UsageError

pytestmark = pytest.mark.in_process


@pytest.fixture
def table():
    return TableText(TableConditional(TABLE_A), ["a", "b", "c"], "a.json", "")


def test_the_rest_is_renormalised(table):
    model = RestrictedModel(table, [2, 0])
    ids, sites = np.array([[0, 1], [1, 2], [2, 0]]), np.array([0, 1, 0])
    whole, found = table.log_probs(ids, sites), model.log_probs(ids, sites)
    assert found[:, [0, 2]] == pytest.approx(log_softmax(whole[:, [0, 2]], axis=1), abs=1e-14)
    assert (found[:, 1] == -np.inf).all()
    assert model.allowed.tolist() == [True, False, True]
    assert model.describe()["banned"] == 1
    assert (model.encode("a b"), model.decode([0, 1]), model.max_sites) == ([0, 1], "a b", 2)


def test_a_law_without_a_token_left_is_no_law():
    table = TableText(TableConditional([[[1.0, 0.0]] * 2] * 2), ["a", "b"], "", "")
    assert np.isnan(RestrictedModel(table, [1]).log_probs(np.array([[0, 0]]), np.array([0]))).any()


def test_words_and_what_is_no_word(table):
    assert tokens_of(table, "c, a", "--allow") == [2, 0]
    for words, reason in (("a,q", "--allow: 'q' is not a token"), ("a,a", "the same token"), ("a,", "--allow: ")):
        with pytest.raises(UsageError, match=reason):
            tokens_of(table, words, "--allow")


def test_a_real_model_keeps_its_own_conditionals():
    from mlmglauber.models.opening import open_model

    model = open_model("tiny-en")
    tokens = tokens_of(model, "cat,dog,man", "--allow")
    restricted = RestrictedModel(model, tokens)
    ids = np.array([model.encode("the cat sat on the mat")] * 3)
    sites = np.array([1, 5, 0])
    found = restricted.log_probs(ids, sites)
    assert found.dtype == np.float32
    assert found[:, tokens] == pytest.approx(log_softmax(model.log_probs(ids, sites)[:, tokens], axis=1), abs=1e-5)
    assert np.isfinite(found).sum() == 9
    with pytest.raises(UsageError, match="is not one token"):
        tokens_of(model, "antidisestablishmentarianism", "--allow")


def test_mlm_sample_draws_nothing_else(sh, tables):
    done = sh("echo 'b b' | mlm-sample -m a.json --seed 1 --allow a,c --steps 200 --every 1")
    run, *states = done.records
    assert (run["options"]["allow"], run["banned"]) == ("a,c", 1)
    assert {token for state in states[1:] for token in [state["new"]]} == {0, 2}
    left = next(state for state in states if state.get("old") == 1)
    assert left["logp_old"] is None  # the text's own token is left, and never comes back
    assert states[-1]["ids"].count(1) == 0
    frozen = sh("echo 'b b' | mlm-sample -m a.json --seed 1 --allow a,c --freeze 0 --steps 50 --every 1").states
    assert {state["ids"][0] for state in frozen} == {1}


def test_the_restriction_is_part_of_the_run(sh, tables):
    def run(options):
        return sh(f"echo 'a a' | mlm-sample -m a.json --seed 1 --steps 4 {options}").records[0]["run"]

    assert len({run(""), run("--allow a,c"), run("--allow a,b")}) == 3
    sh("echo 'a a' | mlm-sample -m a.json --seed 1 --steps 4 --allow a,c --resume r")
    done = sh("echo 'a a' | mlm-sample -m a.json --seed 1 --steps 4 --allow a,b --resume r")
    assert done.status == 2
    assert "options.allow" in done.err


def test_the_law_is_that_of_the_restricted_kernel(sh, tables):
    """4000 chains, fixed seed; rejects a right sampler with probability 1e-3. Both engines and a random start."""
    table = TableConditional(TABLE_A, [True, False, True])
    laws = np.exp(table.log_probs(np.array([[0, 0], [0, 2], [2, 0], [2, 2]] * 2), np.repeat([0, 1], 4)))[:, [0, 2]]
    kernel = np.zeros((4, 4))
    for x in range(4):
        for v in (0, 1):
            kernel[x, 2 * v + x % 2] += laws[x, v] / 2
            kernel[x, x - x % 2 + v] += laws[4 + x, v] / 2
    for options, start in (("", [1, 0, 0, 0]), ("--engine plain --start random", [0.25] * 4)):
        states = sh(f"echo 'a a' | mlm-sample -m a.json --allow a,c --seed 3 -c 4000 --steps 3 --every 3 "
                    f"--batch-size 1024 {options}").states
        last = np.array([state["ids"] for state in states if state["step"] == 3]) // 2
        expected = np.array(start) @ np.linalg.matrix_power(kernel, 3)
        assert chisquare(np.bincount(last @ [2, 1], minlength=4), expected * 4000).pvalue > 1e-3


def test_a_word_that_is_none_is_a_usage_error(sh, tables):
    done = sh("echo 'a b' | mlm-sample -m a.json --allow a,zebra")
    assert (done.status, done.out) == (2, b"")
    assert "--allow: 'zebra' is not a token" in done.err
