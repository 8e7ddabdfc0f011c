"""The basin of a trap: the set of states around its state, its margin, its escape probability and its mean exit time.

Let S be a set of states. A random-scan step from x in S leaves S with probability

    e_S(x) = (1/n) sum_i sum_{v: x with v at i is not in S} p_tau(v | x_-i),

Let J_i(x) = {v: x with v at i is in S}; it contains x_i. The margin of the set is, at tau = 1,

    gamma(S) = min_{x in S} min_i [ max_{v in J_i(x)} l_i(v) - max_{v not in J_i(x)} l_i(v) ],

so e_S(x) <= (V - 1) exp(-gamma(S) / tau) for every x in S. For a set of one state this is the margin of that state.
From any start in S, a chain leaves S within t steps with probability at most t max_x e_S(x). The mean number of steps
until it leaves solves h(x) = 1 + sum_{y in S} P(x, y) h(y).
"""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.traps.margins import decided_rows, is_argmax, margin_bound
from mlmglauber.models.conditionals import Conditional, Ids
from mlmglauber.models.truncation import cut

LIMIT = 256
"""Maximum number of states of a basin; the search for a larger one stops."""

Values = NDArray[np.float64]
State = tuple[int, ...]


class TrapBasin(NamedTuple):
    """A set of states around the state m at one temperature.

    margin: gamma(S) in nats, inf where no step leaves the set. escape: the largest e_S(x), exact. bound: (V - 1)
    exp(-margin / tau), an upper bound of escape. expected: the exact mean number of steps until a chain that starts at
    m leaves the set; inf where it never does.
    """

    states: list[State]
    margin: float
    escape: float
    bound: float
    expected: float


def basin_of(conditional: Conditional, ids: Ids, sites: Ids, tau: float, least: float) -> TrapBasin | None:
    """The basin of m: all states that changes of one token reach from m, each change of probability `least` or more.

    ids: (n,) the tokens of m; sites: the sites that are updated; least: in (0, 1], compared with p_tau(token | rest) at
    the site, not with the probability of the step. Every step that leaves the basin draws a token of probability below
    `least`. None where the basin has more than LIMIT states. ValueError for a conditional that is not finite. Computes
    2 n conditionals per state.
    """
    states = [tuple(ids.tolist())]
    known = {states[0]}
    for state in states:  # the list grows during the loop
        chances = _chances(conditional, _rows(conditional, state, sites), tau)
        for place, token in zip(*np.nonzero(chances >= least), strict=True):
            other = _changed(state, int(sites[place]), int(token))
            if other not in known:
                if len(states) == LIMIT:
                    return None
                known.add(other)
                states.append(other)
    return leaving(conditional, states, sites, tau)


def leaving(conditional: Conditional, states: list[State], sites: Ids, tau: float) -> TrapBasin:
    """Margin, escape and mean exit time of a given set of states; `expected` is for a start at the first one."""
    place = {state: k for k, state in enumerate(states)}
    moves, exits = np.zeros((len(states), len(states))), np.zeros(len(states))
    margin, allowed = inf, int(conditional.allowed.sum())
    for k, state in enumerate(states):
        rows = _rows(conditional, state, sites)
        chances = _chances(conditional, rows, tau)
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
    """Mean number of steps from state 0 until a chain leaves its set of K states; inf where it never does.

    moves: (K, K) probabilities of steps inside the set (the diagonal is not used); exits: (K,) probabilities of leaving
    from each state. States are eliminated one after the other without subtractions (Grassmann, Taksar and Heyman 1985),
    so tiny exit probabilities keep their digits.

    >>> round(mean_exit_time(np.array([[0, 0.5], [0.25, 0]]), np.array([0.0, 0.25])), 12)
    8.0
    """
    rates, exits, steps = moves.copy(), exits.copy(), np.ones(len(exits))
    np.fill_diagonal(rates, 0.0)
    for k in range(len(exits) - 1, 0, -1):
        total = exits[k] + rates[k, :k].sum()
        if total <= 0:
            if rates[:k, k].any():  # the chain can reach this state and never leaves it
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


def _chances(conditional: Conditional, rows: Values, tau: float) -> Values:
    """(n, V) p_tau, truncated, from log-probabilities at tau = 1; at tau = 0 the argmax has probability 1."""
    if tau == 0:
        best = rows.argmax(axis=1)
        assert is_argmax(rows, best).all()
        return np.asarray((np.arange(rows.shape[1]) == best[:, None]) * 1.0)
    rows = np.asarray(cut(rows, conditional.truncation, tau))
    with np.errstate(under="ignore"):
        scaled = np.exp((rows - rows.max(axis=1, keepdims=True)) / tau)
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


def _changed(state: State, site: int, token: int) -> State:
    return (*state[:site], token, *state[site + 1 :])


def _neighbours(state: State, site: int, states: list[State]) -> list[int]:
    """The tokens at a site of all states of the set that equal this state at the other sites, its own included."""
    rest = (state[:site], state[site + 1 :])
    return [other[site] for other in states if (other[:site], other[site + 1 :]) == rest]
