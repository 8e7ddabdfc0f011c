"""H_{k:m} from runs of equal states, against its definition and against stationary laws that are solved."""

import numpy as np
import pytest
from oracles import random_chain, solved

from mlmglauber.measures.stationary.unbiased import PairPath, PairSums, Window, cost, estimate


def by_definition(x, y, window):
    """The mean of H_k ... H_m; x, y: h of all states, longer than any that is asked for; they agree at the end."""
    k, m, lag = window
    total = 0.0
    for first in range(k, m + 1):
        total += x[first]
        j = 1
        while first + j * lag < len(x):
            total += x[first + j * lag] - y[first + (j - 1) * lag]
            j += 1
    return total / (m - k + 1)


def generated(rng):
    """h along two chains of piecewise constant states that meet, and their meeting time."""
    lag = int(rng.integers(1, 8))
    k = int(rng.integers(0, 15))  # also before the lag
    window = Window(k, k + int(rng.integers(0, 30)), lag)
    meeting = lag + int(rng.integers(1, 60))
    end = max(meeting, window.m) + 1

    def path(length):
        changes = rng.random(length) < rng.choice([0.05, 0.5, 1.0])
        changes[0] = True
        return rng.normal(size=length)[np.cumsum(changes) - 1]

    x = path(end + 20 * lag)
    y = np.concatenate([path(meeting - lag), x[meeting:]])
    return window, x, y, meeting, end


def changes(path, rng, meeting):
    """(step, h) where h changes and at the meeting; a state may be written again."""
    return [(step, h) for step, h in enumerate(path)
            if step in (0, meeting) or h != path[step - 1] or rng.random() < 0.2]


@pytest.mark.parametrize("seed", range(60))
def test_a_path_read_once_gives_the_definition(seed):
    rng = np.random.default_rng(seed)
    window, x, y, meeting, end = generated(rng)
    sums = PairSums(window, 2)
    path = PairPath(window, sums.spend)
    met = meeting - window.lag
    runs = [changes(x[:end], rng, meeting), changes(y[: met + 1], rng, met)]
    while any(runs):  # in any number of calls, the chains in any order
        chain = int(rng.integers(0, 2))
        count = int(rng.integers(1, 9))
        part, runs[chain] = runs[chain][:count], runs[chain][count:]
        if part:
            take, known = (path.lead, meeting) if chain == 0 else (path.follow, met)
            values = np.array([[h, 1.0] for _, h in part])
            take(np.array([step for step, _ in part]), [values], known if part[-1][0] >= known else None)
    assert path.finish(end - 1) == meeting
    assert path.at_meeting[0][0].tolist() == path.at_meeting[1][0].tolist()
    found = sums.unbiased
    assert found[0] == pytest.approx(by_definition(x, y, window), abs=1e-10)
    assert found[1] == pytest.approx(1.0, abs=1e-12)  # a constant function is estimated without error


def test_a_window_is_checked_and_an_unfinished_pair_has_no_estimate():
    for window in (Window(-1, 5, 2), Window(6, 5, 2), Window(3, 3, 0)):
        with pytest.raises(ValueError, match="lag"):
            window.checked()
    sums = PairSums(Window(2, 5, 2), 1)
    path = PairPath(Window(2, 5, 2), sums.spend)
    path.lead(np.array([0]), [np.ones((1, 1))])
    path.follow(np.array([0]), [np.ones((1, 1))])
    with pytest.raises(ValueError, match="not met"):
        path.finish(10)
    path.lead(np.array([4]), [np.ones((1, 1))], 4)
    with pytest.raises(ValueError, match="not met"):
        path.finish(10)
    path.follow(np.array([2]), [np.ones((1, 1))], 2)
    with pytest.raises(ValueError, match="before m"):
        path.finish(4)
    assert path.finish(5) == 4


@pytest.mark.parametrize(("seed", "shape"), [(1, (3, 3)), (2, (2, 2, 2)), (3, (2, 3, 2, 2))])
def test_estimates_lie_about_the_solved_law(seed, shape):
    """Incompatible conditionals, all starts at state 0: 30 estimates of 200 pairs each.

    Of 30 intervals of 95 %, at least 24 hold the truth (a correct interval fails this once in 1,400 runs); the plain
    averages, which begin at step 1, miss it by more than four of their standard errors.
    """
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, shape, 1.5, 1.0)
    kernel, law = chain.dense(), solved(chain).law
    h = rng.normal(size=chain.states)
    truth, window = float(law @ h), Window(1, 4, 1)
    cumulative = kernel.cumsum(axis=1)
    inside, plains = 0, []
    for _ in range(30):
        unbiased, plain, costs = [], [], []
        for _ in range(200):
            xs, ys = [0, int(np.searchsorted(cumulative[0], rng.random()))], [0]
            while xs[-1] != ys[-1]:
                x, y = coupled_step(kernel, xs[-1], ys[-1], rng)
                xs.append(x)
                ys.append(y)
            meeting = len(ys)
            while len(xs) <= window.m:
                xs.append(int(np.searchsorted(cumulative[xs[-1]], rng.random())))
            sums = PairSums(window, 1)
            path = PairPath(window, sums.spend)
            path.lead(np.arange(len(xs)), [h[xs][:, None]], meeting)
            path.follow(np.arange(len(ys)), [h[ys][:, None]], meeting - 1)
            path.finish(len(xs) - 1)
            unbiased.append(sums.unbiased[0])
            plain.append(sums.plain[0])
            costs.append(cost(window, meeting))
        found = estimate(np.array(unbiased), np.array(plain), costs, window.length)
        inside += found.low <= truth <= found.high
        plains.append(found.plain)
        assert found.inefficiency > 0
    assert inside >= 24
    assert abs(np.mean(plains) - truth) > 4 * np.std(plains, ddof=1) / 30**0.5


def coupled_step(kernel, x, y, rng):
    """One step of a maximal coupling of two rows."""
    both = np.minimum(kernel[x], kernel[y])
    if rng.random() < both.sum():
        token = int(rng.choice(len(both), p=both / both.sum()))
        return token, token
    rests = [np.maximum(kernel[row] - both, 0) for row in (x, y)]
    return tuple(int(rng.choice(len(rest), p=rest / rest.sum())) for rest in rests)


def test_how_many_pairs_a_wanted_error_needs():
    values = np.random.default_rng(1).normal(size=100)
    found = estimate(values, values, [10] * 100, 10)
    assert found.pairs_for(found.error) == 100
    assert found.pairs_for(found.error / 2) == 400
    alone = estimate(values[:1], values[:1], [10], 10)
    assert np.isnan(alone.error)
    assert alone.pairs_for(0.1) is None
