"""Summary records: what --summary writes about chains, texts, models and lengths.

`of` names the type of records that a summary is made of, `over` the group that it is about. Times are in steps,
log-probabilities in nats; NAME_low and NAME_high are the ends of a 95 % interval.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mlmglauber.stream.record_types.fields import (
    Count,
    CountOrNull,
    Counts,
    CouplingName,
    Model,
    Name,
    NonNegativeOrNull,
    Number,
    OfChain,
    OfChains,
    OfGroup,
    Positive,
    Share,
    ShareOrNull,
    SiteAllow,
    Tau,
    at_least,
    reason,
)
from mlmglauber.stream.record_types.influence import InfluencesOfGroup, InfluencesOfLength
from mlmglauber.stream.record_types.pair import PairsOfAll, PairsOfGroup, PairsOfLength, PairsOfTemperature
from mlmglauber.stream.record_types.rectangle import DeltasAtDistance, DeltasOfModel
from mlmglauber.stream.record_types.trap import (
    TokenCertificate,
    TokensOfVocabulary,
    TrapsOfGroup,
    TrapsOfLength,
    TrapsOfStarts,
)


class SummaryRecord(TypedDict):
    """The fields that mean the same in all summaries."""

    type: Literal["summary"]
    of: Literal["state", "path", "rectangle", "influence", "pair", "trap", "basin", "estimate"]
    over: Literal["all", "chain", "distance", "group", "length", "model", "n", "start", "starts", "tau", "token",
                  "vocabulary"]
    run: NotRequired[Name]
    id: NotRequired[Name]
    chain: NotRequired[Name]
    tau: NotRequired[Tau]
    n: NotRequired[CountOrNull]
    model: NotRequired[Model]
    coupling: NotRequired[CouplingName]
    replicas: NotRequired[Annotated[int, at_least(2)]]
    lag: NotRequired[Count]
    chains: NotRequired[Count]
    texts: NotRequired[Count]
    count: NotRequired[Count]
    pairs: NotRequired[Count]
    lengths: NotRequired[Counts]
    draw: NotRequired[str]
    resolution: NotRequired[Count]


class DriftOfChain(OfChain):
    """The drift of one chain, by mlm-drift."""

    count: Count
    undefined: Count
    truncated: Count
    first_step: Count
    last_step: Count
    watched: Count
    final: Number
    plateau: Number
    quartiles: list[float] | None
    frozen: bool | None
    hitting: list[dict[str, Any]]
    coupled: NotRequired[str]
    pll_start: NotRequired[Annotated[Number, reason("pll_start_reason")]]
    pll_plateau: NotRequired[Annotated[Number, reason("pll_plateau_reason")]]


class DriftOfGroup(OfGroup):
    """The mean drift of the chains of one temperature and length, by mlm-drift."""

    texts: Count
    count: Count
    final: Number
    final_low: Number
    final_high: Number
    plateau: Number
    plateau_low: Number
    plateau_high: Number
    plateau_sd: NonNegativeOrNull
    frozen_chains: Count
    hitting: list[dict[str, Any]]
    diagnostics: dict[str, Any]
    coupled_left_out: NotRequired[Positive]
    pll_start: NotRequired[Number]
    pll_start_low: NotRequired[Number]
    pll_start_high: NotRequired[Number]
    pll_plateau: NotRequired[Number]
    pll_plateau_low: NotRequired[Number]
    pll_plateau_high: NotRequired[Number]
    pll_change: NotRequired[Number]
    pll_change_low: NotRequired[Number]
    pll_change_high: NotRequired[Number]


class DriftOfTemperature(OfChains):
    """How hitting times of the drift grow with n at one temperature, by mlm-drift."""

    tau: Tau
    chains: Count
    lengths: Counts
    hitting: list[dict[str, Any]]


class Irreversibility(TypedDict):
    """The entropy production of chains, in nats per step, by mlm-rect --path."""

    entropy_production: Number
    production_low: Number
    production_high: Number
    interval: str | None
    production_halves: list[float] | None
    boundary: Number
    steps: Count
    changes: Count


class IrreversibilityOfChain(OfChain, Irreversibility):
    """The entropy production of one chain."""

    burn_in: Count


class IrreversibilityOfGroup(OfGroup, Irreversibility):
    """The entropy production of the chains of one temperature and length."""

    texts: Count


class BasinVisits(TypedDict):
    """How often and how long chains are in one region."""

    basin: str
    visits: Count
    visits_expected: NonNegativeOrNull
    revisits: Count
    share: ShareOrNull
    expected_share: ShareOrNull
    first_visit: Any


class BasinsOfChain(OfChain):
    """The regions that one chain visits, by mlm-basins."""

    count: Count
    steps: Count
    first_step: Count
    start: Annotated[str | None, reason("start_reason")]
    terminal: Annotated[str | None, reason("terminal_reason")]
    unnamed: Share
    expected_from: Annotated[str | None, reason("expected_reason")]
    basins: list[BasinVisits]


class BasinsOfGroup(OfGroup):
    """The regions that the chains of one temperature and length visit, by mlm-basins."""

    texts: Count
    count: Count
    resolution: Count
    basins: list[BasinVisits]
    expected_from: Annotated[str | None, reason("expected_reason")]
    unnamed: Share
    transitions: list[dict[str, Any]]


class BasinsOfStart(OfGroup):
    """The regions that the chains from one start visit, by mlm-basins."""

    texts: Count
    count: Count
    resolution: Count
    start: str
    basins: list[BasinVisits]
    expected_from: Annotated[str | None, reason("expected_reason")]
    unnamed: Share
    first_agrees: NotRequired[Share]


class EstimateOfGroup(OfChains):
    """An unbiased estimate of a stationary mean, by mlm-estimate, from the pairs of one temperature and length."""

    coupling: CouplingName | None
    tau: Tau
    n: Positive
    lag: Positive
    k: Count
    m: Positive
    pairs: Count
    censored: Count
    incomplete: Count
    allow_at: NotRequired[SiteAllow]
    mean_meeting: Annotated[NonNegativeOrNull, reason("mean_meeting_reason")]
    mean_cost: Annotated[NonNegativeOrNull, reason("mean_cost_reason")]
    field: str
    token: NotRequired[str]
    token_id: NotRequired[Count]
    site: NotRequired[CountOrNull]
    mean: Annotated[float | None, reason("mean_reason")]
    error: Annotated[NonNegativeOrNull, reason("error_reason")]
    low: Annotated[float | None, reason("low_reason")]
    high: Annotated[float | None, reason("high_reason")]
    plain: Annotated[float | None, reason("plain_reason")]
    plain_error: Annotated[NonNegativeOrNull, reason("plain_error_reason")]
    inefficiency: Annotated[NonNegativeOrNull, reason("inefficiency_reason")]
    pairs_needed: NotRequired[Annotated[CountOrNull, reason("pairs_needed_reason")]]


SUMMARY_TYPES: dict[tuple[str, str], tuple[Any, ...]] = {
    ("state", "chain"): (DriftOfChain, IrreversibilityOfChain),
    ("state", "group"): (DriftOfGroup, IrreversibilityOfGroup),
    ("state", "tau"): (DriftOfTemperature,),
    ("path", "chain"): (IrreversibilityOfChain,), ("path", "group"): (IrreversibilityOfGroup,),
    ("rectangle", "model"): (DeltasOfModel,), ("rectangle", "distance"): (DeltasAtDistance,),
    ("influence", "group"): (InfluencesOfGroup,), ("influence", "length"): (InfluencesOfLength,),
    ("pair", "group"): (PairsOfGroup,), ("pair", "tau"): (PairsOfTemperature,), ("pair", "n"): (PairsOfLength,),
    ("pair", "all"): (PairsOfAll,),
    ("trap", "group"): (TrapsOfGroup,), ("trap", "n"): (TrapsOfLength,), ("trap", "starts"): (TrapsOfStarts,),
    ("trap", "token"): (TokenCertificate,), ("trap", "vocabulary"): (TokensOfVocabulary,),
    ("basin", "chain"): (BasinsOfChain,), ("basin", "group"): (BasinsOfGroup,), ("basin", "start"): (BasinsOfStart,),
    ("estimate", "group"): (EstimateOfGroup,)}
"""The types of a summary by `of` and `over`; where there are two, a summary is of one of them."""
