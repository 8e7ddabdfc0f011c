"""Sampled states against an exact distribution: total variation, and a chi-square test on thinned states.

The dependence of states of one chain on each other, and on the start, decays as |lambda_2|^h after h steps. The exact
second eigenvalue is known, so states are taken so far apart, and the first one so far from the start, that this factor
is at most DEPENDENCE. The test treats them as independent draws.
"""

from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.exact.finite_chain import Places, Values

DEPENDENCE = 0.01
"""Maximum factor |lambda_2|^h between two states that are used one after the other."""
EXPECTED = 5
"""Minimum expected count of a cell of the test; rarer states share one cell."""


class Agreement(NamedTuple):
    """Comparison of sampled states with the exact distribution.

    draws: number of states. tv: total variation between the empirical distribution and the exact one; expected_tv: its
    mean for as many independent draws of the exact one. chi_square, dof, p_value: Pearson's test. None with the reason.
    """

    draws: int
    tv: float | None
    expected_tv: float | None
    chi_square: float | None
    dof: int | None
    p_value: float | None
    reason: str | None


def spacing(modulus: float) -> int | None:
    """The smallest h >= 1 with |lambda_2|^h <= DEPENDENCE, in steps; None for |lambda_2| = 1.

    >>> spacing(0.728957)
    15
    """
    if modulus >= 1:
        return None
    return max(1, ceil(log(DEPENDENCE) / log(modulus))) if modulus > 0 else 1


def thinned(steps: NDArray[np.int64], apart: int, at_changes: bool) -> Places:
    """Indices of the states to use, `apart` steps or more from the start and from each other; steps: ascending.

    at_changes: whether states are recorded only at changes: the state of any step is then the last recorded one, and
    may be used more than once.

    >>> thinned(np.array([0, 4, 8, 12, 16]), 5, False), thinned(np.array([0, 4, 16]), 5, True)
    (array([2, 4]), array([1, 1, 1]))
    """
    if at_changes:
        times = np.arange(apart, steps[-1] + 1, apart)
        return np.asarray(np.searchsorted(steps, times, side="right") - 1, dtype=np.int64)
    chosen, last = [], 0
    for k, step in enumerate(steps.tolist()):
        if step >= last + apart:
            chosen.append(k)
            last = step
    return np.array(chosen, dtype=np.int64)


def agreement(counts: Places, law: Values) -> Agreement:
    """Compare counts of states, (S,), with their exact distribution, (S,).

    expected_tv uses de Moivre's exact mean of |X - N p|. Cells that expect fewer than EXPECTED are pooled.
    """
    from scipy.stats import binom, chisquare

    draws = int(counts.sum())
    if not draws:
        return Agreement(0, None, None, None, None, None, "no state is far enough from its start")
    tv = 0.5 * float(np.abs(counts / draws - law).sum())
    k = np.floor(draws * law) + 1
    expected_tv = float((k * (1 - law) * binom.pmf(k, draws, law)).sum()) / draws
    observed, expected = _pooled(counts, law * draws)
    if len(expected) < 2:
        return Agreement(draws, tv, expected_tv, None, None, None, f"{draws} states are too few for a test")
    test = chisquare(observed, expected * (observed.sum() / expected.sum()))  # scipy asks for equal sums to 1e-8
    return Agreement(draws, tv, expected_tv, float(test.statistic), len(expected) - 1, float(test.pvalue), None)


def _pooled(counts: Places, expected: Values) -> tuple[Values, Values]:
    """Cells that expect EXPECTED or more: one per frequent state, and one for the others."""
    order = np.argsort(-expected, kind="stable")
    frequent = int((expected >= EXPECTED).sum())
    if frequent < len(order) and expected[order[frequent:]].sum() < EXPECTED:
        frequent -= 1
    if frequent < 1:
        return np.empty(0), np.empty(0)
    cells = np.minimum(np.arange(len(order)), frequent)
    return (np.asarray(np.bincount(cells, weights=counts[order]), dtype=np.float64),
            np.asarray(np.bincount(cells, weights=expected[order]), dtype=np.float64))
