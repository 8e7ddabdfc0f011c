"""The step kernel and the plain engine against laws known in closed form.

Each chi-square test has a fixed seed and rejects a right sampler with probability 1e-3.
"""

import numpy as np
import pytest
from oracles import STATIONARY_A, STATIONARY_B, TABLE_A, TABLE_B, law_after, site_kernels, stationary
from scipy.stats import chisquare

from mlmglauber.dynamics.engine import Chain, advance
from mlmglauber.dynamics.glauber import NotFiniteError, draw, scan_sites, temper
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.models.conditionals import TableConditional

CHAINS = 4000


def final_counts(table, tau, scan, start, steps, seed=11):
    places = table.vocab_size ** np.arange(table.sites - 1, -1, -1)
    chains = [Chain(start, tau=tau, seed=seed, record="r", number=k, scan=scan) for k in range(CHAINS)]
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
    chains = [Chain([0, 1, 1, 0], tau=1.0, seed=3, record="r", number=k, frozen=[1, 3]) for k in range(CHAINS)]
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
    law = np.log([[0.33, 0.34, 0.0, 0.33]] * 100_000, where=np.array([1, 1, 0, 1], bool),
                 out=np.full((100_000, 4), -np.inf))
    uniforms = Stream(1, "x", 0, "token").uniforms(0, 100_000)
    uniforms[:3] = [0.0, 1 - 2**-53, 0.67]
    counts = np.bincount(draw(law, uniforms), minlength=4)
    assert counts[2] == 0
    assert chisquare(counts[[0, 1, 3]], [33_000, 34_000, 33_000]).pvalue > 1e-3
    assert draw(np.log([[1.0, 1.0, 0.0]], where=np.array([1, 1, 0], bool), out=np.full((1, 3), -np.inf)),
                np.array([1 - 2**-53])).tolist() == [1]


def test_a_broken_row_stops_its_chain_alone():
    class Broken(TableConditional):
        def log_probs(self, ids, sites):
            rows = super().log_probs(ids, sites)
            rows[(ids[:, 0] == 2) & (sites == 1)] = np.nan
            return rows

    chains = [Chain([k % 3, 0], tau=1.0, seed=1, record="r", number=k, scan="systematic") for k in range(30)]
    alone = [Chain([k % 3, 0], tau=1.0, seed=1, record="r", number=k, scan="systematic") for k in range(30)]
    for _ in range(2):
        moves = advance(Broken(TABLE_A), chains)
        advance(TableConditional(TABLE_A), alone)
    for chain, move, reference in zip(chains, moves, alone, strict=True):
        if reference.ids[0] == 2:
            assert move is None
            assert (chain.broken, chain.step) == (1, 1)
        else:
            assert move is not None
            assert chain.ids.tolist() == reference.ids.tolist()
    assert any(move is None for move in moves)


def test_a_chain_does_not_depend_on_its_company():
    table = TableConditional(TABLE_A)

    def trajectory(numbers, rows):
        chains = [Chain([0, 0], tau=1.0, seed=7, record="q", number=k) for k in numbers]
        return [list(advance(table, chains, rows)) for _ in range(600)]

    alone = [moves[0] for moves in trajectory([3], 64)]
    assert [moves[3] for moves in trajectory(range(5), 2)] == alone


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
