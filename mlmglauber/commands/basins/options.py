"""The options of mlm-basins."""

from dataclasses import dataclass

from mlmglauber.commands.shared.options import DeviceOptions


@dataclass(frozen=True, kw_only=True)
class BasinsOptions(DeviceOptions):
    """Values of the options of mlm-basins."""

    model: str
    examples: str | None
    clusters: int | None
    method: str
    reject: float
    keep_embedding: bool
    summary: bool
    start: str | None
    min_visit: int
    draws: str | None
    table: str
    seed: int
