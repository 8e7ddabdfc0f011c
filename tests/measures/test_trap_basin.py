"""Sets of states around a trap, and which tokens hold each other, against whole kernels and by hand."""

import numpy as np
import pytest
from oracles import TABLE_A, site_kernels

from mlmglauber.measures.traps import basin as trap_basin
from mlmglauber.measures.traps.basin import basin_of, leaving, mean_exit_time
from mlmglauber.measures.traps.margins import margins, site_rows
from mlmglauber.measures.traps.mutual_support import mutual_support
from mlmglauber.models.conditionals import TableConditional

SITES = np.arange(3)


def random_table(seed, n=3, letters=3):
    rng = np.random.default_rng(seed)
    return TableConditional([rng.dirichlet(np.full(letters, 0.4), (letters,) * (n - 1)) for _ in range(n)])


@pytest.mark.parametrize("tau", [0.2, 0.7, 1.5])
@pytest.mark.parametrize("seed", range(8))
def test_any_set_against_the_whole_kernel(seed, tau):
    """Drawn sets: escape and the mean time are those of a linear system on all states, the bound is above them."""
    table, rng = random_table(seed), np.random.default_rng(100 + seed)
    kernel, states = site_kernels(table, tau).mean(axis=0), table.states()
    inside = np.sort(rng.choice(27, int(rng.integers(1, 12)), replace=False))
    rng.shuffle(inside)
    found = leaving(table, [tuple(states[k].tolist()) for k in inside], SITES, tau)
    within = kernel[np.ix_(inside, inside)]
    assert found.escape == pytest.approx((1 - within.sum(axis=1)).max(), abs=1e-12)
    times = np.linalg.solve(np.eye(len(inside)) - within, np.ones(len(inside)))
    assert found.expected == pytest.approx(times[0], rel=1e-8)
    assert found.bound >= found.escape
    assert found.expected >= 1 / found.escape * (1 - 1e-12)
    gaps = []  # the margin, state by state and token by token
    members = {tuple(states[k].tolist()) for k in inside}
    for state in members:
        for site, row in enumerate(site_rows(table, np.array(state), SITES)):
            stays = [row[v] for v in range(3) if (*state[:site], v, *state[site + 1 :]) in members]
            out = [row[v] for v in range(3) if (*state[:site], v, *state[site + 1 :]) not in members]
            gaps += [max(stays) - max(out)] if out else []
    assert found.margin == pytest.approx(min(gaps))


@pytest.mark.parametrize("seed", range(6))
def test_what_a_basin_leaves_out_is_less_likely_than_asked(seed):
    table, tau, least = random_table(seed), 0.6, 0.15
    kernels, states = site_kernels(table, tau), table.states()
    start = np.array([0, 1, 2])
    found = basin_of(table, start, SITES, tau, least)
    assert found.states[0] == (0, 1, 2)
    assert len(set(found.states)) == len(found.states)
    index = {tuple(state.tolist()): k for k, state in enumerate(states)}
    members = {index[state] for state in found.states}
    reached, front = {index[0, 1, 2]}, [index[0, 1, 2]]
    while front:  # single changes of that chance, from the kernels of the sites
        x = front.pop()
        new = {int(y) for y in np.flatnonzero((kernels[:, x] >= least).any(axis=0))} - reached
        reached |= new
        front += new
    assert members == reached
    assert found.escape <= (1 - 1e-12) * 2 * least  # of three tokens at most two lead out at each site


def test_a_set_of_one_state_is_that_state():
    table = TableConditional(TABLE_A)
    for state in table.states():
        one = leaving(table, [tuple(state.tolist())], np.arange(2), 0.5)
        alone = margins(site_rows(table, state, np.arange(2)), state, 0.5, 3)
        assert (one.margin, one.escape, one.bound, one.expected) == pytest.approx(
            (alone.margin, alone.escape, alone.bound, alone.residence))


def test_what_a_set_cannot_tell(monkeypatch):
    table = random_table(0)
    everything = leaving(table, [tuple(state.tolist()) for state in table.states()], SITES, 1.0)
    assert (everything.margin, everything.escape, everything.bound, everything.expected) == (np.inf, 0, 0, np.inf)
    assert len(basin_of(table, np.array([0, 0, 0]), SITES, 1.0, 1e-9).states) == 27
    frozen = basin_of(table, np.array([0, 0, 0]), np.array([0]), 1.0, 1e-9)
    assert {state[1:] for state in frozen.states} == {(0, 0)}
    monkeypatch.setattr(trap_basin, "LIMIT", 5)
    assert basin_of(table, np.array([0, 0, 0]), SITES, 1.0, 1e-9) is None
    cold = basin_of(TableConditional(TABLE_A), np.array([0, 0]), np.arange(2), 0.0, 0.5)
    assert (cold.states, cold.escape, cold.bound, cold.expected) == ([(0, 0)], 0, 0, np.inf)
    with pytest.raises(ValueError, match="not finite"):
        leaving(Broken(), [(0, 0)], np.arange(2), 1.0)


def test_a_rare_exit_is_not_lost_in_rounding():
    """Two states that change places at once and leave once in 10^20 steps: 1 - P(x, x) - P(x, y) would be 0."""
    moves, exits = np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([1e-20, 1e-20])
    assert mean_exit_time(moves, exits) == pytest.approx(1e20, rel=1e-12)
    assert mean_exit_time(np.array([[0, 0.5], [0, 0]]), np.array([0.1, 0.0])) == np.inf
    assert mean_exit_time(np.array([[0, 0.0], [0, 0]]), np.array([0.1, 0.0])) == pytest.approx(10)


class Masked:
    """Token 1 at a site is as likely as sigmoid(sum of what the unmasked tokens give); token 2 is the mask."""

    levels, vocab_size, allowed = 1, 3, np.array([True, True, False])
    weights = np.array([[0, 1.0, -2.0], [0.5, 0, 3.0], [0, 0, 0]])

    def log_probs(self, ids, sites):
        given = np.where(ids == 2, 0, 2 * ids - 1) * self.weights[sites]
        logit = given.sum(axis=1)
        return np.stack([-np.logaddexp(0, logit), -np.logaddexp(0, -logit), np.full(len(ids), -np.inf)], axis=1)


class Broken:
    levels, vocab_size, allowed, truncation = 1, 2, np.ones(2, bool), None

    def log_probs(self, ids, sites):
        return np.full((len(ids), 2), np.nan)


@pytest.mark.parametrize("rows", [1, 4, 64])
def test_mutual_support_by_hand(rows):
    """State 1 1 1: site 0 is held by site 1 (weight 1) and hurt by site 2 (-2); site 2 listens to nobody."""
    log_sigmoid = lambda x: -np.log1p(np.exp(-x))  # noqa: E731
    found = mutual_support(Masked(), np.array([1, 1, 1]), SITES, 2, rows)
    wanted = np.array([[0, log_sigmoid(-1) - log_sigmoid(-2), log_sigmoid(-1) - log_sigmoid(1)],
                       [log_sigmoid(3.5) - log_sigmoid(3), 0, log_sigmoid(3.5) - log_sigmoid(0.5)], [0, 0, 0]])
    assert found == pytest.approx(wanted)
    some = mutual_support(Masked(), np.array([1, 1, 1]), np.array([0, 2]), 2, rows)
    assert some == pytest.approx(wanted[np.ix_([0, 2], [0, 2])])
    with pytest.raises(ValueError, match="not finite"):
        mutual_support(Broken(), np.array([0, 0]), np.arange(2), 0, rows)
