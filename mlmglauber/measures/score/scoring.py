"""Scores many texts together: equal texts and equal contexts once, texts of similar length in shared batches."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.cache import Key, context_key
from mlmglauber.measures.score.text_score import Spans, TextScore
from mlmglauber.models.conditionals import FILL, Conditional, Ids, TextModel, stack
from mlmglauber.models.token_scores import TokenScores

ELEMENTS = 1 << 22
"""Maximum number of tokens of all contexts that are held together: 32 MiB."""
BATCHES = 8
"""Number of batches of contexts between two calls of `advance`."""

Advance = Callable[[int], None]
"""Takes the number of contexts that were computed."""
Places = list[tuple[int, int]]
"""For each site, the row and the column of its score in what _Contexts.answer returns."""
_Text = tuple[Ids, Spans]


class _Contexts:
    """Masked contexts, each with the tokens whose scores it gives."""

    def __init__(self) -> None:
        self._places: dict[Key, int] = {}
        self._ids: list[Ids] = []
        self._sites: list[int] = []
        self._tokens: list[dict[int, int]] = []

    def __len__(self) -> int:
        return len(self._ids)

    def ask(self, ids: Ids, site: int) -> tuple[int, int]:
        """Ask for the score of the token at a site: its place in the result of `answer`."""
        key = context_key(site, 1.0, ids)
        place = self._places.setdefault(key, len(self._ids))
        if place == len(self._ids):
            self._ids.append(ids)
            self._sites.append(site)
            self._tokens.append({})
        tokens = self._tokens[place]
        return place, tokens.setdefault(int(ids[site]), len(tokens))

    def ask_text(self, ids: Ids, words: Spans, within_word: bool, mask: int | None) -> tuple[Places, Places | None]:
        """Ask for all scores of a text: the places of logp and of logp_within_word, None where it is not computed."""
        places = [self.ask(ids, site) for site in range(len(ids))]
        if not within_word:
            return places, None
        places_within = list(places)
        for first, last in words:
            for site in range(first, last - 1):
                if mask is None:
                    return places, None
                masked = ids.copy()
                masked[site + 1 : last] = mask
                places_within[site] = self.ask(masked, site)
        return places, places_within

    def answer(self, model: Conditional, advance: Advance) -> TokenScores:
        """The scores of all tokens that were asked for: row k holds those of the k-th context."""
        tokens = np.full((len(self), max(map(len, self._tokens))), FILL, dtype=np.int64)
        for row, asked in zip(tokens, self._tokens, strict=True):
            row[: len(asked)] = list(asked)
        sites, size = np.array(self._sites, dtype=np.int64), BATCHES * model.rows
        parts = []
        for start in range(0, len(self), size):
            piece = slice(start, start + size)
            parts.append(model.token_scores(stack(self._ids[piece]), sites[piece], tokens[piece]))
            advance(len(sites[piece]))
        return TokenScores(*map(np.concatenate, zip(*parts, strict=True)))


def score_texts(model: TextModel, texts: Sequence[Ids], words: Sequence[Spans], within_word: bool = True,
                advance: Advance = lambda count: None) -> list[TextScore]:
    """The scores of texts, in their order.

    texts: (n,) token ids of each. words: the sites of the words of each. within_word: whether to compute
    logp_within_word; it is None for a causal model, and for a model without a mask token if a word has several tokens.
    advance: called with numbers of contexts, or of tokens of a causal model, whenever some are scored.
    """
    different = {ids.tobytes(): (ids, spans) for ids, spans in zip(texts, words, strict=True)}
    scores: dict[bytes, TextScore] = {}
    for group in _groups(sorted(different.values(), key=lambda text: len(text[0]))):
        found = _score_from_left(model, group, advance) if model.has_joint else _score_masked(
            model, group, within_word, advance)
        for (ids, _), score in zip(group, found, strict=True):
            scores[ids.tobytes()] = score
    return [scores[ids.tobytes()] for ids in texts]


def conditionals_of(model: TextModel, words: Spans, within_word: bool) -> int:
    """Number of conditionals of a text: one a token, and of a masked model one more for each token before the last one
    of its word."""
    n = words[-1][1]
    return n if model.has_joint or model.mask_id is None or not within_word else 2 * n - len(words)


def different_conditionals(model: TextModel, texts: Sequence[Ids], words: Sequence[Spans], within_word: bool) -> int:
    """Number of conditionals that score_texts computes: equal contexts of masked models once, else equal texts."""
    different = {ids.tobytes(): (ids, spans) for ids, spans in zip(texts, words, strict=True)}
    if model.has_joint:
        return sum(len(ids) for ids, _ in different.values())
    contexts = _Contexts()
    for ids, spans in different.values():
        contexts.ask_text(ids, spans, within_word, model.mask_id)
    return len(contexts)


def _groups(texts: Sequence[_Text]) -> Iterator[list[_Text]]:
    """Texts in groups of at most ELEMENTS tokens in n contexts of each; a longer text is a group of its own."""
    group: list[_Text] = []
    elements = 0
    for text in texts:
        size = len(text[0]) ** 2
        if group and elements + size > ELEMENTS:
            yield group
            group, elements = [], 0
        group.append(text)
        elements += size
    if group:
        yield group


def _score_masked(model: TextModel, texts: Sequence[_Text], within_word: bool, advance: Advance) -> Iterator[TextScore]:
    contexts = _Contexts()
    asked = [contexts.ask_text(*text, within_word, model.mask_id) for text in texts]
    answers = contexts.answer(model, advance)
    for (places, places_within), (_, words) in zip(asked, texts, strict=True):
        at = tuple(np.transpose(places))
        logp = answers.logp[at]
        within = None if places_within is None else answers.logp[tuple(np.transpose(places_within))]
        broken = np.isnan(logp) if within is None else np.isnan(logp) | np.isnan(within)
        yield TextScore(logp, within, answers.gamma[at], answers.rank[at], words, _first(broken))


def _score_from_left(model: TextModel, texts: Sequence[_Text], advance: Advance) -> Iterator[TextScore]:
    skipped = 0 if len(model.prefix) else 1
    size = BATCHES * model.rows
    for start in range(0, len(texts), size):
        piece = texts[start : start + size]
        scores = model.left_scores(stack([ids for ids, _ in piece]))
        advance(sum(len(ids) for ids, _ in piece))
        for k, (ids, words) in enumerate(piece):
            at = k, slice(len(ids))
            broken = np.isnan(scores.logp[at])
            broken[:skipped] = False
            yield TextScore(scores.logp[at], None, scores.gamma[at], scores.rank[at], words, _first(broken))


def _first(broken: NDArray[np.bool_]) -> int | None:
    """The first site that is broken, None where none is."""
    return int(broken.argmax()) if broken.any() else None
