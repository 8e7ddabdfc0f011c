"""Conditionals that were computed and may be asked for again; the least recently used ones go when memory is full."""

from operator import itemgetter
from typing import Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from mlmglauber.dynamics.draws import TokenDraws
from mlmglauber.dynamics.token_distribution import TokenDistribution
from mlmglauber.models.blocks import BlockRows
from mlmglauber.models.conditionals import FILL, Draws, Ids

OVERHEAD = 400
"""Number of bytes that an entry takes beside its arrays."""
WORTH_KEEPING = 0.3
"""A conditional is kept where what is known of it answers the next draw with at least this chance."""

Key = tuple[Any, ...]
"""What a value depends on; the last part is a state or a context as bytes."""


def context_key(site: int, tau: float, ids: Ids, only: Ids | None = None) -> Key:
    """What a conditional depends on: the site, the temperature, the masked context, and the tokens it is restricted to.

    only: these tokens, None for all.
    """
    context = ids.copy()
    context[site] = FILL
    return conditional_key(site, tau, context.tobytes(), only)


def conditional_key(site: int, tau: float, context: bytes, only: Ids | None) -> Key:
    """As context_key, of a context that is masked already."""
    return (site, tau, context) if only is None else (site, tau, only.tobytes(), context)


class ConditionalCache:
    """Values by key, at most `limit` bytes of them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: LRUCache[Key, tuple[Any, int]] = LRUCache(limit, getsizeof=itemgetter(1))

    @property
    def size(self) -> int:
        """Number of bytes that the entries take."""
        return int(self._entries.currsize)

    def get(self, key: Key) -> Any:
        """The value, None where there is none."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: Key, value: Any, nbytes: int) -> None:
        """Keep a value of so many bytes; not one that is larger than the whole cache."""
        size = nbytes + len(key[-1]) + OVERHEAD
        if size <= self.limit:
            self._entries[key] = (value, size)
        else:
            self._entries.pop(key, None)

    def keep_drawn(self, draws: Draws, rows: BlockRows, drawn: TokenDraws, always: NDArray[np.bool_],
                   tolerance: float, level: int) -> None:
        """Keep the conditionals of draws that are likely to answer the next draw, and those with `always`.

        rows: what the model said of them, in precision `level`. always: (B,). tolerance: of that level, in nats. A cold
        conditional whose draw is not certain is not kept, nor one whose truncation is not.
        """
        old, cold = draws.old, draws.cold
        places = np.arange(len(old))
        beside = old // len(rows.inside[0])
        mass = rows.masses[places, rows.chosen] + np.where(beside != rows.chosen, rows.masses[places, beside], 0.0)
        kept = (always | (mass >= WORTH_KEEPING)) & drawn.finite & (drawn.certain | ~cold)
        kept &= rows.slack >= 2 * tolerance
        for k in np.flatnonzero(kept).tolist():
            tau = float(draws.taus[k])
            shift = 0.0 if cold[k] or not tolerance else tolerance / tau
            only = None if draws.only is None else draws.only[k]
            key = context_key(int(draws.sites[k]), tau, draws.ids[k][draws.ids[k] != FILL], only)
            known: TokenDistribution | None = self.get(key)
            if known is None or known.level != level:
                known = TokenDistribution(rows.masses[k], shift, level)
            known.learn(rows, k, int(old[k]))
            self.put(key, known, known.nbytes)
