"""The stationary distribution of a finite chain, and its error where the chain is nearly reducible.

Up to DENSE states it is computed by the elimination of Grassmann, Taksar and Heyman (1985), which never subtracts:
every probability has nearly all its digits, however small the gap (O'Cinneide 1993). For larger chains iterated
aggregation and disaggregation is used (Koury, McAllister and Stewart 1984): power steps spread probability within
basins of attraction, and the chain between basins, solved without subtraction too, weights them. Then the error is
about

    |mu P - mu|_1 / (1 - |lambda_2|),

and a distribution with an error above TRUSTED is not given.
"""

from typing import NamedTuple

import numpy as np

from mlmglauber.measures.exact.finite_chain import FiniteChain, Places, Values, closed_classes

DENSE = 2048
"""Maximum number of states for full elimination: 34 MB and half a second."""
PANEL = 64
"""Number of states that are eliminated together, so that the rest is a product of matrices."""
TRUSTED = 1e-6
"""Maximum estimated error, in total variation, of a distribution that is given."""
SINGLE = 512
"""Number of the likeliest states that are aggregates of their own."""
SINGLE_SWEEP = 128
"""The same number for sweeps, whose flow takes longer to compute."""
SMOOTHING = 30
"""Number of power steps between two weightings of the aggregates."""
ROUNDS = 400
"""Maximum number of weightings."""


class Stationary(NamedTuple):
    """A stationary distribution (S,), or None with the reason; residual: |mu P - mu|_1; method: how it was computed."""

    law: Values | None
    residual: float | None
    method: str
    reason: str | None


def eliminate(kernel: Values) -> Values:
    """The stationary distribution of an irreducible (S, S) kernel, which is overwritten; its diagonal is not used.

    Grassmann-Taksar-Heyman: states are eliminated from the last to the first, p_ij += p_ik p_kj / sum_{j<k} p_kj, then
    their weights follow by back substitution. O(S^3), in panels. ValueError for a reducible kernel.

    >>> eliminate(np.array([[.7, .3], [.1, .9]])).round(3)
    array([0.25, 0.75])
    """
    count = len(kernel)
    for high in range(count, 1, -PANEL):
        low = max(high - PANEL, 1)
        for k in range(high - 1, low - 1, -1):
            out = kernel[k, :k].sum()
            if not out > 0:
                raise ValueError("the chain is reducible")
            kernel[:k, k] /= out
            kernel[low:k, :k] += np.outer(kernel[low:k, k], kernel[k, :k])
            kernel[:low, low:k] += np.outer(kernel[:low, k], kernel[k, low:k])
        kernel[:low, :low] += kernel[:low, low:high] @ kernel[low:high, :low]
    law = np.ones(count)
    for k in range(1, count):
        law[k] = law[:k] @ kernel[:k, k]
        if law[k] > 1e200:  # larger ratios of weights would overflow
            law[: k + 1] /= law[k]
    return np.asarray(law / law.sum())


def stationary(chain: FiniteChain, basins: Places, systematic: bool = False) -> Stationary:
    """The stationary distribution of the random scan or, if `systematic`, of the state after a sweep in site order.

    basins: (S,) the basin of attraction of each state, any integers; the aggregates of the iteration.
    """
    count, classes = closed_classes(chain)
    if count > 1:
        return Stationary(None, None, "none", f"reducible: {count} closed sets of states, each with a law of its own")
    inside = np.flatnonzero(classes == 0)
    if chain.states > DENSE:
        law, method = _aggregated(chain, np.unique(basins, return_inverse=True)[1], systematic), "aggregation"
    else:
        kernel, method = chain.dense(systematic), "elimination"
        if len(inside) < chain.states:
            kernel = kernel[np.ix_(inside, inside)]
        law = np.zeros(chain.states)
        try:
            law[inside] = eliminate(kernel)
        except ValueError:  # products of probabilities underflowed, or the sweep has closed sets of its own
            return Stationary(None, None, method, "nearly reducible: a set of states is left with probability 0 in "
                              "double precision")
    return Stationary(law, _residual(chain, law, systematic), method, None)


def _residual(chain: FiniteChain, law: Values, systematic: bool) -> float:
    return float(np.abs((chain.sweep(law) if systematic else chain.forward(law)) - law).sum())


def _aggregated(chain: FiniteChain, labels: Places, systematic: bool) -> Values:
    """Alternates power steps and weightings of aggregates until the distribution stays the same.

    The aggregates are basins, except that each of the likeliest states so far is an aggregate of its own.
    """
    move = chain.sweep if systematic else chain.forward
    single = SINGLE_SWEEP if systematic else SINGLE
    law = np.full(chain.states, 1 / chain.states)
    best, stale = np.inf, 0
    for _ in range(ROUNDS):
        for _ in range(SMOOTHING):
            law = move(law)
        law /= law.sum()
        residual = _residual(chain, law, systematic)
        stale = 0 if residual < 0.5 * best else stale + 1
        best = min(best, residual)
        if residual < 1e-15 or (residual < 1e-13 and stale > 3):
            break
        aggregates = labels + single
        aggregates[np.argsort(law)[-single:]] = np.arange(single)
        aggregates = np.unique(aggregates, return_inverse=True)[1]
        law = _weighed(chain, law, aggregates, int(aggregates.max()) + 1, systematic)
    return law


def _weighed(chain: FiniteChain, law: Values, labels: Places, count: int, systematic: bool) -> Values:
    """The distribution with aggregates weighted by the chain between them; unchanged where that cannot be solved."""
    if not 1 < count <= DENSE:
        return law
    masses = np.bincount(labels, weights=law, minlength=count)
    flow = (chain.sweep_flow if systematic else chain.flow)(law, labels, count)
    try:
        with np.errstate(divide="raise", invalid="raise"):
            scale = eliminate(flow / masses[:, None]) / masses
    except (ValueError, FloatingPointError):
        return law
    scaled = law * scale[labels]
    return np.asarray(scaled / scaled.sum())
