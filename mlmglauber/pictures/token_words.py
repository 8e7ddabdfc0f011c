"""Learns from texts and their token ids which word each id is, without the model's tokenizer."""

import re
from collections import Counter

from mlmglauber.pictures.reading import BROKEN

VOTES = 3
"""Number of texts that decide about an id."""


class TokenWords:
    """The words of token ids.

    Where a text has as many words, or as many letters, as tokens, they belong together one by one. In another text the
    one token that is not known is what the known ones leave.

    >>> words = TokenWords()
    >>> words.learn([1, 2, 3], "the cat sat")
    >>> words.learn([1, 2, 7, 8, 3], "the cattle sat")
    >>> words.learn([1, 2, 7, 3], "the cattle sat")
    >>> words.learn([1, 2, 7, 8, 3], "the cattles sat")
    >>> [words[k] for k in (1, 7, 8, 9)]
    ['the', 'tle', 's', '#9']
    """

    def __init__(self) -> None:
        self._votes: dict[int, Counter[str]] = {}

    def learn(self, ids: list[int], text: str) -> None:
        """Learn from one text."""
        if all(self._decided(token) for token in ids):
            return
        for parts in (text.split(), re.findall(r"\w+|[^\w\s]", text), "".join(text.split())):
            if len(parts) == len(ids):
                for token, word in zip(ids, parts, strict=True):
                    self._vote(token, word)
                return
        unknown = {token for token in ids if token not in self._votes}
        if len(unknown) == 1 and ids.count(*unknown) == 1:
            at = ids.index(*unknown)
            rest = "".join(text.split())
            before, after = ("".join(self[token] for token in part) for part in (ids[:at], ids[at + 1 :]))
            middle = rest[len(before) : len(rest) - len(after)]
            if middle and rest == before + middle + after:
                self._vote(ids[at], middle)

    def _decided(self, token: int) -> bool:
        return token in self._votes and self._votes[token].total() >= VOTES

    def _vote(self, token: int, word: str) -> None:
        if BROKEN not in word and not self._decided(token):
            self._votes.setdefault(token, Counter())[word] += 1

    def __getitem__(self, token: int) -> str:
        """The word of an id; its number after # where no text tells the word."""
        return self._votes[token].most_common(1)[0][0] if token in self._votes else f"#{token}"
