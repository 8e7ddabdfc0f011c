"""Local margins of a state: by how much each token is likelier than its rivals, and how long a chain stays there."""

from math import exp, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.conditionals import Conditional, Floats, Ids
from mlmglauber.models.token_scores import margins_above
from mlmglauber.models.truncation import Truncation, cut

CLOSE = 1e-2
"""Maximum difference in nats of the two best tokens at which they are compared again in float64, the precision that
defines chains; the error of float32 is about 1e-5."""


class Margins(NamedTuple):
    """Quantities of the conditionals at the n sites of one state x, in nats at tau = 1 unless noted.

    gamma: (n,) gamma_i = l_i(x_i) - max_{v != x_i} l_i(v), with l_i = log p(. | x_-i); -inf where x_i has probability
    0. margin: gamma = min_i gamma_i. argmax: share of the sites whose token is the one that tau = 0 draws (see
    is_argmax). ties: number of sites at which another token is as likely. pll: sum_i log p(x_i | x_-i), -inf where a
    token has probability 0. entropy: mean over sites of the entropy of p_i. stay: (n,) p_tau(x_i | x_-i).
    escape: (1/n) sum_i (1 - stay_i), exactly the probability that one random-scan step at tau changes the state.
    bound: (V - 1) exp(-gamma / tau) >= escape, V the number of allowed tokens; trivial at 1 or above.
    residence: 1 / escape, the mean number of steps until the chain leaves the state; inf where it never does.
    """

    gamma: NDArray[np.float64]
    margin: float
    argmax: float
    ties: int
    pll: float
    entropy: float
    stay: NDArray[np.float64]
    escape: float
    bound: float
    residence: float

    @property
    def perfect(self) -> bool:
        """Whether every token is its conditional's argmax without a tie; only then escape -> 0 as tau -> 0.

        With a tie (margin 0) the chain leaves at any tau > 0, since each of two equally likely tokens is drawn half of
        the time.
        """
        return self.argmax == 1 and self.margin > 0


def is_argmax(log_probs: Floats, tokens: Ids) -> NDArray[np.bool_]:
    """(B,) whether each token is the one that tau = 0 draws from its row: the likeliest; of equal ones the lowest id.

    log_probs: (B, V). Every test for an argmax uses this function, so that ties are broken in one way.

    >>> is_argmax(np.log([[0.4, 0.4, 0.2], [0.1, 0.2, 0.7]]), np.array([1, 2]))
    array([False,  True])
    """
    return np.asarray(np.asarray(log_probs).argmax(axis=1) == tokens)


def site_rows(conditional: Conditional, ids: Ids, sites: Ids) -> Floats:
    """(n, V) log-probabilities at tau = 1 at the given sites of one state."""
    return conditional.log_probs(np.repeat(ids[None], len(sites), axis=0), sites)


def decided_rows(conditional: Conditional, ids: Ids, sites: Ids) -> NDArray[np.float64]:
    """As site_rows, but rows whose two best tokens are nearly equal (CLOSE) are computed in float64.

    The argmax, the sign of a margin and ties are then those of the dynamics, not those of a faster number format. Rows
    that are not finite stay as they are. All rows of a conditional that is truncated are in float64, for the same
    tokens are then kept.
    """
    if conditional.truncation is not None:
        states = np.repeat(ids[None], len(sites), axis=0)
        return np.asarray(conditional.log_probs_at(states, sites, -1), dtype=np.float64)
    rows = np.asarray(site_rows(conditional, ids, sites), dtype=np.float64)
    if conditional.levels > 1 and rows.shape[1] > 1:
        best = np.partition(rows, -2, axis=1)[:, -2:]
        with np.errstate(invalid="ignore"):
            close = np.flatnonzero(best[:, 1] - best[:, 0] < CLOSE)
        if len(close):
            rows[close] = conditional.log_probs_at(np.repeat(ids[None], len(close), axis=0), sites[close], -1)
    return rows


def margins(log_probs: Floats, tokens: Ids, tau: float, allowed: int, truncation: Truncation | None = None) -> Margins:
    """Margins of one state from its conditionals.

    log_probs: (n, V) at tau = 1, row i the conditional at the i-th free site. tokens: (n,) the tokens of the state.
    tau: above 0, or 0 for the limit. allowed: number of tokens that may be drawn. truncation: of the conditionals at
    tau, so of `stay` and `escape`; the other quantities are those before it. ValueError for a row without a finite
    entry. Escape is summed from the probabilities of the other tokens, so that 1e-30 is not lost against 1.

    >>> found = margins(np.log([[.7, .2, .1], [.6, .3, .1]]), np.array([0, 0]), 1.0, 3)
    >>> round(found.margin, 6), round(found.escape, 6), found.argmax
    (0.693147, 0.35, 1.0)
    """
    rows = np.asarray(log_probs, dtype=np.float64)
    places = np.arange(len(rows))
    if not np.isfinite(rows.max(axis=1)).all():
        raise ValueError("a conditional is not finite")
    present = rows[places, tokens]
    others = rows.copy()
    others[places, tokens] = -inf
    rival = others.max(axis=1)
    gamma = np.asarray(margins_above(present, rival), dtype=np.float64)
    best = is_argmax(rows, tokens)
    leave = _leaving(cut(rows, truncation, tau), tokens, tau) if tau else np.where(best, 0.0, 1.0)
    escape, margin = float(leave.mean()), float(gamma.min())
    chances = np.exp(rows)
    with np.errstate(invalid="ignore"):
        entropies = -np.where(chances > 0, chances * rows, 0.0).sum(axis=1)
    return Margins(gamma, margin, float(best.mean()), int((gamma == 0).sum()), float(present.sum()),
                   float(entropies.mean()), 1 - leave, escape, margin_bound(margin, tau, allowed),
                   1 / escape if escape > 0 else inf)


def _leaving(rows: NDArray[np.floating], tokens: Ids, tau: float) -> NDArray[np.float64]:
    """(n,) 1 - p_tau(x_i | x_-i) = R / (R + 1), R the total weight of the other tokens over that of the present one."""
    places = np.arange(len(rows))
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp((rows - rows.max(axis=1, keepdims=True)) / tau)
    mine = weights[places, tokens]
    weights[places, tokens] = 0.0
    rest = weights.sum(axis=1)
    return np.asarray(rest / (rest + mine))


def margin_bound(margin: float, tau: float, allowed: int) -> float:
    """(V - 1) exp(-gamma / tau), at least the one-step escape probability of a state with margin gamma."""
    if margin == inf or allowed == 1:
        return 0.0
    if tau == 0:
        return 0.0 if margin > 0 else inf
    exponent = -margin / tau
    return (allowed - 1) * exp(exponent) if exponent < 700 else inf
