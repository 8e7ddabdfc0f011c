"""Finds which words of a text differ between two states of a chain."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import chain, compress, count
from operator import ne
from typing import Any, NamedTuple

from mlmglauber.stream.printable import printable

LONGEST_WORD = 24
"""Maximum number of letters of a text without spaces that is compared as one word; a longer one is cut into letters."""
JOINERS = "\u200c\u200d"
"""Zero-width characters that Persian words and emoji need; they move no cursor and reverse no text."""
PUNCTUATION = r"!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u205e\u3001-\u303f\uff01-\uff0f\uff1a-\uff20"
"""Characters that stand for themselves, as they do in the usual tokenizers."""
IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Letters that are words of their own, in texts without spaces."""
PART = re.compile(rf"( *)(\[[A-Z]+\]|<[a-z]+>|[{IDEOGRAPHS}]|(?:##)?[^ {PUNCTUATION}{IDEOGRAPHS}]+|[^ ])")
"""Spaces, then a special token such as [MASK], a word or a piece of one, or one other character."""


class Words(NamedTuple):
    """A text as the parts that are compared and coloured: words and punctuation, or single letters.

    gaps: the spaces before each part. ids: the token ids of the state, None where the record has none. one_each:
    whether there is one part for each token.
    """

    parts: list[str]
    gaps: list[str]
    ids: list[Any] | None
    one_each: bool

    def text(self, first: int = 0, end: int | None = None) -> str:
        """The text of the parts from `first` to `end` - 1, without the spaces before them."""
        return "".join(chain.from_iterable(zip(self.gaps[first:end], self.parts[first:end], strict=True))).lstrip(" ")


class WordChange(NamedTuple):
    """The parts `first` to `end` - 1 of a text, which stand in the place of `old`.

    gap: the spaces that stood before it. site: the site of the token that changed, None where the parts do not tell it.
    logp: the log-probability of the new token in nats, None where it is not known.
    """

    first: int
    end: int
    old: str
    gap: str
    site: int | None
    logp: float | None = None


def readable(text: str) -> str:
    r"""A text that may be written on a terminal: as `printable`, but with the joiners of Persian and of emoji.

    >>> readable("a\x1b[2J \u0645\u06cc\u200c\u062e")
    'a\\x1b[2J م\u06cc\u200cخ'
    """
    if text.isprintable():
        return text
    return "".join(c if c in JOINERS else printable(c) for c in text)


def words_of(text: str, ids: list[Any] | None) -> Words:
    """The parts of a text: words and punctuation; letters if it has no spaces and one letter a token, or many letters.

    >>> words_of("the cat.", [7, 8, 9]).parts, words_of("EVQL", [1, 2, 3, 4]).parts, words_of("played", [1, 2]).parts
    (['the', 'cat', '.'], ['E', 'V', 'Q', 'L'], ['played'])
    """
    text = readable(text)
    tokens = len(ids) if ids is not None else -1
    found = PART.findall(text)
    if len(found) == 1 and (len(text) == tokens or len(text) > LONGEST_WORD):
        letters = letters_of(text)
        return Words(letters, [""] * len(letters), ids, len(letters) == tokens)
    if len(found) != tokens and text.count(" ") + 1 == tokens:
        return Words(text.split(" "), [" "] * tokens, ids, True)
    return Words([part for _, part in found], [gap for gap, _ in found], ids, len(found) == tokens)


def letters_of(text: str) -> list[str]:
    r"""The letters of a text, each with its accents and joiners.

    >>> letters_of("ae\u0301") == ["a", "e\u0301"]
    True
    """
    if text.isascii():
        return list(text)
    from rich.cells import split_graphemes

    return [text[start:end] for start, end, _ in split_graphemes(text)[0]]


def changed_sites(old: Words, new: Words) -> list[int] | None:
    """The sites at which the token ids differ; None where the ids do not tell it."""
    if old.ids is None or new.ids is None or len(old.ids) != len(new.ids):
        return None
    return _unequal(old.ids, new.ids)


def changes_between(old: Words, new: Words) -> list[WordChange]:
    """The changes of the text, in its order, by sites where each part is a token, otherwise by comparing parts.

    A word that vanished is a change of no parts. A token that changed without changing the text is none.

    >>> changes_between(words_of("a cat sat", [1, 2, 3]), words_of("a dog sat", [1, 4, 3]))
    [WordChange(first=1, end=2, old='cat', gap=' ', site=1, logp=None)]
    >>> changes_between(words_of("he played on", [1, 2, 3, 4]), words_of("he plays on", [1, 2, 5, 4]))
    [WordChange(first=1, end=2, old='played', gap=' ', site=2, logp=None)]
    """
    a, b = old.parts, new.parts
    sites = changed_sites(old, new)
    if a == b:
        return []
    if len(a) == len(b):
        differing = _unequal(a, b)
        if old.one_each and new.one_each and sites is not None and set(differing) <= set(sites):
            return [WordChange(k, k + 1, a[k], old.gaps[k], k) for k in differing]
        if len(differing) <= len(sites or [0]):
            return list(_with_sites([(k, k + 1, k, k + 1) for k in differing], old, sites))
    return list(_with_sites(_spans(a, b), old, sites))


def _unequal(a: list[Any], b: list[Any]) -> list[int]:
    """The places at which two lists of one length differ."""
    return list(compress(count(), map(ne, a, b)))


def _with_sites(spans: Sequence[tuple[int, int, int, int]], old: Words,
                sites: list[int] | None) -> Iterator[WordChange]:
    """Changes at these spans (old first, old end, new first, new end); each has a site where the ids tell which."""
    for k, (low, high, first, end) in enumerate(spans):
        site = None
        if sites is not None and len(sites) in (1, len(spans)):
            site = sites[0] if len(sites) == 1 else sites[k]
        yield WordChange(first, end, old.text(low, high), old.gaps[low] if low < high else "", site)


def _spans(a: list[str], b: list[str]) -> list[tuple[int, int, int, int]]:
    """The spans in which two lists differ; what both begin and end with is removed first, since one span is usual."""
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    low, high = a[head : len(a) - tail], b[head : len(b) - tail]
    if len(low) <= 1 or len(high) <= 1:
        return [(head, head + len(low), head, head + len(high))]
    matcher = SequenceMatcher(None, low, high, autojunk=False)
    return [(head + i, head + j, head + k, head + m) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]
