"""The drift of the number of copies of a token and the time that they last, against the kernel written out in full."""

import numpy as np
import pytest
from oracles import COPIES, TABLE_A, counting_table, site_kernels

from mlmglauber.dynamics.token_copies import filled, other_tokens, thinned, with_copies
from mlmglauber.measures.traps.token_count import CopyBasin, basin, chances, change, fall_time, growing, level
from mlmglauber.models.conditionals import TableConditional


def rates(table, token, tau, ids):
    n = table.sites
    rows = table.log_probs(np.repeat([ids], n, axis=0), np.arange(n))
    return change(np.array(ids), token, chances(rows, np.full(n, token), tau))


@pytest.mark.parametrize("tau", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("token", [0, 1, 2])
def test_the_expected_change_of_every_state_is_that_of_the_kernel(tau, token):
    table = TableConditional(TABLE_A)
    kernel, states = site_kernels(table, tau).mean(axis=0), table.states()
    counts = (states == token).sum(axis=1)
    for row, ids in zip(kernel, states, strict=True):
        found, k = rates(table, token, tau, ids), int((ids == token).sum())
        assert found.up == pytest.approx(row[counts == k + 1].sum(), abs=1e-12)
        assert found.down == pytest.approx(row[counts == k - 1].sum(), abs=1e-12)
        assert found.up - found.down == pytest.approx(row @ counts - k, abs=1e-12)


@pytest.mark.parametrize("tau", [0.7, 1.0])
def test_the_birth_death_time_is_exact_where_the_count_is_all_that_matters(tau):
    """Against the mean hitting time of the chain on all 64 states, a linear system."""
    table, n = counting_table(COPIES), 6
    kernel, states = site_kernels(table, tau).mean(axis=0), table.states()
    counts = states.sum(axis=1)
    levels = [level(k, n, [rates(table, 1, tau, ids) for ids in states[counts == k]], 1) for k in range(n + 1)]
    drifts = [one.drift for one in levels]
    assert [one.least for one in levels] == pytest.approx(drifts)  # the same in all states with k copies
    where = basin(drifts)
    assert where is not None
    assert 2 < where.threshold < where.stable <= n
    for start, end in ((where.stable, where.threshold - 1), (n, 0)):
        inside = counts > end
        times = np.linalg.solve(np.eye(inside.sum()) - kernel[np.ix_(inside, inside)], np.ones(inside.sum()))
        exact = times[counts[inside] == start]
        ups, downs = [one.up for one in levels], [one.down for one in levels]
        assert fall_time(ups, downs, start, end) == pytest.approx(exact, rel=1e-9)


def test_where_it_is_no_birth_death_chain_the_time_is_an_estimate():
    """Sites that differ: the estimate from means over all states is near the exact time, not equal to it."""
    rng = np.random.default_rng(3)
    table = counting_table(COPIES)
    for site, law in enumerate(table.tables):
        table.tables[site] = np.stack([1 - (p := np.clip(law[..., 1] * rng.uniform(0.85, 1.05), 0, 1)), p], axis=-1)
    kernel, states = site_kernels(table, 1.0).mean(axis=0), table.states()
    counts = states.sum(axis=1)
    levels = [level(k, 6, [rates(table, 1, 1.0, ids) for ids in states[counts == k]], 1) for k in range(7)]
    inside = counts > 2
    times = np.linalg.solve(np.eye(inside.sum()) - kernel[np.ix_(inside, inside)], np.ones(inside.sum()))
    exact = times[counts[inside] == 6].item()
    estimate = fall_time([one.up for one in levels], [one.down for one in levels], 6, 2)
    assert estimate != pytest.approx(exact, rel=1e-6)
    assert estimate == pytest.approx(exact, rel=0.1)


def test_levels_intervals_and_ranges():
    found = level(1, 3, [rates(TableConditional(TABLE_A), 0, 1.0, ids) for ids in ([0, 1], [0, 2], [1, 0])], 3)
    assert found.least <= found.low + 1
    assert found.least <= found.drift <= found.most
    assert found.low < found.drift < found.high
    assert level(3, 3, [rates(TableConditional(TABLE_A), 0, 1.0, [0, 0])], 1).exact
    assert growing([None, 0.1, 0.2, -0.1, 0.0, 0.1]) == [(1, 2), (5, 5)]
    assert basin([0.2, -0.1, 0.1, 0.1, -0.1, 0.2, -0.3]) == CopyBasin(5, 6)
    assert basin([0.2, 0.1, -0.1]) is None  # one place draws the count from everywhere
    assert basin([None, None, 0.1, -0.1]) is None  # nothing is known of what lies below
    assert basin([-0.1, None, 0.1, -0.1]) == CopyBasin(2, 3)


def test_what_cannot_be_told_is_none():
    assert fall_time([0.1, 0.1, 0.0], [0.0, 0.0, 0.2], 2, 0) is None
    assert fall_time([0.1, None, 0.0], [0.0, 0.3, 0.2], 2, 0) is None
    assert fall_time([0.1, None, 0.0], [0.0, 0.3, 0.2], 2, 1) == pytest.approx(5)
    with pytest.raises(ValueError, match="not finite"):
        chances(np.array([[np.nan, 0.0]]), np.array([0]), 1.0)


def test_copies_are_put_at_the_first_sites_of_an_order():
    ids, order = np.array([4, 9, 4, 9]), np.array([2, 1, 0, 3])
    assert with_copies(ids, 9, 1, order) is None
    assert with_copies(ids, 9, 2, order).tolist() == ids.tolist()
    assert with_copies(ids, 9, 3, order).tolist() == [4, 9, 9, 9]
    assert with_copies(ids, 9, 4, order).tolist() == [9, 9, 9, 9]


def test_the_limit_of_no_temperature():
    rows = np.log(np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2]]))
    assert chances(rows, np.array([0, 1]), 0.0).tolist() == [1.0, 0.0]  # ties go to the lowest
    assert chances(rows, np.array([1, 1]), 1e-3) == pytest.approx([0.0, 0.5])


def test_ways_from_all_copies_to_none_take_their_tokens_from_the_conditionals():
    table, ways = TableConditional(TABLE_A), 4000
    rng = np.random.default_rng(0)
    orders = rng.random((ways, 2)).argsort(axis=1)
    none, one, two = thinned(table, 2, 1.0, orders, rng.random((ways, 2)), 512)
    assert [(states == 2).sum(axis=1).tolist() for states in (none, one, two)] == [[k] * ways for k in range(3)]
    first = one[orders[:, 0] == 0, 0]  # site 0 was given a token beside a 2 at site 1: law .1 .2 (.7)
    share = (first == 1).mean()
    assert share == pytest.approx(2 / 3, abs=4 * np.sqrt(2 / 9 / len(first)))  # four standard errors
    assert [len(states) for states in filled([np.array([0, 1]), np.array([2, 2])], 2, orders[:2])] == [1, 1, 2]
    with pytest.raises(ValueError, match="no other"):
        other_tokens(np.array([[0.0, -np.inf]]), 0, 1.0, np.array([0.5]))
    assert other_tokens(np.log([[0.2, 0.5, 0.3]]), 1, 0.0, np.array([0.5])).tolist() == [2]
