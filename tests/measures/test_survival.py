"""Kaplan-Meier curves against tables worked out by hand."""

from math import exp

import numpy as np
import pytest

from mlmglauber.measures.statistics.survival import kaplan_meier, median_interval, medians, quantile

# Freireich et al. 1963, weeks of remission of 21 patients on placebo and 21 on 6-MP; the textbooks' medians are 8, 23.
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
TREATED = [6, 6, 6, 7, 10, 13, 16, 22, 23]
TREATED_CENSORED = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]


def by_hand(times, censored):
    """The Kaplan-Meier curve: (time, S) at each time of an event."""
    rows, survival = [], 1.0
    for time in sorted({t for t, c in zip(times, censored, strict=True) if not c}):
        at_risk = sum(t >= time for t in times)
        survival *= 1 - sum(t == time and not c for t, c in zip(times, censored, strict=True)) / at_risk
        rows.append((time, survival))
    return rows


def test_the_oracle():
    curve = kaplan_meier([5, 9, 20], [False, False, True])
    assert curve.median == 9
    assert curve.restricted_mean(20) == pytest.approx(34 / 3)


def test_the_order_of_the_times_is_of_no_account():
    curve = kaplan_meier([20, 9, 5], [True, False, False])
    assert (curve.median, curve.restricted_mean(20)) == (9, pytest.approx(34 / 3))


def test_remission_times():
    placebo = kaplan_meier(PLACEBO, [False] * 21)
    assert placebo.median == 8
    assert placebo.restricted_mean(23) == pytest.approx(np.mean(PLACEBO))
    treated = kaplan_meier(TREATED + TREATED_CENSORED, [False] * 9 + [True] * 12)
    assert treated.median == 23
    # The published curve: .857 after week 6, .690 after 13, .448 after 23.
    for week, height in [(6, 0.857), (13, 0.690), (23, 0.448)]:
        assert treated.survival[np.searchsorted(treated.times, week)] == pytest.approx(height, abs=5e-4)


@pytest.mark.parametrize("seed", range(8))
def test_the_curve_is_the_one_worked_out_by_hand(seed):
    generator = np.random.default_rng(seed)
    events, watched = generator.integers(1, 40, 30), generator.integers(10, 60, 30)
    times, censored = np.minimum(events, watched).tolist(), (events > watched).tolist()
    assert any(censored)
    curve, rows = kaplan_meier(times, censored), by_hand(times, censored)
    assert curve.median == next((time for time, height in rows if height <= 0.5), None)
    assert quantile(curve, 0.75) == next((time for time, height in rows if height <= 0.25), None)
    heights = [curve.survival[np.searchsorted(curve.times, row[0])] for row in rows]
    assert heights == pytest.approx([row[1] for row in rows])


@pytest.mark.parametrize("seed", range(20))
def test_medians_of_counted_texts_are_those_of_copied_times(seed):
    """A text that a resample counts k times is k copies of its times, ties and censoring included."""
    generator = np.random.default_rng(seed)
    events, watched = generator.integers(0, 12, 15), generator.integers(3, 15, 15)
    times, censored = np.minimum(events, watched).astype(float), events > watched
    places = generator.integers(0, 5, 15)
    counts = generator.multinomial(5, np.full(5, 0.2), size=40)
    found = medians(times, censored, places, 5)(counts.astype(float))
    for row, median in zip(counts, found, strict=True):
        copies = np.repeat(np.arange(15), row[places])
        expected = kaplan_meier(times[copies], censored[copies]).median if len(copies) else np.nan
        assert median == pytest.approx(np.inf if expected is None else expected, nan_ok=True)


def test_all_censored_tells_no_median():
    curve = kaplan_meier([20, 20, 7], [True, True, True])
    assert curve.median is None
    assert median_interval([20, 20, 7, 9], [True] * 4, "abcd").value is None
    assert curve.restricted_mean(20) == 20


def test_more_than_half_censored_tells_no_median():
    assert kaplan_meier([5, 20, 20], [False, True, True]).median is None
    assert kaplan_meier([5, 6, 20, 20], [False, False, True, True]).median == 6  # S(6) = 1/2 is reached


def test_a_time_censored_at_an_event_was_at_risk_there():
    """S(5) = 1 - 1/3, not 1 - 1/2; then one is left, who dies at 9."""
    curve = kaplan_meier([5, 5, 9], [False, True, False])
    assert curve.restricted_mean(9) == pytest.approx(5 + 4 * 2 / 3)
    assert curve.median == 9


def test_nothing_censored_is_the_plain_mean_and_median():
    curve = kaplan_meier([1, 2, 3, 4, 10], [False] * 5)
    assert curve.median == 3
    assert curve.restricted_mean(10) == pytest.approx(4)
    assert curve.restricted_mean(4) == pytest.approx((1 + 2 + 3 + 4 + 4) / 5)  # the mean of min(T, 4)
    assert curve.restricted_mean(0.5) == pytest.approx(0.5)


def test_equal_times():
    """Texts that agree have a median and no spread to make an interval of."""
    assert kaplan_meier([5], [False]).median == 5
    found = median_interval([5, 5, 5, 5], [False] * 4, "abcd")
    assert found[:3] == (5, None, None)
    assert "resamples of texts agree" in found.reason
    assert kaplan_meier([0, 0], [False] * 2).restricted_mean(9) == 0


def test_a_median_of_few_texts_has_no_interval():
    """Sixteen chains of three texts are three texts."""
    found = median_interval(range(48), [False] * 48, [k % 3 for k in range(48)])
    assert found == (23, None, None, "an interval needs 4 texts, there are 3")


def test_exponential_times_with_censoring():
    """The median of Exp(1) is ln 2; the interval is about +-6 % of it with 2000 times, 1 of 20 misses by chance."""
    generator = np.random.default_rng(6)
    events, watched = generator.exponential(1, 2000), generator.exponential(2, 2000)
    times, censored = np.minimum(events, watched), events > watched
    found = median_interval(times, censored, range(2000))
    assert found.low < np.log(2) < found.high
    assert found.high - found.low < 0.15
    assert kaplan_meier(times, censored).restricted_mean(1.0) == pytest.approx(1 - exp(-1), abs=0.03)


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_beside_the_numbers():
    for times, censored in [([5, 9, 20], [0, 0, 1]), ([5, 5], [0, 0]), ([3, 3], [1, 1]), ([1], [0]), ([1, 2], [1, 0])]:
        kaplan_meier(times, censored)
        median_interval([*times] * 4, [*censored] * 4, range(4 * len(times)))


def test_no_times_are_refused():
    with pytest.raises(ValueError, match="no times"):
        kaplan_meier([], [])
