"""Temperatures that change: the law is the product of the kernels of the steps; both engines draw the same chain."""

import numpy as np
import pytest
from oracles import TABLE_A, site_kernels
from scipy.stats import chisquare

from mlmglauber.dynamics.chain import Chain, OutputSchedule, in_step_order
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.plain import advance
from mlmglauber.dynamics.precision import Precision
from mlmglauber.dynamics.temperatures import NEVER, Temperatures
from mlmglauber.models.conditionals import TableConditional

pytestmark = pytest.mark.in_process

SCHEDULES = ("2@500,1@500,0.3", "2>0.3@700,0.3", "3@1,0@1,2>0.1@3,0.1@40,0.1>1@5,1", "0.2@97,0.2@103,0.2>0.3@300",
             "1@50,1>0@60,0@90,2", "0.3@256,0.25@256,0.3")


def random_table(sites, vocab, seed, sharpness=2.0):
    generator = np.random.default_rng(seed)
    tables = np.exp(sharpness * generator.normal(size=(sites, *(vocab,) * sites)))
    return TableConditional(tables / tables.sum(-1, keepdims=True))


def chains_of(table, text, schedule, count=4, **more):
    return [Chain([k % table.vocab_size] * table.sites, tau=Temperatures.parse(text), seed=5, record="r", number=k,
                  schedule=schedule, **more) for k in range(count)]


def finish(chains, move, horizons=None):
    while any(chain.step < chain.schedule.last for chain in chains):
        for chain in chains:
            most = chain.schedule.last
            chain.horizon = most if horizons is None else min(most, chain.step + int(horizons.integers(0, 40)))
        move(chains)
    return [(k, event.step, event.ids.tolist(), event.move) for k, event in in_step_order(chains)]


@pytest.mark.parametrize("text", [*SCHEDULES, "2", "0.5>0.5@3"])
def test_the_temperature_of_each_step_by_hand(text):
    schedule = Temperatures.parse(text)
    taus = []
    for part in text.split(","):
        tau, _, steps = part.partition("@")
        first, _, last = tau.partition(">")
        count = int(steps or 20)
        taus += np.linspace(float(first), float(last or first), count).tolist()
    taus += taus[-1:] * 50
    assert [schedule.at(step) for step in range(1, len(taus) + 1)] == pytest.approx(taus, abs=1e-15)
    assert schedule.at(0) == taus[0]
    for step in range(1, len(taus)):
        until = schedule.until(step)
        changes = [k for k in range(step, len(taus)) if schedule.at(k + 1) != schedule.at(step)]
        assert until == (changes[0] if changes else NEVER)
    assert str(Temperatures.parse(str(schedule))) == str(schedule)
    assert schedule.is_constant == (len(set(taus)) == 1)


def test_pieces_and_their_starts():
    schedule = Temperatures.parse("2@500,2>0.3@10,0.3")
    assert [schedule.piece_of(step) for step in (0, 1, 500, 501, 510, 511, 10_000)] == [0, 0, 0, 1, 1, 2, 2]
    assert [schedule.start_of(piece) for piece in range(3)] == [0, 500, 510]
    assert (schedule.steps, schedule.ends(), str(schedule)) == (510, [2.0, 0.3], "2@500,2>0.3@10,0.3")


@pytest.mark.parametrize(("text", "reason"), [
    ("", "is not a piece"), ("2@", "is not a piece"), ("2,1", "'2' has no number of steps"), ("2@0,1", "has no step"),
    ("2>1", "is a ramp"), ("2>1@1", "is a ramp"), ("-1@5,2", "is not a temperature"), ("nan", "is not a temperature"),
    ("2@5>1", "is not a piece"), ("2@1.5,1", "is not a piece"), ("1_0", "is not a temperature"),
    ("2@5,,1", "is not a piece"), ("inf@2,1", "is not a temperature")])
def test_what_is_no_schedule(text, reason):
    with pytest.raises(ValueError, match=reason):
        Temperatures.parse(text)


@pytest.mark.parametrize(("move", "scan"), [("fast", "random"), ("plain", "systematic")])
def test_the_law_after_the_schedule_is_the_product_of_the_kernels(scan, move):
    """3000 chains, fixed seed; rejects a right engine with probability 1e-3."""
    table, text, steps, count = TableConditional(TABLE_A), "4@2,2>0.25@3,0.25@1,1", 7, 3000
    law = np.eye(9)[4]
    for step, tau in enumerate([4, 4, 2, 1.125, 0.25, 0.25, 1]):
        kernels = site_kernels(table, tau)
        law = law @ (kernels.mean(axis=0) if scan == "random" else kernels[step % 2])
    chains = [Chain([1, 1], tau=Temperatures.parse(text), seed=2, record="r", number=k, scan=scan,
                    schedule=OutputSchedule(steps, every=steps)) for k in range(count)]
    precision = Precision(table)
    finish(chains, Engine(table, 500).advance if move == "fast" else lambda all_: advance(precision, all_, 1000))
    last = np.array([chain.ids for chain in chains]) @ [3, 1]
    assert chisquare(np.bincount(last, minlength=9), law * count).pvalue > 1e-3


def both_engines_agree(text, schedule, count):
    table = random_table(4, 3, seed=1, sharpness=3.0)
    plain = finish(chains_of(table, text, schedule, count), lambda chains: advance(Precision(table), chains))
    for rows, memory, seed in ((64, 1 << 20, None), (5, 3000, 1), (1, 0, 2)):
        horizons = None if seed is None else np.random.default_rng(seed)
        assert finish(chains_of(table, text, schedule, count), Engine(table, rows, memory).advance, horizons) == plain


OUTPUTS = (OutputSchedule(700, every=0), OutputSchedule(700, every=1), OutputSchedule(700, every=7, burn_in=20))


@pytest.mark.parametrize(("text", "schedule"), list(zip(SCHEDULES, [*OUTPUTS, *OUTPUTS], strict=True)))
def test_the_same_chain_as_the_plain_engine_byte_for_byte(text, schedule):
    both_engines_agree(text, schedule, 1)


@pytest.mark.soak
@pytest.mark.parametrize("text", SCHEDULES)
@pytest.mark.parametrize("schedule", OUTPUTS)
def test_the_same_chains_as_the_plain_engine_in_every_form_of_output(text, schedule):
    both_engines_agree(text, schedule, 4)


def test_chains_with_and_without_a_schedule_share_an_engine():
    table, schedule = random_table(4, 3, seed=3, sharpness=4.0), OutputSchedule(600, every=1)

    def chains():
        return [Chain([0] * 4, tau=tau, seed=1, record=str(k), number=k, schedule=schedule)
                for k, tau in enumerate([0.3, Temperatures.parse("0.3@300,0.5"), Temperatures.parse("1>0.3@400,0.3")])]

    alone = [finish([chain], Engine(table).advance) for chain in chains()]
    together = finish(chains(), Engine(table).advance)
    assert [(k, *row[1:]) for k, rows in enumerate(alone) for row in rows] == sorted(together, key=lambda row: row[:2])


def test_steps_of_a_cold_ramp_are_looked_up_ahead_at_their_own_temperatures():
    """A chain that stays in its state asks for many steps in one call, each at its own temperature."""
    joint = np.exp(4 * np.random.default_rng(2).normal(size=(3,) * 4))  # compatible, so that cold chains stay
    table = TableConditional.from_joint(joint / joint.sum())
    engine, schedule = Engine(table, rows=64), OutputSchedule(1000, every=0)
    engine.cost.threshold = lambda rows: 0.05  # one more row costs next to nothing
    chain = Chain([0] * 4, tau=Temperatures.parse("0.2>0.1@1000"), seed=1, record="r", number=0, schedule=schedule)
    assert len(finish([chain], engine.advance)) < 20
    assert engine.counters.steps == 1000
    assert engine.counters.calls < 150
