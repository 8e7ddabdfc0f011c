"""Many chains at once: each its own state, place in time and random streams; their conditionals in shared batches.

This is the plain engine, one step of every chain a call, the reference for any faster one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mlmglauber.dynamics.glauber import NotFiniteError, scan_sites, step
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.models.conditionals import FILL, Conditional, Ids

AHEAD = 512
"""Sites and uniforms are drawn for so many steps at a time."""


class Move(NamedTuple):
    """One update of one chain: the site, the tokens before and after, their log-probabilities in nats."""

    site: int
    old: int
    new: int
    logp_old: float
    logp_new: float


class Chain:
    """One chain. `ids` and `step` are its present; site and uniform of any step are known beforehand."""

    def __init__(self, ids: Sequence[int], *, tau: float, seed: int, record: str, number: int, scan: str = "random",
                 frozen: Sequence[int] = (), step: int = 0) -> None:
        self.ids = np.array(ids, dtype=np.int64)
        self.tau, self.scan, self.step, self.number = tau, scan, step, number
        self.free = np.setdiff1d(np.arange(len(self.ids)), np.asarray(frozen, dtype=np.int64))
        self.broken: int | None = None
        """The site whose conditional was not finite: the chain cannot go on."""
        self._sites = Stream(seed, record, number, "site")
        self._tokens = Stream(seed, record, number, "token")
        self._start = self._end = step

    def plan(self) -> tuple[int, float]:
        """The site and the uniform of the next step."""
        if not self._start <= self.step < self._end:
            self._start, self._end = self.step, self.step + AHEAD
            self._planned_sites = scan_sites(self.scan, self._sites, self._start, AHEAD, self.free)
            self._planned_uniforms = self._tokens.uniforms(self._start, AHEAD)
        k = self.step - self._start
        return int(self._planned_sites[k]), float(self._planned_uniforms[k])


def stack(states: Sequence[Ids]) -> Ids:
    """States of several lengths as one (B, n) array, shorter ones filled up with FILL on the right."""
    width = max(map(len, states))
    rows = np.full((len(states), width), FILL, dtype=np.int64)
    for row, ids in zip(rows, states, strict=True):
        row[: len(ids)] = ids
    return rows


def advance(conditional: Conditional, chains: Sequence[Chain], rows: int = 64) -> list[Move | None]:
    """One step of every chain, at most `rows` conditionals a call; None for a chain that broke (see Chain.broken).

    Chains of like length share a call. A chain's moves do not depend on the company it keeps.
    """
    moves: list[Move | None] = [None] * len(chains)
    order = sorted((k for k, chain in enumerate(chains) if chain.broken is None), key=lambda k: len(chains[k].ids))
    while order:
        batch = order[:rows]
        present = [chains[k] for k in batch]
        plans = [chain.plan() for chain in present]
        sites = np.array([site for site, _ in plans])
        try:
            _, update = step(conditional, stack([chain.ids for chain in present]), sites,
                             np.array([uniform for _, uniform in plans]), np.array([chain.tau for chain in present]))
        except NotFiniteError as error:  # nothing has moved yet: the others of the batch try again without it
            present[error.row].broken = int(sites[error.row])
            order.remove(batch[error.row])
            continue
        for k, chain, *move in zip(batch, present, *(column.tolist() for column in update), strict=True):
            moves[k] = Move(*move)
            chain.ids[moves[k].site] = moves[k].new
            chain.step += 1
        order = order[rows:]
    return moves
