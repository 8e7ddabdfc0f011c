"""Chains that are summarised together: groups of one law, and the chains in them that are independent."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Protocol, TypeVar


class NamedChain(Protocol):
    """A chain with its name; coupled: for a chain of a coupled pair, the text that the pair was made from."""

    run: str | None
    text: str | None
    coupled: str | None


Item = TypeVar("Item")
Named = TypeVar("Named", bound=NamedChain)


def grouped(chains: Iterable[Item], key: Callable[[Item], tuple[Any, ...]]) -> list[tuple[Any, list[Item]]]:
    """(key, chains) of each group; key: (law, numbers ...) of a chain.

    Groups are ordered by the first appearance of their law, then by the numbers; None comes last.

    >>> grouped([("b", 2), ("a", 1), ("b", 1)], lambda item: item)
    [(('b', 1), [('b', 1)]), (('b', 2), [('b', 2)]), (('a', 1), [('a', 1)])]
    """
    groups: dict[Any, list[Item]] = {}
    for chain in chains:
        groups.setdefault(key(chain), []).append(chain)
    laws = {law: place for place, law in enumerate(dict.fromkeys(group[0] for group in groups))}

    def order(item: tuple[Any, list[Item]]) -> tuple[Any, ...]:
        return laws[item[0][0]], *((part is None, part or 0) for part in item[0][1:])

    return sorted(groups.items(), key=order)


def independent(chains: Sequence[Named]) -> list[Named]:
    """The chains that are independent of each other: of two coupled chains the first."""
    by_text: dict[Hashable, Named] = {}
    for place, chain in enumerate(chains):
        by_text.setdefault(place if chain.coupled is None else (chain.run, chain.text), chain)
    return list(by_text.values())
