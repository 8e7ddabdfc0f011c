"""The line of progress: it goes to standard error and is no record of the output."""

from typing import Annotated, Literal, NotRequired, TypedDict

from mlmglauber.stream.record_types.fields import (
    Count,
    CountOrNull,
    NonNegative,
    NonNegativeOrNull,
    Share,
    pattern,
    reason,
)


class ProgressLine(TypedDict):
    """Written by every command with --progress=json, about once a second and at the end."""

    type: Literal["progress"]
    command: Annotated[str, pattern("^mlm-[a-z]+$")]
    unit: str
    label: NotRequired[str]
    done: Count
    total: Annotated[CountOrNull, reason("total_reason")]
    estimated: bool
    rate: Annotated[NonNegativeOrNull, reason("rate_reason")]
    seconds: NonNegative
    seconds_left: Annotated[NonNegativeOrNull, reason("seconds_left_reason")]
    from_memory: NotRequired[Share]
    texts: NotRequired[Count]
    pairs: NotRequired[Count]
    resumed: NotRequired[Count]
