"""Learns from texts and their token ids which word each id is, without the model's tokenizer."""

import re
from collections import Counter

from mlmglauber.pictures.reading import BROKEN

VOTES = 3
"""Number of texts that decide about an id."""
PENDING = 400
"""Maximum number of texts that are kept to be read again when more words are known."""
PASSES = 5
"""Maximum number of times that they are read again."""


class TokenWords:
    """The words of token ids.

    Where a text has as many words, or as many letters, as tokens, they belong together one by one. In other texts the
    known words say where the others are. A word whose pieces no text shows apart is labelled with its parts.

    >>> words = TokenWords()
    >>> words.learn([1, 2, 7, 8, 3], "the cat napped sat")
    >>> words.learn([1, 2, 9, 3], "the cat dog sat")
    >>> words.settle()
    >>> [words[k] for k in (1, 9, 7, 8, 4)]
    ['the', 'dog', 'napped 1/2', 'napped 2/2', '#4']
    """

    def __init__(self) -> None:
        self._votes: dict[int, Counter[str]] = {}
        self._pending: dict[tuple[int, ...], str] = {}
        self._parts: dict[int, str] = {}

    def learn(self, ids: list[int], text: str) -> None:
        """Learn from one text."""
        if all(self._decided(token) for token in ids):
            return
        for parts in (text.split(), re.findall(r"\w+|[^\w\s]", text), "".join(text.split())):
            if len(parts) == len(ids):
                for token, word in zip(ids, parts, strict=True):
                    self._vote(token, word)
                return
        if len(self._pending) < PENDING:
            self._pending[tuple(ids)] = text

    def settle(self) -> None:
        """Learn from the texts that were kept."""
        for _ in range(PASSES):
            known = len(self._votes)
            for ids, text in self._pending.items():
                self._between(ids, text)
            if len(self._votes) == known:
                return

    def _between(self, ids: tuple[int, ...], text: str) -> None:
        """Learn the tokens between those that are known."""
        runs: list[list[int]] = []
        pattern = ""
        for token in ids:
            if token in self._votes:
                pattern += rf"\s*{re.escape(self[token])}"
                runs.append([])
            elif runs and runs[-1]:
                runs[-1].append(token)
            else:
                pattern += r"\s*(.+?)"
                runs.append([token])
        unknown = [run for run in runs if run]
        found, other = (re.fullmatch(each, text.strip()) for each in (pattern, pattern.replace("(.+?)", "(.+)")))
        if not unknown or len(unknown) == len(runs) or found is None or other is None:
            return
        for run, inner, outer in zip(unknown, found.groups(), other.groups(), strict=True):
            words = inner.split()
            if inner.strip() != outer.strip() or not words:
                continue
            if len(words) == len(run):
                for token, word in zip(run, words, strict=True):
                    self._vote(token, word)
            elif len(words) == 1:
                for k, token in enumerate(run):
                    self._parts.setdefault(token, f"{words[0]} {k + 1}/{len(run)}")

    def _decided(self, token: int) -> bool:
        return token in self._votes and self._votes[token].total() >= VOTES

    def _vote(self, token: int, word: str) -> None:
        if BROKEN not in word and not self._decided(token):
            self._votes.setdefault(token, Counter())[word] += 1

    def __getitem__(self, token: int) -> str:
        """The word of an id; its number after # where no text tells the word."""
        if token in self._votes:
            return self._votes[token].most_common(1)[0][0]
        return self._parts.get(token, f"#{token}")
