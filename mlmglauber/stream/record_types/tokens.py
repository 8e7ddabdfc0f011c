"""The tokens record: how a model divides a text into sites."""

from typing import Literal, NotRequired, TypedDict

from mlmglauber.stream.record_types.fields import (
    Count,
    Counts,
    Digest,
    Ids,
    NotExact,
    Positive,
    SplitWords,
    needs,
    rules,
    when,
)


@rules(when("taken", {"const": False}, needs("taken_reason")))
class TokensRecord(TypedDict):
    """Written by mlm-tokens."""

    type: Literal["tokens"]
    run: Digest
    id: str
    n: Count
    tokens: Count
    cut: Count
    max_sites: Positive
    ids: Counts
    pieces: list[str]
    split_words: SplitWords
    unknown: Count
    unknown_sites: Counts
    never_drawn: NotRequired[Ids]
    text: str
    text_exact: NotRequired[NotExact]
    taken: bool
