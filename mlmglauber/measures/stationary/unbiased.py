"""Unbiased estimates of stationary expectations from pairs of chains with a lag.

A chain X runs L steps ahead of a chain Y; both have the same start distribution and the same kernel, and X_t = Y_{t-L}
for all t >= T, their meeting time. For every step l, with h the function whose stationary mean is wanted,

    H_l = h(X_l) + sum_{j >= 1} ( h(X_{l+jL}) - h(Y_{l+(j-1)L}) )

has the stationary mean as its expectation; H_{k:m} is the mean of H_k ... H_m (Jacob, O'Leary and Atchade 2020, JRSS B
82, 543-600; with a lag, Biswas, Jacob and Vanetti 2019). Collected by states this is

    H_{k:m} = 1/(m-k+1) ( sum_{l=k}^{m} h(X_l) + sum_{l=k+L}^{T-1} c_l ( h(X_l) - h(Y_{l-L}) ) ),
    c_l = floor((l-k)/L) - max(1, ceil((l-m)/L)) + 1.

The weights depend on k, m, L and l alone, so a path is read once and no state is kept.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Steps = NDArray[np.int64]
Values = NDArray[np.float64]
States = Sequence[NDArray[Any]]
"""What is known of J states: arrays whose first axis has length J."""


class Window(NamedTuple):
    """k and m of H_{k:m} and the lag L, in steps."""

    k: int
    m: int
    lag: int

    def checked(self) -> "Window":
        """This window; ValueError unless 0 <= k <= m and 1 <= L."""
        if not (0 <= self.k <= self.m and self.lag >= 1):
            raise ValueError(f"k {self.k}, m {self.m} and lag {self.lag}: k <= m and a lag of at least 1 are needed")
        return self

    @property
    def length(self) -> int:
        """m - k + 1, the number of steps that are averaged."""
        return self.m - self.k + 1

    def averaged(self, step: Any) -> Any:
        """Number of the steps k ... m that come before a step, or before each of an array of steps."""
        return np.clip(step - self.k, 0, self.length)

    def corrected(self, step: Any) -> Any:
        """sum of c_l over l < step, the weights of the differences before a step, or before each of an array of steps.

        >>> window = Window(k=2, m=5, lag=2)
        >>> np.diff(window.corrected(np.arange(2, 13))).tolist()
        [0, 0, 1, 1, 2, 2, 2, 2, 2, 2]
        """
        return _floors(step - self.k, self.lag) - _floors(step - 1 - self.m, self.lag)


def _floors(count: Any, lag: int) -> Any:
    """floor(0 / lag) + floor(1 / lag) + ... + floor((count - 1) / lag); 0 for count < 1."""
    whole, rest = np.divmod(np.maximum(count, 0), lag)
    return whole * (whole - 1) // 2 * lag + whole * rest


class PairPath:
    """The time that each state of a pair counts for; a state stays until the next one of its chain.

    Give the states of X with `lead` and those of Y with `follow`, each in the order of the steps, in as many calls as
    you like; then call `finish`. spend: called with J states, (J,) the number of the steps k ... m in which X was in
    each, and (J,) its weight in the correction, negative for a state of Y.
    """

    def __init__(self, window: Window, spend: Callable[[States, Steps, Steps], None]) -> None:
        self.window, self._spend = window, spend
        self.meetings: list[int | None] = [None, None]
        """The meeting as the states of X and those of Y show it, in steps of X."""
        self.at_meeting: list[States | None] = [None, None]
        """X and Y at their meeting: the same state."""
        self._last: list[tuple[int, States] | None] = [None, None]

    def lead(self, steps: Steps, states: States, meeting: int | None = None) -> None:
        """States of X, each from a step of `steps` (J,) on.

        meeting: the one of these steps, or of earlier calls, from which on X_t = Y_{t-L}.
        """
        self._take(0, steps, states, meeting)

    def follow(self, steps: Steps, states: States, meeting: int | None = None) -> None:
        """States of Y, each from a step of Y on. meeting: the last of these steps, if the chains have met there."""
        self._take(1, steps + self.window.lag, states, None if meeting is None else meeting + self.window.lag)

    def _take(self, chain: int, steps: Steps, states: States, meeting: int | None) -> None:
        if meeting is not None and self.meetings[chain] is None:
            self.meetings[chain] = meeting
            place = int(np.searchsorted(steps, meeting))
            self.at_meeting[chain] = [part[place : place + 1] for part in states]
        last = self._last[chain]
        edges, rows = steps, [part[:-1] for part in states]
        if last is not None:
            edges = np.concatenate([[last[0]], steps])
            rows = [np.concatenate([before, part]) for before, part in zip(last[1], rows, strict=True)]
        self._last[chain] = int(steps[-1]), [part[-1:] for part in states]
        if len(edges) > 1:
            self._count(chain, edges, rows)

    def _count(self, chain: int, edges: Steps, rows: States) -> None:
        """Spend states that hold between the steps of X in `edges` (J + 1,)."""
        window, meeting = self.window, self.meetings[chain]
        corrected = np.diff(window.corrected(edges if meeting is None else np.minimum(edges, meeting)))
        if chain == 0:
            self._spend(rows, np.diff(window.averaged(edges)), corrected)
        else:
            self._spend(rows, np.zeros(len(corrected), dtype=np.int64), -corrected)

    def finish(self, end: int) -> int:
        """X is known to step `end`; the meeting. ValueError unless both chains have met at one step and end >= m."""
        first, second = self.meetings
        if first is None or first != second or end < self.window.m:
            raise ValueError("the pair has not met, or ends before m")
        for chain, last in enumerate(self._last):
            if last is not None:
                self._count(chain, np.array([last[0], max(end + 1, last[0])]), last[1])
        return first


class PairSums:
    """The sums of one pair for F functions h; the states of its path are one array, the (J, F) values of h."""

    def __init__(self, window: Window, functions: int) -> None:
        self.window = window
        self.average = np.zeros(functions)
        """sum of h(X_l) over k <= l <= m."""
        self.correction = np.zeros(functions)
        """sum of c_l (h(X_l) - h(Y_{l-L})) over k + L <= l < T."""

    def spend(self, states: States, average: Steps, corrected: Steps) -> None:
        """See PairPath."""
        self.average += average @ states[0]
        self.correction += corrected @ states[0]

    @property
    def unbiased(self) -> Values:
        """(F,) H_{k:m}, once the path of the pair is finished."""
        return np.asarray((self.average + self.correction) / self.window.length)

    @property
    def plain(self) -> Values:
        """(F,) the averages of X over k ... m, which keep a bias of the start."""
        return np.asarray(self.average / self.window.length)


def cost(window: Window, meeting: int) -> int:
    """Number of steps of a pair: L of X alone, two at a time until the meeting, then one chain to m.

    >>> cost(Window(k=10, m=100, lag=10), 25), cost(Window(k=10, m=20, lag=10), 25)
    (115, 40)
    """
    return window.lag + 2 * (meeting - window.lag) + max(0, window.m - meeting)


class StationaryEstimate(NamedTuple):
    """An estimate of one stationary mean from R independent pairs.

    mean: of H_{k:m}; error: its standard error; low, high: Student's 95 % interval. plain: mean of the averages of X
    over k ... m, which keeps a bias of the start, with its standard error. inefficiency: E[cost] Var(H_{k:m}), the
    asymptotic variance of the estimate in a fixed number of steps (Glynn and Whitt 1992), divided by that of averages
    of a stationary chain (Jacob, O'Leary and Atchade 2020 compare the two), here estimated as (m - k + 1) Var(plain
    average), which needs m - k much longer than the correlation time. It is 1 or somewhat more where pairs are as good
    as one long chain. NaN where there are too few pairs.
    """

    pairs: int
    mean: float
    error: float
    low: float
    high: float
    plain: float
    plain_error: float
    inefficiency: float

    def pairs_for(self, error: float) -> int | None:
        """Number of pairs in all that bring the standard error down to `error`; None where it is not known."""
        if not np.isfinite(self.error):
            return None
        return max(2, int(np.ceil(self.pairs * (self.error / error) ** 2)))


def estimate(unbiased: Values, plain: Values, costs: Sequence[int], length: int) -> StationaryEstimate:
    """Summarise R pairs. unbiased, plain: (R,) H_{k:m} and averages. costs: steps of each pair. length: m - k + 1."""
    return of_moments(len(unbiased), float(np.mean(unbiased)), _variance(unbiased), float(np.mean(plain)),
                      _variance(plain), float(np.mean(costs)), length)


def _variance(values: Values) -> float:
    """The variance of independent values; 0 where they differ by rounding alone."""
    if len(values) < 2 or np.ptp(values) <= 1e-12 * np.abs(values).max():
        return 0.0
    return float(np.var(values, ddof=1))


def of_moments(pairs: int, mean: float, spread: float, average: float, plain_spread: float, cost: float,
               length: int) -> StationaryEstimate:
    """Summarise R pairs from the means and variances over pairs of H_{k:m} and of the plain averages.

    cost: mean number of steps of a pair. length: m - k + 1.
    """
    from scipy.stats import t

    if pairs < 2:
        return StationaryEstimate(pairs, mean, np.nan, np.nan, np.nan, average, np.nan, np.nan)
    error = float(np.sqrt(spread / pairs))
    half = float(t.ppf(0.975, pairs - 1)) * error
    ratio = cost * spread / (plain_spread * length) if plain_spread > 0 else np.nan
    return StationaryEstimate(pairs, mean, error, mean - half, mean + half, average,
                              float(np.sqrt(plain_spread / pairs)), ratio)
