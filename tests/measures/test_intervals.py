"""The interval over texts against closed forms, and that it covers; test_coverage.py measures how often."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from mlmglauber.measures.statistics.intervals import FEWEST, ends, from_draws, interval, places_of, ratio, resamples
from mlmglauber.measures.statistics.survival import median_interval


def mean_of(values):
    return lambda counts: counts @ values / counts.sum(axis=1)


@pytest.mark.parametrize("texts", [4, 5, 8, 30])
def test_the_interval_of_a_mean_is_students(texts):
    """s / sqrt(T) from 1,000 resamples is 2.2 % off in the mean of cases: within 9 % with probability above 0.9999."""
    values = np.random.default_rng(texts).normal(3, 1, texts)
    found = interval(mean_of(values), texts, "plain")
    exact = ttest_1samp(values, 0).confidence_interval(0.95)
    assert found.value == pytest.approx(values.mean())
    assert found.reason is None
    half = (exact.high - exact.low) / 2
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.09 * half)


def test_on_the_log_scale_an_interval_does_not_depend_on_the_unit():
    values = np.random.default_rng(1).exponential(1, 9)
    one, thousand = (interval(mean_of(unit * values), 9) for unit in (1.0, 1000.0))
    assert np.array(thousand[:3]) == pytest.approx(1000 * np.array(one[:3]))
    assert one.low * one.high == pytest.approx(one.value**2)  # as far below as above, by ratio


@given(st.lists(st.floats(0.01, 100), min_size=4, max_size=9), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_copies_of_the_items_of_a_text_say_nothing_new(values, copies):
    """The interval is that of the texts, however many equal chains each has."""
    names = [f"text {k}" for k in range(len(values))]
    once = median_interval(values, [False] * len(values), names)
    assert median_interval(np.repeat(values, copies), [False] * len(values) * copies, np.repeat(names, copies)) == once


def test_fewer_texts_have_a_value_and_no_interval():
    for texts in range(1, FEWEST):
        found = interval(mean_of(np.arange(1.0, texts + 1)), texts)
        assert found[:3] == ((texts + 1) / 2, None, None)
        assert found.reason == f"an interval needs {FEWEST} texts, there are {texts}"
    assert interval(mean_of(np.arange(1.0, 9)), 8, texts=3).reason.endswith("there are 3")  # a length with three


def test_ends_that_are_out_of_reach():
    """Many infinite draws open an end, and the other is from the draws on its own side; 3 of 1,000 do not (8 texts)."""
    draws = np.random.default_rng(0).lognormal(0, 0.1, 1000)
    whole = from_draws(1.0, draws, 8)
    few, many = draws.copy(), draws.copy()
    few[:3], many[:200] = np.inf, np.inf
    assert from_draws(1.0, few, 8)[1:3] == pytest.approx(whole[1:3], rel=0.02)
    opened = from_draws(1.0, many, 8)
    assert (opened.high, opened.reason) == (None, "high: not reached in too many resamples of texts")
    assert opened.low == pytest.approx(whole.low, rel=0.05)
    unreached = from_draws(np.inf, np.where(np.arange(1000) < 700, np.inf, draws), 8)
    assert (unreached.value, unreached.high) == (None, None)
    assert unreached.low == pytest.approx(np.sort(draws[700:])[6], abs=0.1)  # 0.6 % of the draws are below
    below = from_draws(-np.inf, np.full(1000, -np.inf), 8, "plain")
    assert (below.value, below.low, below.high) == (None, None, None)


def test_what_no_interval_can_be_made_of():
    assert interval(mean_of(np.full(5, 2.0)), 5).reason == "no interval: all resamples of texts agree"
    assert interval(mean_of(np.zeros(5)), 5)[:3] == (0, None, None)
    lost = from_draws(1.0, np.where(np.arange(1000) < 60, np.nan, 1 + np.arange(1000) / 1000), 8)
    assert lost.reason == "no interval: over 5% of the resamples of texts give no value"
    kept = from_draws(1.0, np.where(np.arange(1000) < 40, np.nan, 1 + np.arange(1000) / 1000), 8)
    assert kept.low < 1 < kept.high


def test_sizes_with_a_zero_have_an_interval_that_is_not_below_zero():
    found = interval(mean_of(np.array([0.0, 0.0, 0.0, 9.0, 1.0])), 5)
    assert found.low == 0
    assert found.high > 2


def test_a_share_that_no_text_has_is_not_known_to_be_zero():
    """The exact end for 0 of T texts: a law with that mean gives T zeros with probability 0.025."""
    none = ratio(np.zeros((7, 1)), np.full((7, 1), 4), "share")
    assert (none.value[0], none.low[0]) == (0, 0)
    assert (1 - none.high[0]) ** 7 == pytest.approx(0.025)
    every = ratio(np.full((7, 1), 4), np.full((7, 1), 4), "share")
    assert every.low[0] == pytest.approx(1 - none.high[0])
    assert every.high[0] == 1


def test_ratios_by_hand():
    found = ratio(np.array([[1, 0], [3, 0], [1, 0], [3, 0]]), np.array([[4, 0]] * 4), "share")
    assert found.value[0] == 0.5
    assert np.isnan([found.value[1], found.low[1], found.high[1]]).all()
    # Wilson's interval with t(0.975; 3) and s^2 = (1/4)^2 / 3, so 1/4 / s^2 = 12 trials: 0.5 +- 0.3382.
    assert (found.low[0], found.high[0]) == pytest.approx((0.1618, 0.8382), abs=0.02)
    few = ratio(np.array([[1], [1], [1], [0], [0]]), np.array([[4], [2], [1], [0], [0]]))
    assert few.at(0) == (3 / 7, None, None, "an interval needs 4 texts, there are 3")  # two have nothing to divide by


def test_a_share_stays_within_0_and_1():
    rng = np.random.default_rng(2)
    for _ in range(50):
        below = rng.integers(1, 4, (5, 6))
        found = ratio(rng.integers(0, below + 1), below, "share")
        assert ((found.low >= 0) & (found.low <= found.value) & (found.value <= found.high) & (found.high <= 1)).all()


def test_many_ratios_at_once_are_those_one_by_one():
    rng = np.random.default_rng(3)
    above, below = rng.integers(1, 9, (6, 4)), rng.integers(0, 3, (6, 4))
    below[:4] += 1
    whole = ratio(above, below)
    for k in range(4):
        one = ratio(above[:, k : k + 1], below[:, k : k + 1])
        assert [part[k] for part in whole] == pytest.approx([part[0] for part in one])


def test_resamples_are_of_all_texts_and_the_same_each_time():
    counts = resamples(6)
    assert (counts.sum(axis=1) == 6).all()
    assert (counts == resamples(6)).all()
    assert (counts != resamples(6, seed=1)).any()


def test_places():
    places, total = places_of(["b", ("a", 1), "b"])
    assert (places.tolist(), total) == ([0, 1, 0], 2)


def test_ends_take_arrays():
    draws = np.random.default_rng(4).normal(5, 1, (1000, 2, 3))
    low, high = ends(np.full((2, 3), 5.0), draws, 9, "plain")
    assert low.shape == high.shape == (2, 3)
    assert (low < 5).all()
    assert (high > 5).all()


@pytest.mark.parametrize(("texts", "chains"), [(4, 1), (4, 16), (8, 2)])
def test_medians_of_few_texts_cover(texts, chains):
    """Text effects of a factor e^0.5 and exponential times; Kaplan-Meier bands covered 61 % at 4 texts x 16 chains.

    An interval that covers 93 % holds fewer than 84 of 100 with probability below 1e-3.
    """
    rng, covered = np.random.default_rng(5), 0
    truth = np.median(np.exp(0.5 * rng.normal(size=10**6)) * rng.exponential(size=10**6))
    names = np.repeat(np.arange(texts), chains)
    for _ in range(100):
        times = np.exp(0.5 * rng.normal(size=texts))[names] * rng.exponential(size=texts * chains)
        found = median_interval(times, np.zeros(len(times), bool), names)
        covered += found.low <= truth <= found.high
    assert covered >= 84
