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


class Window(NamedTuple):
    """k and m of H_{k:m} and the lag L, in steps; k >= L, so that X is needed from step L on."""

    k: int
    m: int
    lag: int

    def checked(self) -> "Window":
        """This window; ValueError unless 1 <= L <= k <= m."""
        if not 1 <= self.lag <= self.k <= self.m:
            raise ValueError(f"lag {self.lag}, k {self.k} and m {self.m}: 1 <= lag <= k <= m is needed")
        return self

    @property
    def length(self) -> int:
        """m - k + 1, the number of steps that are averaged."""
        return self.m - self.k + 1

    def averaged(self, step: int) -> int:
        """Number of the steps k ... m that come before a step."""
        return min(max(step - self.k, 0), self.length)

    def corrected(self, step: int) -> int:
        """sum of c_l over l < step, the weights of the differences before a step.

        >>> window = Window(k=2, m=5, lag=2)
        >>> [window.corrected(step + 1) - window.corrected(step) for step in range(2, 12)]
        [0, 0, 1, 1, 2, 2, 2, 2, 2, 2]
        """
        return _floors(step - self.k, self.lag) - _floors(step - 1 - self.m, self.lag)


def _floors(count: int, lag: int) -> int:
    """floor(0 / lag) + floor(1 / lag) + ... + floor((count - 1) / lag); 0 for count < 1."""
    whole, rest = divmod(max(count, 0), lag)
    return whole * (whole - 1) // 2 * lag + whole * rest


class PairPath:
    """The time that each state of a pair counts for, from states that stay until the next one.

    Call `lead` for each state of X and `follow` for each state of Y, with the step of its chain from which the state
    holds, in the order of the steps; `meet` once, and `finish`. spend: called with a state, the number of the steps
    k ... m in which X was in it, and its weight in the correction, negative for a state of Y.
    """

    def __init__(self, window: Window, spend: Callable[[Any, int, int], None]) -> None:
        self.window, self._spend = window, spend
        self.meeting: int | None = None
        self._x: Any = None
        self._y: Any = None
        self._x_since = self._y_since = 0

    def lead(self, step: int, state: Any) -> None:
        """The state of X from a step on."""
        self._leave_x(step)
        self._x = state

    def follow(self, step: int, state: Any) -> None:
        """The state of Y from a step on, before the meeting."""
        self._leave_y(step + self.window.lag)
        self._y = state

    def meet(self, meeting: int) -> None:
        """The chains have met: X_t = Y_{t-L} from this step of X on."""
        self._leave_x(meeting)
        self._leave_y(meeting)
        self._y, self.meeting = None, meeting

    def finish(self, end: int) -> None:
        """X is known to step `end`. ValueError unless the pair has met and end >= m."""
        if self.meeting is None or end < self.window.m:
            raise ValueError("the pair has not met, or ends before m")
        self._leave_x(end + 1)

    def _leave_x(self, step: int) -> None:
        window = self.window
        if self._x is not None:
            average = window.averaged(step) - window.averaged(self._x_since)
            corrected = 0 if self.meeting is not None else window.corrected(step) - window.corrected(self._x_since)
            if average or corrected:
                self._spend(self._x, average, corrected)
        self._x_since = step

    def _leave_y(self, step: int) -> None:
        if self._y is not None:
            corrected = self.window.corrected(step) - self.window.corrected(self._y_since)
            if corrected:
                self._spend(self._y, 0, -corrected)
        self._y_since = step


class PairSums:
    """The sums of one pair for F functions h, of which a state of PairPath is the (F,) values."""

    def __init__(self, window: Window, functions: int) -> None:
        self.window = window
        self.average = np.zeros(functions)
        """sum of h(X_l) over k <= l <= m."""
        self.correction = np.zeros(functions)
        """sum of c_l (h(X_l) - h(Y_{l-L})) over k + L <= l < T."""

    def spend(self, values: NDArray[np.float64], average: int, corrected: int) -> None:
        """See PairPath."""
        if average:
            self.average += average * values
        if corrected:
            self.correction += corrected * values

    @property
    def unbiased(self) -> NDArray[np.float64]:
        """(F,) H_{k:m}, once the path of the pair is finished."""
        return np.asarray((self.average + self.correction) / self.window.length)

    @property
    def plain(self) -> NDArray[np.float64]:
        """(F,) the averages of X over k ... m, which keep a bias of the start."""
        return np.asarray(self.average / self.window.length)


def cost(window: Window, meeting: int) -> int:
    """Number of steps of a pair: L of X alone, two at a time until the meeting, then one chain to m.

    >>> cost(Window(k=10, m=100, lag=10), 25), cost(Window(k=10, m=20, lag=10), 25)
    (115, 40)
    """
    return window.lag + 2 * (meeting - window.lag) + max(0, window.m - meeting)


class Estimate(NamedTuple):
    """An estimate of one stationary mean from R independent pairs.

    mean: of H_{k:m}; error: its standard error; low, high: Student's 95 % interval. plain: mean of the averages of X
    over k ... m, which keeps a bias of the start, with its standard error. inefficiency: mean cost of a pair times
    Var(H), divided by (m - k + 1) Var(plain average): 1 or somewhat more where pairs are as good as one long chain
    (after Jacob, O'Leary and Atchade 2020, section 3). NaN where there are too few pairs.
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


def estimate(unbiased: NDArray[np.float64], plain: NDArray[np.float64], costs: Sequence[int],
             length: int) -> Estimate:
    """Summarise R pairs. unbiased, plain: (R,) H_{k:m} and averages. costs: steps of each pair. length: m - k + 1."""
    from scipy.stats import sem, t

    pairs = len(unbiased)
    mean, average = float(np.mean(unbiased)), float(np.mean(plain))
    if pairs < 2:
        return Estimate(pairs, mean, np.nan, np.nan, np.nan, average, np.nan, np.nan)
    error = float(sem(unbiased))
    half = float(t.ppf(0.975, pairs - 1)) * error
    spread = float(np.var(plain, ddof=1)) * length
    ratio = float(np.mean(costs)) * float(np.var(unbiased, ddof=1)) / spread if spread > 0 else np.nan
    return Estimate(pairs, mean, error, mean - half, mean + half, average, float(sem(plain)), ratio)
