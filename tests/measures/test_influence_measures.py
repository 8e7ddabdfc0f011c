"""Influences, their sizes and bounds against values that are known exactly."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import TABLE_A
from scipy.stats import binomtest, ttest_1samp

from mlmglauber.dynamics.glauber import NotFiniteError, temper
from mlmglauber.measures.influence import context as influence_context
from mlmglauber.measures.influence.context import ascend, compare
from mlmglauber.measures.influence.crossing import Crossing, Room
from mlmglauber.measures.influence.matrix import (
    alphas,
    certified_alpha,
    certified_tau,
    contraction,
    mean_over,
    mixing_bound,
    oscillation_bound,
    oscillations,
    tempered,
    total_variations,
)
from mlmglauber.measures.influence.replacements import Ascent, draw_changes
from mlmglauber.measures.traps.margins import site_rows
from mlmglauber.models.conditionals import TableConditional

A = TableConditional(TABLE_A)
EVERY = 1 << 20


def drawn(table, state, how="uniform", count=EVERY, taus=(1.0,), seed=0, keep=None):
    """One context of a table; by default with every other token at every site."""
    state, sites = np.array(state), np.arange(table.sites)
    base = site_rows(table, state, sites)
    if how == "worst":
        ascent = Ascent(np.eye(table.vocab_size), state, table.allowed, count)
        return ascend(table, state, sites, base, ascent, taus, keep)
    uniforms = np.random.default_rng(seed).random((table.sites, min(count, 64)))
    if count == EVERY:
        uniforms = np.zeros((table.sites, table.vocab_size))
    changes = draw_changes(how, base, state, table.allowed, uniforms, taus[0])
    return compare(table, state, sites, base, changes, taus, keep)


def exact(table, taus):
    """Influence matrices from every state, one for each tau."""
    found = [drawn(table, state, taus=taus) for state in table.states()]
    return [np.max([context.matrix(k) for context in found], axis=0) for k in range(len(taus))]


def by_hand(table, tau):
    """The same from the definition, pair by pair."""
    n, vocab = table.sites, table.vocab_size
    matrix = np.zeros((n, n))
    for i, j in product(range(n), repeat=2):
        for x, token in product(table.states(), range(vocab)):
            y = x.copy()
            y[j] = token
            p, q = np.exp(temper(table.log_probs(np.stack([x, y]), np.array([i, i])), np.full(2, tau)))
            matrix[i, j] = max(matrix[i, j], abs(p - q).sum() / 2 if i != j else 0)
    return matrix


def ising(pairs, n):
    """The conditionals of exp(sum of x_i x_j over pairs), x in {-1, +1}^n."""
    spins = np.indices((2,) * n) * 2 - 1
    return TableConditional.from_joint(np.exp(sum(spins[i] * spins[j] for i, j in pairs)))


COMPLETE = ising([(i, j) for j in range(4) for i in range(j)], 4)
"""Four spins, all coupled: c_ij = tanh(1 / tau), from the contexts in which the two others cancel."""
CROSSES = 1 / np.arctanh(1 / 3)


def random_table(seed, n=3, vocab=3, sharp=2.0):
    logits = np.random.default_rng(seed).normal(scale=sharp, size=(n, *(vocab,) * n))
    return TableConditional(np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))


def test_table_a():
    half, one, two = exact(A, (0.5, 1.0, 2.0))
    assert [half[0, 1], half[1, 0]] == pytest.approx([0.888889, 0.947958], abs=1e-6)
    assert [one[0, 1], one[1, 0]] == pytest.approx([0.6, 0.7], abs=1e-12)
    assert [two[0, 1], two[1, 0]] == pytest.approx([0.325250, 0.392794], abs=1e-6)
    assert alphas(one) == pytest.approx((0.7, 0.7, 0.648074), abs=1e-6)
    assert mixing_bound(alphas(one).row, 2, 0.25) == 14
    assert mixing_bound(1.0, 2, 0.25) is None


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_the_definition(tau):
    table = random_table(1)
    assert exact(table, (tau,))[0] == pytest.approx(by_hand(table, tau), abs=1e-12)


@pytest.mark.parametrize("tau", [0.5, 2.0])
def test_an_ising_chain(tau):
    """The end of a chain hears its neighbour alone; an inner spin hears it most when the other agrees with it."""
    matrix, = exact(ising([(0, 1), (1, 2), (2, 3)], 4), (tau,))
    assert matrix[0, 1] == pytest.approx(np.tanh(1 / tau), abs=1e-12)
    assert matrix[1, 0] == pytest.approx(np.tanh(2 / tau) / 2, abs=1e-12)
    assert matrix[0, 2:] == pytest.approx(0, abs=1e-12)


def test_rows_of_the_model_are_never_all_held(monkeypatch):
    """In slices of three rows the numbers are the same, and no request is longer."""
    table = random_table(2)
    whole = drawn(table, [0, 1, 2], taus=(0.5, 1.0))
    asked = []

    class Watched:
        vocab_size = 3

        def log_probs(self, ids, sites):
            asked.append(len(ids))
            return table.log_probs(ids, sites)

    monkeypatch.setattr(influence_context, "SLICE", 3 * 4 * 3)
    state, sites = np.array([0, 1, 2]), np.arange(3)
    cut = compare(Watched(), state, sites, site_rows(table, state, sites), whole.changes, (0.5, 1.0))
    assert max(asked) == 3
    assert sum(asked) == 12
    assert (cut.variations == whole.variations).all()
    assert (cut.oscillations == whole.oscillations).all()


@given(st.integers(0, 10**6), st.sampled_from(["conditional", "uniform", "top", "worst"]), st.integers(1, 3),
       st.sampled_from([0.0, 0.2, 1.0, 5.0]))
@settings(max_examples=40, deadline=None)
def test_what_is_sampled_is_never_above_what_is_exact(seed, how, count, tau):
    table = random_table(seed, sharp=4.0)
    truth = by_hand(table, tau) if seed % 8 == 0 else exact(table, (tau,))[0]
    found = drawn(table, np.random.default_rng(seed).integers(0, 3, 3), how, count, (tau,), seed)
    assert (found.matrix(0) <= truth + 1e-12).all()
    for small, large in zip(alphas(found.matrix(0)), alphas(truth), strict=True):
        assert small <= large + 1e-9


LOGITS = st.lists(st.floats(-30, 30, allow_subnormal=False), min_size=4, max_size=4)


@given(LOGITS, LOGITS, st.sampled_from([0.05, 0.3, 1.0, 4.0, 30.0]))
@settings(max_examples=300, deadline=None)
def test_tanh_of_the_oscillation_is_never_below_the_total_variation(one, other, tau):
    rows = temper(np.array([one, other]), np.ones(2))
    oscillation = oscillations(rows[0], rows[1:])[0]
    assert oscillation == pytest.approx(np.ptp(np.array(one) - np.array(other)), abs=1e-9)
    variation = total_variations(rows[0], rows[1:], [tau])[0, 0]
    assert variation <= oscillation_bound(oscillation, tau) + 1e-12


def test_two_letters_reach_the_bound():
    p = 1 / (1 + np.exp(-3.0))
    rows = np.log([[p, 1 - p], [1 - p, p]])
    oscillation = oscillations(rows[0], rows[1:])[0]
    assert oscillation == pytest.approx(6.0)
    for tau in (0.5, 1.0, 3.0):
        assert total_variations(rows[0], rows[1:], [tau])[0, 0] == pytest.approx(oscillation_bound(6.0, tau), abs=1e-12)
    assert oscillation_bound(np.array([0.0, 1.0]), 0.0).tolist() == [0, 1]


def test_tokens_without_probability():
    base, rows = np.log(np.array([0.5, 0.5, 1e-300])), np.array([[np.log(0.5), np.log(0.5), -np.inf]])
    assert oscillations(base, rows)[0] == np.inf
    both = np.array([[-np.inf, np.log(0.2), np.log(0.8)]])
    assert oscillations(np.array([-np.inf, np.log(0.5), np.log(0.5)]), both)[0] == pytest.approx(np.log(4))
    with pytest.raises(NotFiniteError):
        influence_context.check_rows(np.array([[0.0, -1.0], [np.nan, 0.0]]))


@pytest.mark.parametrize("tau", [0.0, 1e-9, 1e-3, 1.0, 50.0])
def test_tempering_in_float32_is_that_in_float64(tau):
    rows = np.random.default_rng(0).normal(scale=5, size=(4, 5000)).astype(np.float32)
    law = tempered(rows, tau)
    assert law == pytest.approx(np.exp(temper(rows, np.full(4, tau))), abs=1e-6)
    assert law.dtype == (np.float32 if tau > 1e-6 else np.float64)


def test_contraction_is_the_expected_distance_after_one_coupled_step():
    """From (a, a) and (a, b) of Table A: site 1 meets, site 0 parts with TV(p1[a], p1[b]) = 1/2."""
    found = drawn(A, [0, 0])
    pair = next(c for c in range(4) if (found.changes.places[c], found.changes.tokens[c]) == (1, 1))
    parted = 1 - np.minimum(TABLE_A[0][0], TABLE_A[0][1]).sum()
    assert contraction(found.variations[0, :, pair].sum(), 2) == pytest.approx((0 + (1 + parted)) / 2)
    assert found.mean_contraction(0) == pytest.approx(0.5 + np.mean([0.5, 0.6, 0.5, 0.5]) / 2)
    assert contraction(0.0, 1) == 0


def test_the_certified_temperature():
    for n, oscillation in ((3, 4.0), (16, 140.0)):
        tau = certified_tau(oscillation, n)
        assert certified_alpha(oscillation, n, tau) == pytest.approx(1)
        assert certified_alpha(oscillation, n, tau * 1.01) < 1 < certified_alpha(oscillation, n, tau * 0.99)
    assert certified_tau(4.0, 1) == certified_tau(4.0, 2) == certified_tau(0.0, 9) == 0
    assert [certified_alpha(4.0, n, 0.0) for n in (1, 2, 3)] == [0, 1, 2]


@pytest.mark.parametrize("tau", [1.0, 0.5])
def test_conditional_replacements_follow_the_tempered_conditional_of_the_others(tau):
    """4000 draws at a fixed seed; rejects a right draw with probability 1e-3."""
    base = site_rows(A, np.array([0, 0]), np.arange(2))
    uniforms = np.random.default_rng(1).random((2, 4000))
    changes = draw_changes("conditional", base, np.array([0, 0]), A.allowed, uniforms, tau)
    assert changes.places.tolist() == [0, 0, 1, 1]
    assert changes.tokens.tolist() == [1, 2, 1, 2]
    assert changes.weights[:2].sum() == 4000
    odds = (0.2 / 0.1) ** (1 / tau)
    assert binomtest(int(changes.weights[0]), 4000, odds / (1 + odds)).pvalue > 1e-3


def test_other_replacements():
    base = site_rows(A, np.array([1, 1]), np.arange(2))
    uniforms = np.array([[0.0, 0.0, 0.9], [0.0, 0.0, 0.9]])
    two = np.zeros((2, 1))
    assert draw_changes("top", base, np.array([1, 1]), A.allowed, two, 1.0).tokens.tolist() == [2, 0]
    assert draw_changes("top", base, np.array([1, 1]), A.allowed, uniforms, 1.0).tokens.tolist() == [2, 0, 0, 2]
    assert draw_changes("uniform", base, np.array([1, 1]), A.allowed, two, 1.0).tokens.tolist() == [0, 0]
    assert draw_changes("conditional", base, np.array([1, 1]), A.allowed, uniforms, 0.0).tokens.tolist() == [2, 0]
    firm = np.array([[0.0, -np.inf, -np.inf], [0.0, -800.0, -801.0]])
    found = draw_changes("conditional", firm, np.array([0, 0]), A.allowed, uniforms, 1.0)
    assert (found.places.tolist(), found.tokens.tolist(), found.weights.tolist()) == ([1, 1], [1, 2], [2, 1])
    alone = draw_changes("uniform", base, np.array([1, 1]), np.array([False, True, False]), uniforms, 1.0)
    assert len(alone.places) == 0


def test_an_ascent_climbs_within_its_budget():
    """Tokens on a line, the best of them at 40: far ones first, then the neighbours of the best."""
    line = np.arange(100, dtype=np.float32)[:, None]
    allowed = np.ones(100, bool)
    allowed[41:45] = False
    ascent = Ascent(line, np.array([70, 0]), allowed, 60)
    seen = [[], []]
    while (changes := ascent.propose()) is not None:
        for place, token in zip(changes.places.tolist(), changes.tokens.tolist(), strict=True):
            seen[place].append(token)
        ascent.learn(changes, 1 - np.abs(changes.tokens - 40.0) / 100)
    assert [len(tokens) for tokens in seen] == [60, 60]
    assert [len(set(tokens)) for tokens in seen] == [60, 60]
    assert not {70, 41, 44} & set(seen[0])
    assert seen[0][:2] == [0, 1]
    assert seen[1][0] == 99
    assert ascent.best_token.tolist() == [40, 40]


def crossing(table, room):
    found = Crossing(table.sites, room)
    for state in table.states():
        context = drawn(table, state, keep=found.take)
        found.move(context.oscillation_matrix())
    return found


def test_the_crossing_is_bracketed():
    found = crossing(COMPLETE, Room(1 << 30))
    for size in range(3):  # rows, columns and eigenvalues of this matrix agree
        bracket = found.bracket(size)
        assert bracket.reason is None
        assert bracket.low <= CROSSES <= bracket.high
        assert bracket.high / bracket.low == pytest.approx(2 ** (1 / 128))
    assert found.bracket(0) == crossing(COMPLETE, Room(1 << 30)).bracket(0)


@pytest.mark.parametrize("room", [0, 3000])
def test_without_room_a_grid_brackets_it(room):
    given = Room(room)
    found = crossing(COMPLETE, given)
    bracket = found.bracket(0)
    assert (bracket.low, bracket.high) == pytest.approx((2.828427, 4))
    assert "--keep-mb" in bracket.reason
    assert (given.left, found.blocks) == (room, [])


def test_crossings_out_of_sight():
    below = crossing(A, Room(1 << 30)).bracket(0)
    assert (below.low, below.high) == (None, 1 / 16)
    assert "below 1" in below.reason
    wide = TableConditional.from_joint(np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]]) / 4.0)  # parity: c_ij = 1 always
    above = crossing(wide, Room(1 << 30)).bracket(0)
    assert (above.low, above.high) == (256, None)


def test_a_mean_over_texts_and_its_interval():
    """Student's t on the means of the texts, but for the resamples' own noise: 3 % of the width is over 3 errors."""
    found, count = mean_over(["a", "b", "a", "c", "d"], [1.0, 4.0, 3.0, 6.0, 4.5])
    interval = ttest_1samp([2.0, 4.0, 6.0, 4.5], 0).confidence_interval(0.95)
    assert (found.value, count) == (4.125, 4)
    assert (found.low, found.high) == pytest.approx(tuple(interval), abs=0.05 * (interval.high - interval.low))
    few, _ = mean_over(["a", "a", "b"], [1.0, 2.0, 2.5])
    assert few == (2.0, None, None, "an interval needs 4 texts, there are 2")
