"""The options of mlm-sample."""

import os
from dataclasses import dataclass
from typing import Any

from mlmglauber.commands.shared.options import MODEL_OPTIONS, ChainOptions
from mlmglauber.stream.output import BufferedOutput, Output

RECORDED_NAMES = {"pll": "energy"}
"""Options that run records hold under another name: their older one, so that records do not change."""


@dataclass(frozen=True, kw_only=True)
class SampleOptions(ChainOptions):
    """Values of the options of mlm-sample; `steps` and `sweeps` exclude each other."""

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
    json: bool

    def shown_output(self, output: BufferedOutput, named: bool, color: bool) -> Output:
        """On a terminal an output that shows the chains, unless records or a table are asked for, or go to a file."""
        if self.json or named or self.check or self.resume is not None or self.table or \
                not os.isatty(output.descriptor):
            return output
        from mlmglauber.commands.show.output import ShownOutput

        return ShownOutput(output, color)

    @property
    def frozen(self) -> list[int]:
        """The sites of --freeze."""
        return self.freeze or []

    def steps_of(self, n: int) -> int:
        """Number of steps of a chain of n sites, burn-in not counted."""
        if self.steps is not None:
            return self.steps
        assert self.sweeps is not None
        return self.sweeps * n

    def in_run_record(self) -> dict[str, Any]:
        """The options that a run record holds under `options`, by the names of RECORDED_NAMES."""
        options = self.recorded(*MODEL_OPTIONS, "exact", "seed", "tau", "engine", "cache_mb", "resume", "from_run",
                                "check", "table", "json")
        renamed = {RECORDED_NAMES.get(name, name): value for name, value in options.items()}
        return dict(sorted(renamed.items())) | {"batch_size": self.batch_size}
