"""The fast engine against the plain one: the same states, bit for bit, with any cache and any prefetching."""

import numpy as np
import pytest
from oracles import TABLE_A

from mlmglauber.dynamics.cache import ConditionalCache, context_key
from mlmglauber.dynamics.chain import Chain, OutputSchedule, in_step_order
from mlmglauber.dynamics.cost_model import CostModel
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.plain import advance
from mlmglauber.dynamics.precision import Precision
from mlmglauber.dynamics.token_distribution import TokenDistribution
from mlmglauber.models.conditionals import TableConditional

pytestmark = pytest.mark.in_process

TAUS = (0.0, 0.2, 0.5, 1.0, 3.0)


def random_table(sites, vocab, seed, sharpness=2.0):
    generator = np.random.default_rng(seed)
    tables = np.exp(sharpness * generator.normal(size=(sites, *(vocab,) * sites)))
    return TableConditional(tables / tables.sum(-1, keepdims=True))


def chains_of(table, schedule, count=2, **more):
    return [Chain([k % table.vocab_size] * table.sites, tau=tau, seed=5, record="r", number=k, schedule=schedule,
                  **more) for tau in TAUS for k in range(count)]


def finish(chains, move):
    while any(chain.step < chain.schedule.last and chain.broken is None for chain in chains):
        for chain in chains:
            chain.horizon = chain.schedule.last
        move(chains)
    return list(in_step_order(chains))


def assert_same(these, those):
    """The same states, steps and moves; log-probabilities up to rounding."""
    assert [(k, event.step, event.ids.tolist(), event.move[:3]) for k, event in these] == [
        (k, event.step, event.ids.tolist(), event.move[:3]) for k, event in those]
    for column in (3, 4):
        assert [event.move[column] for _, event in these] == pytest.approx(
            [event.move[column] for _, event in those], abs=1e-9)


@pytest.mark.parametrize("schedule", [OutputSchedule(200, every=0), OutputSchedule(200, every=1),
                                      OutputSchedule(200, every=7, burn_in=20),
                                      OutputSchedule(200, every=0, burn_in=33, energy=50)])
@pytest.mark.parametrize("scan", ["random", "permutation", "systematic"])
def test_the_same_states_as_the_plain_engine(schedule, scan):
    table = random_table(4, 3, seed=1)
    plain = finish(chains_of(table, schedule, scan=scan), lambda chains: advance(Precision(table), chains))
    for rows, memory in ((64, 1 << 20), (5, 3000), (1, 0)):
        engine = Engine(table, rows, memory)
        assert_same(finish(chains_of(table, schedule, scan=scan), engine.advance), plain)
        assert engine.cache.size <= memory
        assert engine.counters.steps == 200 * len(TAUS) * 2


def test_any_horizon_gives_the_same_states():
    table, schedule = random_table(3, 4, seed=2), OutputSchedule(300, every=0)
    whole = finish(chains_of(table, schedule), Engine(table).advance)
    generator = np.random.default_rng(0)

    def in_parts(chains):
        for chain in chains:
            chain.horizon = min(300, chain.step + int(generator.integers(0, 40)))
        engine.advance(chains)

    engine = Engine(table)
    chains = chains_of(table, schedule)
    while any(chain.step < 300 for chain in chains):
        in_parts(chains)
    assert_same(list(in_step_order(chains)), whole)


def test_what_was_computed_is_not_computed_again():
    table = random_table(4, 3, seed=1, sharpness=6.0)
    engine = Engine(table)
    chain = Chain([0] * 4, tau=0.2, seed=1, record="r", number=0, schedule=OutputSchedule(5_000, every=0))
    finish([chain], engine.advance)
    assert engine.counters.rows < 200  # a trap and its neighbours have few contexts
    before = engine.counters.rows
    again = Chain([0] * 4, tau=0.2, seed=1, record="r", number=0, schedule=OutputSchedule(5_000, every=0))
    finish([again], engine.advance)
    assert engine.counters.rows == before


def test_a_broken_row_stops_its_chain_and_only_when_it_draws_there():
    class Broken(TableConditional):
        def log_probs(self, ids, sites):
            rows = super().log_probs(ids, sites)
            rows[(ids[:, 0] == 2) & (sites == 1)] = np.nan
            return rows

    table, schedule = Broken(TABLE_A), OutputSchedule(40, every=1)

    def run(move):
        chains = [Chain([k % 2, 0], tau=1.0, seed=1, record="r", number=k, schedule=schedule) for k in range(20)]
        finish(chains, move)
        return [(chain.step, chain.broken, chain.ids.tolist()) for chain in chains]

    plain = run(lambda chains: advance(Precision(table), chains))
    assert run(Engine(table).advance) == plain
    assert any(broken == 1 for _, broken, _ in plain)
    assert all(ids[0] == 2 for step, broken, ids in plain if broken is not None)


def test_the_next_due_step_is_the_next_one_that_is_due():
    for schedule in (OutputSchedule(50, 1), OutputSchedule(50, 7), OutputSchedule(50, 7, 11), OutputSchedule(50, 0, 9),
                     OutputSchedule(50, 0, 0, 8), OutputSchedule(50, 6, 5, 8), OutputSchedule(0, 3)):
        for after in range(-1, schedule.last):
            due = [step for step in range(after + 1, schedule.last + 1) if schedule.due(step, False)]
            assert schedule.next_due(after) == due[0]
        assert schedule.next_due(schedule.last) > schedule.last


def test_the_cache_is_bounded_and_drops_the_least_recently_used():
    distribution = TokenDistribution.of_row(np.zeros(100), 1.0, 0.0, 0)
    states = [np.array([k, 0]) for k in range(50)]
    cache = ConditionalCache(10 * (distribution.nbytes + 16 + 400))
    for ids in states:
        cache.put(context_key(1, 1.0, ids), distribution, distribution.nbytes)
        cache.get(context_key(1, 1.0, states[0]))
        assert cache.size <= cache.limit
    assert cache.get(context_key(1, 1.0, states[0])) is distribution
    assert cache.get(context_key(1, 1.0, states[49])) is distribution
    assert cache.get(context_key(1, 1.0, states[5])) is None
    assert cache.get(context_key(1, 1.0, np.array([0, 7]))) is distribution  # the site is masked
    assert cache.get(context_key(1, 2.0, states[0])) is None


def test_the_cost_of_a_row_is_fitted():
    cost = CostModel()
    for rows in (1, 2, 5, 9, 30, 64):
        cost.observe(rows, 0.010 + 0.002 * rows)
    assert cost.threshold(1) == pytest.approx(2 / 12, rel=1e-6)
    assert cost.threshold(10) == pytest.approx(2 / 3, rel=1e-6)


def test_pseudo_log_likelihood_by_hand():
    table = TableConditional([[[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.5, 0.5]]])
    for rows in (1, 64):
        engine = Engine(table, rows)
        assert engine.pll(np.array([0, 0])) == pytest.approx(np.log(0.9) + np.log(0.5))
        assert engine.pll(np.array([1, 0])) == pytest.approx(np.log(0.1) + np.log(0.5))
    never = TableConditional(table.tables, allowed=[True, False])
    assert Engine(never).pll(np.array([1, 0])) is None
