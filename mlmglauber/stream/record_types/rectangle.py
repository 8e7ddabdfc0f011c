"""The rectangle record: whether four conditionals are those of one joint distribution."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mlmglauber.stream.record_types.fields import (
    Count,
    Digest,
    Ids,
    Logs,
    Model,
    Name,
    NonNegativeOrNull,
    NotExact,
    Number,
    Quantiles,
    ShareOrNull,
    Tau,
    above,
    at_least,
    max_items,
    min_items,
    reason,
)


class StateName(TypedDict):
    """Names a state."""

    run: Any
    id: Any
    chain: Any
    step: Any


class RectangleRecord(TypedDict):
    """Written by mlm-rect; log-probabilities and delta in nats, at tau."""

    type: Literal["rectangle"]
    run: Digest
    id: str
    model: str
    n: Annotated[int, at_least(2)]
    tau: Annotated[float, above(0)]
    text: str
    i: Count
    j: Count
    blocks: NotRequired[Annotated[list[Ids], min_items(2), max_items(2)]]
    tokens: Annotated[list[Count | Ids], min_items(4), max_items(4)]
    pieces: Annotated[list[str | list[str]], min_items(4), max_items(4)]
    words: Annotated[list[str], min_items(4), max_items(4)]
    part_of: NotRequired[Annotated[list[str | None], min_items(2), max_items(2)]]
    of_state: NotRequired[StateName]
    text_exact: NotRequired[NotExact]
    logp_i: Logs
    logp_j: Logs
    delta: Annotated[float | None, reason("reason")]
    noise: Annotated[NonNegativeOrNull, reason("noise_reason", "reason")]
    rounding: Annotated[NonNegativeOrNull, reason("reason")]
    draw: NotRequired[Literal["conditional", "uniform", "top"]]


class DeltaSizes(TypedDict):
    """The sizes |delta| of rectangles of the same settings, in nats, and the noise floor, by mlm-rect."""

    model: Model
    tau: Tau
    draw: NotRequired[str]
    states_of: NotRequired[str]
    run: NotRequired[Name]
    runs: list[str]
    hash: NotRequired[str]
    revision: NotRequired[str]
    dtype: NotRequired[str]
    length: NotRequired[Count]
    seed: NotRequired[Count]
    rectangles: NotRequired[Count]
    gap: NotRequired[Any]
    freeze: NotRequired[Any]
    count: Count
    texts: Count
    mean: Annotated[Number, reason("mean_reason")]
    mean_low: Annotated[Number, reason("mean_reason")]
    mean_high: Number
    median: Number
    rms: Number
    max: Number
    quantiles: Quantiles
    noise_count: Count
    noise_quantile: NonNegativeOrNull
    noise_factor: float
    rounding: NonNegativeOrNull
    noise_floor: NonNegativeOrNull
    above_noise: Annotated[ShareOrNull, reason("noise_reason")]


class DeltasOfModel(DeltaSizes):
    """The deltas of all rectangles of a model."""

    undefined: Count


class DeltasAtDistance(DeltaSizes):
    """The deltas of the rectangles of a model whose sites are at one distance |i - j|."""

    distance: Count
