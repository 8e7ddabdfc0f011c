"""The options of mlm-sample."""

import os
from dataclasses import dataclass
from typing import Any, ClassVar

from mlmglauber.commands.shared.options import MODEL_OPTIONS, ChainOptions
from mlmglauber.dynamics.temperatures import Temperatures
from mlmglauber.stream.output import BufferedOutput, Output
from mlmglauber.stream.records import Record

DEFAULT_SWEEPS = 100
"""Number of sweeps where neither --steps nor --sweeps is given."""

RECORDED_NAMES = {"pll": "energy"}
"""Options that run records hold under another name: their older one, so that records do not change."""


@dataclass(frozen=True, kw_only=True)
class SampleOptions(ChainOptions):
    """Values of the options of mlm-sample; one of `steps` and `sweeps` is None, the other is the length of a chain.

    With a schedule both may be None: see last_step.
    """

    RECORDED_IF_GIVEN: ClassVar[frozenset[str]] = ChainOptions.RECORDED_IF_GIVEN | {"schedule"}
    schedule: str | None
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

    @property
    def temperatures(self) -> list[Temperatures]:
        """The temperatures of each run: those of --schedule, or each one of --tau."""
        if self.schedule is not None:
            return [Temperatures.parse(self.schedule)]
        return [Temperatures.constant(tau) for tau in self.tau]

    @property
    def taus(self) -> list[float]:
        """See ChainOptions; those at which the pieces of a schedule begin and end."""
        return [tau for temperatures in self.temperatures for tau in temperatures.ends()]

    def in_run_id(self, tau: float | str, first: Record) -> list[Any]:
        """What determines the id of a run at a temperature, or with a schedule, besides the model."""
        names: list[Any] = [self.seed, tau, self.scan, self.init, self.length, self.freeze, first]
        if self.allow is not None:
            names.append(self.allow)
        given = self.recorded()
        return names + [[name, given[name]] for name in sorted(self.RECORDED_IF_GIVEN - {"schedule"}) if name in given]

    def last_step(self, n: int) -> int:
        """The number of steps of a chain of n sites.

        Without --steps and --sweeps a chain runs to the end of its schedule and, where the last piece has no number of
        steps, DEFAULT_SWEEPS more sweeps.
        """
        if self.schedule is not None and self.steps is None and self.sweeps is None:
            return max(self.burn_in, *(schedule.length(n, DEFAULT_SWEEPS) for schedule in self.temperatures))
        return self.burn_in + (self.steps if self.steps is not None else (self.sweeps or 0) * n)

    def steps_of(self, n: int) -> int:
        """The number of steps of all chains of a text of n tokens."""
        return len(self.temperatures) * self.chains * self.last_step(n)

    def shown_output(self, output: BufferedOutput, named: bool, color: bool) -> Output:
        """On a terminal an output that shows the chains, unless records or a table are asked for, or go to a file."""
        if self.json or named or self.check or self.resume is not None or self.table or \
                not os.isatty(output.descriptor):
            return output
        from mlmglauber.commands.show.output import ShownOutput

        return ShownOutput(output, color)

    def in_run_record(self) -> dict[str, Any]:
        """The options that a run record holds under `options`, by the names of RECORDED_NAMES."""
        options = self.recorded(*MODEL_OPTIONS, "exact", "seed", "tau", "engine", "cache_mb", "resume", "from_run",
                                "check", "table", "json")
        renamed = {RECORDED_NAMES.get(name, name): value for name, value in options.items()}
        return dict(sorted(renamed.items())) | {"batch_size": self.batch_size}
