"""Drift, hitting times and the fit of C(tau) against closed forms."""

import subprocess
import sys
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mlmglauber.measures.drift import Reference, hitting_time, plateau
from mlmglauber.measures.scaling import Times, fit_c, n_log_n

ANY = arrays(np.float32, 5, elements=st.floats(width=32))
FINITE = arrays(np.float32, 5, elements=st.floats(-1e6, 1e6, width=32)).filter(lambda vector: bool(vector.any()))


@pytest.mark.parametrize(
    ("vector", "drift"),
    [([1, 0], 0.0), ([0, 7], 1.0), ([-2, 0], 2.0), ([1, 1], 1 - sqrt(0.5)), ([1, -sqrt(3)], 0.5), ([3, 4], 0.4)],
)
def test_drift_is_one_minus_the_cosine(vector, drift):
    found, reason = Reference(np.array([2.0, 0.0])).drift(np.array(vector))
    assert found == pytest.approx(drift, abs=1e-15)
    assert reason is None


def test_equal_vectors_do_not_drift():
    """In float32 one such cosine in six exceeds 1 (field fault e04); here none does, and the rest is rounding."""
    for vector in [np.array([10, 2]), *np.random.default_rng(0).standard_normal((2000, 384)).astype(np.float32)]:
        assert 0 <= Reference(vector).drift(vector.copy())[0] <= 1e-12


@given(ANY, ANY)
def test_drift_is_between_0_and_2_or_says_why_it_is_not(first, second):
    found, reason = Reference(first).drift(second)
    reasons = {"not_finite" if not np.isfinite(v).all() else "zero_norm" for v in (first, second)
               if not np.isfinite(v).all() or not v.any()}
    if reasons:
        assert found is None
        assert reason in reasons
    else:
        assert reason is None
        assert 0 <= found <= 2


@given(FINITE, FINITE, st.floats(1e-3, 1e3))
def test_drift_is_symmetric_and_does_not_see_lengths(first, second, scale):
    drift = Reference(first).drift(second)[0]
    assert Reference(second).drift(first)[0] == pytest.approx(drift, abs=1e-12)
    assert Reference(first.astype(np.float64) * scale).drift(second)[0] == pytest.approx(drift, abs=1e-12)
    assert Reference(first).drift(-second)[0] == pytest.approx(2 - drift, abs=1e-12)


@pytest.mark.parametrize(
    ("reference", "vector", "reason"),
    [([0, 0], [1, 0], "zero_norm"), ([1, 0], [0, 0], "zero_norm"), ([1, 0], [np.nan, 0], "not_finite"),
     ([np.inf, 0], [1, 0], "not_finite"), ([1, 0], [-np.inf, np.inf], "not_finite")],
)
def test_an_undefined_drift_has_no_number(reference, vector, reason):
    assert Reference(np.array(reference)).drift(np.array(vector)) == (None, reason)


def test_drift_leaves_its_vectors_alone():
    first, second = np.array([1e-200, 2e-200]), np.array([3e-200, 1e-200])
    Reference(first).drift(second)
    assert (first.tolist(), second.tolist()) == ([1e-200, 2e-200], [3e-200, 1e-200])


def test_drift_does_not_reach_into_float32():
    """The angle 1e-4 has drift 5e-9, which float32 rounds away."""
    assert Reference(np.array([1.0, 0.0], np.float32)).drift(np.array([1.0, 1e-4], np.float32))[0] == pytest.approx(
        1 - 1 / sqrt(1 + 1e-8), rel=1e-6)


def test_the_first_step_at_the_threshold_or_above_is_the_hit():
    steps, drifts = [0, 5, 9, 12], [0.0, 0.25, 0.5, 0.3]
    assert hitting_time(steps, drifts, 0.5) == 9
    assert hitting_time(steps, drifts, np.nextafter(0.5, 1)) is None
    assert hitting_time(steps, drifts, 0.2) == 5  # the first, not the highest
    assert hitting_time(steps, drifts, 0.0) == 0


def test_an_undefined_drift_is_no_hit():
    assert hitting_time([0, 1, 2], [np.nan, np.nan, 0.9], 0.5) == 2
    assert hitting_time([0, 1], [None, None], 0.0) is None
    assert hitting_time([], [], 0.0) is None


def test_the_plateau_is_the_mean_of_the_second_half():
    assert plateau([9, 9, 1, 2]) == 1.5
    assert plateau([9, 3, 1]) == 2  # the middle one of an odd number counts in
    assert plateau([0.0, 0.0, np.nan, 0.4]) == 0.4
    assert plateau([0.5, np.nan]) is None
    assert plateau([]) is None


def test_n_log_n():
    assert n_log_n(1) is None
    assert n_log_n(2) == pytest.approx(1.386294361)
    assert n_log_n(24) == pytest.approx(24 * log(24))


def group(n, times, censored=None, texts=None):
    times = np.asarray(times, dtype=np.float64)
    return Times(n, times, np.zeros(len(times), bool) if censored is None else np.asarray(censored),
                 [str(k) for k in range(len(times))] if texts is None else texts)


def test_c_at_one_length_is_the_median_over_n_log_n():
    assert fit_c([group(10, [5, 9, 20], [False, False, True])]).value == pytest.approx(9 / (10 * log(10)))


def test_c_over_lengths_is_least_squares_weighted_by_chains():
    first, second = 10 * log(10), 20 * log(20)
    fit = fit_c([group(10, [first] * 3), group(20, [3 * second] * 2)])
    expected = (3 * first**2 * 1 + 2 * second**2 * 3) / (3 * first**2 + 2 * second**2)
    assert fit.value == pytest.approx(expected)


def test_lengths_that_agree_give_their_c():
    """Texts that all agree have no spread to make an interval of."""
    fit = fit_c([group(n, [2.5 * n * log(n)] * 4) for n in (8, 16, 32, 64)])
    assert fit[:3] == (pytest.approx(2.5), None, None)
    assert "resamples of texts agree" in fit.reason


def test_the_interval_resamples_texts():
    """Four texts of 100 equal chains each say no more than four chains do: chains of one text depend on each other."""
    times, texts = np.array([10, 20, 30, 50]), ["a", "b", "c", "d"]
    many = fit_c([group(10, np.repeat(times, 100), texts=np.repeat(texts, 100).tolist())])
    assert many == fit_c([group(10, times, texts=texts)])
    assert many.low < 10 / (10 * log(10)) < 50 / (10 * log(10)) < many.high


def test_the_interval_depends_on_its_seed_alone():
    times = np.random.default_rng(2).exponential(100, 40)
    assert fit_c([group(10, times)], seed=1) == fit_c([group(10, times)], seed=1)
    assert fit_c([group(10, times)], seed=1)[1:3] != fit_c([group(10, times)], seed=2)[1:3]


def test_the_interval_covers_c():
    """20 studies of 40 texts of 2 chains each; each interval covers with probability about .95."""
    generator = np.random.default_rng(3)
    unit, covered = 10 * log(10), 0
    for _ in range(20):
        of_text = generator.standard_normal((40, 1))
        times = 2 * unit * np.exp(of_text + 0.2 * generator.standard_normal((40, 2)))  # the true median is 2 n ln n
        fit = fit_c([group(10, times.ravel(), texts=np.repeat(np.arange(40), 2).astype(str).tolist())])
        covered += fit.low <= 2 <= fit.high
    assert covered >= 16


def test_what_the_chains_cannot_tell_is_none_with_a_reason():
    mostly = fit_c([group(10, [5, 20, 20], [False, True, True]), group(20, [50, 60, 70])])
    assert mostly[:3] == (None, None, None)
    assert "median_not_reached" in mostly.reason
    assert fit_c([group(10, [20, 20], [True, True])])[:3] == (None, None, None)
    for none in (fit_c([]), fit_c([group(1, [5, 9, 20])])):
        assert none[:3] == (None, None, None)
        assert none.reason


def test_few_texts_give_c_without_an_interval():
    for texts in (["a"] * 4, ["a", "b", "c", "c"]):
        fit = fit_c([group(10, [5, 9, 20, 30], texts=texts)])
        assert fit[:3] == (pytest.approx(9 / (10 * log(10))), None, None)
        assert "an interval needs 4 texts" in fit.reason


def test_an_interval_open_above_has_a_low_end_only():
    """Of 10 texts 4 are censored: the median of a resample is often not reached, that of a lower one is."""
    fit = fit_c([group(10, [*range(1, 7), 20, 20, 20, 20], [False] * 6 + [True] * 4)])
    assert fit.value == pytest.approx(5 / (10 * log(10)))
    assert fit.low < fit.value
    assert fit.high is None
    assert fit.reason.startswith("high: not reached")


def test_the_measures_open_without_heavy_libraries():
    """A command that streams drifts pays for numpy alone."""
    heavy = "[m for m in ('scipy', 'sklearn', 'arviz_stats', 'torch', 'click') if m in sys.modules]"
    code = f"import sys, mlmglauber.measures.diagnostics, mlmglauber.measures.drift; sys.exit(str({heavy} or ''))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("tiny", [1e-320, 2e-162, 1e-140, 1e140, 1e200, 1e308])
@pytest.mark.filterwarnings("error")
def test_drift_has_no_size_at_which_it_goes_wrong(tiny):
    reference = Reference(np.array([tiny, 0.0]))
    assert reference.drift(np.array([1.0, 0.0]))[0] == pytest.approx(0, abs=1e-12)
    assert reference.drift(np.array([tiny, tiny]))[0] == pytest.approx(1 - sqrt(0.5), abs=1e-12)
    assert Reference(np.array([1.0, 1.0])).drift(np.array([tiny, tiny]))[0] == pytest.approx(0, abs=1e-12)
