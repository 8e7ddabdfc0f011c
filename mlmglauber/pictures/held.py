"""What is kept of records until they are drawn: no more than a picture can show, whatever the input."""

from collections.abc import Hashable
from typing import Any


class Held:
    """Lists of items by key, at most `limit` items in all.

    When there are more, every second item of each list goes, and of what comes only each second, fourth, ... is kept:
    an even sample of each list, its first item always in it. Keys beyond a tenth of the limit are left out.

    >>> held = Held(4)
    >>> for k in range(20): held.add("a", k)
    >>> held.lists, held.stride
    ({'a': [0, 8, 16]}, 8)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lists: dict[Hashable, list[Any]] = {}
        self.stride = 1
        self.left_out = 0
        """Items of keys for which there was no room."""
        self._seen: dict[Hashable, int] = {}
        self._count = 0

    def add(self, key: Hashable, item: Any) -> None:
        """The next item of a key."""
        if key not in self.lists:
            if len(self.lists) >= max(1, self.limit // 10):
                self.left_out += 1
                return
            self.lists[key], self._seen[key] = [], 0
        if self._seen[key] % self.stride == 0:
            self.lists[key].append(item)
            self._count += 1
        self._seen[key] += 1
        while self._count > self.limit:
            self.stride *= 2
            self.lists = {key: items[::2] for key, items in self.lists.items()}
            self._count = sum(map(len, self.lists.values()))
