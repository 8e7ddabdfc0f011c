"""The distribution that pseudo-log-likelihoods suggest, beside the stationary one."""

from typing import NamedTuple

import numpy as np

from mlmglauber.measures.exact.finite_chain import FiniteChain, Values


class PllDistance(NamedTuple):
    """Distance of a stationary distribution mu from the one proportional to exp(PLL / tau).

    tv: total variation. kl: KL(mu || q) in nats. None with the reason.
    """

    tv: float | None
    kl: float | None
    reason: str | None


def pll_law(chain: FiniteChain) -> Values:
    """(S,) q(x) proportional to exp(PLL(x) / tau), with PLL(x) = sum_k log p_k(x_k | x_-k) at tau = 1, in nats.

    The sum runs over the chain's sites, with conditionals restricted to their tokens. Where the sites are independent,
    q is the stationary distribution at every temperature. tau > 0. ValueError if every PLL is -infinity.
    """
    from scipy.special import softmax

    energies = chain.base.sum(axis=0) / chain.tau
    if not np.isfinite(energies.max()):
        raise ValueError("no state has a finite PLL")
    return np.asarray(softmax(energies))


def pll_distance(chain: FiniteChain, law: Values) -> PllDistance:
    """Compare a stationary distribution, (S,), with that of the pseudo-log-likelihoods."""
    if chain.tau == 0:
        return PllDistance(None, None, "exp(PLL / tau) has no limit at tau = 0")
    try:
        suggested = pll_law(chain)
    except ValueError as error:
        return PllDistance(None, None, str(error))
    tv = float(0.5 * np.abs(law - suggested).sum())
    if (law[suggested == 0] > 0).any():
        return PllDistance(tv, None, "infinite: states of the stationary law have a PLL of -infinity")
    from scipy.special import rel_entr

    return PllDistance(tv, max(0.0, float(rel_entr(law, suggested).sum())), None)
