"""The options of mlm-couple."""

from dataclasses import dataclass, replace
from typing import Any

import click

from mlmglauber.commands.shared.options import MODEL_OPTIONS, ChainOptions

DEFAULT_HORIZON = 25.0
"""Maximum number of steps of a pair, in units of n ln n, if neither --max-steps nor --horizon is given."""

SWEEPS = 10
"""Default burn-in of --start burned, in sweeps."""

LAGS = 10
"""Default of --until in multiples of --lag."""


@dataclass(frozen=True, kw_only=True)
class CoupleOptions(ChainOptions):
    """Values of the options of mlm-couple."""

    lengths: list[int] | None
    start: str
    pairs: int | None
    burn_in: int | None
    coupling: str
    replicas: int
    lag: int
    max_steps: int | None
    horizon: float | None
    emit: int | None
    on_change: bool
    until: int | None
    summary: bool
    budgets: list[float]
    eps: list[float]

    def in_run_record(self) -> dict[str, Any]:
        """The options that a run record holds under `options`, without the batch size; they determine the run id.

        Those of --on-change and --until are left out without them: run ids from before the options stay what they were.
        """
        unused = [name for name, given in (("on_change", self.on_change), ("until", self.for_estimates)) if not given]
        return self.recorded(*MODEL_OPTIONS, "exact", "seed", "cache_mb", "resume", "summary", "budgets", "eps",
                             "table", *unused)

    def completed(self) -> "CoupleOptions":
        """The options with the defaults that depend on others; UsageError for options that contradict each other."""
        start = self.start or ("text" if self.lag else "pair")
        if self.max_steps is not None and self.horizon is not None:
            raise click.UsageError("--max-steps and --horizon exclude each other; give one of them")
        if self.replicas > 2 and self.coupling != "race":
            raise click.UsageError("--replicas above 2 need --coupling race")
        if self.replicas > 2 and self.lag:
            raise click.UsageError("--lag couples two chains; leave --replicas out")
        if self.lag and start.startswith("perturb"):
            raise click.UsageError("--lag needs two starts from one distribution, which --start perturb does not give; "
                                   "use another --start")
        if start == "text" and not self.lag:
            raise click.UsageError("--start text needs --lag: two chains of one text have met at their start")
        if self.burn_in is not None and start != "burned":
            raise click.UsageError("--burn-in needs --start burned")
        if self.on_change and self.emit is not None:
            raise click.UsageError("--every and --on-change exclude each other; give one of them")
        if self.until is not None and not (self.lag and (self.on_change or self.emit)):
            raise click.UsageError("--until needs --lag, and --on-change or --every")
        if self.until is not None and self.emit is not None and self.lag % self.emit:
            raise click.UsageError(f"--lag {self.lag} is no multiple of --every {self.emit}: with --until both chains "
                                   "are seen at the same steps; give a multiple")
        until = LAGS * self.lag if self.on_change and self.until is None else self.until
        if until is not None and self.max_steps is not None and self.max_steps < until - self.lag:
            raise click.UsageError(f"--max-steps {self.max_steps} is too small: the first chain runs to step {until} "
                                   f"(--until), which is {until - self.lag} steps with the second")
        horizon = DEFAULT_HORIZON if self.max_steps is None and self.horizon is None else self.horizon
        return replace(self, start=start, horizon=horizon, until=until)

    @property
    def for_estimates(self) -> bool:
        """Whether the states that mlm-estimate needs are written: those of the lag too, and those to step --until."""
        return self.on_change or self.until is not None

    @property
    def least_steps(self) -> int:
        """With --until the number of joint steps that a pair makes although it has met."""
        return max(0, (self.until or 0) - self.lag)

    def joint_steps(self, n: int) -> int:
        """Maximum number of joint steps of a pair of n sites."""
        from mlmglauber.measures.statistics.scaling import budget

        steps = max(self.max_steps or budget(n, self.horizon or 0), self.least_steps)
        return -(-steps // self.emit) * self.emit if self.emit and self.until is not None else steps

    def lead_in_steps(self, n: int) -> int:
        """Number of steps that each chain of n sites runs alone before the joint steps, apart from the lag."""
        if self.start != "burned":
            return 0
        return self.burn_in if self.burn_in is not None else SWEEPS * n

    def steps_of(self, n: int) -> int:
        """Maximum number of steps of a pair of n sites: joint ones, and those that its chains run alone."""
        return self.joint_steps(n) + self.replicas * self.lead_in_steps(n) + self.lag


def refuse_pairs(options: CoupleOptions) -> None:
    """UsageError if two inputs make a pair, since --dask may give them to two workers."""
    if options.completed().start == "pair":
        raise click.UsageError("--start pair takes two records at a time, which --dask may give to two workers; use "
                               "--shard, or another --start")
