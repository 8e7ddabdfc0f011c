"""Large chains, limits of a chain (temperature 0, one state, nearly reducible), restrictions, agreement of samples."""

import numpy as np
import pytest
from oracles import STATIONARY_A, TABLE_A, chain_of, ising, random_chain, solved

from mlmglauber.measures.exact import mixing, stationary
from mlmglauber.measures.exact.agreement import agreement
from mlmglauber.measures.exact.finite_chain import FiniteChain, attractors, closed_classes
from mlmglauber.measures.exact.restriction import Restriction, likeliest
from mlmglauber.measures.exact.stationary import eliminate
from mlmglauber.models.conditionals import TableConditional


@pytest.mark.parametrize("tau", [1.0, 0.2, 0.03])
def test_large_chains_are_solved_as_small_ones_are(tau, monkeypatch):
    """The ways of a large chain on one that is small enough for the full kernel."""
    chain = random_chain(np.random.default_rng(6), (2,) * 9, 1.0, tau)
    small = solved(chain, start=3)
    monkeypatch.setattr(stationary, "DENSE", 500)
    monkeypatch.setattr(stationary, "SINGLE", 40)
    monkeypatch.setattr(stationary, "SINGLE_SWEEP", 40)
    monkeypatch.setattr(mixing, "ALL_STARTS", 500)
    large = solved(chain, start=3)
    assert large.error < 1e-9
    assert large.law == pytest.approx(small.law, abs=1e-9)
    assert large.scans.systematic == pytest.approx(small.scans.systematic, abs=1e-8)
    assert large.mixing[:4] == small.mixing[:4]  # found, and checked over all starts
    monkeypatch.setattr(mixing, "WORK", 0)
    sought = solved(chain, start=3).mixing
    assert not sought.exact
    assert sought.worst <= small.mixing.worst <= sought.high
    assert sought.low <= small.mixing.worst


def test_a_large_nearly_reducible_chain_has_no_law(monkeypatch):
    chain = chain_of(ising(9, 3.0)[0], 0.2)
    exact = solved(chain)
    assert exact.law[[0, -1]] == pytest.approx(0.5, abs=1e-9)  # by elimination, whatever the gap
    monkeypatch.setattr(stationary, "DENSE", 500)
    monkeypatch.setattr(mixing, "ALL_STARTS", 500)
    large = solved(chain)
    assert large.law is None
    assert "nearly reducible" in large.reasons["likeliest"]


def test_elimination_keeps_digits_that_the_gap_has_not():
    kernel = np.array([[1 - 1e-30, 1e-30, 0], [2e-30, 0.5, 0.5], [0, 1e-10, 1 - 1e-10]])
    law = eliminate(kernel.copy())
    assert law[0] * 1e-30 == pytest.approx(law[1] * 2e-30, rel=1e-14)
    assert law[1] * 0.5 == pytest.approx(law[2] * 1e-10, rel=1e-14)


def test_temperature_zero_and_zeros():
    cold = chain_of(TABLE_A, 0.0)
    assert closed_classes(cold)[0] == 3
    exact = solved(cold)
    assert exact.law is None
    assert exact.mixing.worst is None
    assert "reducible: 3 closed sets" in exact.scans.reasons["systematic"]
    one = chain_of([[[1.0, 0.0], [1.0, 0.0]], [[0.3, 0.7], [0.5, 0.5]]])  # site 0 goes to 0 and stays
    exact = solved(one)
    assert exact.law == pytest.approx([0.3, 0.7, 0, 0])
    assert exact.reversible is None
    assert exact.entropy_production == pytest.approx(0)


def test_steepest_ascent_ends_in_traps_or_in_a_cycle():
    assert attractors(chain_of(TABLE_A)).reshape(3, 3).diagonal().tolist() == [0, 4, 8]
    around = chain_of([[[0.1, 0.9], [0.9, 0.1]], [[0.9, 0.1], [0.1, 0.9]]])  # one site copies, the other contradicts
    assert set(attractors(around).tolist()) == {0}


def test_the_conductance_of_a_basin():
    chain = chain_of(TABLE_A)
    exact = solved(chain)
    inside = attractors(chain) == attractors(chain)[exact.law.argmax()]
    flow = exact.law[:, None] * chain.dense()
    mass = exact.law[inside].sum()
    assert exact.basin.states == inside.sum()
    assert exact.basin.mass == pytest.approx(mass)
    assert exact.basin.conductance == pytest.approx(flow[inside][:, ~inside].sum() / min(mass, 1 - mass))


def test_one_site_and_one_state():
    single = FiniteChain((4,), np.log([[0.1, 0.2, 0.3, 0.4]]), 1.0)
    exact = solved(single, start=0)
    assert exact.law == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert (exact.mixing.worst, exact.mixing.from_start, exact.alpha) == (1, 1, 0.0)
    assert exact.second.modulus == pytest.approx(0, abs=1e-12)
    nothing = FiniteChain((1, 1), np.zeros((2, 1)), 1.0)
    exact = solved(nothing, start=0)
    assert (exact.law.tolist(), exact.mixing.worst) == ([1.0], 0)
    assert exact.basin.conductance is None


def test_agreement_of_independent_draws():
    """1000 draws of the law itself: p is uniform, and its TV is as expected; off by a tenth, the test sees it."""
    law = np.array(STATIONARY_A) / sum(STATIONARY_A)
    generator = np.random.default_rng(7)
    found = [agreement(generator.multinomial(1000, law), law) for _ in range(300)]
    assert 0.4 < np.mean([one.p_value for one in found]) < 0.6  # 0.5 +- 6 standard errors of 0.017
    assert np.mean([one.tv for one in found]) == pytest.approx(found[0].expected_tv, rel=0.05)
    wrong = law.copy()
    wrong[[0, 2]] += [-0.05, 0.05]
    assert agreement(generator.multinomial(1000, wrong), law).p_value < 1e-6
    assert agreement(np.array([0, 1]), np.array([0.5, 0.5])).p_value is None
    assert agreement(np.array([0, 0]), np.array([0.5, 0.5])).tv is None


def test_a_restriction_renormalises_and_asks_for_each_context_once():
    table = TableConditional(np.random.default_rng(8).dirichlet(np.ones(4), (3, 4, 4)))
    space = Restriction(np.array([0, 3, 1]), [0, 2], [[2, 0], [1, 3, 0]])
    asked = []

    class Counting:
        vocab_size, allowed, truncation = 4, table.allowed, None

        def log_probs(self, ids, sites):
            asked.extend(map(tuple, np.column_stack([sites, ids])))
            return table.log_probs(ids, sites)

    base = space.log_probs(Counting(), rows=2)
    assert len(asked) == space.rows == 5
    for state in range(space.states):
        ids = space.ids(state)
        assert space.place(ids) == state
        law = table.tables[2][ids[0], ids[1]][[0, 1, 3]]
        assert np.exp(base[1, state]) == pytest.approx(table.tables[2][ids[0], ids[1], ids[2]] / law.sum())
    assert space.place([0, 2, 1]) is None
    assert likeliest(TableConditional(TABLE_A), np.array([0, 2]), [0, 1], 2) == [[2, 0], [0, 2]]
