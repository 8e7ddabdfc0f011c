"""The trap record: a part of a chain near one state, or a fixed point or cycle at tau 0."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mlmglauber.stream.record_types.fields import (
    Bound,
    Count,
    CountOrNull,
    Counts,
    Digest,
    Ids,
    Name,
    NonNegative,
    NonNegativeOrNull,
    Number,
    OfChains,
    OfGroup,
    Positive,
    Quantiles,
    Share,
    ShareOrNull,
    SiteAllow,
    Tau,
    at_least,
    needs,
    reason,
    rules,
    when,
)


class FlickeringSite(TypedDict):
    """A site whose token changes within a trap."""

    site: Count
    share: Share
    token: Count


@rules(when("states", {"type": "null"}, needs("reason"), {"allOf": [
    when("margin", {"type": "null"}, needs("margin_reason")),
    when("bound", {"type": "null"}, needs("bound_reason")),
    when("expected", {"type": "null"}, needs("expected_reason"))]}))
class TrapBasinFields(TypedDict):
    """The states that lead from a trap's representative through changes of probability `least` or more."""

    least: Share
    states: Annotated[int | None, at_least(1)]
    margin: float | None
    escape: ShareOrNull
    bound: Bound
    expected: NonNegativeOrNull


class EscapeAtTau(TypedDict):
    """How a fixed point or cycle of tau 0 is left at another temperature."""

    tau: NonNegative
    escape: Share
    expected: Annotated[NonNegativeOrNull, reason("expected_reason")]
    bound: Annotated[Bound, reason("bound_reason")]
    basin: NotRequired[TrapBasinFields]


@rules(
    {"if": needs("found"), "then": needs("basin_count", "starts", "sweeps", "at"),
     "else": needs("id", "chain", "tau", "first", "last", "residence", "censored", "cut", "resolution", "radius",
                   "min_steps", "share", "visits", "exits", "states", "flicker", "escape", "expected")},
    when("found", {"const": "cycle"}, needs("period", "cycle")),
    when("kind", {"type": "string"}, needs("argmax", "gamma", "pll", "entropy")),
)
class TrapRecord(TypedDict):
    """Written by mlm-traps; margins, pll and entropy in nats at tau 1, times in steps."""

    type: Literal["trap"]
    run: Name
    id: NotRequired[Name]
    chain: NotRequired[Name]
    tau: NotRequired[Tau]
    piece: NotRequired[Count]
    n: Positive
    text: str | None
    ids: Ids
    first: NotRequired[Count]
    last: NotRequired[Count]
    residence: NotRequired[Count]
    censored: NotRequired[bool]
    cut: NotRequired[bool]
    resolution: NotRequired[Positive]
    radius: NotRequired[Count]
    min_steps: NotRequired[Positive]
    share: NotRequired[Share]
    visits: NotRequired[Count]
    exits: NotRequired[Count]
    states: NotRequired[Positive]
    flicker: NotRequired[list[FlickeringSite]]
    repeated: Count
    repeated_ids: Counts
    top_share: Share
    top_token: Count
    kind: Annotated[Literal["perfect", "approximate"] | None, reason("reason")]
    argmax: NotRequired[Share]
    margin: Annotated[float | None, reason("margin_reason", "reason")]
    gamma: NotRequired[list[float | None]]
    pll: NotRequired[Annotated[float | None, reason("pll_reason")]]
    entropy: NotRequired[NonNegative]
    escape: NotRequired[Annotated[ShareOrNull, reason("reason")]]
    expected: NotRequired[Annotated[NonNegativeOrNull, reason("expected_reason", "reason")]]
    ties: NotRequired[Positive]
    bound: NotRequired[Annotated[Bound, reason("bound_reason")]]
    basin: NotRequired[TrapBasinFields]
    support: NotRequired[Annotated[list[list[float | None]] | None, reason("support_reason")]]
    allow: NotRequired[str | SiteAllow]
    ban: NotRequired[str]
    freeze: NotRequired[Counts]
    ratio_steps: NotRequired[Count]
    ratio_exits: NotRequired[Count]
    ratio: NotRequired[Annotated[NonNegativeOrNull, reason("ratio_reason")]]
    ratio_low: NotRequired[Annotated[NonNegativeOrNull, reason("ratio_reason")]]
    ratio_high: NotRequired[Annotated[NonNegativeOrNull, reason("ratio_reason")]]
    margins_run: NotRequired[Digest]
    found: NotRequired[Literal["fixed_point", "cycle"]]
    basin_count: NotRequired[Positive]
    starts: NotRequired[list[str]]
    sweeps: NotRequired[Count]
    period: NotRequired[Annotated[int, at_least(2)]]
    cycle: NotRequired[list[str]]
    at: NotRequired[list[EscapeAtTau]]


class RecurringTrapState(TypedDict):
    """A state that was a trap more than once."""

    text: str | None
    ids: Ids
    traps: Positive
    steps: Count
    chains: Positive
    texts: Positive
    margin: Number


class TrapsOfGroup(OfGroup):
    """The traps of the chains of one temperature and length, by mlm-traps."""

    texts: Count
    steps: Count
    count: Count
    chains_trapped: Count
    trapped: Number
    per_1000: Number
    residence: Quantiles
    longest: CountOrNull
    censored: Count
    resolution: Count
    distinct: Count
    recurring_states: Count
    shared_states: Count
    recurring: list[RecurringTrapState]
    perfect: ShareOrNull
    margin_median: Number
    expected_median: NonNegativeOrNull
    ratio: NonNegativeOrNull
    ratio_low: NonNegativeOrNull
    ratio_high: NonNegativeOrNull
    ratio_steps: NotRequired[Count]
    ratio_exits: NotRequired[Count]


class TrapsOfLength(OfChains):
    """How long traps of one length hold as the temperature falls, by mlm-traps."""

    n: CountOrNull
    radius: Count
    min_steps: Positive
    taus: list[float]
    texts: Count
    residence_slope: Number
    residence_slope_low: Annotated[Number, reason("residence_slope_reason")]
    residence_slope_high: Number
    residence_intercept: Number
    states: CountOrNull
    at: list[dict[str, Any]] | None
    escape_slope: Annotated[Number, reason("reason")]
    escape_slope_quartiles: list[float] | None
    margin_median: Number


class TrapsOfStarts(TypedDict):
    """The fixed points and cycles that all texts lead to, by mlm-traps --find."""

    run: Name
    count: Count
    unfinished: Count
    fixed_points: Count
    cycles: Count
    largest_basin: CountOrNull
    sweeps: CountOrNull
    margin: Quantiles


class TokenCertificate(TypedDict):
    """Whether repeats of one token are self-reinforcing, by mlm-traps --certify."""

    run: Name
    tau: Tau
    n: CountOrNull
    token: Count
    word: str
    draw: str
    contexts: Count
    levels: list[dict[str, Any] | None]
    growing: list[list[int]]
    growing_all: list[list[int]]
    full: dict[str, Any]
    basin: list[int] | None
    escape_steps: Annotated[Number, reason("reason")]


class TokensOfVocabulary(TypedDict):
    """The tokens whose repeats hold longest, by mlm-traps --scan-tokens."""

    run: Name
    tau: Tau
    n: CountOrNull
    candidates: Count
    tokens: list[dict[str, Any]]
