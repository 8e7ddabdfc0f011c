"""Draws and the plain engine against laws known in closed form.

Each chi-square test has a fixed seed and rejects a right sampler with probability 1e-3.
"""

import numpy as np
import pytest
from oracles import STATIONARY_A, STATIONARY_B, TABLE_A, TABLE_B, law_after, site_kernels, stationary
from scipy.stats import chisquare

from mlmglauber.dynamics.chain import Chain, OutputSchedule, scan_sites
from mlmglauber.dynamics.draws import draw
from mlmglauber.dynamics.glauber import NotFiniteError, temper
from mlmglauber.dynamics.plain import advance
from mlmglauber.dynamics.precision import Precision
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.dynamics.token_distribution import TokenDistribution
from mlmglauber.models.blocks import block_rows
from mlmglauber.models.conditionals import TableConditional

CHAINS = 4000


def final_counts(table, tau, scan, start, steps, seed=11):
    places = table.vocab_size ** np.arange(table.sites - 1, -1, -1)
    schedule = OutputSchedule(steps, every=0)
    chains = [Chain(start, tau=tau, seed=seed, record="r", number=k, scan=scan, schedule=schedule)
              for k in range(CHAINS)]
    precision = Precision(table)
    for _ in range(steps):
        advance(precision, chains, rows=1024)
    return np.bincount(np.array([chain.ids for chain in chains]) @ places, minlength=table.vocab_size**table.sites)


@pytest.mark.parametrize("scan", ["random", "permutation", "systematic"])
@pytest.mark.parametrize(("name", "tau"), [
    ("A", 0.5), ("B", 1.0), *(pytest.param("A", tau, marks=pytest.mark.soak) for tau in (1.0, 2.0))])
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
    chains = [Chain([0, 1, 1, 0], tau=1.0, seed=3, record="r", number=k, frozen=[1, 3],
                    schedule=OutputSchedule(3, every=0)) for k in range(CHAINS)]
    precision = Precision(table)
    for _ in range(3):
        advance(precision, chains, rows=1024)
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


def distribution(row, tau=1.0):
    with np.errstate(divide="ignore"):
        return TokenDistribution.of_row(np.log(np.asarray(row, dtype=float)), tau, 0.0, 0)


def test_a_token_of_probability_zero_is_never_drawn():
    law = distribution([0.33, 0.34, 0.0, 0.33])
    uniforms = Stream(1, "x", 0, "token").uniforms(0, 100_000)
    uniforms[:3] = [0.0, 1 - 2**-53, 0.67]
    counts = np.bincount([law.draw(0.5, uniform).token for uniform in uniforms], minlength=4)
    assert counts[2] == 0
    assert chisquare(counts[[0, 1, 3]], [33_000, 34_000, 33_000]).pvalue > 1e-3


def test_a_distribution_keeps_what_a_uniform_can_reach():
    base = [0.5, 0.25, 2.0**-52, 0.25, 2.0**-56]

    def kept(tau):
        law = distribution(base, tau)
        assert law.compact(1)
        return law.support()[0].tolist()

    assert kept(1.0) == [0, 1, 2, 3]
    assert kept(0.01) == kept(0.0) == [0]
    for row in ([np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]):
        assert TokenDistribution.of_row(np.array(row), 1.0, 0.0, 0) is None


def test_the_ends_of_a_token_are_where_it_is_drawn():
    """Vocabularies of one block, of several, and of a last one that is not full."""
    generator = np.random.default_rng(0)
    for vocab in (9, 128, 129, 700):
        for tau in (0.0, 0.3, 1.0, 4.0):
            law = TokenDistribution.of_row(generator.normal(size=vocab) * 3, tau, 0.0, 0)
            for first, second in [*generator.random((40, 2)), (0.0, 0.0), (1 - 2**-53, 1 - 2**-53)]:
                token = law.draw(first, second).token
                assert all(low <= u < high for u, (low, high) in zip((first, second), law.ends(token), strict=True))
                for other in generator.integers(0, vocab, 10).tolist():
                    ends = law.ends(other)
                    inside = ends is not None and all(
                        low <= u < high for u, (low, high) in zip((first, second), ends, strict=True))
                    assert inside == (other == token)


def test_a_two_level_draw_has_the_conditional_as_its_law():
    """The measure of the uniforms that draw a token is its probability, for every token."""
    generator = np.random.default_rng(1)
    for vocab in (5, 128, 300, 1000):
        rows = np.log(generator.dirichlet(np.full(vocab, 0.3), 1))
        for tau in (0.5, 1.0, 3.0):
            law = TokenDistribution.of_row(rows[0], tau, 0.0, 0)
            expected = np.exp(temper(rows, np.array([tau])))[0]
            for token in range(vocab):
                ends = law.ends(token)
                measure = 0.0 if ends is None else np.prod(
                    [min(high, 1.0) - max(low, 0.0) for low, high in ends])
                assert measure == pytest.approx(expected[token], abs=1e-14)


def test_draws_of_many_rows_are_draws_of_each():
    """The batched kernel and the kept conditional give the same token, log-probabilities and ends."""
    generator = np.random.default_rng(2)
    for vocab in (3, 128, 400):
        rows = np.log(generator.dirichlet(np.full(vocab, 0.2), 60))
        taus = generator.choice([0.0, 0.3, 1.0, 2.5], 60)
        uniforms, old, cold = generator.random((60, 2)), generator.integers(0, vocab, 60), taus == 0
        found = draw(block_rows(rows, old, taus, uniforms[:, 0], cold), uniforms, taus, cold, 0.0)
        assert found.certain.all()
        for k in range(60):
            law = TokenDistribution.of_row(rows[k], taus[k], 0.0, 0)
            alone = law.draw(*uniforms[k])
            assert found.tokens[k] == alone.token
            assert found.logp_new[k] == pytest.approx(alone.logp, abs=1e-12)
            kept = law.logp(old[k])
            if kept is not None:
                assert found.logp_old[k] == pytest.approx(kept, abs=1e-12)
            for (low, high), a, b in zip(law.ends(alone.token), found.low[k], found.high[k], strict=True):
                assert (low, high) == pytest.approx((a, b), abs=1e-15)


def test_at_tau_zero_a_tie_is_drawn_as_the_lowest_id_and_the_other_token_never():
    rows, taus, cold = np.array([[0.0, 2.0, 2.0]] * 2), np.zeros(2), np.ones(2, bool)
    found = draw(block_rows(rows, np.array([2, 1]), taus, np.zeros(2), cold), np.zeros((2, 2)), taus, cold, 0.0)
    assert found.tokens.tolist() == [1, 1]
    assert found.logp_old.tolist() == [-np.inf, 0.0]
    assert found.logp_new.tolist() == [0.0, 0.0]


def test_an_error_within_the_tolerance_changes_no_certain_draw():
    """Rows whose log-probabilities are off by up to half the tolerance, in any way: what is certain stays the same."""
    generator = np.random.default_rng(3)
    certain = 0
    for tolerance in (1e-5, 1e-3, 0.05):
        for tau in (0.0, 0.01, 0.3, 1.0, 3.0):
            rows = np.log(generator.dirichlet(np.full(500, 0.3), 400))
            off = rows + (tolerance / 2) * generator.choice([-1.0, 1.0], rows.shape)
            off[::2] = rows[::2] + tolerance / 2 * np.sign(np.arange(500) - generator.integers(0, 500))
            taus, uniforms, old = np.full(400, tau), generator.random((400, 2)), np.zeros(400, int)
            cold = taus <= 2 * tolerance
            fast = draw(block_rows(off, old, taus, uniforms[:, 0], cold), uniforms, taus, cold, tolerance)
            exact = draw(block_rows(rows, old, taus, uniforms[:, 0], taus == 0), uniforms, taus, taus == 0, 0.0)
            assert (fast.tokens == exact.tokens)[fast.certain].all()
            certain += fast.certain.sum()
            ends = (exact.low <= np.maximum(fast.low, 2.0**-53) + 1e-12) & (
                np.minimum(fast.high, 1 - 2.0**-53) <= exact.high + 1e-12)
            assert ends.all(axis=1)[fast.certain].all()
    assert certain > 4000


def test_scans_cover_the_free_sites():
    stream, free = Stream(1, "r", 0, "site"), np.array([0, 2, 5])
    assert scan_sites("systematic", stream, 4, 5, free).tolist() == [2, 5, 0, 2, 5]
    order = scan_sites("permutation", stream, 0, 3000, free)
    assert (np.sort(order.reshape(-1, 3)) == free).all()
    assert len({tuple(row) for row in order.reshape(-1, 3).tolist()}) == 6
    assert scan_sites("permutation", stream, 1000, 50, free).tolist() == order[1000:1050].tolist()
    drawn = scan_sites("random", stream, 0, 3000, free)
    assert chisquare(np.bincount(drawn, minlength=6)[free]).pvalue > 1e-3
    with pytest.raises(ValueError, match="give random, permutation or systematic"):
        scan_sites("sideways", stream, 0, 1, free)
