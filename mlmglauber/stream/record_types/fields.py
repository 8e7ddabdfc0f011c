"""Types of fields that several records share, and the marks that add limits to a Python type.

A mark stands in Annotated: `Annotated[int, at_least(0)]`. man/build_schema.py turns types and marks into a JSON Schema.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict, TypeVar


class Limit(NamedTuple):
    """A keyword of JSON Schema, for example minimum, and its value."""

    keyword: str
    value: float | str


class NullReason(NamedTuple):
    """A record in which the field is null must have one of these fields, which says why.

    text: the reason must be a string also in a summary, whose reasons may be null.
    """

    fields: tuple[str, ...]
    text: bool = False


def at_least(value: float) -> Limit:
    """The smallest value of a number."""
    return Limit("minimum", value)


def at_most(value: float) -> Limit:
    """The largest value of a number."""
    return Limit("maximum", value)


def above(value: float) -> Limit:
    """A bound that a number must exceed."""
    return Limit("exclusiveMinimum", value)


def below(value: float) -> Limit:
    """A bound that a number must stay below."""
    return Limit("exclusiveMaximum", value)


def min_items(count: int) -> Limit:
    """Minimum number of items of a list."""
    return Limit("minItems", count)


def max_items(count: int) -> Limit:
    """Maximum number of items of a list."""
    return Limit("maxItems", count)


def pattern(expression: str) -> Limit:
    """A regular expression that a string must match."""
    return Limit("pattern", expression)


def reason(*fields: str, text: bool = False) -> NullReason:
    """The mark of a field that may be null: see NullReason."""
    return NullReason(fields, text)


Schema = dict[str, Any]
RULES: dict[Any, tuple[Schema, ...]] = {}
"""JSON Schemas that the records of a type must also satisfy, beyond the types of their fields."""

T = TypeVar("T")


def rules(*schemas: Schema) -> Callable[[T], T]:
    """Decorates the type of a record with further rules."""
    def decorate(record_type: T) -> T:
        RULES[record_type] = schemas
        return record_type

    return decorate


def when(field: str, value: Schema, then: Schema, otherwise: Schema | None = None) -> Schema:
    """The rule: a record whose field has a value of this schema satisfies `then`, others `otherwise`."""
    rule = {"if": {"properties": {field: value}, "required": [field]}, "then": then}
    return rule if otherwise is None else rule | {"else": otherwise}


def needs(*fields: str) -> Schema:
    """The rule: a record has these fields."""
    return {"required": list(fields)}


Share = Annotated[float, at_least(0), at_most(1)]
NonNegative = Annotated[float, at_least(0)]
Count = Annotated[int, at_least(0)]
Positive = Annotated[int, at_least(1)]
Digest = Annotated[str, pattern("^[0-9a-f]{8}$")]
Name = str | int | None
Ids = Annotated[list[Count], min_items(1)]
Counts = list[Count]
Logs = Annotated[list[Annotated[list[float | None], min_items(2), max_items(2)]], min_items(2), max_items(2)]
"""Log-probabilities in nats, null for a probability of 0."""
Bound = Annotated[float | None, at_least(0), below(1)]
"""An upper bound on a probability, null where the bound is 1 or more and so says nothing."""
Eps = Annotated[float, above(0), below(1)]
Tau = Annotated[float | None, at_least(0)]
"""The temperature of records that may be of chains without one."""
NonNegativeOrNull = Annotated[float | None, at_least(0)]
CountOrNull = Annotated[int | None, at_least(0)]
ShareOrNull = Annotated[float | None, at_least(0), at_most(1)]
Number = float | None
Quantiles = dict[str, float | None]
"""Quantiles by their probabilities: "0.5" is the median."""
Model = Annotated[str | None, reason("model_reason")]
"""The model of a summary, null where its records do not name one."""
SiteAllow = dict[str, list[str]]
"""The only words that may be drawn at some sites, by site."""
Start = Annotated[str, pattern("^(pair|random|burned|text|perturb:[0-9]+)$")]
CouplingName = Literal["maximal", "race", "quantile"]
NotExact = Literal[False]
"""The value of text_exact; the field is absent where tokenising the text gives the ids back."""


class SplitWord(TypedDict):
    """A word of several tokens, and their sites."""

    word: str
    sites: Ids


SplitWords = list[SplitWord]


class OfChains(TypedDict):
    """What all chains of a summary have in common: model, scan, start, and the restrictions of their runs."""

    model: Model
    hash: NotRequired[str]
    revision: NotRequired[str]
    precision: NotRequired[str]
    scan: NotRequired[str | None]
    init: NotRequired[str | None]
    allow: NotRequired[str]
    ban: NotRequired[str]
    freeze: NotRequired[Counts]
    schedule: NotRequired[str]
    piece: NotRequired[Count]


class OfChain(OfChains):
    """A summary of one chain."""

    run: Name
    id: Name
    chain: Name
    tau: Tau
    n: CountOrNull


class OfGroup(OfChains):
    """A summary of the chains of one temperature and length."""

    tau: Tau
    n: CountOrNull
    chains: Count


NAMED: dict[str, Any] = {"share": Share, "nonnegative": NonNegative, "count": Count, "positive": Positive,
                         "digest": Digest, "name": Name, "ids": Ids, "counts": Counts, "split_words": SplitWords,
                         "logs": Logs, "bound": Bound}
"""The types that the JSON Schema defines once, by the names that it gives them."""
