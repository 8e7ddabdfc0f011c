"""The run record: what a command ran, with which model, options and versions."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mlmglauber.stream.record_types.fields import (
    Count,
    Digest,
    NonNegative,
    NonNegativeOrNull,
    Positive,
    at_least,
    needs,
    pattern,
    reason,
    rules,
    when,
)

_Class = TypedDict("_Class", {"class": NotRequired[str]})  # a keyword of Python


@rules(
    when("command", {"enum": ["mlm-couple", "mlm-exact", "mlm-influence", "mlm-rect", "mlm-sample", "mlm-score",
                              "mlm-tokens", "mlm-traps"]},
         needs("model", "class", "tokenizer", "vocab", "banned", "dtype", "device")),
    when("command", {"enum": ["mlm-couple", "mlm-influence", "mlm-rect", "mlm-sample"]}, needs("seed")),
    when("command", {"const": "mlm-sample"}, needs("tau")),
    when("command", {"const": "mlm-embed"},
         needs("embedder", "dims", "normalize", "prompt", "max_tokens", "dtype", "device")),
    when("command", {"const": "mlm-basins"},
         needs("embedder") | {"oneOf": [needs("examples", "held_out"), needs("clusters")]}),
)
class RunRecord(_Class):
    """Written by every command that uses a model, before its other records."""

    type: Literal["run"]
    schema: Literal["mlm/1"]
    run: Digest
    command: Annotated[str, pattern("^mlm-[a-z]+$")]
    seed: NotRequired[Count]
    tau: NotRequired[Annotated[NonNegativeOrNull, reason("tau_reason")]]
    schedule: NotRequired[str]
    model: NotRequired[str]
    hash: NotRequired[str | None]
    revision: NotRequired[str | None]
    tokenizer: NotRequired[str]
    vocab: NotRequired[Positive]
    banned: NotRequired[Count]
    embedder: NotRequired[str | None]
    dims: NotRequired[Positive]
    normalize: NotRequired[bool]
    max_tokens: NotRequired[Annotated[int | None, at_least(1)]]
    prompt: NotRequired[str]
    pca_explained: NotRequired[list[NonNegativeOrNull]]
    shard: NotRequired[Annotated[str, pattern("^[1-9][0-9]*/[1-9][0-9]*$")]]
    dtype: NotRequired[str]
    precision: NotRequired[str]
    draw: NotRequired[Positive]
    tolerance: NotRequired[list[NonNegative]]
    device: NotRequired[str]
    threads: NotRequired[Positive]
    examples: NotRequired[dict[str, Positive]]
    held_out: NotRequired[dict[str, Any]]
    clusters: NotRequired[list[dict[str, Any]]]
    silhouette: NotRequired[Annotated[float | None, reason("silhouette_reason")]]
    versions: dict[str, str]
    options: dict[str, Any]
