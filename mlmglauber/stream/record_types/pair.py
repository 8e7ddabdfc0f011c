"""The pair record: when coupled chains meet."""

from typing import Annotated, Literal, NotRequired, TypedDict

from mlmglauber.stream.record_types.fields import (
    Count,
    CountOrNull,
    Counts,
    CouplingName,
    Digest,
    Model,
    NonNegative,
    NonNegativeOrNull,
    Number,
    Positive,
    Start,
    Tau,
    at_least,
    needs,
    reason,
    rules,
    when,
)


@rules(
    when("meeting", {"type": "null"}, {"properties": {"censored": {"const": True}}},
         {"properties": {"censored": {"const": False}}}),
    when("start", {"pattern": "^perturb"}, needs("damage", "healed")),
    when("lag", {"minimum": 1}, needs("wasserstein")),
)
class PairRecord(TypedDict):
    """Written by mlm-couple, one for each pair, length and temperature; times in steps."""

    type: Literal["pair"]
    run: Digest
    id: str
    pair: Count
    model: str
    tau: NonNegative
    n: Positive
    seed: Count
    coupling: CouplingName
    start: Start
    replicas: Annotated[int, at_least(2)]
    lag: Count
    meeting: Annotated[CountOrNull, reason("reason")]
    censored: bool
    max_steps: Positive
    last_change: Count
    last_step: NotRequired[Count]
    states: NotRequired[Counts]
    damage: NotRequired[Count]
    healed: NotRequired[bool]
    steps: Counts
    hamming: Counts
    wasserstein: NotRequired[Counts | None]


class LagBound(TypedDict):
    """The L-lag bounds on total variation and on the Hamming-Wasserstein distance after t steps."""

    t: Count
    tv: NonNegativeOrNull
    tv_error: NonNegativeOrNull
    hamming: NonNegativeOrNull
    hamming_error: NonNegativeOrNull


class LagMixingTime(TypedDict):
    """The first step at which the bound on total variation is eps or less, and the upper end of its interval."""

    eps: float
    t: CountOrNull
    t_high: Annotated[CountOrNull, reason("t_high_reason")]


class OfPairs(TypedDict):
    """A summary of pairs of coupled chains, by mlm-couple."""

    model: Model
    coupling: CouplingName
    start: Start
    lag: Count
    replicas: Annotated[int, at_least(2)]


class PairsOfGroup(OfPairs):
    """The meeting times of the pairs of one temperature and length."""

    tau: Tau
    n: CountOrNull
    pairs: Count
    texts: Count
    met: Count
    censored: Count
    frozen: Count
    median: Annotated[NonNegativeOrNull, reason("reason", text=True)]
    median_low: Number
    median_high: Number
    upper_quartile: Annotated[NonNegativeOrNull, reason("upper_quartile_reason")]
    median_n_log_n: Number
    reason: str | None
    restricted_mean: Number
    horizon: Count
    bound: NotRequired[Annotated[list[LagBound] | None, reason("bound_reason")]]
    tmix: NotRequired[Annotated[list[LagMixingTime] | None, reason("bound_reason")]]
    lag_to_try: NotRequired[CountOrNull]


class PairsOfTemperature(OfPairs):
    """How meeting times grow with n at one temperature: T = c n ln n, and the test of faster growth."""

    tau: Tau
    pairs: Count
    lengths: Counts
    c: Annotated[NonNegativeOrNull, reason("c_reason", text=True)]
    c_low: Number
    c_high: Number
    growth: Number
    growth_low: Number
    growth_high: Number
    growth_p: Number


class PairsOfLength(OfPairs):
    """The temperature above which the pairs of one length meet within the budget."""

    n: CountOrNull
    budget: Number
    crossover: Annotated[Number, reason("crossover_reason")]
    crossover_low: Number
    crossover_high: Number
    between: list[float] | None
    taus: list[float]
    late: list[float | None]


class PairsOfAll(OfPairs):
    """How that temperature changes when the length doubles."""

    pairs: Count
    lengths: Counts
    budget: Number
    per_doubling: Annotated[Number, reason("trend_reason")]
    per_doubling_low: Number
    per_doubling_high: Number
