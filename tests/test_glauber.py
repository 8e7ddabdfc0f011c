"""The step kernel and the plain engine against laws known in closed form.

Each chi-square test has a fixed seed and rejects a right sampler with probability 1e-3.
"""

import numpy as np
import pytest
from oracles import STATIONARY_A, STATIONARY_B, TABLE_A, TABLE_B, law_after, site_kernels, stationary
from scipy.stats import chisquare

from mlmglauber.dynamics.engine import Chain, Watch, advance
from mlmglauber.dynamics.glauber import NotFiniteError, scan_sites, temper
from mlmglauber.dynamics.law import laws
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.models.conditionals import TableConditional

CHAINS = 4000


def final_counts(table, tau, scan, start, steps, seed=11):
    places = table.vocab_size ** np.arange(table.sites - 1, -1, -1)
    watch = Watch(steps, every=0)
    chains = [Chain(start, tau=tau, seed=seed, record="r", number=k, scan=scan, watch=watch) for k in range(CHAINS)]
    for _ in range(steps):
        advance(table, chains, rows=1024)
    return np.bincount(np.array([chain.ids for chain in chains]) @ places, minlength=table.vocab_size**table.sites)


@pytest.mark.parametrize("scan", ["random", "permutation", "systematic"])
@pytest.mark.parametrize(("name", "tau"), [("A", 0.5), ("A", 1.0), ("A", 2.0), ("B", 1.0)])
def test_the_law_of_the_sampler_is_the_enumerated_kernels(scan, name, tau):
    table = TableConditional({"A": TABLE_A, "B": TABLE_B}[name])
    counts = final_counts(table, tau, scan, start=[0, 1], steps=4)
    expected = law_after(table, tau, scan, start=1, steps=4) * CHAINS
    assert chisquare(counts, expected).pvalue > 1e-3


def test_the_scans_differ_where_the_conditionals_are_incompatible():
    """The chi-square test can fail: a systematic sampler does not pass for a random-scan one."""
    table = TableConditional(TABLE_B)
    counts = final_counts(table, 1.0, "systematic", start=[0, 1], steps=20)
    assert chisquare(counts, law_after(table, 1.0, "systematic", 1, 20) * CHAINS).pvalue > 1e-3
    assert chisquare(counts, law_after(table, 1.0, "random", 1, 20) * CHAINS).pvalue < 1e-6


def test_stationary_laws_of_the_oracles():
    kernels_a, kernels_b = (site_kernels(TableConditional(table), 1.0) for table in (TABLE_A, TABLE_B))
    assert stationary(kernels_a.mean(0)) == pytest.approx(STATIONARY_A, abs=1e-6)
    assert stationary(kernels_b.mean(0)) == pytest.approx(STATIONARY_B["random"], abs=1e-6)
    assert stationary(kernels_b[0] @ kernels_b[1]) == pytest.approx(STATIONARY_B["systematic"], abs=1e-6)


def test_four_sites_with_a_frozen_one():
    generator = np.random.default_rng(5)
    table = TableConditional.from_joint(generator.dirichlet(np.ones(16)).reshape(2, 2, 2, 2))
    chains = [Chain([0, 1, 1, 0], tau=1.0, seed=3, record="r", number=k, frozen=[1, 3], watch=Watch(3, every=0))
              for k in range(CHAINS)]
    for _ in range(3):
        advance(table, chains, rows=1024)
    states = np.array([chain.ids for chain in chains])
    assert (states[:, [1, 3]] == [1, 0]).all()
    kernels = site_kernels(table, 1.0)
    law = np.linalg.matrix_power((kernels[0] + kernels[2]) / 2, 3)[0b0110]
    counts = np.bincount(states @ [8, 4, 2, 1], minlength=16)
    reachable = law > 0
    assert counts[~reachable].sum() == 0
    assert chisquare(counts[reachable], law[reachable] * CHAINS).pvalue > 1e-3


def test_temperature_divides_the_logits_once():
    logits = np.array([[2.0, 1.0, 0.0]] * 3)
    laws = np.exp(temper(logits, np.array([0.5, 1.0, 2.0])))
    assert laws == pytest.approx(
        np.array([[0.8668, 0.1173, 0.0159], [0.6652, 0.2447, 0.0900], [0.5065, 0.3072, 0.1863]]), abs=5e-5
    )


@pytest.mark.parametrize("tau", [0.0, 1e-40, 5e-324])
def test_cold_limits_are_the_argmax_with_ties_to_the_lowest_id(tau):
    law = np.exp(temper(np.array([[0.0, 30.0, 10.0, -np.inf]]), np.array([tau])))
    assert law.tolist() == [[0, 1, 0, 0]]
    tied = np.exp(temper(np.array([[1.0, 5.0, 5.0]]), np.array([tau])))
    assert tied.tolist() == ([[0, 1, 0]] if tau == 0 else [[0, 0.5, 0.5]])


def test_hot_conditionals_are_near_uniform():
    law = np.exp(temper(np.random.default_rng(0).normal(size=(1, 500)), np.array([100.0])))[0]
    assert -(law * np.log(law)).sum() >= 0.99 * np.log(500)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_broken_conditional_is_never_a_sample(value, place):
    rows = np.zeros((3, 5))
    rows[1, place] = value
    with pytest.raises(NotFiniteError) as caught:
        temper(rows, np.ones(3))
    assert caught.value.row == 1


def test_no_token_left_is_an_error():
    with pytest.raises(NotFiniteError):
        temper(np.full((1, 3), -np.inf), np.ones(1))


def test_a_token_of_probability_zero_is_never_drawn():
    weights = np.array([[0.33, 0.34, 0.0, 0.33]])
    with np.errstate(divide="ignore"):
        law, = laws(np.log(weights), [1.0])
    uniforms = Stream(1, "x", 0, "token").uniforms(0, 100_000)
    uniforms[:3] = [0.0, 1 - 2**-53, 0.67]
    counts = np.bincount([law.draw(uniform) for uniform in uniforms], minlength=4)
    assert counts[2] == 0
    assert chisquare(counts[[0, 1, 3]], [33_000, 34_000, 33_000]).pvalue > 1e-3


def test_laws_keep_what_a_uniform_can_reach():
    base = np.log(np.array([[0.5, 0.25, 2.0**-52, 0.25, 2.0**-56]]))
    law, = laws(base, [1.0])
    assert law.tokens.tolist() == [0, 1, 2, 3]
    cold, = laws(base, [0.01])
    assert cold.tokens.tolist() == [0]
    assert laws(base, [0.0])[0].tokens.tolist() == [0]
    assert laws(np.array([[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]]), [1.0] * 3) == [None] * 3


def test_stretches_are_where_the_token_is_drawn():
    generator = np.random.default_rng(0)
    for tau in (0.0, 0.3, 1.0, 4.0):
        law, = laws(generator.normal(size=(1, 9)) * 3, [tau])
        for token in range(9):
            low, high, total = law.stretch(token)
            for uniform in [*generator.random(50), 0.0, 1 - 2**-53, *(law.cumulative / law.cumulative[-1])[:-1]]:
                assert (low <= uniform * total < high) == (law.draw(uniform) == token)


def test_log_probabilities_of_a_law_are_tempered_ones():
    generator = np.random.default_rng(0)
    rows = np.log(generator.dirichlet(np.ones(7), 5))
    for tau in (0.5, 1.0, 3.0):
        expected = temper(rows, np.full(5, tau))
        for law, row in zip(laws(rows, [tau] * 5), expected, strict=True):
            assert [law.logp(token) for token in range(7)] == pytest.approx(row.tolist(), abs=1e-12)


def test_scans_cover_the_free_sites():
    stream, free = Stream(1, "r", 0, "site"), np.array([0, 2, 5])
    assert scan_sites("systematic", stream, 4, 5, free).tolist() == [2, 5, 0, 2, 5]
    order = scan_sites("permutation", stream, 0, 3000, free)
    assert (np.sort(order.reshape(-1, 3)) == free).all()
    assert len({tuple(row) for row in order.reshape(-1, 3).tolist()}) == 6
    assert scan_sites("permutation", stream, 1000, 50, free).tolist() == order[1000:1050].tolist()
    drawn = scan_sites("random", stream, 0, 3000, free)
    assert chisquare(np.bincount(drawn, minlength=6)[free]).pvalue > 1e-3
    with pytest.raises(ValueError, match="none of random"):
        scan_sites("sideways", stream, 0, 1, free)
