"""The options of mlm-drift."""

from dataclasses import dataclass

from mlmglauber.commands.shared.options import Options


@dataclass(frozen=True, kw_only=True)
class DriftOptions(Options):
    """Values of the options of mlm-drift."""

    reference: str
    summary: bool
    threshold: list[float]
    target_se: float | None
    table: str
