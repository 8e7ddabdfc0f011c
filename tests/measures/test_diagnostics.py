"""Diagnostics against series whose answers are known in closed form. Random ones have fixed seeds."""

import numpy as np
import pytest

from mlmglauber.measures.statistics.diagnostics import Diagnostics, autocorrelations, diagnose, is_constant

NUMBERS = ("ess_bulk", "ess_tail", "rhat_rank", "rhat_split", "mcse_mean", "iat")


def numbers(found):
    return {name: getattr(found, name) for name in NUMBERS}


def autoregressive(rho, chains=4, draws=20_000, seed=1):
    """x_t = rho x_t-1 + noise, started in its stationary law, of variance 1. Its IAT is (1 + rho) / (1 - rho)."""
    noise = np.random.default_rng(seed).standard_normal((draws, chains))
    series = np.empty((draws, chains))
    series[0] = noise[0]
    for t in range(1, draws):
        series[t] = rho * series[t - 1] + np.sqrt(1 - rho * rho) * noise[t]
    return series.T


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.5, 0.9])
def test_an_autoregressive_series_has_its_autocorrelation_time(rho):
    """Within 10 %: the estimate's own spread at 80 000 draws is about 3 % at rho = 0.9."""
    found, iat = diagnose(autoregressive(rho)), (1 + rho) / (1 - rho)
    assert found.iat == pytest.approx(iat, rel=0.1)
    assert found.ess_bulk == pytest.approx(80_000 / iat, rel=0.1)
    assert found.mcse_mean == pytest.approx(np.sqrt(iat / 80_000), rel=0.1)
    assert found.rhat_rank == pytest.approx(1, abs=0.01)
    assert found.rhat_split == pytest.approx(1, abs=0.01)
    assert (found.iat_reliable, found.converged, found.reason) == (True, True, None)
    assert (found.frozen, found.frozen_chains, found.chains, found.draws) == (False, 0, 4, 20_000)


def test_independent_draws_count_in_full():
    found = diagnose(np.random.default_rng(2).random((4, 1000)))
    assert found.ess_bulk == pytest.approx(4000, rel=0.1)
    assert found.ess_tail == pytest.approx(4000, rel=0.15)


def test_a_series_shorter_than_fifty_times_its_memory_is_unreliable():
    found = diagnose(autoregressive(0.9, draws=400))
    assert found.iat == pytest.approx(19, rel=0.5)
    assert not found.iat_reliable
    assert diagnose(autoregressive(0.9, draws=4000)).iat_reliable


@pytest.mark.parametrize(
    "series",
    [np.full((2, 2000), 1.0), np.full((1, 1000), 0.1, np.float32), np.full((1, 1000), 0.1), np.zeros((3, 10)),
     [[2, 2, 2, 2], [2, 2, 2, 2]], 0.1 + 1e-30 * np.random.default_rng(3).standard_normal((2, 2000)),
     0.1 + 1e-15 * np.random.default_rng(3).standard_normal((2, 2000))],
    ids=["ones", "float32", "float64", "zeros", "twos", "no noise", "noise"],
)
def test_a_frozen_chain_has_no_numbers(series):
    """Field fault e01: 2000 equal draws were given an effective sample size of 6602."""
    found = diagnose(np.asarray(series))
    assert set(numbers(found).values()) == {None}
    assert (found.frozen, found.frozen_chains, found.reason) == (True, found.chains, "constant_chain")
    assert not found.converged
    assert not found.iat_reliable


def test_chains_stuck_at_different_values_have_not_converged():
    found = diagnose(np.array([[2, 2, 2, 2], [3, 3, 3, 3]]))
    assert set(numbers(found).values()) == {None}
    assert (found.frozen, found.frozen_chains, found.converged) == (True, 2, False)
    assert found.reason == "stuck_at_different_values"


def test_one_frozen_chain_among_moving_ones_takes_their_sample_size():
    found = diagnose(np.vstack([np.full(100, 0.5), np.random.default_rng(4).random((2, 100))]))
    assert (found.ess_bulk, found.ess_tail, found.mcse_mean, found.iat) == (None, None, None, None)
    assert (found.frozen, found.frozen_chains, found.converged, found.reason) == (False, 1, False, "constant_chain")


def test_constant_is_told_by_the_range_not_by_the_variance():
    float32 = np.full(1000, 0.1, np.float32)
    assert np.var(float32) != 0
    assert is_constant(float32)
    assert is_constant(np.array([1.0, 1.0 + 9e-13]))
    assert not is_constant(np.array([1.0, 1.0 + 3e-12]))
    assert not is_constant(np.array([0.0, 1e-30]))


def test_r_hat_says_which():
    """Field fault e02: sqrt((0.5 * 0.5 + 1.6667) / 0.5) of the four halves; the basic R-hat would be 1.024695."""
    found = diagnose(np.array([[1, 2, 3, 4], [2, 3, 4, 5]]))
    assert found.rhat_split == pytest.approx(1.957890, abs=5e-7)
    assert found.rhat_rank > 1.8  # of ranks, so another number
    assert found.rhat_rank != pytest.approx(found.rhat_split, abs=0.01)
    assert found.converged is False


def test_the_scale_and_place_of_a_series_do_not_matter():
    series = autoregressive(0.5, draws=500)
    plain, moved = diagnose(series), diagnose(series * 1e-3 + 7)
    for name in ("ess_bulk", "ess_tail", "rhat_rank", "rhat_split", "iat"):
        assert getattr(moved, name) == pytest.approx(getattr(plain, name))
    assert moved.mcse_mean == pytest.approx(plain.mcse_mean * 1e-3)


def test_chains_at_different_places_have_not_converged():
    found = diagnose(np.random.default_rng(5).standard_normal((4, 1000)) + np.array([[0], [0], [0], [1]]))
    assert found.rhat_rank > 1.05
    assert found.converged is False
    assert found.ess_bulk < 100


def test_chains_of_different_widths_have_not_converged():
    """The plain R-hat does not see widths; the folded one, part of rhat_rank, does."""
    found = diagnose(np.random.default_rng(6).standard_normal((4, 1000)) * np.array([[1], [1], [1], [3]]))
    assert found.rhat_split < 1.01 < found.rhat_rank
    assert found.converged is False


@pytest.mark.parametrize("draws", [2, 3])
def test_fewer_than_four_draws_tell_nothing(draws):
    found = diagnose(np.random.default_rng(7).random((2, draws)))
    assert set(numbers(found).values()) == {None}
    assert found.reason == "too_few_draws"
    assert found.converged is None


def test_no_draws_and_no_chains_tell_nothing():
    assert diagnose(np.empty((2, 0))) == Diagnostics(2, 0, reason="too_few_draws")
    assert diagnose(np.empty((0, 5))) == Diagnostics(0, 5, reason="too_few_draws")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_tells_nothing(bad):
    series = np.random.default_rng(8).random((2, 100))
    series[1, 50] = bad
    assert diagnose(series) == Diagnostics(2, 100, reason="not_finite")


@pytest.mark.parametrize(("series", "reason"), [([3, 1, 4, 1, 5, 9, 2, 6], "one_chain"), ([0, 1] * 4, "one_chain"),
                                                ([1, 2, 3, 4], "one_chain"), ([0, 1] * 500, "capped")])
def test_an_autocorrelation_time_is_never_zero_or_less(series, reason):
    """Field fault e03: summed over all lags it is 0 for every series. Of these the estimator has its cap alone."""
    found = diagnose(np.array([series]))
    assert (found.iat, found.iat_reliable, found.ess_bulk, found.mcse_mean) == (None, False, None, None)
    assert found.reason == reason


@pytest.mark.parametrize("draws", [4, 9, 10])
def test_under_ten_draws_a_chain_there_is_r_hat_alone(draws):
    """8 chains of 4 draws at two places were given an effective sample size of 48 of 32 draws."""
    series = np.random.default_rng(1).standard_normal((8, draws)) + np.repeat([[0.0], [6.0]], 4, axis=0)
    found = diagnose(series)
    assert found.rhat_rank > 1.3
    assert (found.ess_bulk is None) == (found.iat is None) == (found.mcse_mean is None) == (draws < 10)
    assert (found.reason == "too_few_draws") == (draws < 10)


def test_a_capped_sample_size_is_no_measurement():
    """Strictly alternating chains have an infinite sample size; arviz-stats answers S log10(S)."""
    found = diagnose(np.tile([0.0, 1.0], (2, 500)))
    assert (found.ess_bulk, found.ess_tail, found.iat, found.mcse_mean) == (None, None, None, None)
    assert found.reason == "capped"


def test_autocorrelations_at_doubling_lags():
    """rho^k of an autoregressive series; 1, up to the few draws that a lag loses, of chains stuck in two places."""
    found = {part["lag"]: part["acf"] for part in autocorrelations(autoregressive(0.9))}
    assert list(found) == [1 << k for k in range(14)]
    assert [found[lag] for lag in (1, 2, 4, 8, 16)] == pytest.approx([0.9**lag for lag in (1, 2, 4, 8, 16)], abs=0.03)
    assert autocorrelations(np.array([[0.0] * 8, [1.0] * 8])) == [{"lag": lag, "acf": 1.0} for lag in (1, 2, 4)]


def test_nested_r_hat_is_of_the_chains_of_each_text():
    """Margossian et al. 2024: sqrt(1 + B / W), B the variance of the superchains' means, W that within them."""
    rng = np.random.default_rng(2)
    same = diagnose(rng.standard_normal((16, 20)), [f"text {k // 4}" for k in range(16)])
    apart = diagnose(rng.standard_normal((16, 20)) + np.repeat(3 * np.arange(4), 4)[:, None],
                     [f"text {k // 4}" for k in range(16)])
    assert same.rhat_nested == pytest.approx(1.0, abs=0.02)
    assert apart.rhat_nested > 1.5
    assert (same.nested_reason, apart.nested_reason) == (None, None)
    for texts in (["a"] * 16, list(range(16))):
        found = diagnose(rng.standard_normal((16, 20)), texts)
        assert found.rhat_nested is None
        assert "two texts with two chains each" in found.nested_reason


def test_antithetic_draws_may_count_for_more_than_their_number():
    found = diagnose(autoregressive(-0.3, draws=1000))
    assert found.ess_bulk > 4000
    assert found.iat < 1


def test_r_hat_of_whole_chains_has_its_own_field():
    """sqrt((3/4 * 1.6667 + 0.5) / 1.6667)"""
    assert diagnose(np.array([[1, 2, 3, 4], [2, 3, 4, 5]])).rhat_basic == pytest.approx(1.024695, abs=5e-7)


def test_one_chain_has_split_r_hat_alone():
    """sqrt((3/4 W + B) / W) with halves 1 2 3 4 and 2 3 4 5, the oracle's numbers again."""
    found = diagnose(np.array([[1, 2, 3, 4, 2, 3, 4, 5]]))
    assert found.rhat_split == pytest.approx(1.024695, abs=5e-7)
    assert (found.rhat_rank, found.rhat_basic, found.converged, found.reason) == (None, None, None, "one_chain")
    assert diagnose(np.random.default_rng(1).standard_normal((1, 50))).ess_bulk is not None
    assert diagnose(np.array([[1, 2, 3, 4]])).rhat_split is None  # halves of two draws


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("chains", [1, 2])
def test_halves_stuck_at_different_values_have_not_converged(chains):
    """One jump between two traps: R-hat is infinite, which is not the same as unknown."""
    found = diagnose(np.tile(np.repeat([0.0, 1.0], 50), (chains, 1)))
    assert (found.rhat_rank, found.rhat_split, found.converged) == (None, None, False)
    assert found.reason == "stuck_at_different_values"
    assert found.frozen_chains == 0


@pytest.mark.filterwarnings("error")
def test_draws_piled_up_at_the_top_have_no_tail():
    """All are at or below the 95 % quantile. arviz-stats 0.8 counts such a constant as 2000 independent draws."""
    generator = np.random.default_rng(9)
    series = np.ones((2, 1000))
    series[:, ::100] = generator.random((2, 10))
    for found in (diagnose(series), diagnose(generator.integers(0, 2, (2, 1000)))):
        assert found.ess_tail is None
        assert found.reason == "constant_tail"
        assert found.ess_bulk > 0
    assert diagnose(1 - series).ess_tail is not None  # at the bottom "at or below" tells them apart


def test_a_tiny_series_is_not_taken_for_a_constant():
    """arviz-stats 0.8 gives M N draws to any range below 1e-15; this one has an autocorrelation time of 19."""
    plain, tiny = diagnose(autoregressive(0.9, draws=2000)), diagnose(autoregressive(0.9, draws=2000) * 1e-17)
    assert tiny.iat == pytest.approx(plain.iat)
    assert tiny.mcse_mean == pytest.approx(plain.mcse_mean * 1e-17)


@pytest.mark.parametrize("values", [[[1.0], [2.0]], [[1.0]], [[2.0, 2.0, 2.0]]])
def test_a_few_draws_that_happen_to_be_equal_are_too_few(values):
    found = diagnose(np.array(values))
    assert (found.reason, found.frozen, found.converged) == ("too_few_draws", False, None)


def test_nested_r_hat_is_missing_for_the_reason_that_holds():
    """Three draws of chains of two texts: texts are known, draws are too few."""
    found = diagnose(np.random.default_rng(0).random((4, 3)), ["a", "a", "b", "b"])
    assert (found.reason, found.nested_reason) == ("too_few_draws", "too_few_draws")
    assert diagnose(np.random.default_rng(0).random((4, 3))).nested_reason == "no texts"
