"""Couplings of laws against exact sums, and groups of chains against enumerated kernels."""

import numpy as np
import pytest
from couplings import finish, joint, law
from oracles import TABLE_A, law_after
from scipy.stats import chisquare

from mlmglauber.dynamics.chain import Chain, OutputSchedule
from mlmglauber.dynamics.coupled_chains import CoupledChains, lead_in
from mlmglauber.dynamics.coupled_engine import CoupledEngine
from mlmglauber.dynamics.coupling import TRIALS, Maximal, Quantile, Race, coupled, exponentials
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.token_distribution import TokenDistribution
from mlmglauber.models.conditionals import TableConditional

pytestmark = pytest.mark.in_process

A = TableConditional(TABLE_A)
P, Q = TABLE_A[0][0], TABLE_A[0][2]
DRAWS = 100_000
COUPLINGS = ("maximal", "race", "quantile")


def size_of(p, q):
    return 1 + max(np.flatnonzero(each.whole(1000)).max() for each in (p, q))


def trials(generator):
    """Later trials' uniforms, fresh ones at each call."""
    return lambda _: generator.random(3)


def pairs_of_laws():
    """Table A's pair, random ones, and ones of which each has left out other tokens."""
    generator = np.random.default_rng(0)
    yield law(P), law(Q)
    for size in (2, 7, 40, 150):
        for tau in (0.05, 0.3, 1.0, 4.0):
            yield tuple(law(generator.dirichlet(np.ones(size)), tau) for _ in range(2))
    yield law([0.5, 0.5, 0, 0]), law([0, 0, 0.2, 0.8])


@pytest.mark.parametrize("kind", [Maximal, Quantile])
def test_marginals_are_exact(kind):
    for p, q in pairs_of_laws():
        size = size_of(p, q)
        table = joint(kind(p, q), p, q, size)
        assert table.sum(axis=1) == pytest.approx(p.whole(size), abs=1e-12)
        assert table.sum(axis=0) == pytest.approx(q.whole(size), abs=1e-12)
        if kind is Maximal:
            assert np.trace(table) == pytest.approx(np.minimum(p.whole(size), q.whole(size)).sum(), abs=1e-12)


def test_residuals_are_independent():
    """P(x, y) = (p - q)^+ (q - p)^+ / TV where x and y differ."""
    for p, q in pairs_of_laws():
        size = size_of(p, q)
        difference = p.whole(size) - q.whole(size)
        mine, other = np.maximum(difference, 0), np.maximum(-difference, 0)
        table = joint(Maximal(p, q), p, q, size)
        np.fill_diagonal(table, 0)
        assert table == pytest.approx(np.outer(mine, other) / other.sum(), abs=1e-13)


def race_agreement(p, q):
    """sum_v 1 / sum_w max(p(w)/p(v), q(w)/q(v)): the minimum of the two races' clocks is a race itself."""
    return sum(1 / np.maximum(p / p[v], q / q[v]).sum() for v in range(len(p)) if p[v] and q[v])


@pytest.mark.parametrize(("kind", "agreement"), [("maximal", 0.4), ("race", 0.325), ("quantile", 0.2)])
def test_a_hundred_thousand_draws(kind, agreement):
    """Marginals by chi-square and agreement within 4 standard errors; a right coupling fails with about 2e-3."""
    if kind == "race":
        assert race_agreement(np.array(P), np.array(Q)) == pytest.approx(agreement, abs=1e-12)
    coupling = coupled(kind, [law(P), law(Q)])
    generator = np.random.default_rng(5)
    noise = generator.random((DRAWS, 3 if kind == "race" else 6))
    if kind == "race":
        noise = exponentials(noise)
    more = trials(generator)
    tokens = np.array([coupling.draw(row, more).tokens for row in noise])
    for column, expected in zip(tokens.T, (P, Q), strict=True):
        assert chisquare(np.bincount(column, minlength=3), np.array(expected) * DRAWS).pvalue > 1e-3
    error = (agreement * (1 - agreement) / DRAWS) ** 0.5
    assert abs((tokens[:, 0] == tokens[:, 1]).mean() - agreement) < 4 * error


def test_draws_lie_in_the_regions_of_their_tokens():
    """Where tokens are drawn at once; and who draws in the region of some tokens gets them."""
    generator = np.random.default_rng(1)
    for p, q in pairs_of_laws():
        for coupling in (Maximal(p, q), Quantile(p, q)):
            before = None
            for noise in generator.random((300, 6)):
                later = []
                tokens, certain = coupling.draw(noise, lambda trial, later=later: later.append(trial) or
                                                generator.random(3))
                assert certain
                found = coupling.acceptance_region(tokens)
                inside = (noise >= found.low) & (noise < found.high)
                assert inside.all() == (not later)
                if before is not None and ((noise >= before[1].low) & (noise < before[1].high)).all():
                    assert tokens == before[0]
                before = tokens, found


def test_a_residual_takes_over_when_no_trial_succeeds():
    """Conditionals so alike that 64 trials fail now and then: the tokens' law is that of the coupling all the same.

    chi-square at 1e-3; the first uniforms are such that the first chain's token is not shared.
    """
    p, q = law([0.5, 0.5, 0.0]), law([0.49, 0.5, 0.01])
    coupling, generator, residuals, seen = Maximal(p, q), np.random.default_rng(4), 0, []

    def more(trial):
        nonlocal residuals
        residuals += trial == 0
        return generator.random(3)

    for _ in range(2000):
        noise = generator.random(6)
        noise[:3] = 0.5, 0.2, 0.999
        seen.append(coupling.draw(noise, more).tokens)
    assert TRIALS == 64
    assert 0.9 * 0.99**64 < residuals / 2000 < 1.1 * 0.99**64
    assert set(seen) == {(0, 2)}


@pytest.mark.parametrize("kind", COUPLINGS)
def test_an_error_within_the_tolerance_changes_no_certain_pair(kind):
    generator = np.random.default_rng(6)
    certain = 0
    for tolerance in (1e-5, 1e-3):
        for tau in (0.0, 0.3, 1.0):
            for _ in range(150):
                rows = np.log(generator.dirichlet(np.full(300, 0.3), 2))
                off = rows + (tolerance / 2) * generator.choice([-1.0, 1.0], rows.shape)
                fast, exact = (coupled(kind, [TokenDistribution.of_row(row, tau, most, 0) for row in each])
                               for each, most in ((off, tolerance), (rows, 0.0)))
                noise, later = generator.random(6), generator.random((64, 3))
                if kind == "race":
                    noise = exponentials(generator.random(300))
                tokens, sure = fast.draw(noise, lambda trial, later=later: later[trial])
                if sure:
                    certain += 1
                    assert exact.draw(noise, lambda trial, later=later: later[trial]) == (tokens, True)
    assert certain > 600


@pytest.mark.parametrize("kind", COUPLINGS)
def test_equal_laws_always_agree(kind):
    """Also with the largest uniforms there are."""
    generator = np.random.default_rng(2)
    for tau in (0.03, 1.0, 30.0):
        row = generator.dirichlet(np.ones(500))
        coupling = coupled(kind, [law(row, tau), law(row, tau)])
        noise = np.vstack([generator.random((2000, 500)), np.full((1, 500), 1 - 2.0**-53), np.zeros((1, 500))])
        rows = exponentials(noise) if kind == "race" else noise[:, :6]
        assert all(x == y for x, y in (coupling.draw(row, trials(generator)).tokens for row in rows))


def test_a_race_of_several_laws_is_a_race_of_each_two():
    """Each agreement within 4 standard errors: a right race fails with about 2e-4."""
    rows = [np.array(row) for row in TABLE_A[0]]
    race = Race([law(row) for row in rows])
    noise = exponentials(np.random.default_rng(3).random((20_000, 3)))
    tokens = np.array([race.draw(row, None).tokens for row in noise])
    for j in range(3):
        for k in range(j):
            expected = race_agreement(rows[j], rows[k])
            assert abs((tokens[:, j] == tokens[:, k]).mean() - expected) < 4 * (expected / len(tokens)) ** 0.5


def test_a_race_is_keyed_by_token():
    """A law that left tokens out races with the same clocks."""
    whole, cut = law([0.3, 0.3, 0.4]), law([0, 0.3, 0.7])
    assert cut.compact(1)
    assert cut.support()[0].tolist() == [1, 2]
    clocks = np.array([0.0, 1.0, 9.0])
    assert Race([whole, cut]).draw(clocks, None).tokens == (0, 1)


def test_the_share_of_a_token_that_was_left_out():
    assert law([0, 1.0]).share(0) == 0
    assert law([0.25, 0.75]).share(1) == pytest.approx(0.75, abs=1e-15)


def group(starts, *, tau=1.0, number=0, coupling="maximal", steps=100, solo=0, table=A, seed=1, **more):
    chains = [lead_in(ids, solo if k == 0 else 0, tau=tau, seed=seed, record=f"lead {k}", number=number)
              for k, ids in enumerate(starts)]
    return CoupledChains(chains, tau=tau, seed=seed, record="r", number=number, coupling=coupling, steps=steps,
                 vocab=table.vocab_size, **more)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_each_chain_of_a_pair_has_its_own_law(coupling):
    """800 pairs, fixed seed; chi-square against the enumerated kernel rejects a right pair with probability 2e-3."""
    groups = [group([[0, 1], [2, 2]], number=k, coupling=coupling, steps=4, emit=4) for k in range(800)]
    finish(groups)
    for k, start in enumerate((1, 8)):
        last = np.array([each.snapshots[-1].states[k] for each in groups])
        counts = np.bincount(last @ [3, 1], minlength=9)
        assert chisquare(counts, law_after(A, 1.0, "random", start, 4) * len(groups)).pvalue > 1e-3


@pytest.mark.parametrize("coupling", ["maximal", "quantile"])
def test_the_first_chain_is_the_chain_of_the_engine(coupling):
    """The same streams and the same draws, bit for bit, before the meeting and after it."""
    for tau in (0.3, 1.0):
        pair = group([[0, 1], [2, 2]], tau=tau, coupling=coupling, emit=1)
        finish([pair])
        chain = Chain([0, 1], tau=tau, seed=1, record="r", number=0, schedule=OutputSchedule(100))
        engine = Engine(A)
        while chain.step < 100:
            engine.advance([chain])
        trajectory = [event.ids.tolist() for event in chain.events]
        assert [snapshot.states[0].tolist() for snapshot in pair.snapshots][1:] == trajectory


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_a_pair_that_met_is_one_chain(coupling):
    """Equal at every step from the meeting on, different before it; then one conditional a step, before it two."""
    for number in range(20):
        pair = group([[0, 1], [2, 2]], number=number, coupling=coupling, emit=1)
        engine = Engine(A, rows=1, memory=0)  # no room to prefetch
        coupled_engine = CoupledEngine(engine)
        while not pair.finished:
            rows, met = engine.counters.rows, pair.meeting is not None
            coupled_engine.advance([pair])
            assert engine.counters.rows - rows <= (1 if met else 2)
        assert pair.meeting is not None
        for snapshot in pair.snapshots:
            assert (snapshot.states[0].tolist() == snapshot.states[1].tolist()) == (snapshot.step >= pair.meeting)
        assert pair.states[0] is pair.states[1]


def test_equal_starts_have_met_at_once_and_a_lagged_pair_after_one_step():
    for lag, meeting in ((0, 0), (3, 1)):
        pair = group([[0, 1], [0, 1]], lag=lag)
        finish([pair])
        assert (pair.meeting, pair.step) == (meeting, 0)


def test_a_frozen_pair_is_censored():
    """00 and 22 are each other's far traps: at tau 0 they stay, and no conditional is computed twice."""
    pair = group([[0, 0], [2, 2]], tau=0.0, steps=100_000)
    engine = finish([pair])
    assert (pair.meeting, pair.step, pair.last_change) == (None, 100_000, 0)
    assert list(pair.history[1]) == [2]
    assert engine.counters.rows == 4


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_a_pair_is_the_same_alone_or_in_a_batch_and_with_any_cache(coupling):
    def all_of(groups, **how):
        finish(groups, **how)
        return [(each.meeting, list(each.history[0]), list(each.history[1]),
                 [[state.tolist() for state in snapshot.states] for snapshot in each.snapshots]) for each in groups]

    def made(number, tau):
        return group([[0, 1], [2, 2]], number=number, tau=tau, coupling=coupling, steps=60, emit=7)

    cases = [(number, tau) for number in range(8) for tau in (0.2, 0.5, 2.0)]
    together = all_of([made(*case) for case in cases])
    assert together == [all_of([made(*case)])[0] for case in cases]
    assert together == all_of([made(*case) for case in cases], memory=0, rows=3)


def test_replicas_of_a_race_are_a_grand_coupling():
    """The first two of five are the pair of two; all have met when the last has."""
    starts = [[0, 1], [2, 2], [1, 1], [0, 0], [1, 0]]
    for number in range(10):
        two, five = (group(starts[:count], number=number, coupling="race", emit=1) for count in (2, 5))
        finish([two, five])
        for a, b in zip(two.snapshots, five.snapshots, strict=True):
            assert [state.tolist() for state in a.states] == [state.tolist() for state in b.states[:2]]
        assert five.meeting >= two.meeting
        assert five.distinct == 1


def test_the_lead_of_a_lagged_pair_runs_alone_first():
    chain = Chain([0, 1], tau=1.0, seed=1, record="lead 0", number=0, schedule=OutputSchedule(5))
    engine = Engine(A)
    while chain.step < 5:
        engine.advance([chain])
    pair = group([[0, 1], [0, 1]], solo=5, lag=5, emit=1)
    assert not pair.ready()
    finish([pair])
    assert pair.snapshots[0].states[0].tolist() == chain.ids.tolist()
    assert pair.snapshots[0].states[1].tolist() == [0, 1]


def test_a_conditional_that_is_not_finite_breaks_its_pair():
    class Broken(TableConditional):
        def log_probs(self, ids, sites):
            rows = super().log_probs(ids, sites)
            rows[(sites == 1) & (ids[:, 0] == 2)] = np.nan
            return rows

    table = Broken(TABLE_A)
    good, bad = group([[0, 0], [0, 1]], number=3), group([[0, 1], [2, 2]], number=1)
    finish([good, bad], table=table)
    assert bad.broken == 1
    assert bad.finished
    assert good.broken is not None or good.meeting is not None
