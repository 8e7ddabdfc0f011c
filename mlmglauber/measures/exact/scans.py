"""The stationary distributions of the three scans of a finite chain, and how far they are from each other.

Compatible conditionals have one stationary distribution, their joint distribution, whatever the order of the sites.
Incompatible ones have another for each scan, so the distances measure the incompatibility.
"""

from math import comb
from typing import NamedTuple

import numpy as np

from mlmglauber.measures.exact.finite_chain import FiniteChain, Places, Values
from mlmglauber.measures.exact.mixing import Second, second_eigenvalue
from mlmglauber.measures.exact.stationary import TRUSTED, Stationary, eliminate, stationary

ENTRIES = 1 << 25
"""Maximum number of entries of the kernels that a permutation sweep needs at a time, 256 MB."""


class ScanDistances(NamedTuple):
    """Total variation between the stationary distributions of two scans; None with the reason under the same name.

    systematic, permutation: to that of the random scan. between: of these two to each other. The distribution of a
    systematic or a permutation scan is that of the state after a whole sweep.
    """

    systematic: float | None
    permutation: float | None
    between: float | None
    reasons: dict[str, str]


def scan_distances(chain: FiniteChain, law: Values, basins: Places) -> ScanDistances:
    """The distances between the three scans. law: (S,) of the random scan. basins: from `attractors`."""
    systematic, why_systematic = systematic_law(chain, basins)
    permutation, why_permutation = permutation_law(chain)
    found = {"systematic": _distance(systematic, law), "permutation": _distance(permutation, law),
             "between": _distance(systematic, permutation)}
    reasons = {"systematic": why_systematic, "permutation": why_permutation,
               "between": why_systematic or why_permutation}
    return ScanDistances(**found, reasons={name: reasons[name] or "" for name, value in found.items() if value is None})


def _distance(one: Values | None, other: Values | None) -> float | None:
    return None if one is None or other is None else float(0.5 * np.abs(one - other).sum())


def trusted(settled: Stationary, second: Second) -> tuple[Values | None, float | None, str | None]:
    """A stationary distribution, its estimated error, and the reason where it is too uncertain to be given."""
    if settled.law is None or settled.method == "elimination":
        return settled.law, None, settled.reason
    assert settled.residual is not None
    if second.modulus is None:
        return None, None, f"its error is not known: {second.reason}"
    gap = 1 - second.modulus
    error = settled.residual / gap if gap > 0 else np.inf
    if error > TRUSTED:
        return None, None, f"nearly reducible: 1 - |lambda_2| is {gap:.1e}, the law would be a matter of rounding"
    return settled.law, float(error), None


def systematic_law(chain: FiniteChain, basins: Places) -> tuple[Values | None, str | None]:
    """(S,) the stationary distribution of the state after a sweep in site order; None with the reason."""
    settled = stationary(chain, basins, systematic=True)
    if settled.law is None or settled.method == "elimination":
        return settled.law, settled.reason
    law, _, reason = trusted(settled, second_eigenvalue(chain, settled.law, systematic=True))
    return law, reason


def permutation_law(chain: FiniteChain) -> tuple[Values | None, str | None]:
    """(S,) the stationary distribution of the state after a sweep in a fresh uniform order; None with the reason.

    It is solved by elimination, so only for chains whose kernel of a sweep can be computed: see ENTRIES.
    """
    moving = len(_moving(chain))
    kernels = max(comb(moving, size) + comb(moving, size + 1) for size in range(moving)) if moving else 1
    if kernels * chain.states**2 > ENTRIES:
        return None, f"{chain.states} states of {moving} sites are too many to solve the permutation scan"
    if not moving:
        return np.ones(1), None
    try:
        return eliminate(permutation_sweep(chain, np.eye(chain.states))), None
    except ValueError:
        return None, "the permutation scan has no single stationary distribution in double precision"


def permutation_sweep(chain: FiniteChain, laws: Values) -> Values:
    """(..., S) distributions after one sweep in a uniform random order, the mean over all orders of the n sites.

    With F(A) the mean over the orders of a set A of sites, F(A) = (1 / |A|) sum_{k in A} F(A without k) K_k: 2^n sets
    instead of n! orders.
    """
    layer = {0: laws}
    moving = _moving(chain)
    for size in range(1, len(moving) + 1):
        larger: dict[int, Values] = {}
        for members, law in layer.items():
            for place, site in enumerate(moving):
                if not members >> place & 1:
                    moved, name = chain.update(law, site) / size, members | 1 << place
                    larger[name] = larger[name] + moved if name in larger else moved
        layer = larger
    (swept,) = layer.values()
    return swept


def _moving(chain: FiniteChain) -> list[int]:
    """The sites that have a choice."""
    return [site for site, m in enumerate(chain.shape) if m > 1]
