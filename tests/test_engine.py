"""The fast engine against the plain one: the same states, bit for bit, whatever is remembered or looked ahead for."""

import numpy as np
import pytest
from oracles import TABLE_A

from mlmglauber.dynamics.engine import Chain, Engine, Memory, Price, Watch, advance, in_step_order
from mlmglauber.dynamics.law import laws
from mlmglauber.models.conditionals import TableConditional

TAUS = (0.0, 0.2, 0.5, 1.0, 3.0)


def random_table(sites, vocab, seed, sharpness=2.0):
    generator = np.random.default_rng(seed)
    tables = np.exp(sharpness * generator.normal(size=(sites, *(vocab,) * sites)))
    return TableConditional(tables / tables.sum(-1, keepdims=True))


def chains_of(table, watch, count=3, **more):
    return [Chain([k % table.vocab_size] * table.sites, tau=tau, seed=5, record="r", number=k, watch=watch, **more)
            for tau in TAUS for k in range(count)]


def finish(chains, move):
    while any(chain.step < chain.watch.last and chain.broken is None for chain in chains):
        for chain in chains:
            chain.horizon = chain.watch.last
        move(chains)
    return [(k, event.step, event.ids.tolist(), event.move) for k, event in in_step_order(chains)]


@pytest.mark.parametrize("watch", [Watch(700, every=0), Watch(700, every=1), Watch(700, every=7, burn_in=20),
                                   Watch(700, every=0, burn_in=33, energy=50)])
@pytest.mark.parametrize("scan", ["random", "permutation", "systematic"])
def test_the_same_states_as_the_plain_engine(watch, scan):
    table = random_table(4, 3, seed=1)
    plain = finish(chains_of(table, watch, scan=scan), lambda chains: advance(table, chains))
    for rows, memory in ((64, 1 << 20), (5, 3000), (1, 0)):
        engine = Engine(table, rows, memory)
        assert finish(chains_of(table, watch, scan=scan), engine.advance) == plain
        assert engine.memory.size <= memory
        assert engine.counters.steps == 700 * len(TAUS) * 3


def test_any_horizon_gives_the_same_states():
    table, watch = random_table(3, 4, seed=2), Watch(300, every=0)
    whole = finish(chains_of(table, watch), Engine(table).advance)
    generator = np.random.default_rng(0)

    def in_parts(chains):
        for chain in chains:
            chain.horizon = min(300, chain.step + int(generator.integers(0, 40)))
        engine.advance(chains)

    engine = Engine(table)
    chains = chains_of(table, watch)
    while any(chain.step < 300 for chain in chains):
        in_parts(chains)
    assert [(k, e.step, e.ids.tolist(), e.move) for k, e in in_step_order(chains)] == whole


def test_what_was_computed_is_not_computed_again():
    table = random_table(4, 3, seed=1, sharpness=6.0)
    engine = Engine(table)
    chain = Chain([0] * 4, tau=0.2, seed=1, record="r", number=0, watch=Watch(20_000, every=0))
    finish([chain], engine.advance)
    assert engine.counters.rows < 200  # a trap and its neighbours have few contexts
    before = engine.counters.rows
    finish([Chain([0] * 4, tau=0.2, seed=1, record="r", number=0, watch=Watch(20_000, every=0))], engine.advance)
    assert engine.counters.rows == before


def test_a_broken_row_stops_its_chain_and_only_when_it_draws_there():
    class Broken(TableConditional):
        def log_probs(self, ids, sites):
            rows = super().log_probs(ids, sites)
            rows[(ids[:, 0] == 2) & (sites == 1)] = np.nan
            return rows

    table, watch = Broken(TABLE_A), Watch(40, every=1)

    def run(move):
        chains = [Chain([k % 2, 0], tau=1.0, seed=1, record="r", number=k, watch=watch) for k in range(20)]
        finish(chains, move)
        return [(chain.step, chain.broken, chain.ids.tolist()) for chain in chains]

    plain = run(lambda chains: advance(table, chains))
    assert run(Engine(table).advance) == plain
    assert any(broken == 1 for _, broken, _ in plain)
    assert all(ids[0] == 2 for step, broken, ids in plain if broken is not None)


def test_watch_says_the_same_for_one_step_and_for_many():
    for watch in (Watch(50, 1), Watch(50, 7), Watch(50, 7, 11), Watch(50, 0, 9), Watch(50, 0, 0, 8), Watch(50, 6, 5, 8),
                  Watch(0, 3)):
        for start in range(50):
            for end in range(start + 1, 51):
                assert list(watch.due_unchanged(start, end)) == [
                    step for step in range(start + 1, end + 1) if watch.due(step, False)]


def test_memory_is_bounded_and_forgets_the_least_lately_used():
    law, = laws(np.zeros((1, 100)), [1.0])
    states = [np.array([k, 0]) for k in range(50)]
    memory = Memory(10 * (law.nbytes + 16 + 400))
    for ids in states:
        memory.keep_law(1, 1.0, ids, law)
        memory.law(1, 1.0, states[0])
        assert memory.size <= memory.limit
    assert memory.law(1, 1.0, states[0]) is law
    assert memory.law(1, 1.0, states[49]) is law
    assert memory.law(1, 1.0, states[5]) is None
    assert memory.law(1, 1.0, np.array([0, 7])) is law  # the token at the site is no part of the context
    assert memory.law(1, 2.0, states[0]) is None


def test_the_price_of_a_row_is_fitted():
    price = Price()
    for rows in (1, 2, 5, 9, 30, 64):
        price.saw(rows, 0.010 + 0.002 * rows)
    assert price.worth(1) == pytest.approx(2 / 12, rel=1e-6)
    assert price.worth(10) == pytest.approx(2 / 3, rel=1e-6)


def test_pseudo_log_likelihood_by_hand():
    table = TableConditional([[[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.5, 0.5]]])
    for tau in (0.0, 0.05, 1.0, 2.0):
        engine = Engine(table)
        assert engine.pll(np.array([0, 0]), tau) == pytest.approx(np.log(0.9) + np.log(0.5))
        assert engine.pll(np.array([1, 0]), tau) == pytest.approx(np.log(0.1) + np.log(0.5))
    never = TableConditional(table.tables, allowed=[True, False])
    assert Engine(never).pll(np.array([1, 0]), 1.0) is None
