"""Local margins: how firmly each token of a state sits, and how long a chain stays there."""

from math import exp, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.conditionals import Conditional, Floats, Ids


class Margins(NamedTuple):
    """What the conditionals at the n sites of one state say, in nats at tau = 1 unless told otherwise.

    gamma: (n,) gamma_i = l_i(x_i) - max_{v != x_i} l_i(v), -inf where x_i is never drawn. margin: gamma = min_i
    gamma_i. argmax: share of the sites whose token is the likeliest there; 1 is a perfect trap. pll:
    sum_i log p(x_i | x_-i), -inf with a token that is never drawn. entropy: mean over sites of H(p_i), at tau = 1.
    stay: (n,) p_tau(x_i | x_-i).
    escape: (1/n) sum_i (1 - stay_i), exactly the chance that one random-scan step at tau changes the state.
    bound: (V - 1) exp(-gamma / tau) >= escape, V the number of allowed tokens; above 1 it says nothing.
    residence: 1 / escape, the mean number of steps until the state is left; inf where it never is.
    """

    gamma: NDArray[np.float64]
    margin: float
    argmax: float
    pll: float
    entropy: float
    stay: NDArray[np.float64]
    escape: float
    bound: float
    residence: float


def site_rows(conditional: Conditional, ids: Ids, sites: Ids) -> Floats:
    """(n, V) log-probabilities at tau = 1 at the given sites of one state."""
    return conditional.log_probs(np.repeat(ids[None], len(sites), axis=0), sites)


def margins(log_probs: Floats, tokens: Ids, tau: float, allowed: int) -> Margins:
    """Margins of one state from its conditionals.

    log_probs: (n, V) at tau = 1, row i the conditional at the i-th free site. tokens: (n,) what stands there.
    tau: above 0, or 0 for the limit. allowed: the number of tokens that may be drawn. ValueError for a row that is not
    finite where it must be. Escape is summed from the other tokens' shares, so 1e-30 is not lost against 1.

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
    with np.errstate(invalid="ignore"):
        gamma = np.where(present == -inf, -inf, present - rival)  # +inf where no other token is allowed
    leave = _leaving(present, others, rival, tau) if tau else np.where(rows.argmax(axis=1) == tokens, 0.0, 1.0)
    escape, margin = float(leave.mean()), float(gamma.min())
    chances = np.exp(rows)
    with np.errstate(invalid="ignore"):
        entropies = -np.where(chances > 0, chances * rows, 0.0).sum(axis=1)
    return Margins(gamma, margin, float((gamma >= 0).mean()), float(present.sum()), float(entropies.mean()), 1 - leave,
                   escape, margin_bound(margin, tau, allowed), 1 / escape if escape > 0 else inf)


def _leaving(present: NDArray[np.float64], others: NDArray[np.float64], rival: NDArray[np.float64],
             tau: float) -> NDArray[np.float64]:
    """(n,) 1 - p_tau(x_i | x_-i) = R / (R + 1), R the other tokens' weight in units of the present one's."""
    best = np.maximum(present, rival)
    with np.errstate(over="ignore", under="ignore"):
        mine = np.exp((present - best) / tau)
        rest = np.exp((others - best[:, None]) / tau).sum(axis=1)
    return np.asarray(rest / (rest + mine))


def margin_bound(margin: float, tau: float, allowed: int) -> float:
    """(V - 1) exp(-gamma / tau), at least the one-step escape probability of a state with margin gamma."""
    if margin == inf or allowed == 1:
        return 0.0
    if tau == 0:
        return 0.0 if margin > 0 else inf
    exponent = -margin / tau
    return (allowed - 1) * exp(exponent) if exponent < 700 else inf
