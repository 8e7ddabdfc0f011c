"""Observed residence times of states against the geometric law.

A random-scan chain leaves a state x with the same probability e(x) in every step, whatever came before. The length of a
stay, in steps made from x, is therefore geometric with mean 1 / e(x), and so is the rest of a stay that has already
lasted for some steps.
"""

from collections.abc import Sequence
from typing import NamedTuple

from mlmglauber.measures.statistics.intervals import Interval


class Holding(NamedTuple):
    """Number of steps made from a state, how many of them left it, and whether the last of them did."""

    steps: int
    exits: int
    ends_by_exit: bool


class Beyond:
    """The steps made from a state after step `begin`, which is fixed in advance: they are free of selection.

    A run around a state m is selected because it lasts until step `begin`; what happens afterwards plays no part in the
    selection. From `begin` on, each step made from m leaves it with probability e(m), independently, so that sum(steps)
    e(m) = E(exits) over all such runs together, however and whenever they end (optional stopping). Steps before `begin`
    are biased: a run of many steps is one that happened to stay.
    """

    __slots__ = ("begin", "ends_by_exit", "exits", "steps")

    def __init__(self, begin: int) -> None:
        self.begin, self.steps, self.exits, self.ends_by_exit = begin, 0, 0, True

    def stay(self, since: int, steps: int, leaves: bool) -> None:
        """Count `steps` steps made from the state, the first from step `since`; leaves: whether the last left it."""
        scored = min(steps, since + steps - self.begin)
        if scored > 0:
            self.steps += scored
            self.exits += leaves
            self.ends_by_exit = leaves

    @property
    def holding(self) -> Holding:
        """The counts so far."""
        return Holding(self.steps, self.exits, self.ends_by_exit)


def holding_ratio(holding: Holding, escape: float) -> Interval:
    """Observed over expected mean stay, (steps / exits) * escape, with an exact (Clopper-Pearson) 95 % interval.

    For N steps with k exits, the smallest exit probability in the interval solves P(at least k exits in N steps) = 2.5
    %; the largest solves P(at most k - 1 exits in N - 1 steps) = 2.5 %, or P(at most k in N) = 2.5 % where the records
    end in the state.

    >>> found = holding_ratio(Holding(100, 1, True), 0.01)
    >>> found.value, round(found.low, 3), round(found.high, 2)
    (1.0, 0.273, 39.5)
    """
    from scipy.stats import beta

    steps, exits, ends_by_exit = holding
    if escape <= 0:
        return Interval(None, None, None, "the state is never left")
    if steps < 1:
        return Interval(None, None, None, "no step was made from it")
    low_chance = float(beta.ppf(0.025, exits, steps - exits + 1)) if exits else 0.0
    more = 0 if ends_by_exit else 1
    high_chance = float(beta.ppf(0.975, exits + more, steps - exits)) if steps > exits else 1.0
    low, high = escape / high_chance, escape / low_chance if low_chance else None
    if not exits:
        return Interval(None, low, None, "it was not left")
    return Interval(steps / exits * escape, low, high, None)


def pooled_ratio(holdings: Sequence[Holding], escapes: Sequence[float]) -> Interval:
    """Expected over observed exits of several states together: sum of steps * escape / number of exits.

    The 95 % interval treats twice the expected number as chi-square with twice the exits as degrees of freedom, two
    more at its low end where the records cut a stay off (Garwood 1936); it is exact for small escape probabilities and
    wide for large ones. It is over steps, not over texts: given the states, these steps are independent trials of known
    probabilities, and a ratio other than 1 says that they are not. One text is therefore enough.

    >>> pooled_ratio([Holding(100, 1, True), Holding(300, 1, True)], [0.01, 0.01]).value
    2.0
    """
    from scipy.stats import chi2

    expected = sum(holding.steps * escape for holding, escape in zip(holdings, escapes, strict=True))
    exits = sum(holding.exits for holding in holdings)
    if expected <= 0:
        return Interval(None, None, None, "no exit was expected")
    more = 0 if all(holding.ends_by_exit for holding in holdings) else 2
    low = 2 * expected / float(chi2.ppf(0.975, 2 * exits + more)) if exits or more else None
    if not exits:
        return Interval(None, low, None, "none was left")
    return Interval(expected / exits, low, 2 * expected / float(chi2.ppf(0.025, 2 * exits)), None)
