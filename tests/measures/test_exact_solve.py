"""A small finite chain solved: against the oracles, closed forms, and bounds that are theorems."""

from itertools import product
from math import ceil, exp, log, tanh

import numpy as np
import pytest
from oracles import (
    STATIONARY_A,
    STATIONARY_B,
    TABLE_A,
    TABLE_B,
    chain_of,
    ising,
    law_after,
    random_chain,
    site_kernels,
    solved,
)

from mlmglauber.measures.exact import mixing, stationary
from mlmglauber.measures.exact.finite_chain import attractors
from mlmglauber.measures.exact.mixing import mixing_times, second_eigenvalue
from mlmglauber.measures.exact.solve import influences, rectangles
from mlmglauber.measures.influence.matrix import mixing_bound
from mlmglauber.models.conditionals import TableConditional

LAG_TABLE = [(0, 0.7784), (1, 0.5575), (2, 0.4150), (4, 0.2258), (8, 0.0650), (12, 0.0199), (20, 0.0021)]


@pytest.mark.parametrize("table", [TABLE_A, TABLE_B])
@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 2.0])
def test_the_kernel_is_the_enumerated_one(table, tau):
    chain = chain_of(table, tau)
    kernels = site_kernels(TableConditional(table), tau)
    whole = kernels.mean(axis=0)
    laws = np.random.default_rng(1).random((3, chain.states))
    for form in (chain.dense(), chain.matrix().toarray(), chain.forward(np.eye(chain.states)),
                 chain.backward(np.eye(chain.states)).T):
        assert form == pytest.approx(whole, abs=1e-15)
    assert chain.sweep(laws) == pytest.approx(laws @ kernels[0] @ kernels[1], abs=1e-14)
    assert chain.sweep_backward(laws) == pytest.approx(laws @ (kernels[0] @ kernels[1]).T, abs=1e-14)
    assert 1 - chain.leaving().mean(axis=0) == pytest.approx(whole.diagonal(), abs=1e-15)
    chain.entries = lambda: 10**9  # along the axes, without the matrix
    assert chain.forward(laws) == pytest.approx(laws @ whole, abs=1e-14)
    assert chain.backward(laws) == pytest.approx(laws @ whole.T, abs=1e-14)


def test_table_a():
    exact = solved(chain_of(TABLE_A), start=0)
    assert exact.law == pytest.approx(STATIONARY_A, abs=1e-6)
    assert exact.influences == pytest.approx(np.array([[0, 0.6], [0.7, 0]]), abs=1e-12)
    assert exact.alpha == pytest.approx(0.7)
    assert exact.spectral_radius == pytest.approx(0.648074, abs=1e-6)
    assert (exact.mixing.worst, exact.mixing.exact, exact.bound) == (5, True, 14)
    assert exact.escape[[0, 4, 8]] == pytest.approx(0.35)
    assert exact.scans.systematic == pytest.approx(0.0868, abs=5e-5)
    assert exact.entropy_production == pytest.approx(0.061697, abs=1e-6)
    assert exact.reversible is False
    found = rectangles((3, 3), chain_of(TABLE_A).base)
    assert (found.mean, found.largest) == pytest.approx((1.527756, 3.360375), abs=1e-6)
    assert found.number == 9


@pytest.mark.parametrize(("tau", "modulus", "c"), [(0.5, 0.870892, (0.888889, 0.947958)), (1, 0.728957, (0.6, 0.7)),
                                                   (2, 0.617741, (0.325250, 0.392794))])
def test_table_a_at_other_temperatures(tau, modulus, c):
    exact = solved(chain_of(TABLE_A, tau))
    assert exact.second.modulus == pytest.approx(modulus, abs=1e-6)
    values = np.linalg.eigvals(chain_of(TABLE_A, tau).dense())
    second = values[np.argsort(-abs(values))[1]]
    assert exact.second.is_complex == (abs(second.imag) > 1e-7)
    assert (exact.influences[0, 1], exact.influences[1, 0]) == pytest.approx(c, abs=1e-6)


def test_distances_from_a_start():
    """The exact column of the oracle's L-lag table, and t_mix as the first time below eps."""
    chain = chain_of(TABLE_A)
    law, now = solved(chain).law, np.eye(9)[0]
    distances = []
    for _ in range(21):
        distances.append(0.5 * abs(now - law).sum())
        now = chain.forward(now)
    for time, distance in LAG_TABLE:
        assert distances[time] == pytest.approx(distance, abs=5e-5)
        assert 0.5 * abs(law_after(TableConditional(TABLE_A), 1.0, "random", 0, time) - law).sum() == pytest.approx(
            distances[time], abs=1e-12)
    for eps in (0.6, 0.25, 0.05, 0.003):
        first = next(t for t, distance in enumerate(distances) if distance <= eps)
        assert solved(chain, eps, start=0).mixing.from_start == first


def test_table_b():
    chain = chain_of(TABLE_B)
    exact = solved(chain)
    assert exact.law == pytest.approx(STATIONARY_B["random"], abs=1e-6)
    swept = stationary.stationary(chain, attractors(chain), systematic=True).law
    assert swept == pytest.approx(STATIONARY_B["systematic"], abs=1e-6)
    swapped = chain_of([TABLE_B[1], TABLE_B[0]])  # site 1 first: y, then x
    other = stationary.stationary(swapped, attractors(swapped), systematic=True).law.reshape(2, 2).T.ravel()
    assert other == pytest.approx([0.446316, 0.132632, 0.111579, 0.309474], abs=1e-6)
    assert rectangles((2, 2), chain.base).mean == pytest.approx(1.828127, abs=1e-6)
    assert exact.entropy_production == pytest.approx(0.045222, abs=1e-6)
    assert (exact.second.modulus, exact.second.is_complex) == (pytest.approx(0.611803, abs=1e-6), False)


@pytest.mark.parametrize("tau", [0.4, 1.0, 3.0])
def test_an_ising_chain_is_its_boltzmann_law(tau):
    coupling = 0.6
    table, energy = ising(8, coupling)
    exact = solved(chain_of(table, tau))
    law = np.exp(energy / tau)
    assert exact.law == pytest.approx(law / law.sum(), abs=1e-12)
    assert exact.influences[0, 1] == pytest.approx(tanh(coupling / tau), abs=1e-12)
    assert exact.influences[7, 6] == pytest.approx(tanh(coupling / tau), abs=1e-12)
    assert exact.influences[0, 2:] == pytest.approx(0, abs=1e-12)
    assert exact.influences[3, [2, 4]] == pytest.approx(0.5 * tanh(2 * coupling / tau), abs=1e-12)
    assert rectangles((2,) * 8, chain_of(table).base).largest < 1e-12
    assert exact.entropy_production == pytest.approx(0, abs=1e-12)
    assert exact.scans[:3] == pytest.approx((0, 0, 0), abs=1e-12)
    assert exact.reversible
    assert not exact.second.is_complex


def test_two_cold_spins_mix_when_the_closed_form_says():
    """Two spins from ++: TV is lambda^t / 2 from the first step on, lambda = (1 + tanh J) / 2; up to 10^11 steps."""
    for coupling in (0.5, 2.0, 6.0, 13.0):
        exact = solved(chain_of(ising(2, coupling)[0]))
        gap = exp(-2 * coupling) / (1 + exp(-2 * coupling))
        assert 1 - exact.second.modulus == pytest.approx(gap, rel=1e-4)
        assert exact.mixing.worst == pytest.approx(ceil(log(2) / -np.log1p(-gap)), rel=1e-11)


def test_bounds_are_never_below_the_exact_mixing_time():
    """200 random tables: the contraction bound, the two bounds around t_mix, and the influences by brute force."""
    generator = np.random.default_rng(3)
    contracting = 0
    for _ in range(200):
        shape = tuple(generator.integers(2, 4, generator.integers(2, 4)).tolist())
        chain = random_chain(generator, shape, generator.choice([0.1, 0.3, 1.0]), generator.choice([0.5, 1.0, 2.0]))
        eps = float(generator.choice([0.25, 0.1, 0.01]))
        exact = solved(chain, eps)
        time = exact.mixing.worst
        powers = np.linalg.matrix_power(chain.dense(), max(time - 1, 0))
        assert 0.5 * abs(powers - exact.law).sum(axis=1).max() > eps
        assert 0.5 * abs(powers @ chain.dense() - exact.law).sum(axis=1).max() <= eps + 1e-12
        if exact.bound is not None:
            contracting += 1
            assert time <= exact.bound
        low = mixing._spectral_low(exact.second, eps)
        assert low is None or low <= time
        assert mixing._singular_high(chain, exact.law, eps) >= time
    assert contracting > 60


def test_influences_are_those_of_all_pairs():
    chain = random_chain(np.random.default_rng(4), (2, 3, 2), 1.0)
    found = np.zeros((3, 3))
    states = list(product(*map(range, chain.shape)))
    place = {state: k for k, state in enumerate(states)}

    def law(i, state):
        return np.array([chain.p[i][place[(*state[:i], v, *state[i + 1:])]] for v in range(chain.shape[i])])

    for x, y in product(states, states):
        differ = [k for k in range(3) if x[k] != y[k]]
        if len(differ) == 1:
            for i in set(range(3)) - set(differ):
                found[i, differ[0]] = max(found[i, differ[0]], 0.5 * abs(law(i, x) - law(i, y)).sum())
    assert influences(chain) == pytest.approx(found, abs=1e-14)


def test_entropy_production_is_the_sum_over_moves():
    chain = random_chain(np.random.default_rng(5), (2, 2, 3), 1.5)
    exact = solved(chain)
    flow = exact.law[:, None] * chain.dense()
    moved = (flow > 0) & (flow.T > 0)
    assert exact.entropy_production == pytest.approx((flow[moved] * np.log(flow[moved] / flow.T[moved])).sum())


def test_the_bound():
    assert mixing_bound(0.7, 2, 0.25) == 14
    assert mixing_bound(0.0, 5, 0.25) == ceil(5 * log(20))
    assert mixing_bound(1.0, 2, 0.25) is None


def test_mixing_times_of_a_given_start_only():
    chain = chain_of(TABLE_A)
    law = solved(chain).law
    second = second_eigenvalue(chain, law)
    assert mixing_times(chain, law, 0.25, None, second).from_start is None
    assert max(mixing_times(chain, law, 0.25, start, second).from_start for start in range(9)) == 5
