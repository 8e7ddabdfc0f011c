"""Convergence of a finite chain: its second eigenvalue and its exact mixing time.

    t_mix(eps) = min{ t : max_x TV(P^t(x, .), mu) <= eps },

The maximum does not grow with t, so t is doubled and then bisected. Up to ALL_STARTS states every start is followed, in
powers of the full kernel. For larger chains single starts are followed in search of the worst one: the set of states
that separates P^t(x, .) from mu is carried back through P^t, which gives a lower bound of the distance of every start
and thus the next start to follow. The resulting time is exact for its start and a lower bound for the worst one. Where
the work allows it, all starts are then followed to that time, which makes it exact.

Around it, for any start: |lambda_2|^t <= 2 max_x TV (Levin and Peres 2017, theorem 12.5), and
TV(P^t(x, .), mu) <= sqrt((1 - mu(x)) / mu(x)) sigma^t / 2, sigma the second singular value of P in L2(mu) (Fill 1991).
"""

from collections.abc import Sequence
from math import ceil, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.exact.finite_chain import BLOCK, FiniteChain, Values

ALL_STARTS = 2048
"""Maximum number of states for which every start is followed in powers of the kernel."""
WORK = 10**10
"""Maximum number of multiplications for checking every start of a larger chain."""
TIE = 1e-12
"""Maximum excess of a distance over eps that counts as rounding."""
POWERS = 1200 << 20
"""Maximum number of bytes for the powers of the kernel."""
LONGEST = 2**50
"""Maximum mixing time, in steps, that is computed."""
STEPS = 10_000
"""Maximum number of steps for which a single start is followed."""
FULL_SPECTRUM = 300
"""Maximum number of states for which all eigenvalues are computed."""
ROUNDING = 1e-7
"""Maximum imaginary part of an eigenvalue, relative to its modulus, that counts as rounding."""


class Second(NamedTuple):
    """The eigenvalue of P of the second largest modulus: its modulus, whether it is complex, its right eigenvector."""

    modulus: float | None
    is_complex: bool | None
    vector: NDArray[np.complex128] | None
    reason: str | None


def second_eigenvalue(chain: FiniteChain, law: Values, systematic: bool = False) -> Second:
    """The largest eigenvalue of P - 1 mu^T, which is P without its eigenvalue 1; under `systematic` of a sweep."""
    states = chain.states
    if states == 1:
        return Second(0.0, False, None, None)
    if states <= FULL_SPECTRUM:
        return _largest(*np.linalg.eig(chain.dense(systematic) - law))
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    move = chain.sweep_backward if systematic else chain.backward
    operator = LinearOperator((states, states), matvec=lambda f: move(f) - law @ f, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(states)
    try:
        return _largest(*eigs(operator, k=4, ncv=min(60, states), v0=start, maxiter=200, tol=1e-12))
    except ArpackNoConvergence:
        if states > ALL_STARTS:
            return Second(None, None, None, "the eigenvalue iteration did not converge")
    return _largest(*np.linalg.eig(chain.dense(systematic) - law))


def _largest(values: NDArray[Any], vectors: NDArray[Any]) -> Second:
    k = int(np.abs(values).argmax())
    modulus = float(abs(values[k]))
    return Second(min(modulus, 1.0), bool(abs(values[k].imag) > ROUNDING * modulus), vectors[:, k].astype(complex),
                  None)


class Mixing(NamedTuple):
    """Mixing times in steps; None, with the reason, for a time that was not found.

    worst: t_mix from the worst start; exact: whether it is exact or a lower bound. from_start: t_mix from the start
    that the caller gave. low, high: bounds of t_mix where it is not exact.
    """

    worst: int | None
    exact: bool
    from_start: int | None
    low: int | None
    high: int | None
    reason: str | None


def mixing_times(chain: FiniteChain, law: Values, eps: float, start: int | None, second: Second) -> Mixing:
    """t_mix(eps) from the worst start and from a given one."""
    if chain.states <= ALL_STARTS:
        return _all_starts(chain, law, eps, start)
    low, high = _spectral_low(second, eps), _singular_high(chain, law, eps)
    if low is not None and low > STEPS:
        return Mixing(None, False, None, low, high, f"over {STEPS} steps, too many to follow one by one")
    candidates = {int(law.argmin()), int(law.argmax())}
    if second.vector is not None:
        for part in (second.vector.real, second.vector.imag):
            candidates |= {int(part.argmin()), int(part.argmax())}
    return _sought(chain, law, eps, start, sorted(candidates), low, high)


def _distance(laws: Values, law: Values) -> Values:
    return np.asarray(0.5 * np.abs(laws - law).sum(-1))


def _all_starts(chain: FiniteChain, law: Values, eps: float, start: int | None) -> Mixing:
    """Doubling and bisection on powers of the kernel, whose rows are kept summing to 1."""
    if 1 - law.min() <= eps + TIE:
        return Mixing(0, True, None if start is None else 0, None, None, None)
    powers = [_normalised(chain.dense())]
    limit = min(LONGEST.bit_length(), POWERS // powers[0].nbytes)
    while _distance(powers[-1], law).max() > eps + TIE and len(powers) <= limit:
        powers.append(_normalised(powers[-1] @ powers[-1]))
    from_start = None
    if start is not None:
        from_start = _bisected(powers, np.eye(1, chain.states, start), law, eps)
    worst = _bisected(powers, np.eye(chain.states), law, eps)
    reason = None if worst is not None else f"over {2 ** (len(powers) - 1)} steps"
    return Mixing(worst, worst is not None, from_start, None if worst else 2 ** (len(powers) - 1), None, reason)


def _normalised(kernel: Values) -> Values:
    """The kernel with rows rescaled to sum to 1, in place."""
    kernel /= kernel.sum(axis=1, keepdims=True)
    return kernel


def _bisected(powers: Sequence[Values], laws: Values, law: Values, eps: float) -> int | None:
    """The first time at which all distributions are within eps of `law`; None where the powers do not reach it.

    A distribution within eps stays within it and is dropped.
    """
    if (_distance(laws, law) <= eps + TIE).all():
        return 0
    time = 0
    for k in reversed(range(len(powers))):
        moved = powers[k] if time == 0 and len(laws) == len(powers[k]) else laws @ powers[k]
        far = _distance(moved, law) > eps + TIE
        if far.any():
            laws, time = moved[far], time + 2**k
    return None if time + 1 >= 2 ** len(powers) else time + 1


def _sought(chain: FiniteChain, law: Values, eps: float, start: int | None, candidates: list[int], low: int | None,
            high: int | None) -> Mixing:
    """Mixing times from the worst start that a search finds."""
    worst, from_start, seen = 0, None, set(candidates)
    if start is not None:
        from_start = _followed(chain, law, eps, start)
        candidates = sorted({*candidates, start})
    while candidates:
        times = [(_followed(chain, law, eps, x), x) for x in candidates]
        if any(time is None for time, _ in times):
            return Mixing(None, False, from_start, STEPS, high, f"over {STEPS} steps, too many to follow one by one")
        time, last = max((time or 0, x) for time, x in times)
        seen.update(candidates)
        worst = max(worst, time)
        candidates = sorted(_farther(chain, law, last, max(time - 1, 1)) - seen)
    if chain.states * chain.entries() * worst <= WORK:
        return Mixing(_checked(chain, law, eps, worst), True, from_start, None, None, None)
    return Mixing(worst, False, from_start, max(worst, low or 0), high, None)


def _checked(chain: FiniteChain, law: Values, eps: float, worst: int) -> int:
    """The mixing time over all starts, block by block; worst: a lower bound of it."""
    for block in np.array_split(np.arange(chain.states), -(-(chain.states**2) // BLOCK)):
        laws = np.zeros((len(block), chain.states))
        laws[np.arange(len(block)), block] = 1.0
        for _ in range(worst):
            laws = chain.forward(laws)
        while (far := _distance(laws, law) > eps + TIE).any():
            laws, worst = chain.forward(laws[far]), worst + 1
    return worst


def _followed(chain: FiniteChain, law: Values, eps: float, start: int) -> int | None:
    """t_mix(eps) from one start; None where it is above STEPS."""
    now = np.zeros(chain.states)
    now[start] = 1.0
    for time in range(STEPS + 1):
        if _distance(now, law) <= eps + TIE:
            return time
        now = chain.forward(now)
    return None


def _farther(chain: FiniteChain, law: Values, start: int, time: int) -> set[int]:
    """A start that is farther from mu than `start` at that time, by the set of states that separates `start`."""
    now = np.zeros(chain.states)
    now[start] = 1.0
    for _ in range(time):
        now = chain.forward(now)
    shows = now > law
    chance = shows.astype(np.float64)
    for _ in range(time):
        chance = chain.backward(chance)
    gaps = np.abs(chance - law[shows].sum())
    best = int(gaps.argmax())
    return {best} if gaps[best] > gaps[start] * (1 + 1e-9) else set()


def _spectral_low(second: Second, eps: float) -> int | None:
    """ln(1 / (2 eps)) / ln(1 / |lambda_2|), rounded up."""
    if second.modulus is None or not 0 < second.modulus < 1 or eps >= 0.5:
        return None
    return ceil(log(1 / (2 * eps)) / -log(second.modulus) - 1e-9)


def _singular_high(chain: FiniteChain, law: Values, eps: float) -> int | None:
    """ln( sqrt((1 - mu_min) / mu_min) / (2 eps) ) / ln(1 / sigma), rounded up; None where sigma is 1 to six digits."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    least = float(law.min())
    if least < 1e-280:
        return None
    root = np.sqrt(law)

    def move(g: Values) -> Values:
        g = g - root * (root @ g)
        moved = chain.backward(chain.forward(root * g) / law) * root
        return moved - root * (root @ moved)

    operator = LinearOperator((chain.states, chain.states), matvec=move, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(chain.states)
    try:
        value = eigsh(operator, k=1, which="LA", v0=start, tol=1e-8, maxiter=300, return_eigenvectors=False)
    except ArpackNoConvergence:
        return None
    sigma = sqrt(float(value[0])) * (1 + 1e-7)
    return ceil(log(sqrt((1 - least) / least) / (2 * eps)) / -log(sigma)) if sigma < 1 - 1e-6 else None
