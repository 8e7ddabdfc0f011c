"""A set of states around a trap's state: its margin, how likely one step leaves it, and how long it holds a chain.

Let S be a set of states. A random-scan step from x in S leaves it with the chance

    e_S(x) = (1/n) sum_i sum_{v: x with v at i is not in S} p_tau(v | x_-i),

and with J_i(x) = {v: x with v at i is in S}, which holds x_i, the margin of the set is, at tau = 1,

    gamma(S) = min_{x in S} min_i [ max_{v in J_i(x)} l_i(v) - max_{v not in J_i(x)} l_i(v) ],

so e_S(x) <= (V - 1) exp(-gamma(S) / tau) for every x in S: as for one state, of which it is the margin when S is that
state alone. Whatever its start in S, a chain has left within t steps with a chance of at most t max_x e_S(x). The mean
number of steps until it leaves solves h(x) = 1 + sum_{y in S} P(x, y) h(y).
"""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.traps.margins import decided_rows, is_argmax, margin_bound
from mlmglauber.models.conditionals import Conditional, Ids

LIMIT = 256
"""States: a set that is larger is given up."""

Values = NDArray[np.float64]
State = tuple[int, ...]


class TrapBasin(NamedTuple):
    """A set of states around m at one temperature.

    margin: gamma(S), inf where no step leaves the set. escape: the largest e_S(x), exact. bound: (V - 1) exp(-margin /
    tau), at least that. expected: the mean steps until a chain that starts at m leaves the set, exact; inf for never.
    """

    states: list[State]
    margin: float
    escape: float
    bound: float
    expected: float


def basin_of(conditional: Conditional, ids: Ids, sites: Ids, tau: float, least: float) -> TrapBasin | None:
    """The states that lead from m through single changes of chance `least` or more each, with m the first of them.

    ids: (n,) m; sites: those that are drawn at; least: in (0, 1], the chance of a token at its site, not of the step.
    So every way out takes a token of a chance below `least`. None where there are more than LIMIT states. ValueError
    for a conditional that is not finite. Costs 2 n conditionals a state.
    """
    states = [tuple(ids.tolist())]
    known = {states[0]}
    for state in states:  # grows on the way
        for place, token in zip(*np.nonzero(_chances(_rows(conditional, state, sites), tau) >= least), strict=True):
            other = _changed(state, int(sites[place]), int(token))
            if other not in known:
                if len(states) == LIMIT:
                    return None
                known.add(other)
                states.append(other)
    return leaving(conditional, states, sites, tau)


def leaving(conditional: Conditional, states: list[State], sites: Ids, tau: float) -> TrapBasin:
    """A given set of states, the first one the start that `expected` is of."""
    place = {state: k for k, state in enumerate(states)}
    moves, exits = np.zeros((len(states), len(states))), np.zeros(len(states))
    margin, allowed = inf, int(conditional.allowed.sum())
    for k, state in enumerate(states):
        rows = _rows(conditional, state, sites)
        chances = _chances(rows, tau)
        for row, chance, site in zip(rows, chances, sites.tolist(), strict=True):
            inside = _neighbours(state, site, states)
            for token in inside:
                moves[k, place[_changed(state, site, token)]] += chance[token] / len(sites)
            stays = row[inside].max()
            row[inside] = -inf
            chance[inside] = 0.0
            exits[k] += chance.sum() / len(sites)
            out = row.max()
            if out > -inf:
                margin = min(margin, stays - out)
    return TrapBasin(states, float(margin), float(exits.max()), margin_bound(float(margin), tau, allowed),
                     mean_exit_time(moves, exits))


def mean_exit_time(moves: Values, exits: Values) -> float:
    """Mean steps from state 0 until a chain leaves its set, without subtractions; inf where it never does.

    moves: (K, K) chances of the steps inside, the diagonal is not read; exits: (K,) chances of leaving from each state.

    >>> round(mean_exit_time(np.array([[0, 0.5], [0.25, 0]]), np.array([0.0, 0.25])), 12)
    8.0
    """
    rates, exits, steps = moves.copy(), exits.copy(), np.ones(len(exits))
    np.fill_diagonal(rates, 0.0)
    for k in range(len(exits) - 1, 0, -1):
        total = exits[k] + rates[k, :k].sum()
        if total <= 0:
            if rates[:k, k].any():  # it can be reached, and never left
                return inf
            continue
        passed = rates[:k, k] / total
        steps[:k] += passed * steps[k]
        exits[:k] += passed * exits[k]
        rates[:k, :k] += np.outer(passed, rates[k, :k])
        np.fill_diagonal(rates, 0.0)
    return float(steps[0] / exits[0]) if exits[0] > 0 else inf


def _rows(conditional: Conditional, state: State, sites: Ids) -> Values:
    rows = decided_rows(conditional, np.array(state), sites)
    if not np.isfinite(rows.max(axis=1)).all():
        raise ValueError("a conditional is not finite")
    return rows


def _chances(rows: Values, tau: float) -> Values:
    """(n, V) p_tau from log-probabilities at tau = 1; at tau = 0 all on the token that is drawn there."""
    if tau == 0:
        best = rows.argmax(axis=1)
        assert is_argmax(rows, best).all()
        return np.asarray((np.arange(rows.shape[1]) == best[:, None]) * 1.0)
    with np.errstate(under="ignore"):
        scaled = np.exp((rows - rows.max(axis=1, keepdims=True)) / tau)
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


def _changed(state: State, site: int, token: int) -> State:
    return (*state[:site], token, *state[site + 1 :])


def _neighbours(state: State, site: int, states: list[State]) -> list[int]:
    """The tokens that states of the set, like this one elsewhere, have at a site; its own among them."""
    rest = (state[:site], state[site + 1 :])
    return [other[site] for other in states if (other[:site], other[site + 1 :]) == rest]
