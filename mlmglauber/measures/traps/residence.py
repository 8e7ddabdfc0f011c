"""How long a chain held a state against how long it should: the geometric law of a stay.

A random-scan chain leaves a state x with the same chance e(x) in every step, whatever was before. So a stay, in steps
that are made from x, is geometric with mean 1 / e(x), and so is what is left of a stay that has lasted a while.
"""

from collections.abc import Sequence
from typing import NamedTuple

from mlmglauber.measures.statistics.intervals import Interval


class Holding(NamedTuple):
    """Steps made from a state, how many of them left it, and whether the last one of them did."""

    steps: int
    exits: int
    ends_by_exit: bool


class Beyond:
    """What happens at a state from a step on that was fixed in advance: the part of a stay that no choice has touched.

    A run that is followed around a state m was not chosen by what comes after step `begin`: until then it has lasted,
    and a run that does not come back to m afterwards adds nothing. So from `begin` on each step made from m leaves it
    with chance e(m), independently, and sum(steps) e(m) = E(exits) for all such runs together, however and whenever
    they end (optional stopping). Before `begin` that is not so: a run of many steps is one that happened to stay.
    """

    __slots__ = ("begin", "ends_by_exit", "exits", "steps")

    def __init__(self, begin: int) -> None:
        self.begin, self.steps, self.exits, self.ends_by_exit = begin, 0, 0, True

    def stay(self, since: int, steps: int, leaves: bool) -> None:
        """`steps` steps were made from the state, the first one from step `since`; `leaves`: the last one left it."""
        scored = min(steps, since + steps - self.begin)
        if scored > 0:
            self.steps += scored
            self.exits += leaves
            self.ends_by_exit = leaves

    @property
    def holding(self) -> Holding:
        return Holding(self.steps, self.exits, self.ends_by_exit)


def holding_ratio(holding: Holding, escape: float) -> Interval:
    """(steps / exits) * escape, with the exact (Clopper-Pearson) interval of the chance to leave.

    N steps with k exits: P(at least k exits in N steps) = 2.5 % gives the lowest chance; P(at most k - 1 exits in N - 1
    steps), or P(at most k in N) where the records end in the state, gives the highest.

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
    """Of several states together: (the exits that were expected, sum of steps * escape) / (those that were seen).

    The interval takes twice the sum for chi-square with twice the exits as degrees of freedom, two more at its low end
    for stays that the records cut off (Garwood 1936): exact for small escape probabilities, wide for large ones. It is
    over steps, not over texts: given the states, the steps beyond selection are independent trials of known chances,
    and a ratio that is not 1 says that they are not. So one text is enough, and texts do not cluster.

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
