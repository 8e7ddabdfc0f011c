"""Counter-based streams: addressable, independent of each other, uniform, and the same for ever."""

import numpy as np
from scipy.stats import kstest

from mlmglauber.dynamics.randomness import Stream, drawn_seed

PINNED = [0.00031499657852218643, 0.912192359143013, 0.1660774644673143]


def test_any_part_of_a_stream_is_reached_directly():
    stream = Stream(3, "a", 2, "token")
    whole = stream.uniforms(0, 1000)
    for start, count in ((0, 1), (1, 3), (7, 9), (512, 488), (999, 1)):
        assert (stream.uniforms(start, count) == whole[start : start + count]).all()


def test_the_uniforms_never_change():
    """Pinned: a seed written in a paper gives the same chain in every later version."""
    assert Stream(1, "0", 0, "token").uniforms(0, 3).tolist() == PINNED


def test_every_part_of_the_name_matters():
    names = [(1, "0", 0, "site"), (2, "0", 0, "site"), (1, "1", 0, "site"), (1, "0", 1, "site"), (1, "0", 0, "token"),
             (1, "1", 12, "site"), (1, "11", 2, "site"), (11, "1", 2, "site"), (1, "", 0, "site"), (1, "é", 0, "site")]
    firsts = [Stream(*name).uniforms(0, 4).tobytes() for name in names]
    assert len(set(firsts)) == len(names)


def test_uniform_and_uncorrelated_over_chains():
    draws = np.array([Stream(9, "r", chain, "token").uniforms(0, 50) for chain in range(2000)])
    assert kstest(draws.ravel(), "uniform").pvalue > 1e-3
    neighbours = np.corrcoef(draws[:-1].ravel(), draws[1:].ravel())[0, 1]
    assert abs(neighbours) < 4 / np.sqrt(draws.size)
    assert ((draws >= 0) & (draws < 1)).all()
    assert ((draws * 2**53) % 1 == 0).all()


def test_drawn_seeds_differ_and_are_exact_in_json_readers():
    seeds = {drawn_seed() for _ in range(50)}
    assert len(seeds) == 50
    assert max(seeds) < 2**53
