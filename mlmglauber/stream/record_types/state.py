"""The state record: one state of a chain, and what filters add to it."""

from typing import Annotated, Literal, NotRequired, TypedDict

from mlmglauber.stream.record_types.fields import (
    Count,
    Digest,
    Ids,
    NonNegative,
    NotExact,
    Positive,
    SiteAllow,
    at_least,
    at_most,
    reason,
    rules,
)


class TokenScoreLists(TypedDict):
    """Scores of the tokens of a text by mlm-score, one item a token; log-probabilities and margins in nats."""

    pieces: list[str]
    logp: list[float | None]
    logp_within_word: NotRequired[list[float | None]]
    gamma: list[float | None]
    rank: list[int | None]


class WordScoreLists(TypedDict):
    """Scores of the words of a text by mlm-score --by word, one item a word."""

    words: list[str]
    logp: list[float | None]
    logp_within_word: NotRequired[list[float | None]]
    gamma: list[float | None]
    rank: list[int | None]


@rules({"dependentRequired": {"site": ["old", "new", "changed"], "logp_old": ["site", "logp_new"],
                              "basin": ["basin_p"]}})
class StateRecord(TypedDict):
    """Written by mlm-sample and by mlm-couple --every; log-probabilities in nats."""

    type: Literal["state"]
    run: Digest
    id: str
    chain: Count
    step: Count
    tau: NonNegative
    n: Positive
    text: str
    ids: Ids
    text_exact: NotRequired[NotExact]
    site: NotRequired[Count]
    old: NotRequired[Count]
    new: NotRequired[Count]
    changed: NotRequired[bool]
    logp_old: NotRequired[Annotated[float | None, reason("reason")]]
    logp_new: NotRequired[Annotated[float | None, reason("reason")]]
    pll: NotRequired[Annotated[float | None, reason("pll_reason")]]
    scorer: NotRequired[Digest]
    scored_tokens: NotRequired[Count]
    scored_words: NotRequired[Count]
    pll_within_word: NotRequired[Annotated[float | None, reason("pll_within_word_reason")]]
    pseudo_perplexity: NotRequired[Annotated[float | None, reason("pseudo_perplexity_reason")]]
    word_pseudo_perplexity: NotRequired[Annotated[float | None, reason("word_pseudo_perplexity_reason")]]
    log_likelihood: NotRequired[Annotated[float | None, reason("log_likelihood_reason")]]
    perplexity: NotRequired[Annotated[float | None, reason("perplexity_reason")]]
    word_perplexity: NotRequired[Annotated[float | None, reason("word_perplexity_reason")]]
    margin: NotRequired[Annotated[float | None, reason("margin_reason")]]
    token_scores: NotRequired[TokenScoreLists]
    word_scores: NotRequired[WordScoreLists]
    unknown: NotRequired[Positive]
    coupled: NotRequired[str]
    met: NotRequired[bool]
    allow: NotRequired[SiteAllow]
    masked: NotRequired[Positive]
    embedding: NotRequired[Annotated[list[float] | str | None, reason("embedding_reason")]]
    embedder: NotRequired[str | None]
    truncated: NotRequired[bool]
    text_tokens: NotRequired[Positive]
    drift: NotRequired[Annotated[float | None, at_least(0), at_most(2), reason("drift_reason")]]
    basin: NotRequired[Annotated[str | None, reason("basin_reason")]]
    basin_p: NotRequired[Annotated[float | None, at_least(0), at_most(1), reason("basin_p_reason")]]
