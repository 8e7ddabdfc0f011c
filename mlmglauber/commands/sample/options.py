"""The options of mlm-sample."""

from dataclasses import dataclass
from typing import Any

from mlmglauber.commands.shared.options import MODEL_OPTIONS, ChainOptions

RECORDED_NAMES = {"pll": "energy"}
"""Options that run records hold under another name: their older one, so that records do not change."""


@dataclass(frozen=True, kw_only=True)
class SampleOptions(ChainOptions):
    """Values of the options of mlm-sample; one of `steps` and `sweeps` is None, the other is the length of a chain."""

    steps: int | None
    sweeps: int | None
    chains: int
    every: int | None
    on_change: bool
    pll: int
    burn_in: int
    scan: str
    init: str
    length: int | None
    freeze: list[int] | None
    engine: str
    from_run: str | None
    check: bool

    def in_run_record(self) -> dict[str, Any]:
        """The options that a run record holds under `options`, by the names of RECORDED_NAMES."""
        options = self.recorded(*MODEL_OPTIONS, "exact", "seed", "tau", "engine", "cache_mb", "resume", "from_run",
                                "check", "table")
        renamed = {RECORDED_NAMES.get(name, name): value for name, value in options.items()}
        return dict(sorted(renamed.items())) | {"batch_size": self.batch_size}
