"""Chains that may draw only some tokens at some sites: the law, both engines, couplings, and what they share."""

import numpy as np
import pytest
from oracles import TABLE_A
from scipy.stats import chisquare
from test_engine import random_table

from mlmglauber.dynamics.chain import Chain, OutputSchedule, in_step_order
from mlmglauber.dynamics.coupled_chains import coupled_chains
from mlmglauber.dynamics.coupled_engine import CoupledEngine
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.glauber import temper
from mlmglauber.dynamics.plain import advance
from mlmglauber.dynamics.precision import Precision
from mlmglauber.models.conditionals import TableConditional

pytestmark = pytest.mark.in_process

CHOICES = ({}, {0: np.array([0, 2])}, {0: np.array([1]), 2: np.array([0, 1])}, {3: np.array([0, 2])})


def finish(chains, move):
    while any(chain.step < chain.schedule.last for chain in chains):
        move(chains)
    return [(k, event.step, event.ids.tolist(), event.move) for k, event in in_step_order(chains)]


def kernel(table, tau, choices):
    """(n, S, S): an update at each site, written out; token probabilities outside the choices are 0."""
    states = table.states()
    count, n, vocab = len(states), table.sites, table.vocab_size
    kernels = np.zeros((n, count, count))
    for site in range(n):
        rows = table.log_probs(states, np.full(count, site))
        if site in choices:
            rows[:, np.setdiff1d(np.arange(vocab), choices[site])] = -np.inf
        law = np.exp(temper(rows, np.full(count, tau)))
        for token in range(vocab):
            after = states.copy()
            after[:, site] = token
            kernels[site, np.arange(count), after @ vocab ** np.arange(n - 1, -1, -1)] = law[:, token]
    return kernels


@pytest.mark.parametrize("move", ["fast", "plain"])
def test_the_law_is_that_of_the_restricted_kernel(move):
    """6000 chains, fixed seed; rejects a right engine with probability 1e-3."""
    table, choices, count = TableConditional(TABLE_A), {1: np.array([0, 2])}, 6000
    law = np.eye(9)[4]
    for _ in range(4):
        law = law @ kernel(table, 0.8, choices).mean(axis=0)
    chains = [Chain([1, 1], tau=0.8, seed=2, record="r", number=k, choices=choices,
                    schedule=OutputSchedule(4, every=4)) for k in range(count)]
    precision = Precision(table)
    finish(chains, Engine(table, 500).advance if move == "fast" else lambda all_: advance(precision, all_, 1000))
    last = np.bincount(np.array([chain.ids for chain in chains]) @ [3, 1], minlength=9)
    possible = law > 0
    assert not last[~possible].any()
    assert chisquare(last[possible], law[possible] * count).pvalue > 1e-3


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_chains_of_other_choices_share_an_engine_and_none_disturbs_another(tau):
    """They start in one state and share its contexts, at which each has its own conditionals."""
    table, schedule = random_table(4, 3, seed=4), OutputSchedule(400, every=1)

    def chains():
        return [Chain([0] * 4, tau=tau, seed=3, record="r", number=k % 2, schedule=schedule, choices=choices)
                for k, choices in enumerate(CHOICES * 2)]

    plain = finish(chains(), lambda all_: advance(Precision(table), all_))
    for rows, memory in ((64, 1 << 20), (3, 3000), (1, 0)):
        assert finish(chains(), Engine(table, rows, memory).advance) == plain
    for k, step, ids, move in plain:
        if step and move.site in CHOICES[k % 4]:
            assert ids[move.site] in CHOICES[k % 4][move.site]


def pairs(table, choices, coupling, count, **more):
    groups = [coupled_chains([[0] * table.sites, [2] * table.sites], name=str(k), number=0, tau=0.8, seed=1,
                             coupling=coupling, steps=6, vocab=table.vocab_size, emit=6, choices=choices, **more)
              for k in range(count)]
    engine = CoupledEngine(Engine(table, 256))
    working = groups
    while working:
        engine.advance(working)
        working = [group for group in working if not group.finished]
    return groups


@pytest.mark.parametrize("coupling", ["maximal", "race", "quantile"])
def test_each_coupled_chain_keeps_its_restricted_law(coupling):
    """2000 pairs, fixed seed; each of the two tests rejects a right coupling with probability 1e-3."""
    table, choices, count = TableConditional(TABLE_A), {1: np.array([0, 2])}, 2000
    mean = np.linalg.matrix_power(kernel(table, 0.8, choices).mean(axis=0), 6)
    groups = pairs(table, choices, coupling, count)
    for replica, start in ((0, 0), (1, 8)):
        last = np.array([group.snapshots[-1].states[replica] for group in groups]) @ [3, 1]
        law = mean[start]
        counts = np.bincount(last, minlength=9)
        assert not counts[law == 0].any()
        assert chisquare(counts[law > 0], law[law > 0] * count).pvalue > 1e-3


def test_a_chain_that_leads_alone_has_the_choices_too():
    table, choices = TableConditional(TABLE_A), {0: np.array([1]), 1: np.array([0, 2])}
    for group in pairs(table, choices, "maximal", 20, lag=40):
        assert group.snapshots[-1].states[0].tolist()[0] == 1


def test_a_neural_model_gives_the_same_chains_in_both_engines():
    from mlmglauber.models.opening import open_model

    model = open_model("tiny-en")
    ids = model.encode("the cat sat on the mat")
    choices = {1: np.array(sorted(model.encode("cat dog man king"))), 5: np.array(sorted(model.encode("mat house")))}
    schedule = OutputSchedule(40, every=1)

    def chains():
        return [Chain(ids, tau=tau, seed=1, record="r", number=0, schedule=schedule, choices=part)
                for tau in (0.3, 1.0) for part in ({}, choices)]

    fast = finish(chains(), Engine(model).advance)
    precision = Precision(model)
    plain = finish(chains(), lambda all_: advance(precision, all_))
    assert [row[:3] for row in fast] == [row[:3] for row in plain]
    drawn = [(move.site, move.new) for k, step, _, move in fast if k % 2 and step]
    assert {site for site, _ in drawn} == set(range(6))
    assert all(token in choices[site] for site, token in drawn if site in choices)
