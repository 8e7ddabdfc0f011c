"""The stationary laws of the three scans, and the law of the pseudo-log-likelihoods, against enumeration."""

from itertools import permutations
from math import comb, exp

import numpy as np
import pytest
from oracles import STATIONARY_B, TABLE_B, chain_of, ising, random_chain, site_kernels, solved

from mlmglauber.measures.exact.finite_chain import FiniteChain
from mlmglauber.measures.exact.pll_law import pll_distance, pll_law
from mlmglauber.measures.exact.scans import ENTRIES, permutation_law, permutation_sweep, scan_distances
from mlmglauber.models.conditionals import TableConditional


def stationary_of(kernel):
    """The left eigenvector of the eigenvalue 1."""
    values, vectors = np.linalg.eig(kernel.T)
    law = vectors[:, np.argmin(abs(values - 1))].real
    return law / law.sum()


@pytest.mark.parametrize("tau", [0.5, 1.0, 3.0])
def test_the_laws_of_two_sites_are_those_of_the_kernels_written_out(tau):
    chain = chain_of(TABLE_B, tau)
    first, second = site_kernels(TableConditional(TABLE_B), tau)
    laws = {"random": stationary_of((first + second) / 2), "systematic": stationary_of(first @ second),
            "permutation": stationary_of((first @ second + second @ first) / 2)}
    if tau == 1:
        assert laws["random"] == pytest.approx(STATIONARY_B["random"], abs=1e-6)
        assert laws["systematic"] == pytest.approx(STATIONARY_B["systematic"], abs=1e-6)
    assert permutation_law(chain)[0] == pytest.approx(laws["permutation"], abs=1e-12)
    found = scan_distances(chain, laws["random"], np.zeros(4, dtype=np.int64))

    def tv(one, other):
        return 0.5 * abs(laws[one] - laws[other]).sum()

    assert found[:3] == pytest.approx((tv("random", "systematic"), tv("random", "permutation"),
                                       tv("systematic", "permutation")), abs=1e-12)
    assert found.systematic > 1e-3
    assert found.permutation == pytest.approx(0, abs=1e-12)  # the mean of the laws after either site, as of random scan
    assert found.reasons == {}


def test_three_sites_have_three_laws():
    rng = np.random.default_rng(3)
    table = [rng.dirichlet((1, 1), (2, 2)) for _ in range(3)]
    kernels = site_kernels(TableConditional(table), 1.0)
    orders = [np.linalg.multi_dot([kernels[site] for site in order]) for order in permutations(range(3))]
    laws = [stationary_of(kernel) for kernel in (kernels.mean(axis=0), orders[0], np.mean(orders, axis=0))]
    exact = solved(chain_of(table))
    expected = [0.5 * abs(laws[a] - laws[b]).sum() for a, b in ((0, 1), (0, 2), (1, 2))]
    assert exact.scans[:3] == pytest.approx(expected, abs=1e-12)
    assert min(expected) > 1e-4


@pytest.mark.parametrize("seed", range(6))
def test_a_permutation_sweep_is_the_mean_over_all_orders(seed):
    """Sites with two to three tokens, and some with one."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 4, rng.integers(1, 5)).tolist())
    chain = random_chain(rng, shape, 2.0, float(rng.choice([0.3, 1.0, 2.0])))
    laws = rng.random((2, chain.states))
    swept = []
    for order in permutations(range(chain.n)):
        moved = laws
        for site in order:
            moved = chain.update(moved, site)
        swept.append(moved)
    assert permutation_sweep(chain, laws) == pytest.approx(np.mean(swept, axis=0), abs=1e-12)
    law, reason = permutation_law(chain)
    assert reason is None
    assert law == pytest.approx(stationary_of(permutation_sweep(chain, np.eye(chain.states))), abs=1e-9)


def test_compatible_conditionals_have_one_law():
    chain = chain_of(ising(5, 0.7)[0], 0.8)
    exact = solved(chain)
    assert exact.scans[:3] == pytest.approx((0, 0, 0), abs=1e-12)


def test_a_permutation_scan_of_many_states_has_a_reason():
    """The limits that mlm-exact(1) names lie on this side of it; 9 sites of two tokens on the other."""
    for sites, tokens in ((8, 2), (4, 6)):
        largest = max(comb(sites, size) + comb(sites, size + 1) for size in range(sites))
        assert largest * tokens ** (2 * sites) <= ENTRIES
    assert permutation_law(random_chain(np.random.default_rng(1), (2,) * 8, 1.0, 1.0))[1] is None
    assert permutation_law(random_chain(np.random.default_rng(1), (2,) * 9, 1.0, 1.0))[0] is None
    chain = random_chain(np.random.default_rng(1), (2,) * 10, 1.0, 1.0)
    law, reason = permutation_law(chain)
    assert law is None
    assert "1024 states of 10 sites" in reason
    exact = solved(chain)
    assert exact.scans.systematic is not None
    assert (exact.scans.permutation, exact.scans.between) == (None, None)
    assert exact.scans.reasons == {"permutation": reason, "between": reason}


def test_independent_sites_have_the_law_of_their_pll_at_every_temperature():
    laws = [[0.7, 0.3], [0.2, 0.8], [0.55, 0.45]]
    table = [np.broadcast_to(law, (2, 2, 2)).tolist() for law in laws]
    for tau in (0.4, 1.0, 2.5):
        found = solved(chain_of(table, tau)).pll
        assert (found.tv, found.kl) == pytest.approx((0, 0), abs=1e-12)


@pytest.mark.parametrize(("coupling", "tau"), [(0.3, 1.0), (1.0, 1.0), (1.0, 2.5)])
def test_the_pll_of_two_spins_counts_their_coupling_twice(coupling, tau):
    """PLL = 2 J s_0 s_1 - const, so exp(PLL / tau) is the law of twice the coupling."""
    found = solved(chain_of(ising(2, coupling)[0], tau)).pll
    same, suggested = (1 / (1 + exp(-2 * j / tau)) for j in (coupling, 2 * coupling))
    assert found.tv == pytest.approx(suggested - same, abs=1e-12)
    kl = same * np.log(same / suggested) + (1 - same) * np.log((1 - same) / (1 - suggested))
    assert found.kl == pytest.approx(kl, abs=1e-12)


def test_a_distance_that_is_infinite_or_has_no_limit_says_so():
    cold = chain_of(TABLE_B, 0.0)
    assert pll_distance(cold, np.full(4, 0.25))[:2] == (None, None)
    base = np.log(np.array([[0.5, 0.5], [0.5, 0.5]]))
    one = FiniteChain((2,), base[:1], 1.0)
    assert pll_law(one) == pytest.approx([0.5, 0.5])
    with np.errstate(divide="ignore"):
        zeros = FiniteChain((2, 2), np.log(np.array([[1.0, 0.5, 0.0, 0.5], [0.5, 0.5, 1.0, 0.0]])), 1.0)
    found = pll_distance(zeros, np.full(4, 0.25))
    assert found.tv is not None
    assert found.kl is None
    assert "infinite" in found.reason
