"""Which tokens top-k, top-p and min-p keep, against an own slow definition; the slack against brute force."""

import numpy as np
import pytest

from mlmglauber.models.truncation import Truncation, cut

RULES = [Truncation(top_k=3), Truncation(top_k=1), Truncation(top_p=0.7), Truncation(min_p=0.2), Truncation(4, 0.8),
         Truncation(5, None, 0.1), Truncation(None, 0.9, 0.05), Truncation(6, 0.95, 0.02), Truncation(top_k=50)]


def kept_by_hand(row, rules, tau):
    """The ids that are kept, token by token; the row has no ties."""
    order = sorted(np.flatnonzero(np.isfinite(row)).tolist(), key=lambda v: -row[v])
    if rules.top_k is not None:
        order = order[: rules.top_k]
    weights = [np.exp((row[v] - row[order[0]]) / tau) for v in order]
    if rules.top_p is not None:
        total, sum_ = sum(weights), 0.0
        count = 0
        while sum_ < rules.top_p and count < len(order):
            sum_ += weights[count] / total
            count += 1
        order, weights = order[:count], weights[:count]
    if rules.min_p is not None:
        order = [v for v, weight in zip(order, weights, strict=True) if weight >= rules.min_p * weights[0]]
    return sorted(order)


def kept(rows, rules, tau):
    return [np.flatnonzero(np.isfinite(row)).tolist() for row in cut(rows, rules, tau)]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("tau", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("vocab", [7, 700])
def test_the_kept_tokens_by_hand(rules, tau, vocab):
    rows = 2 * np.random.default_rng(vocab).normal(size=(40, vocab))
    rows[:20, 1:3] = -np.inf
    assert kept(rows, rules, tau) == [kept_by_hand(row, rules, tau) for row in rows]


@pytest.mark.parametrize("size", [1, 3])
def test_many_tokens_are_kept_where_the_rule_needs_them(monkeypatch, size):
    """The likeliest tokens are sorted a few at a time; how many does not change the result."""
    rows = np.random.default_rng(1).normal(size=(9, 300))
    rules = Truncation(top_p=0.99), Truncation(min_p=0.01), Truncation(None, 0.5, 0.01)
    whole = [kept(rows, each, 1.5) for each in rules]
    monkeypatch.setattr("mlmglauber.models.truncation.FEW", size)
    assert [kept(rows, each, 1.5) for each in rules] == whole


def test_of_equal_tokens_the_lowest_ids_are_kept():
    rows = np.log([[0.2, 0.3, 0.2, 0.1, 0.2]])
    assert kept(rows, Truncation(top_k=2), 1.0) == [[0, 1]]
    assert kept(rows, Truncation(top_k=3), 1.0) == [[0, 1, 2]]
    noise = 1e-13 * np.random.default_rng(0).normal(size=(200, 5))  # of another processor
    for k in (1, 2, 3, 4):
        assert len(set(map(tuple, kept(rows + noise, Truncation(top_k=k), 1.0)))) == 1


def test_a_sum_or_a_share_at_the_threshold_is_decided_in_one_way():
    rows = np.log([[0.5, 0.25, 0.15, 0.1]]) + 1e-13 * np.random.default_rng(0).normal(size=(200, 4))
    assert set(map(tuple, kept(rows, Truncation(top_p=0.75), 1.0))) == {(0, 1)}
    assert set(map(tuple, kept(rows, Truncation(min_p=0.5), 1.0))) == {(0, 1)}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("tau", [0.3, 1.0, 2.0])
def test_errors_within_the_slack_keep_the_same_tokens(rules, tau):
    """Errors of both signs whose differences stay just below the slack; and larger ones change some rows."""
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(300, 12))
    truncated = rules.of(rows, np.full(300, tau))
    bound = np.minimum(truncated.slack, 5)[:, None]
    before = np.isfinite(truncated.rows)
    changed = 0
    for trial in range(40):
        signs = generator.choice([0.5, -0.5], rows.shape) if trial % 2 else np.where(before, -0.5, 0.5)
        assert (np.isfinite(cut(rows + 0.999 * bound * signs, rules, tau)) == before).all()
        changed += (np.isfinite(cut(rows + 1.2 * bound * np.where(before, -0.5, 0.5), rules, tau)) != before).sum()
    assert changed or np.isinf(truncated.slack).all()


def test_rows_that_are_cold_or_not_finite_stay_whole():
    rows = np.log([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.5, np.nan, 0.2]])
    truncated = Truncation(top_k=1).of(rows, np.array([0.0, 1.0, 1.0]), np.array([True, False, False]))
    assert np.isfinite(truncated.rows).sum(axis=1).tolist() == [3, 1, 2]
    assert truncated.slack[[0, 2]].tolist() == [np.inf, np.inf]


def test_rules_that_cut_off_nothing_are_no_truncation():
    assert Truncation.given(None, 1.0, 0.0) is None
    assert Truncation.given(5, 1.0, 0.0) == Truncation(5)
