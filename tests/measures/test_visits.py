"""Visits, dwell times and moves of planted sequences, known by hand; intervals whose laws are known."""

import numpy as np
import pytest

from mlmglauber.commands.basins.summary import summarise
from mlmglauber.commands.shared.chain_run import ChainLaw
from mlmglauber.measures.regions.chain_visits import RegionSeries, VisitSettings
from mlmglauber.measures.regions.labelling import NO_NAME
from mlmglauber.measures.regions.visits import Visit, by_region, expected_visits, jumps, time_in, visits

LETTERS = {"a": 0, "b": 1, "c": 2, "-": NO_NAME}
NAMES = ("a", "b", "c")
ONE = ChainLaw("one")


def regions(word):
    return np.array([LETTERS[letter] for letter in word])


def series(word, text="x", chain=0, every=1, steps=None, start=None, tau=1.0, **more):
    made = RegionSeries("r", text, chain, tau, 4, start, **more)
    made.steps.extend(steps or range(0, every * len(word), every))
    made.regions.extend(LETTERS[letter] for letter in word)
    return made


def plan(shortest=0, draws=None, starts_named=False):
    return VisitSettings(NAMES, shortest, draws, starts_named)


def region(summary, name):
    return next(row for row in summary["basins"] if row["basin"] == name)


@pytest.mark.parametrize(("word", "shortest", "found"), [
    ("aaa", 0, [(0, 0, 3, False)]),
    ("aabb", 0, [(0, 0, 2, True), (1, 2, 2, False)]),
    ("a--a", 0, [(0, 0, 2, False)]),  # in no region, then back: it has not been elsewhere
    ("--a-b-", 0, [(0, 2, 1, True), (1, 4, 1, False)]),
    ("---", 0, []),
    ("aabaa", 2, [(0, 0, 4, False)]),  # the short visit is passed over, and the long ones are one
    ("aabccab", 2, [(0, 0, 2, True), (2, 3, 2, False)]),
])
def test_visits_by_hand(word, shortest, found):
    assert visits(np.arange(len(word)), regions(word), shortest) == [Visit(*stay) for stay in found]


def test_a_state_lasts_until_the_next_record():
    """As --on-change writes them: a change at 10 and at 13, and the last state at 20."""
    steps, word = np.array([0, 10, 13, 20]), regions("aba-")
    assert visits(steps, word) == [Visit(0, 0, 10, True), Visit(1, 10, 3, True), Visit(0, 13, 7, False)]
    assert time_in(steps, word, 3).tolist() == [17, 3, 0, 1]


def test_moves_and_counts_by_hand():
    stays = visits(np.arange(9), regions("ab-bacb-a"))
    assert by_region(stays, 3).tolist() == [3, 2, 1]
    assert jumps(stays, 3).tolist() == [[0, 1, 1], [2, 0, 0], [0, 1, 0]]


def test_expected_visits_are_the_mean_over_all_orders():
    """Shuffles of aaabbc: the mean of 4,000 is within 4 standard errors of the exact one (error rate 2e-4 in all)."""
    word, rng = regions("aaabbc"), np.random.default_rng(0)
    steps = np.arange(6)
    counts = np.array([by_region(visits(steps, rng.permutation(word)), 3) for _ in range(4000)])
    exact = expected_visits(steps, word, 3)
    assert exact == pytest.approx([3 * 4 / 6, 2 * 5 / 6, 1])
    assert (np.abs(counts.mean(axis=0) - exact) <= 4 * counts.std(axis=0) / 4000**0.5).all()
    assert expected_visits(4 * steps, word, 3) == pytest.approx(exact)


def test_expected_visits_of_a_chain_without_memory_are_what_is_seen():
    """Independent draws: 300 chains' visits are within 4 standard errors; a sticky chain has far fewer."""
    rng, steps = np.random.default_rng(1), np.arange(50)
    draws = rng.choice(3, size=(300, 50), p=[0.5, 0.3, 0.2])
    gaps = np.array([by_region(visits(steps, row), 3) - expected_visits(steps, row, 3)
                     for row in draws])
    assert (np.abs(gaps.mean(axis=0)) <= 4 * gaps.std(axis=0) / 300**0.5).all()
    sticky = np.repeat([0, 1, 0, 2, 1], 10)
    assert by_region(visits(steps, sticky), 3)[0] < expected_visits(steps, sticky, 3)[0] / 4


def test_a_chain_by_hand():
    only, other, *_ = summarise([series("aab-bac-", every=4), series("cccc", "y", every=4)], plan())
    assert (only["over"], only["start"], only["terminal"], only["steps"]) == ("chain", "a", None, 29)
    assert only["terminal_reason"] == "the state is in no basin"
    assert only["unnamed"] == pytest.approx(5 / 29)
    assert region(only, "a") == {"basin": "a", "visits": 2, "visits_expected": pytest.approx(3 * 4 / 6), "revisits": 1,
                                 "first_visit": 0, "first_visit_at_least": 0, "longest": 8, "share": 12 / 29,
                                 "expected_share": 0.0}
    assert (region(only, "c")["first_visit"], region(only, "c")["expected_share"]) == (24, 1.0)
    assert (other["start"], other["terminal"], region(other, "a")["first_visit"]) == ("c", "c", None)


def test_first_visits_count_from_the_first_record_and_lie_between_two_looks():
    """Issue 16, A1 and A7: after a burn-in of 160 steps a visit at the third look, 8 steps on, was told as 168."""
    looks = {"steps": [160, 164, 168, 172]}
    only, *_, group, _ = summarise([series("aabb", **looks)], plan())
    for found in (region(only, "b"), region(group, "b")):
        assert (found["first_visit_at_least"], found["first_visit"]) == (5, 8)
    assert (only["first_step"], group["resolution"]) == (160, 4)
    only, *_, group, _ = summarise([series("aabb", **looks, shows_all=True)], plan())
    assert (region(only, "b")["first_visit_at_least"], region(only, "b")["first_visit"]) == (8, 8)
    assert group["resolution"] == 1


def test_where_every_change_is_recorded_a_draw_is_a_step():
    """A8: of 21 steps 17 in a, 3 in b, 1 in none; the shortest stay, 3 steps, is not the unit."""
    steps, word = np.array([0, 10, 13, 20]), regions("aba-")
    assert expected_visits(steps, word, 3, shows_all=True) == pytest.approx([17 * 4 / 20, 3 * 18 / 20, 0])
    assert expected_visits(steps, word, 3) == pytest.approx([2 * 2 / 3, 1 * 3 / 3, 0])


def test_a_short_last_gap_is_one_draw_like_the_others():
    """--every 7 --steps 295 looks at 0, 7, ..., 294 and 295: with the smallest gap for a unit, 8 times the visits."""
    rng = np.random.default_rng(2)
    steps = np.append(np.arange(0, 295, 7), 295)
    words = rng.choice(3, size=(300, len(steps)), p=[0.5, 0.3, 0.2])
    gaps = np.array([by_region(visits(steps, row), 3) - expected_visits(steps, row, 3) for row in words])
    assert (np.abs(gaps.mean(axis=0)) <= 4 * gaps.std(axis=0) / 300**0.5).all()


def test_laws_stand_apart_and_of_two_coupled_chains_one_counts():
    chains = [series("abab", law=ONE), series("aaaa", "y", law=ChainLaw("two")),
              *(series("abbb", f"p{pair}", k, law=ONE, coupled="s")
                for pair in range(2) for k in range(2))]
    groups = [row for row in summarise(chains, plan()) if row["over"] == "group"]
    assert [(row["model"], row["chains"], row["texts"], row.get("coupled_left_out")) for row in groups] == [
        ("one", 3, 2, 2), ("two", 1, 1, None)]
    assert region(groups[0], "b")["visits"] == 4
    assert sum(row["over"] == "chain" for row in summarise(chains, plan())) == 6


def test_the_matrix_by_hand():
    """Two texts from a, one from b: who visited c, who returned, who ended where."""
    chains = [series("acab"), series("acac", chain=1), series("aaaa", "y"), series("bbbb", "z")]
    *_, group, from_a, from_b = summarise(chains, plan())
    assert [(row["over"], row["chains"], row["texts"]) for row in (group, from_a, from_b)] == [
        ("group", 4, 3), ("start", 3, 2), ("start", 1, 1)]
    c = region(from_a, "c")
    assert (c["visited"], c["returned"], c["terminal"], c["passed"]) == pytest.approx((2 / 3, 1 / 3, 1 / 3, 1 / 3))
    assert (c["visits"], c["revisits"], c["share"], c["expected_share"]) == (3, 1, 3 / 12, 0.0)
    assert (region(from_b, "b")["visited"], region(from_b, "b")["visited_low"]) == (1.0, None)
    assert region(from_b, "b")["visited_reason"] == "an interval needs 4 texts, there are 1"
    assert region(from_b, "a")["expected_share"] == pytest.approx(8 / 12)
    moves = {(row["from"], row["to"]): (row["count"], row["p"]) for row in group["transitions"]}
    assert moves == {("a", "b"): (1, 0.25), ("a", "c"): (3, 0.75), ("c", "a"): (2, 1.0), ("c", "b"): (0, 0.0)}


def test_dwell_times_count_what_was_cut_off_as_cut_off():
    """Stays in a of 2 and 4 that ended and one of 6 that did not: mean 12 / 2, median 4 (1/3 still there after it)."""
    chains = [series("aabaaaab"), series("aaaaaa", "y")]
    group = next(row for row in summarise(chains, plan()) if row["over"] == "group")
    a, b = region(group, "a"), region(group, "b")
    assert (a["visits"], a["ended"], a["dwell_mean"], a["dwell_median"]) == (3, 2, 6, 4)
    assert (b["visits"], b["ended"], b["dwell_mean"]) == (2, 1, 2)
    assert region(group, "c")["dwell_reason"] == "no visit"
    assert a["dwell_mean_high"] is None
    assert a["dwell_mean_reason"] == "an interval needs 4 texts, there are 1"  # the second text has no end of a stay


def test_geometric_stays_are_estimated_without_bias():
    """Two regions left with probability 1/8 and 1/4 a step: mean dwell 8 and 4; 4 standard errors are about 8 %."""
    rng = np.random.default_rng(3)
    chains = []
    for k in range(60):
        here, word = 0, ""
        for _ in range(400):
            word += "ab"[here]
            here ^= int(rng.random() < (1 / 8, 1 / 4)[here])
        chains.append(series(word, str(k)))
    group = next(row for row in summarise(chains, plan()) if row["over"] == "group")
    for name, mean in (("a", 8), ("b", 4)):
        assert region(group, name)["dwell_mean"] == pytest.approx(mean, rel=0.1)
        assert region(group, name)["dwell_mean_low"] < mean < region(group, name)["dwell_mean_high"]
    assert region(group, "a")["share"] == pytest.approx(2 / 3, abs=0.03)


def test_draws_are_what_is_expected_and_a_field_names_the_start():
    chains = [series("ab", start="health"), series("cc", "y", start="food"), series("cc", "z")]
    one, _, three, group, food, health = summarise(chains, plan(draws=np.array([1, 2, 0, 1]), starts_named=True))
    assert (one["start"], one["expected_from"], region(one, "b")["expected_share"]) == ("health", "draws", 0.5)
    assert (three["start"], three["start_reason"]) == (None, "no field names it")
    assert (food["start"], health["start"], group["expected_from"]) == ("food", "health", "draws")
    assert health["first_agrees"] == 0.0


def test_groups_of_temperatures_stay_apart():
    rows = list(summarise([series("ab"), series("bb", tau=0.5), series("b-", tau=None)], plan()))
    assert [row["tau"] for row in rows if row["over"] == "group"] == [0.5, 1.0, None]
    assert region(rows[0], "a")["expected_share"] is None
    assert rows[0]["expected_reason"] == "no other text"


def test_short_visits_are_left_out_when_asked():
    chain, *_ = summarise([series("aaabaaac")], plan(shortest=2))
    assert (region(chain, "a")["visits"], region(chain, "b")["visits"]) == (1, 0)
    assert region(chain, "a")["visits_expected"] is None
    assert chain["visits_expected_reason"] == "short visits are left out"
    assert chain["terminal"] == "c"
    assert region(chain, "b")["share"] == 1 / 8
