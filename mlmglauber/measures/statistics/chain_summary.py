"""A short summary of written states: how many there are, and how far chains are from their first state."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


class WrittenChain:
    """Counts the written states of one chain; holds two of them."""

    def __init__(self, step: int, ids: Ids) -> None:
        self.first = self.last = ids
        self.step, self.count, self.moves = step, 1, 0
        self.pll: float | None = None
        """Pseudo-log-likelihood a token, nats, of the last state that has one."""

    def take(self, step: int, ids: Ids) -> None:
        """The next state."""
        self.moves += not np.array_equal(ids, self.last)
        self.last, self.step = ids, step
        self.count += 1

    @property
    def distance(self) -> float:
        """Share of sites whose token is not that of the first written state."""
        return float((self.first != self.last).mean())


class Chains(NamedTuple):
    """Chains of one temperature and length.

    steps: number of steps that every chain made. moved: share of the states, first ones left out, that differ from the
    state before; None where each chain has one state. distance: mean share of sites at which the last state differs
    from the first. unmoved: number of chains whose states are all equal. pll: mean over the last states that have a
    pseudo-log-likelihood, in nats per token; None where no state has one.
    """

    chains: int
    steps: int
    states: int
    moved: float | None
    distance: float
    unmoved: int
    pll: float | None


def summarise(chains: Sequence[WrittenChain]) -> Chains:
    """The summary of one chain or more, all of one length."""
    later = sum(chain.count - 1 for chain in chains)
    plls = [chain.pll for chain in chains if chain.pll is not None]
    return Chains(len(chains), min(chain.step for chain in chains), sum(chain.count for chain in chains),
                  sum(chain.moves for chain in chains) / later if later else None,
                  float(np.mean([chain.distance for chain in chains])), sum(not chain.moves for chain in chains),
                  float(np.mean(plls)) if plls else None)
