"""What was computed and may be asked for again, the least lately used forgotten first when memory is full."""

from collections import OrderedDict
from typing import Any

from mlmglauber.dynamics.token_distribution import TokenDistribution
from mlmglauber.models.conditionals import FILL, Ids

OVERHEAD = 400
"""Bytes that an entry takes beside its arrays."""

Key = tuple[Any, ...]


def context_key(site: int, tau: float, ids: Ids) -> Key:
    """What a conditional depends on: the site, the temperature and the masked context."""
    context = ids.copy()
    context[site] = FILL
    return site, tau, context.tobytes()


class ConditionalCache:
    """Values by key, at most `limit` bytes of them."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self._held: OrderedDict[Key, tuple[Any, int]] = OrderedDict()

    def get(self, key: Key) -> Any:
        """The value, None where there is none."""
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def put(self, key: Key, value: Any, nbytes: int) -> None:
        """Keep a value of so many bytes."""
        size = nbytes + len(key[-1]) + OVERHEAD
        before = self._held.pop(key, None)
        self.size += size - (before[1] if before else 0)
        self._held[key] = (value, size)
        while self.size > self.limit and self._held:
            _, (_, forgotten) = self._held.popitem(last=False)
            self.size -= forgotten

    def distribution(self, site: int, tau: float, ids: Ids) -> TokenDistribution | None:
        """The conditional of a site in a state, None where it is not known."""
        found: TokenDistribution | None = self.get(context_key(site, tau, ids))
        return found

    def keep(self, site: int, tau: float, ids: Ids, distribution: TokenDistribution) -> None:
        """Keep a conditional."""
        self.put(context_key(site, tau, ids), distribution, distribution.nbytes)
