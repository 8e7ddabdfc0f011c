"""Scores many texts together: equal texts and equal contexts once, texts of similar length in shared batches."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.cache import Key, context_key
from mlmglauber.measures.score.text_score import Spans, TextScore
from mlmglauber.models.conditionals import FILL, Conditional, Ids, TextModel, stack
from mlmglauber.models.token_scores import TokenScores
from mlmglauber.models.words import word_spans

ELEMENTS = 1 << 22
"""Maximum number of tokens of all contexts that are held together: 32 MiB."""
BATCHES = 8
"""Number of batches of contexts between two calls of `advance`."""

Advance = Callable[[int], None]
"""Takes the number of contexts that were computed."""


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


def score_texts(model: TextModel, texts: Sequence[Ids], word_l2r: bool = True,
                advance: Advance = lambda count: None) -> list[TextScore]:
    """The scores of texts, in their order.

    texts: (n,) token ids of each. word_l2r: whether to compute logp_word_l2r, which takes a further context for each
    token of a word but its last one; it is None for a causal model, and for a model without a mask token if a word has
    several tokens. advance: called with numbers of contexts, or of tokens of a causal model, whenever some are scored.
    """
    different = {tuple(ids.tolist()): ids for ids in texts}
    scores: dict[tuple[int, ...], TextScore] = {}
    for group in _groups(sorted(different.values(), key=len)):
        score_group = _score_from_left if model.has_joint else _score_masked
        words = [word_spans(model, ids.tolist()) for ids in group]
        for ids, score in zip(group, score_group(model, group, words, word_l2r, advance), strict=True):
            scores[tuple(ids.tolist())] = score
    return [scores[tuple(ids.tolist())] for ids in texts]


def contexts_of(words: Spans, word_l2r: bool) -> int:
    """Number of contexts of a text under a masked model.

    >>> contexts_of([(0, 1), (1, 4)], True), contexts_of([(0, 1), (1, 4)], False)
    (6, 4)
    """
    return words[-1][1] + word_l2r * sum(last - first - 1 for first, last in words)


def _groups(texts: Sequence[Ids]) -> Iterator[list[Ids]]:
    """Texts in groups of at most ELEMENTS tokens in n contexts of each; a longer text is a group of its own."""
    group: list[Ids] = []
    elements = 0
    for ids in texts:
        if group and elements + len(ids) ** 2 > ELEMENTS:
            yield group
            group, elements = [], 0
        group.append(ids)
        elements += len(ids) ** 2
    if group:
        yield group


def _score_masked(model: TextModel, texts: Sequence[Ids], words: Sequence[Spans], word_l2r: bool,
                  advance: Advance) -> Iterator[TextScore]:
    contexts, mask = _Contexts(), model.mask_id
    asked: list[list[tuple[int, int]]] = []
    asked_l2r: list[list[tuple[int, int]] | None] = []
    for ids, spans in zip(texts, words, strict=True):
        asked.append([contexts.ask(ids, site) for site in range(len(ids))])
        if not word_l2r or (mask is None and len(spans) < len(ids)):
            asked_l2r.append(None)
            continue
        places = list(asked[-1])
        for first, last in spans:
            for site in range(first, last - 1):
                assert mask is not None
                masked = ids.copy()
                masked[site + 1 : last] = mask
                places[site] = contexts.ask(masked, site)
        asked_l2r.append(places)
    answers = contexts.answer(model, advance)
    for places, places_l2r, spans in zip(asked, asked_l2r, words, strict=True):
        at = tuple(np.transpose(places))
        logp = answers.logp[at]
        l2r = None if places_l2r is None else answers.logp[tuple(np.transpose(places_l2r))]
        broken = np.isnan(logp) if l2r is None else np.isnan(logp) | np.isnan(l2r)
        yield TextScore(logp, l2r, answers.gamma[at], answers.rank[at], spans, _first(broken))


def _score_from_left(model: TextModel, texts: Sequence[Ids], words: Sequence[Spans], word_l2r: bool,
                     advance: Advance) -> Iterator[TextScore]:
    skipped = 0 if len(model.prefix) else 1
    size = BATCHES * model.rows
    for start in range(0, len(texts), size):
        piece = slice(start, start + size)
        scores = model.left_scores(stack(texts[piece]))
        for k, (ids, spans) in enumerate(zip(texts[piece], words[piece], strict=True)):
            at = k, slice(len(ids))
            broken = np.isnan(scores.logp[at])
            broken[:skipped] = False
            yield TextScore(scores.logp[at], None, scores.gamma[at], scores.rank[at], spans, _first(broken))
        advance(sum(map(len, texts[piece])))


def _first(broken: NDArray[np.bool_]) -> int | None:
    """The first site that is broken, None where none is."""
    return int(broken.argmax()) if broken.any() else None
