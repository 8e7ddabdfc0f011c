"""Drift, hitting times and the fit of C(tau) against closed forms."""

import subprocess
import sys
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mlmglauber.commands.drift.summary import summarise
from mlmglauber.measures.drift.cosine import Reference
from mlmglauber.measures.drift.first_passage import Passage, first_passage
from mlmglauber.measures.drift.group_diagnostics import group_diagnostics
from mlmglauber.measures.drift.series import DriftSeries
from mlmglauber.measures.drift.time_average import mean, quartiles, second_half
from mlmglauber.measures.meeting.times import growth
from mlmglauber.measures.statistics.scaling import Times, fit_c, n_log_n
from mlmglauber.measures.statistics.survival import median_interval

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


def passage(steps, drifts, threshold, zero=None, shows_all=False):
    steps = np.asarray(steps, dtype=np.int64)
    zero = (int(steps[0]) if len(steps) else 0) if zero is None else zero
    return first_passage(steps, np.asarray(drifts, dtype=np.float64), threshold, zero, shows_all)


def test_a_time_is_known_to_lie_between_two_looks():
    steps, drifts = [0, 5, 9, 12], [0.0, 0.25, 0.5, 0.3]
    assert passage(steps, drifts, 0.5) == Passage(6, 9, 12)
    assert passage(steps, drifts, np.nextafter(0.5, 1)) == Passage(None, None, 12)
    assert passage(steps, drifts, 0.2) == Passage(1, 5, 12)  # the first, not the highest
    assert passage(steps, drifts, 0.0) == Passage(0, 0, 12)
    assert passage(steps, drifts, 0.5, shows_all=True) == Passage(9, 9, 12)  # nothing changed from 5 to 9


def test_times_count_from_the_reference_on():
    assert passage([160, 164, 168], [0.0, 0.1, 0.6], 0.5) == Passage(5, 8, 8)
    assert passage([160, 164, 168], [0.0, 0.1, 0.6], 0.5, zero=0) == Passage(165, 168, 168)
    assert passage([160, 164], [0.6, 0.1], 0.5, zero=0) == Passage(0, 160, 164)  # before the first look, or at it


def test_an_undefined_drift_is_no_look():
    assert passage([0, 1, 2], [np.nan, np.nan, 0.9], 0.5) == Passage(0, 2, 2)
    assert passage([0, 4, 8, 12], [0.0, np.nan, 0.9, np.nan], 0.5) == Passage(1, 8, 8)
    assert passage([0, 4, 8, 12], [0.0, 0.1, np.nan, np.nan], 0.5) == Passage(None, None, 4)  # last seen there
    assert passage([0, 1], [np.nan, np.nan], 0.0) is None
    assert passage([], [], 0.0) is None


def plateau(drifts, steps=None, shows_all=False):
    steps = np.arange(len(drifts)) if steps is None else np.array(steps)
    return mean(np.array(drifts, dtype=np.float64), second_half(steps, shows_all))


def test_the_plateau_is_the_mean_of_the_second_half():
    assert plateau([9, 9, 1, 2]) == 1.5
    assert plateau([9, 3, 1]) == pytest.approx(5 / 3)  # the middle one of an odd number counts half
    assert plateau([0.0, 0.0, np.nan, 0.4]) == 0.4
    assert plateau([0.5, np.nan]) is None
    assert plateau([7.0]) == 7.0


def test_where_every_change_is_recorded_states_weigh_by_the_time_they_hold():
    """Stuck at 0.05 for 95 % of 1,001 steps, then elsewhere: of the last 500.5 steps 449.5 are at 0.05."""
    steps, drifts = [0, *range(950, 1000, 5), 1000], [0.05, *[0.95] * 10, 0.95]
    weights = second_half(np.array(steps), True)
    assert weights.sum() == 500.5
    assert plateau(drifts, steps, True) == pytest.approx((449.5 * 0.05 + 51 * 0.95) / 500.5)
    assert quartiles(np.array(drifts), weights) == [0.05, 0.05, 0.05]
    assert plateau([0.0, 1.0], [0, 1000], True) == pytest.approx(1 / 500.5)  # it changed with the last step
    assert plateau([0.0, 1.0], [0, 1000]) == 1.0  # two looks


def test_quartiles_by_hand():
    assert quartiles(np.array([4.0, 1.0, 3.0, 2.0]), np.ones(4)) == [1, 2, 3]
    assert quartiles(np.array([4.0, 1.0, np.nan]), np.array([1.0, 3.0, 9.0])) == [1, 1, 1]
    assert quartiles(np.array([np.nan]), np.ones(1)) is None


def series(steps, drifts, shows_all=False, chain=0, text="a", distances=None, **more):
    found = DriftSeries("r", text, chain, 1.0, 4, shows_all=shows_all, **more)
    found.steps.extend(steps)
    found.drifts.extend(drifts)
    found.distances.extend(drifts if distances is None else distances)
    return found


@pytest.mark.parametrize(("steps", "drifts", "shows_all", "frozen"), [
    ([0], [0.0], False, None), ([0], [0.0], True, None), ([0, 10], [0.0, 0.5], False, None),
    ([0, 10], [0.0, 0.0], True, True), ([0, 3, 10], [0.0, 0.5, 0.5], True, True),
    ([0, 7, 10], [0.0, 0.5, 0.5], True, False), ([0, 5, 10, 15], [0.0, 0.5, 0.6, 0.6], False, True),
    ([0, 5, 10, 15], [0.0, 0.5, 0.6, 0.7], False, False), ([0, 5, 10], [np.nan] * 3, False, None),
])
def test_frozen_is_no_change_in_the_second_half(steps, drifts, shows_all, frozen):
    """As of pairs and of traps; a chain that was seen once there is neither."""
    assert series(steps, drifts, shows_all).frozen() is frozen


def test_one_short_chain_is_left_out_and_named():
    """17.5: one chain of 8 that ends at step 80 of 1,600 cut the draws of all from 50 to 3."""
    rng = np.random.default_rng(1)
    steps = list(range(0, 1601, 16))
    chains = [series(steps[: 6 if k == 3 else None], rng.random(6 if k == 3 else 101), chain=k) for k in range(8)]
    found = group_diagnostics(chains, 4)
    assert (found.chains, found.draws, found.left_out, found.until) == (7, 51, 1, 1600)
    assert found.cut == "1 of 8 chains ends at step 80 of 1600 and is left out of the diagnostics"
    others = group_diagnostics([chain for k, chain in enumerate(chains) if k != 3], 4)
    assert found.diagnostics.ess_bulk == others.diagnostics.ess_bulk
    ends = [group_diagnostics([series(steps[:end], rng.random(end), chain=k) for k, end in enumerate(counts)], 4)
            for counts in ((98, 99, 101), (101, 101, 101))]
    assert (ends[0].chains, ends[0].until, ends[0].draws) == (3, 97 * 16, 49)
    assert ends[0].cut == "the diagnostics stop at step 1552, where the first of the other chains ends"
    assert ends[1].cut is None


def test_diagnostics_are_read_by_time_where_every_change_is_recorded():
    """Two chains that change as often: one is at 0.2 nearly all the time, the other at 0.8."""
    chains = [series([0, *range(4, 44), 4000], [low, *[0.5, 0.6] * 20, low], True, k)
              for k, low in enumerate((0.2, 0.8))]
    chains[0].drifts[-2] = chains[0].distances[-2] = 0.2
    chains[1].drifts[-2] = chains[1].distances[-2] = 0.8
    found = group_diagnostics(chains, 4)
    assert (found.resampled, found.spacing, found.draws) == (True, 4, 501)
    assert (found.diagnostics.frozen, found.diagnostics.reason) == (True, "stuck_at_different_values")


def test_of_two_coupled_chains_one_counts():
    steps, rng = list(range(0, 400, 4)), np.random.default_rng(1)
    chains = []
    for pair in range(6):
        values = rng.random(100)
        chains += [series(steps, values, chain=k, text=f"p{pair}", coupled=f"t{pair}") for k in range(2)]
    group = next(part for part in summarise(chains, [0.5]) if part["over"] == "group")
    alone = next(part for part in summarise(chains[::2], [0.5]) if part["over"] == "group")
    assert (group["chains"], group["texts"], group["coupled_left_out"]) == (6, 6, 6)
    assert {**group, "coupled_left_out": None} == {**alone, "coupled_left_out": None}
    assert len(list(summarise(chains, [0.5]))) == 12 + 2


def test_growth_of_drift_times_has_the_test_of_meeting_times():
    """Times of n ln n exactly, and of n^3, at two lengths, seen at every change."""
    def chain(n, text, time):
        found = DriftSeries("r", text, 0, 1.0, n, shows_all=True)
        found.steps.extend([0, time, 10**6])
        found.drifts.extend([0.0, 0.9, 0.9])
        found.distances.extend([0.0, 0.9, 0.9])
        return found

    factors = (10, 12, 15, 18, 20, 11)
    for power, rejected in ((1, False), (3, True)):
        chains = [chain(n, f"t{k}", round(factor * n**power * (log(n) if power == 1 else 1)))
                  for n in (8, 32) for k, factor in enumerate(factors)]
        found = list(summarise(chains, [0.5]))[-1]["hitting"][0]
        times = [Times(n, np.array([c.steps[1] for c in chains if c.n == n], float), np.zeros(6, bool),
                       [f"t{k}" for k in range(6)]) for n in (8, 32)]
        grown = growth(times)
        assert (found["growth"], found["growth_low"], found["growth_p"]) == (grown.rate, grown.low, grown.p)
        assert (found["growth_p"] < 0.05) == rejected == (found["c"] is None)
        assert ("faster than n ln n" in (found["c_reason"] or "")) == rejected


def test_both_ends_of_censored_intervals_bound_the_median():
    """Looks every 16 steps: the truth, 5 of 8 chains at step 3 to 14, lies in what is printed."""
    chains = [series(range(0, 97, 16), [0.0, *[0.9] * 6], text=f"t{k}") for k in range(8)]
    found = next(part for part in summarise(chains, [0.5]) if part["over"] == "group")["hitting"][0]
    assert (found["median_at_least"], found["median"], found["resolution"]) == (1, 16, 16)
    assert (found["median_low"], found["median_high"]) == (None, None)
    assert "resamples of texts agree" in found["median_reason"]
    spread = [series(range(0, 97, 16), [*[0.0] * k, *[0.9] * (7 - k)], text=f"t{k}") for k in range(1, 6)]
    found = next(part for part in summarise(spread, [0.5]) if part["over"] == "group")["hitting"][0]
    least = median_interval([1, 17, 33, 49, 65], [False] * 5, [f"t{k}" for k in range(1, 6)])
    most = median_interval([16, 32, 48, 64, 80], [False] * 5, [f"t{k}" for k in range(1, 6)])
    assert (found["median_at_least"], found["median"]) == (33, 48)
    assert (found["median_low"], found["median_high"]) == (least.low, most.high)
    assert (found["restricted_mean_at_least"], found["restricted_mean"]) == (33, 48)


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
    code = ("import sys, mlmglauber.measures.statistics.diagnostics, mlmglauber.measures.drift.cosine\n"
            f"sys.exit(str({heavy} or ''))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("tiny", [1e-320, 2e-162, 1e-140, 1e140, 1e200, 1e308])
@pytest.mark.filterwarnings("error")
def test_drift_has_no_size_at_which_it_goes_wrong(tiny):
    reference = Reference(np.array([tiny, 0.0]))
    assert reference.drift(np.array([1.0, 0.0]))[0] == pytest.approx(0, abs=1e-12)
    assert reference.drift(np.array([tiny, tiny]))[0] == pytest.approx(1 - sqrt(0.5), abs=1e-12)
    assert Reference(np.array([1.0, 1.0])).drift(np.array([tiny, tiny]))[0] == pytest.approx(0, abs=1e-12)


def test_the_earliest_median_is_never_above_the_latest_one():
    """Five chains seen to step 8, three hit in (4, 12], two in (20, 24]: the median of the lower ends would be 21."""
    made = [series([0, 4, 8], [0.0, 0.1, 0.1], text=f"c{k}") for k in range(5)]
    made += [series([0, 4, 12, 16], [0.0, 0.1, 0.9, 0.9], text=f"h{k}") for k in range(3)]
    made += [series([0, 4, 20, 24, 28], [0.0, 0.1, 0.1, 0.9, 0.9], text=f"l{k}") for k in range(2)]
    hitting = next(record for record in summarise(made, [0.5]) if record["over"] == "group")["hitting"][0]
    assert (hitting["median"], hitting["median_at_least"]) == (12, 5)
    assert hitting["c_at_least"] == pytest.approx(5 / (4 * log(4)))
    assert hitting["c_at_least"] <= hitting["c"]


@pytest.mark.parametrize("steps", range(4, 40))
def test_every_step_and_every_change_give_one_plateau(steps):
    """Generated chains, of even and of odd length: their states at every step, and at their changes alone."""
    rng = np.random.default_rng(steps)
    values = np.repeat(rng.random(steps + 1), rng.integers(1, 4, steps + 1))[: steps + 1]
    changes = np.append(0, np.flatnonzero(np.diff(values)) + 1)
    places = np.union1d(changes, [steps])
    assert plateau(values[places], places, True) == pytest.approx(plateau(values, shows_all=True), abs=1e-12)
    every, change = (quartiles(values[at], second_half(at, True)) for at in (np.arange(steps + 1), places))
    assert change == pytest.approx(every)


def test_looks_at_uneven_distances_are_not_compared_as_if_they_were_even():
    """--every 16 --energy 10 looks at the multiples of both; --every 7 --steps 295 ends with a gap of one step."""
    both = np.union1d(np.arange(0, 961, 16), np.arange(0, 961, 10))
    for steps, gap, draws in ((both, 10, 49), (np.append(np.arange(0, 295, 7), 295), 7, 22)):
        rng = np.random.default_rng(len(steps))
        chains = [series(steps.tolist(), rng.random(len(steps)).tolist(), text=f"t{k}") for k in range(4)]
        found = group_diagnostics(chains, 16)
        assert (found.spacing, found.resampled, found.draws) == (gap, False, draws)


def test_few_texts_give_no_small_p_of_growth():
    """Four texts, wholly apart: an exact permutation of 4 and 4 goes down to 1 / 70 and no further."""
    short, long = (Times(n, factor * n * log(n) * np.array([1.0, 1.01, 1.02, 1.03]), np.zeros(4, bool), list("abcd"))
                   for n, factor in ((8, 1.0), (32, 9.0)))
    assert growth([short, long]).p == pytest.approx(1 / 70)
