"""The fields that mlm-score adds to a record."""

from collections.abc import Iterable, Sequence
from math import inf, isfinite
from typing import Any

from mlmglauber.commands.shared.inputs import SCORE_FIELDS
from mlmglauber.commands.shared.nullable import nullable
from mlmglauber.measures.score.text_score import TextScore, by_word
from mlmglauber.models.conditionals import TextModel
from mlmglauber.stream.records import Record

MASKED = "masked sites: no text"
NEVER = "a token of the text has probability 0"
NO_BEGINNING = "the model has no token to begin a text with, and so no score of a single token"


def scored(record: Record, fields: Record) -> Record:
    """A record with the fields of its score in the place of those of an earlier one, as of mlm-sample --pll."""
    replaced = SCORE_FIELDS if "scorer" in record else {f"{name}_reason" for name in fields}
    return {key: value for key, value in record.items() if key not in replaced} | fields


def masked_fields(scorer: str, causal: bool) -> Record:
    """The fields of a state with masked sites, which has no score."""
    return {"scorer": scorer} | nullable("log_likelihood" if causal else "pll", None, MASKED)


def score_fields(scorer: str, model: TextModel, ids: Sequence[int], score: TextScore, by: str,
                 within_word: bool) -> Record:
    """The fields of the score of a text. scorer: the run that scored it. by: "token", "word" or "text"."""
    causal = model.has_joint
    names = ("log_likelihood", "perplexity", "word_perplexity") if causal else (
        "pll", "pseudo_perplexity", "word_pseudo_perplexity")
    reason = NEVER if score.tokens else NO_BEGINNING
    fields: Record = {"scorer": scorer, "scored_tokens": score.tokens, "scored_words": score.scored_words}
    fields |= nullable(names[0], score.total, reason)
    if within_word and not causal:
        fields |= nullable("pll_within_word", score.total_within_word,
                           NEVER if score.logp_within_word is not None else "the model has no mask token")
    too_large = "it is larger than any number of double precision" if isfinite(score.total) else reason
    fields |= nullable(names[1], score.perplexity, too_large) | nullable(names[2], score.word_perplexity, too_large)
    fields |= nullable("margin", score.margin, "no other token is allowed" if score.margin == inf else reason)
    if by == "token":
        fields["token_scores"] = {"pieces": model.pieces(ids)} | _lists(score)
    elif by == "word":
        words = [model.decode(list(ids[first:last])).strip() for first, last in score.words]
        fields["word_scores"] = {"words": words} | _lists(by_word(score))
    return fields


def _lists(scores: Any) -> Record:
    """The lists of a TextScore or of WordScores; null where a number is not finite, and the rank of such a token."""
    finite = [isfinite(logp) for logp in scores.logp.tolist()]
    lists: Record = {"logp": _finite(scores.logp)}
    if scores.logp_within_word is not None:
        lists["logp_within_word"] = _finite(scores.logp_within_word)
    ranks = zip(scores.rank.tolist(), finite, strict=True)
    return lists | {"gamma": _finite(scores.gamma), "rank": [rank if known else None for rank, known in ranks]}


def _finite(values: Any) -> Iterable[float | None]:
    return [value if isfinite(value) else None for value in values.tolist()]
