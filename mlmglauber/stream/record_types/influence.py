"""The influence record: how far one token moves the conditionals at other sites."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mlmglauber.stream.record_types.fields import (
    Bound,
    Count,
    CountOrNull,
    Counts,
    Digest,
    Eps,
    Ids,
    Name,
    NonNegative,
    NonNegativeOrNull,
    NotExact,
    Number,
    Positive,
    Share,
    SiteAllow,
    SplitWords,
    Tau,
    needs,
    reason,
    rules,
    when,
)


class Influences(TypedDict):
    """The influences in one text, or the largest over several texts; oscillations in nats at tau 1."""

    sites: Counts
    estimate: Literal["lower"]
    alpha_row: NonNegative
    alpha_column: NonNegative
    alpha_spectral: NonNegative
    eps: Eps
    tmix_if_alpha: Annotated[CountOrNull, reason("tmix_reason")]
    tmix_if_alpha_column: Annotated[CountOrNull, reason("tmix_reason")]
    oscillation: Annotated[NonNegativeOrNull, reason("oscillation_reason")]
    alpha_oscillation: NonNegative
    row_sums: list[NonNegative]
    column_sums: list[NonNegative]
    contraction: Annotated[NonNegativeOrNull, reason("contraction_reason")]
    head_oscillation: Annotated[NonNegativeOrNull, reason("certified_reason")]
    certified_tau: Annotated[NonNegativeOrNull, reason("certified_reason")]
    certified_alpha: Annotated[NonNegativeOrNull, reason("certified_reason")]
    certified_tmix: Annotated[CountOrNull, reason("certified_reason")]
    allow: NotRequired[str | SiteAllow]
    ban: NotRequired[str]
    matrix: NotRequired[list[list[Share]]]
    oscillations: NotRequired[list[list[NonNegativeOrNull]]]


@rules(when("draw", {"const": "conditional"}, needs("draw_tau")))
class InfluenceRecord(Influences):
    """Written by mlm-influence, one for each text and temperature."""

    type: Literal["influence"]
    run: Digest
    id: str
    tau: NonNegative
    n: Positive
    text: str
    draw: Literal["conditional", "uniform", "top", "worst"]
    draw_tau: NotRequired[NonNegative]
    changes: Count
    gamma: list[float | None]
    margin: Annotated[float | None, reason("margin_reason")]
    escape: Share
    escape_bound: Annotated[Bound, reason("escape_bound_reason")]
    residence: Annotated[NonNegativeOrNull, reason("residence_reason")]
    words: NotRequired[list[str]]
    ids: NotRequired[Ids]
    pieces: NotRequired[list[str]]
    split_words: NotRequired[SplitWords]
    text_exact: NotRequired[NotExact]


class InfluencesOfGroup(Influences):
    """The largest influences over all texts of one length at one temperature, by mlm-influence."""

    run: Name
    tau: Tau
    n: CountOrNull
    count: Count
    draw: str
    contraction_low: NotRequired[Number]
    contraction_high: NotRequired[Number]
    contraction_over: NotRequired[Literal["texts", "chains"]]
    contraction_count: NotRequired[Count]


class InfluencesOfLength(TypedDict):
    """The temperature at which the sampled influences cross 1 for one length, by mlm-influence."""

    run: Name
    n: CountOrNull
    estimate: Literal["lower"]
    allow: NotRequired[str]
    ban: NotRequired[str]
    sites: Counts
    draw: str
    crossing: Annotated[dict[str, Any] | None, reason("crossing_reason")]
    head_oscillation: NonNegativeOrNull
    certified_tau: Annotated[NonNegativeOrNull, reason("certified_reason")]
