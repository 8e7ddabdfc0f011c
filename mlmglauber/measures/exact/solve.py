"""Exact properties of a finite chain, in float64: its stationary distribution, mixing time, influences and their bound,
the incompatibility of its conditionals, its entropy production and its likeliest basin.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mlmglauber.measures.exact.finite_chain import FiniteChain, Places, Values, attractors
from mlmglauber.measures.exact.mixing import Mixing, Second, distances, mixing_times, second_eigenvalue
from mlmglauber.measures.exact.pll_law import PllDistance, pll_distance
from mlmglauber.measures.exact.scans import ScanDistances, scan_distances, trusted
from mlmglauber.measures.exact.stationary import stationary
from mlmglauber.measures.influence.matrix import alphas, mixing_bound
from mlmglauber.models.truncation import Truncation

COMPATIBLE = 1e-9
"""Maximum |delta| in nats, at tau = 1, that counts as rounding in float64."""


class Rectangles(NamedTuple):
    """Mean and largest |delta| over `number` rectangles, in nats at tau = 1; None with the reason."""

    mean: float | None
    largest: float | None
    number: int
    reason: str | None


class Basin(NamedTuple):
    """The basin of attraction of the likeliest state: number of states, mass, conductance (None with the reason)."""

    states: int
    mass: float
    conductance: float | None
    reason: str | None


class Exact(NamedTuple):
    """An exact solution. A field that is not known is None, and `reasons` has the reason under the field's name.

    law: (S,) the stationary distribution. error: its estimated error in total variation, |mu P - mu|_1 / (1 -
    |lambda_2|); None after an elimination, which has nearly all digits whatever the gap. second: the second largest
    eigenvalue. mixing: mixing times in steps. influences: (n, n) c_ij.
    alpha: their largest row sum; spectral_radius: their spectral radius. bound: mixing_bound of alpha.
    entropy_production: nats per step. scans: distances between the stationary distributions of the scans. pll: distance
    of `law` from the distribution proportional to exp(PLL / tau). escape: (S,) probability that one step leaves a
    state, the inverse of its mean residence.
    reversible: whether detailed balance holds. rectangles: |delta| over all rectangles at tau = 1. distances: (T,)
    total variation to `law` after each of the steps that were asked for, from the given start.
    """

    law: Values | None
    error: float | None
    second: Second
    mixing: Mixing
    influences: Values
    alpha: float
    spectral_radius: float
    bound: int | None
    entropy_production: float | None
    scans: ScanDistances
    pll: PllDistance
    escape: Values
    basin: Basin | None
    reversible: bool | None
    reasons: dict[str, str]
    rectangles: Rectangles
    distances: Values | None = None


def solve(chain: FiniteChain, basins: Places, rectangles: Rectangles, eps: float, start: int | None) -> Exact:
    """Solve one chain.

    basins: from `attractors`. rectangles: from `rectangles`. eps: of t_mix(eps). start: a start whose mixing time is
    wanted too.
    """
    influence = influences(chain)
    alpha, _, radius = alphas(influence)
    bound = mixing_bound(alpha, chain.n, eps)
    escape = chain.leaving().mean(axis=0)
    reasons = {} if bound is not None else {"bound": "alpha is 1 or more: nothing is proved"}
    reversible, unknown = _reversible(chain, rectangles)
    if unknown is not None:
        reasons["reversible"] = unknown
    settled = stationary(chain, basins)
    second = Second(1.0, False, None, None) if settled.law is None else second_eigenvalue(chain, settled.law)
    law, error, reason = trusted(settled, second)
    if law is None:
        why = reason or ""
        reasons |= dict.fromkeys(("likeliest", "basin", "entropy_production"), why)
        mixing = Mixing(None, False, None, None, None, reason)
        return Exact(None, error, second, mixing, influence, alpha, radius, bound, None,
                     ScanDistances(None, None, None, dict.fromkeys(("systematic", "permutation", "between"), why)),
                     PllDistance(None, None, why), escape, None, reversible, reasons, rectangles)
    mixing = mixing_times(chain, law, eps, start, second)
    production = entropy_production(chain, law)
    if production is None:
        reasons["entropy_production"] = "infinite: tokens of probability 0 are left in the stationary chain"
    return Exact(law, error, second, mixing, influence, alpha, radius, bound, production,
                 scan_distances(chain, law, basins), pll_distance(chain, law), escape,
                 likeliest_basin(chain, law, basins), reversible, reasons, rectangles)


def solve_all(shape: tuple[int, ...], base: Values, taus: Sequence[float], eps: float, given: int | None,
              steps: Sequence[int] = (), truncation: Truncation | None = None) -> Iterator[Exact]:
    """Solve the chain of the same conditionals at each temperature.

    shape, base, truncation: as in FiniteChain. eps, given: as in `solve`. steps: of the field `distances`.
    """
    basins, found = attractors(FiniteChain(shape, base, 1.0)), rectangles(shape, base)
    for tau in taus:
        chain = FiniteChain(shape, base, tau, truncation)
        exact = solve(chain, basins, found, eps, given)
        if len(steps) and given is not None and exact.law is not None:
            exact = exact._replace(distances=distances(chain, exact.law, given, steps))
        yield exact


def _reversible(chain: FiniteChain, rectangles: Rectangles) -> tuple[bool | None, str | None]:
    """Whether detailed balance holds, as the rectangles decide it; None with the reason where they do not."""
    if chain.truncation is not None:
        return None, "the rectangles are of whole conditionals, and the chain cuts off tokens"
    if rectangles.largest is None:
        return None, "a conditional has probability 0: the rectangles do not decide it"
    return rectangles.largest <= COMPATIBLE, None


def influences(chain: FiniteChain) -> Values:
    """(n, n) c_ij = max of TV( p_i(.|x), p_i(.|y) ) over all x, y that differ at site j alone; 0 where i = j."""
    largest = np.zeros((chain.n, chain.n))
    for i in range(chain.n):
        whole = chain.p[i].reshape(chain.shape)
        for j in range(chain.n):
            if i != j:
                laws = np.moveaxis(whole, (j, i), (0, -1))  # token at j, other sites, p_i
                for k in range(len(laws) - 1):
                    distances = 0.5 * np.abs(laws[k + 1 :] - laws[k]).sum(axis=-1)
                    largest[i, j] = max(largest[i, j], float(distances.max()))
    return np.minimum(largest, 1.0)


def rectangles(shape: tuple[int, ...], base: Values) -> Rectangles:
    """|delta| over every rectangle i < j, a < a', b < b', all other sites in all ways.

    With W = log p_j - log p_i, delta is the mixed difference W(a',b') - W(a,b') - W(a',b) + W(a,b), whose size does not
    depend on the corner that is called x. shape, base: as in FiniteChain. At temperature tau it is delta / tau.
    """
    if not np.isfinite(base).all():
        return Rectangles(None, None, 0, "a conditional has probability 0")
    total, largest, count = 0.0, 0.0, 0
    for j in range(len(shape)):
        for i in range(j):
            w = np.moveaxis((base[j] - base[i]).reshape(shape), (i, j), (0, 1)).reshape(shape[i], shape[j], -1)
            for a in range(shape[i] - 1):
                rows = w[a + 1 :] - w[a]
                for b in range(shape[j] - 1):
                    deltas = np.abs(rows[:, b + 1 :] - rows[:, b : b + 1])
                    total, largest = total + float(deltas.sum()), max(largest, float(deltas.max()))
                    count += deltas.size
    if not count:
        return Rectangles(None, 0.0, 0, "there is no rectangle: fewer than two sites have a choice")
    return Rectangles(total / count, largest, count, None)


def entropy_production(chain: FiniteChain, law: Values) -> float | None:
    """Stationary entropy production in nats per step; None where it is infinite.

    The long-run mean of log p(new | rest) - log p(old | rest) is (1/n) sum_k sum_x (law K_k - law)(x) log p_k(x_k |
    x_-k); 0 if and only if the stationary chain is reversible.
    """
    total = 0.0
    for site in range(chain.n):
        gained = chain.update(law, site) - law
        logp = chain.logp[site]
        impossible = logp == -np.inf
        if (law[impossible] > 0).any():
            return None
        total += float((gained[~impossible] * logp[~impossible]).sum())
    return total / chain.n


def likeliest_basin(chain: FiniteChain, law: Values, basins: Places) -> Basin:
    """The basin of attraction (see `attractors`) of the likeliest state.

    Its conductance is the flow out of it over the smaller mass: sum_{x in B, y not in B} mu(x) P(x, y) / min(mu(B), 1 -
    mu(B)).
    """
    inside = basins == basins[law.argmax()]
    mass, rest = float(law[inside].sum()), float(law[~inside].sum())
    if inside.all() or rest == 0:
        return Basin(int(inside.sum()), min(mass, 1.0), None, "the basin holds everything")
    out = chain.flow(law, inside.astype(np.int64), 2)[1, 0]
    return Basin(int(inside.sum()), mass, float(out / min(mass, rest)), None)
