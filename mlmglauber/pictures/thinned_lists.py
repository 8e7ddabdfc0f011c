"""Lists of bounded size: what a picture keeps of its records until they are drawn."""

from collections.abc import Hashable
from typing import Any


class ThinnedLists:
    """Lists of items by key, with at most `limit` items in all.

    When there are more items, every second item of each list is dropped, and of later items only every second, then
    every fourth, ... is kept: each list is an even sample of its items that begins with the first one. There are at
    most limit / 10 keys; items of later keys are counted and dropped.

    >>> kept = ThinnedLists(4)
    >>> for k in range(20): kept.add("a", k)
    >>> kept.lists, kept.stride
    ({'a': [0, 8, 16]}, 8)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lists: dict[Hashable, list[Any]] = {}
        self.stride = 1
        """One item of a list is kept out of this number."""
        self.left_out = 0
        """Number of items whose key had no room."""
        self._seen: dict[Hashable, int] = {}
        self._count = 0

    def add(self, key: Hashable, item: Any) -> None:
        """Take the next item of a key."""
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

    def notes(self, name: str) -> list[str]:
        """What is not drawn, in sentences; name: of the kind of picture."""
        notes = []
        if self.stride > 1:
            notes.append(f"{name}: 1 in {self.stride} values of each series is drawn")
        if self.left_out:
            notes.append(f"{name}: only the first {len(self.lists)} series are drawn")
        return notes
