"""Margins, escape probabilities and residence against values that are known exactly."""

import numpy as np
import pytest
from oracles import TABLE_A

from mlmglauber.measures.traps.margins import decided_rows, is_argmax, margins, site_rows
from mlmglauber.models.conditionals import TableConditional

TABLE = TableConditional(TABLE_A)


def of(ids, tau=1.0):
    ids = np.array(ids)
    return margins(site_rows(TABLE, ids, np.arange(2)), ids, tau, 3)


@pytest.mark.parametrize(("state", "margin"), [((0, 0), 0.693147), ((1, 1), 0.510826), ((2, 2), 0.693147)])
def test_the_perfect_traps_of_table_a(state, margin):
    found = of(state)
    assert found.argmax == 1
    assert found.margin == pytest.approx(margin, abs=1e-6)
    assert found.escape == pytest.approx(0.35, abs=1e-12)
    assert found.residence == pytest.approx(2.857143, abs=1e-6)
    assert found.pll == pytest.approx(np.log(TABLE_A[0][state[1]][state[0]] * TABLE_A[1][state[0]][state[1]]))


@pytest.mark.parametrize("tau", [0.05, 0.3, 1.0, 4.0])
def test_the_bound_is_never_below_the_escape_probability(tau):
    for state in TABLE.states():
        found = of(state, tau)
        law = np.exp(site_rows(TABLE, state, np.arange(2)) / tau)
        stay = law[[0, 1], state] / law.sum(1)
        assert found.stay == pytest.approx(stay, abs=1e-12)
        assert found.escape == pytest.approx((1 - stay).mean(), abs=1e-12)
        assert found.bound >= found.escape


def test_a_token_that_is_not_the_likeliest_has_a_negative_margin():
    found = of((0, 1))
    assert found.gamma == pytest.approx(np.log([0.2 / 0.5, 0.3 / 0.6]))
    assert found.argmax == 0


def test_a_tiny_escape_is_not_rounded_to_nothing_and_the_limit_is_told():
    rows = np.log(np.array([[0.9, 0.1]]))
    cold = margins(rows, np.array([0]), 0.03, 2)
    assert cold.escape == pytest.approx((1 / 9) ** (1 / 0.03), rel=1e-9)
    frozen = margins(rows, np.array([0]), 0.0, 2)
    assert (frozen.escape, frozen.residence, frozen.bound) == (0, np.inf, 0)
    assert margins(rows, np.array([1]), 0.0, 2).escape == 1


def test_tokens_that_are_never_drawn():
    rows = np.array([[0.0, -np.inf], [np.log(0.5), np.log(0.5)]])
    found = margins(rows, np.array([1, 0]), 1.0, 2)
    assert (found.margin, found.pll, found.stay[0]) == (-np.inf, -np.inf, 0)
    alone = margins(rows, np.array([0, 0]), 1.0, 2)
    assert (alone.gamma[0], alone.stay[0], alone.gamma[1]) == (np.inf, 1, 0)
    with pytest.raises(ValueError, match="not finite"):
        margins(np.array([[np.nan, 0.0]]), np.array([0]), 1.0, 2)


class Rounded:
    """A table whose fast level is off by a little: at one site that hides which of two tokens is the likelier."""

    levels, vocab_size, allowed, truncation = 2, 3, np.ones(3, bool), None

    def __init__(self):
        self.asked = []

    def log_probs(self, ids, sites):
        return np.log(np.array([[0.5, 0.4, 0.1], [0.4501, 0.4500, 0.0999]]))[sites]

    def log_probs_at(self, ids, sites, level):
        self.asked.append((sites.tolist(), level))
        return np.log(np.array([[0.5, 0.4, 0.1], [0.4500, 0.4501, 0.0999]]))[sites]


def test_nearly_equal_tokens_are_told_apart_in_the_precision_that_defines_chains():
    model, ids = Rounded(), np.array([0, 1])
    found = margins(decided_rows(model, ids, np.arange(2)), ids, 1.0, 3)
    assert model.asked == [([1], -1)]  # and only there
    assert found.perfect
    assert not margins(site_rows(model, ids, np.arange(2)), ids, 1.0, 3).perfect
    assert is_argmax(np.log([[0.4, 0.4, 0.2]] * 2), np.array([0, 1])).tolist() == [True, False]


def test_a_tie_is_no_perfect_trap():
    """Margin 0: the token is the one that tau = 0 draws, and half of the time another one is drawn at any tau above."""
    rows = np.log(np.array([[0.45, 0.45, 0.1], [0.8, 0.1, 0.1]]))
    found = margins(rows, np.array([0, 0]), 0.01, 3)
    assert (found.argmax, found.margin, found.ties, found.perfect) == (1, 0, 1, False)
    assert found.escape == pytest.approx(0.25)
    assert found.bound == 2
    assert margins(rows, np.array([1, 0]), 0.0, 3).escape == 0.5  # the higher of the tied ids is left at tau = 0
