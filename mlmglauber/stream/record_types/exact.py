"""The exact record: a small chain, solved."""

from typing import Annotated, Literal, NotRequired, TypedDict

from mlmglauber.stream.record_types.fields import (
    Count,
    CountOrNull,
    Counts,
    Digest,
    Eps,
    Ids,
    NonNegative,
    NonNegativeOrNull,
    Positive,
    Share,
    ShareOrNull,
    reason,
)


class LikelyState(TypedDict):
    """One of the likeliest states of the stationary distribution."""

    text: str
    ids: Ids
    probability: Share
    escape: Share
    residence: Annotated[NonNegativeOrNull, reason("residence_reason")]


class ExactBasin(TypedDict):
    """The basin of the likeliest state."""

    states: Positive
    mass: NonNegative
    conductance: Annotated[NonNegativeOrNull, reason("conductance_reason")]


class Comparison(TypedDict):
    """How sampled chains agree with the stationary distribution."""

    chains: Count
    thin: NotRequired[Positive]
    outside: NotRequired[Count]
    draws: NotRequired[Count]
    tv: Annotated[ShareOrNull, reason("reason")]
    expected_tv: NotRequired[ShareOrNull]
    p_value: Annotated[ShareOrNull, reason("reason")]
    chi_square: NotRequired[NonNegativeOrNull]
    dof: NotRequired[CountOrNull]


class ExactRecord(TypedDict):
    """Written by mlm-exact, one for each text and temperature; times in steps, entropy production in nats per step."""

    type: Literal["exact"]
    run: Digest
    id: str
    tau: NonNegative
    n: Positive
    text: str
    sites: Counts
    choices: list[list[str]]
    states: Positive
    eps: Eps
    likeliest: Annotated[list[LikelyState] | None, reason("likeliest_reason")]
    law_error: NotRequired[NonNegative]
    basin: Annotated[ExactBasin | None, reason("basin_reason")]
    second_modulus: Annotated[NonNegativeOrNull, reason("second_modulus_reason")]
    second_complex: bool | None
    tmix: Annotated[CountOrNull, reason("tmix_reason")]
    tmix_exact: bool
    tmix_low: NotRequired[Count]
    tmix_high: NotRequired[NonNegative]
    tmix_text: Annotated[CountOrNull, reason("tmix_text_reason")]
    alpha: Annotated[NonNegativeOrNull, reason("alpha_reason")]
    row_sums: list[NonNegative]
    column_sums: list[NonNegative]
    spectral_radius: Annotated[NonNegativeOrNull, reason("spectral_radius_reason")]
    bound: Annotated[CountOrNull, reason("bound_reason")]
    influences: NotRequired[list[list[Share]]]
    rectangles: Count
    mean_abs_delta: Annotated[NonNegativeOrNull, reason("mean_abs_delta_reason")]
    max_abs_delta: Annotated[NonNegativeOrNull, reason("max_abs_delta_reason")]
    entropy_production: Annotated[NonNegativeOrNull, reason("entropy_production_reason")]
    reversible: Annotated[bool | None, reason("reversible_reason")]
    scan_tv: Annotated[ShareOrNull, reason("scan_tv_reason")]
    permutation_tv: Annotated[ShareOrNull, reason("permutation_tv_reason")]
    sweeps_tv: Annotated[ShareOrNull, reason("sweeps_tv_reason")]
    pll_tv: Annotated[ShareOrNull, reason("pll_tv_reason")]
    pll_kl: Annotated[NonNegativeOrNull, reason("pll_kl_reason")]
    compare: NotRequired[Comparison]
