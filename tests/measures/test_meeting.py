"""Meeting times of many pairs: medians, growth with n and the crossover, on times of known laws."""

import itertools
import json
from math import ceil, exp, log

import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import CensoredData, logrank

from mlmglauber.commands.couple.summary import group_fields, pair_of, summarise
from mlmglauber.measures.meeting.crossover import crossovers, trend
from mlmglauber.measures.meeting.summary import of_group
from mlmglauber.measures.meeting.times import Pair, PairKind, c_and_growth, growth, times_of
from mlmglauber.measures.statistics.scaling import Times, n_log_n

KIND = PairKind("m", "maximal", "pair", 0, 2)
LAGGED = KIND._replace(lag=5, start="text")


def pair(meeting, *, tau=1.0, n=8, text="0", kind=KIND, max_steps=1000, last_change=0, sums=None):
    return Pair(kind, text, tau, n, meeting, max_steps, last_change, sums)


def group_of(pairs, eps):
    """The fields of a group's summary."""
    return group_fields(of_group(pairs, eps))


def exponential_pairs(mean, taus, lengths, count=40, horizon=25.0, seed=0):
    """Pairs with exponential meeting times of the given mean(tau, n) in units of n ln n, censored at the horizon."""
    generator = np.random.default_rng(seed)
    made = []
    for n in lengths:
        limit = ceil(horizon * n_log_n(n))
        for tau in taus:
            for k in range(count):
                time = int(generator.exponential(mean(tau, n) * n_log_n(n)))
                made.append(pair(time if time <= limit else None, tau=tau, n=n, text=str(k), max_steps=limit))
    return made


def test_oracle_of_a_group():
    """ORACLES: hits at 5 and 9 and one censored at 20 have median 9 and restricted mean 11.3333."""
    group = group_of([pair(5, max_steps=20), pair(9, max_steps=20), pair(None, max_steps=20, last_change=3)], [0.25])
    assert (group["median"], group["restricted_mean"]) == (9.0, pytest.approx(11.3333, abs=5e-5))
    assert (group["met"], group["censored"], group["frozen"]) == (2, 1, 1)
    assert group["median_n_log_n"] == pytest.approx(9 / (8 * log(8)))


def test_a_group_that_did_not_meet():
    group = group_of([pair(None, last_change=700), pair(None)], [0.25])
    assert (group["median"], group["met"], group["frozen"]) == (None, 0, 1)
    assert "censored" in group["reason"]
    assert group["restricted_mean"] == group["horizon"] == 1000


def test_equal_starts_have_median_0():
    group = group_of([pair(0), pair(0)], [0.25])
    assert (group["median"], group["restricted_mean"], group["median_n_log_n"]) == (0.0, 0.0, 0.0)


def groups_of(mean, lengths=(8, 16, 32), count=60, **more):
    made = []
    for n in lengths:
        members = exponential_pairs(lambda tau, n: mean(n), [1.0], [n], count, seed=n, **more)
        made.append(Times(n, *times_of(members), [member.text for member in members]))
    return made


def test_growth_sees_an_exponential():
    """Medians grow by e^(0.05) a site beyond n ln n: the rate's interval holds it, and the test rejects n ln n."""
    found = growth(groups_of(lambda n: exp(0.05 * n)))
    assert found.reason is None
    assert 0 < found.low < 0.05 < found.high
    assert found.p < 1e-3


def test_growth_lets_n_log_n_be():
    """Rejects with about 5 %; the seeds are fixed."""
    found = growth(groups_of(lambda n: 3.0))
    assert found.low < 0 < found.high
    assert found.p > 0.05


def test_growth_without_medians_has_its_test_still():
    found = growth(groups_of(lambda n: 2.0 if n == 8 else 1e6))
    assert (found.rate, found.low) == (None, None)
    assert "median" in found.reason
    assert found.p < 1e-6


def test_growth_that_cannot_be_told():
    assert "two lengths" in growth(groups_of(lambda n: 3.0, lengths=(8,))).reason
    nobody = growth([Times(n, np.full(4, 9.0), np.ones(4, bool), list("abcd")) for n in (8, 16)])
    assert (nobody.rate, nobody.p) == (None, None)
    one_text = growth([Times(n, np.arange(1.0, 5.0), np.zeros(4, bool), ["a"] * 4) for n in (8, 16)])
    assert one_text.rate is not None
    assert "needs 4 texts" in one_text.reason
    assert one_text.p is None


TAUS = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]


def true_crossing(n):
    """Mean 10 / ln 2 units, median 10, at tau = 1.2 and 1.8."""
    return {8: 1.2, 32: 1.8}[n]


def falling(tau, n):
    return 10 / log(2) * exp(-3 * (tau - true_crossing(n)))


def test_the_crossover_is_found_and_its_rise():
    """The 95 % intervals hold the true temperatures (a seed in ten fails), whatever is censored above the budget."""
    for horizon in (10.0, 25.0):
        found = crossovers(exponential_pairs(falling, TAUS, (8, 32), count=60, horizon=horizon, seed=4), 10.0)
        for n, crossover in found.items():
            tau, low, high, reason = crossover.interval()
            assert low < true_crossing(n) < high
            assert low < tau < high
            assert crossover.between[0] < tau < crossover.between[1]
            assert reason is None
        rise = trend(found)
        assert 0 < rise.low < 0.3 < rise.high  # 0.6 over two doublings


def test_longer_watching_moves_no_crossover():
    short, long = (crossovers(exponential_pairs(falling, TAUS, (8,), horizon=horizon), 10.0)
                   for horizon in (10.0, 50.0))
    assert all(short[n].tau == long[n].tau for n in short)
    assert all(np.array_equal(short[n].draws, long[n].draws) for n in short)


@pytest.mark.parametrize(("mean", "taus", "reason"), [
    (lambda tau, n: 0.1, TAUS, "within the budget at every tau"),
    (lambda tau, n: 1e9, TAUS, "above the budget at every tau"),
    (lambda tau, n: 3.0, [1.0], "two temperatures"),
])
def test_no_crossover_and_why(mean, taus, reason):
    crossover = crossovers(exponential_pairs(mean, taus, (8,)), 10.0)[8]
    assert crossover.interval()[:3] == (None, None, None)
    assert crossover.between is None
    assert reason in crossover.interval().reason


def test_a_crossover_needs_pairs_that_were_watched_for_the_budget():
    found = crossovers(exponential_pairs(lambda tau, n: 20.0, TAUS, (8,), horizon=5.0), 10.0)[8].interval()
    assert found.value is None
    assert "less than the budget" in found.reason


def test_a_crossover_of_one_text_has_no_interval():
    pairs = [member._replace(text="0") for member in exponential_pairs(falling, TAUS, (8,))]
    found = crossovers(pairs, 10.0)[8].interval()
    assert found.value is not None
    assert found.low is None
    assert found.reason == "an interval needs 4 texts, there are 1"


EXAMPLE = ROOT / "examples" / "phase-diagram" / "tiny-en-pairs.jsonl"


@pytest.fixture(scope="module")
def example():
    """The pairs of the phase diagram of tiny-en."""
    records = map(json.loads, EXAMPLE.read_bytes().splitlines())
    return [pair_of(record)[1] for record in records if record["type"] == "pair"]


@pytest.mark.parametrize(("budget", "expected"), [(3, [7 / 3, 2.3, 2.41667]), (7, [1.5, 1.75, 2.10526]),
                                                  (10, [1.375, 1.66667, 1.75])])
def test_the_crossover_depends_on_the_budget(example, budget, expected):
    """By hand from the counts of late pairs: at n = 8 and B = 3 they are 10 of 16 at tau 2 and 7 at 2.5."""
    found = crossovers(example, budget)
    assert [crossover.tau for crossover in found.values()] == pytest.approx(expected, abs=5e-5)


@given(st.lists(st.lists(st.integers(0, 60), min_size=3, max_size=5), min_size=2, max_size=5))
@settings(max_examples=25, deadline=None)
def test_the_crossover_never_rises_with_the_budget(times):
    """Whatever the meeting times at each temperature; monotone cubics did: 1.427 at B = 7, 1.443 at B = 10."""
    pairs = [pair(time, tau=1.0 + k, text=str(j)) for k, row in enumerate(times) for j, time in enumerate(row)]
    found = [crossovers(pairs, budget)[8].tau for budget in (0.5, 1, 1.5, 2, 2.5, 3)]
    assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(found))


def test_there_is_no_c_where_times_grow_faster_than_n_log_n(example):
    """At tau 2 the medians are 3.3, 5.4 and 9.7 n ln n: no one number describes them."""
    faster = next(row for row in summarise(example, [10.0], [0.25]) if row["over"] == "tau" and row["tau"] == 2)
    assert faster["c"] is faster["c_low"] is None
    assert faster["growth_p"] < 0.05
    assert "faster than n ln n" in faster["c_reason"]
    fit, grown = c_and_growth(groups_of(lambda n: 3.0))
    assert fit.value == pytest.approx(3 * log(2), rel=0.2)  # the median of an exponential time
    assert grown.p > 0.05


def test_the_growth_test_takes_texts_for_the_clusters():
    """Ten copies of each text's pairs say no more than one; a log-rank test of pairs would think so."""
    groups = groups_of(lambda n: 3.0 + n / 16, lengths=(8, 32), count=12)
    copies = [Times(n, np.repeat(times, 10), np.repeat(censored, 10), np.repeat(texts, 10).tolist())
              for n, times, censored, texts in groups]
    assert growth(copies).p == pytest.approx(growth(groups).p, rel=0.02)
    assert growth(copies)[:3] == pytest.approx(growth(groups)[:3])


@pytest.mark.parametrize("seed", range(8))
def test_one_pair_a_text_gives_the_log_rank_test(seed):
    """Where n ln n holds. Its variance is another estimate, so p is not the same: scipy's within a factor of 2."""
    short, long = (Times(n, *times_of(exponential_pairs(lambda tau, n: 3.0, [1.0], [n], 80, seed=100 * seed + n)),
                         [f"{n}/{k}" for k in range(80)]) for n in (8, 32))
    data = [CensoredData(uncensored=times[~censored] / n_log_n(n), right=times[censored] / n_log_n(n))
            for n, times, censored, _ in (short, long)]
    expected = logrank(*data, alternative="greater").pvalue
    assert expected / 2 < growth([short, long]).p < 2 * expected


def test_the_upper_quartile_stands_beside_the_median():
    """The median of meeting times is no bound on the mixing time from above."""
    group = group_of([pair(k, text=str(k)) for k in (1, 2, 3, 10, 20, 30, 40, 50)], [0.25])
    assert (group["median"], group["upper_quartile"]) == (10, 30)
    none = group_of([pair(1), pair(2), pair(None)], [0.25])
    assert (none["upper_quartile"], none["upper_quartile_reason"]) == (None, "over a quarter of the pairs are censored")


def test_a_text_is_the_same_text_in_two_runs():
    """Two seeds of four texts are four texts, not eight."""
    record = {"type": "pair", "model": "m", "coupling": "maximal", "start": "pair", "lag": 0, "replicas": 2, "tau": 1,
              "n": 8, "id": "x", "pair": 0, "max_steps": 9, "last_change": 1, "meeting": 3, "censored": False}
    (one, first), (two, second) = (pair_of(record | {"run": run}) for run in ("r", "s"))
    assert first.text == second.text
    assert one != two


def test_shares_that_rise_are_made_to_fall():
    """3 of 4, 1 of 4, 3 of 4 and none late: isotonic 3/4, 1/2, 1/2, 0."""
    pairs = []
    for tau, late in ((1.0, 3), (2.0, 1), (3.0, 3), (4.0, 0)):
        pairs += [pair(None if k < late else 1, tau=tau, text=str(k)) for k in range(4)]
    assert crossovers(pairs, 10.0)[8].tau == pytest.approx(2.0)


def test_lagged_groups():
    """Times are counted from the lag on; distances sum up; one censored pair leaves no bound."""
    pairs = [pair(1, kind=LAGGED, n=2, sums=[2, 0]), pair(3, kind=LAGGED, n=2, sums=[4, 3, 1, 0]),
             pair(9, kind=LAGGED, n=2, sums=[9, 8, 7, 6, 5, 3, 1, 0])]
    group = group_of(pairs, [0.5])
    assert [(row["t"], row["tv"]) for row in group["bound"]] == [
        (0, pytest.approx(4 / 3)), (1, 1.0), (2, 1.0), (3, 2 / 3), (4, pytest.approx(1 / 3)), (6, 1 / 3), (8, 1 / 3),
        (12, 0)]
    assert [row["hamming"] for row in group["bound"]] == pytest.approx(
        [5, 11 / 3, 8 / 3, 2, 5 / 3, 1, 1 / 3, 0])
    assert group["tmix"] == [{"eps": 0.5, "t": 4, "t_high": None, "t_high_reason": group["tmix"][0]["t_high_reason"]}]
    assert "so few texts" in group["tmix"][0]["t_high_reason"]
    broken = group_of([*pairs, pair(None, kind=LAGGED)], [0.5])
    assert broken["bound"] is broken["tmix"] is None
    assert broken["bound_reason"] == "1 of 4 pairs did not meet: no bound"


def test_summaries_of_everything():
    pairs = [*exponential_pairs(falling, TAUS, (8, 32), count=10), pair(3, kind=LAGGED, n=2, sums=[1, 0])]
    found = list(summarise(pairs, [10.0], [0.25]))
    assert [summary["over"] for summary in found] == [*["group"] * 12, *["tau"] * 6, "n", "n", "all",
                                                      "group", "tau", "n", "all"]
    assert all(summary["of"] == "pair" for summary in found)
    assert {summary["lag"] for summary in found[:21]} == {0}
