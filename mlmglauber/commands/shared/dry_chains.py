"""--dry-run of mlm-sample and mlm-couple: the first chains run for a moment, all others are counted."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

from mlmglauber.commands.shared.dry_run import SECONDS, Bounds, CountedOutput, output_bounds, write_estimate
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.line_size import Size, StateSizes
from mlmglauber.commands.shared.progress import clock
from mlmglauber.commands.shared.resumable import ChainJob, Cost, ResumableRun
from mlmglauber.stream.output import InOrder

PLANNED = 4096
"""Number of steps whose random numbers are drawn to measure what a step takes at least."""
BLOCKS = 4
"""Number of parts of the trial; the slowest one gives the upper bound of the time."""
AnyRun = ResumableRun[Any, Any]


def write_run_estimate(io: Filter, options: Any, run_class: type[AnyRun]) -> AnyRun:
    """Write the estimate of a whole run; the run, which has read the input."""
    if options.resume is not None:
        io.reporter.warn(f"--dry-run counts the whole run, also what {options.resume} holds already")
    output = io.output
    io.output = other = CountedOutput()
    run = run_class(io, replace(options, resume=None))
    run.order = InOrder(CountedOutput())
    with run:
        rows = _estimate(run, other)
    io.ends.clear()  # the few chains of the trial that have ended
    if rows:
        write_estimate(io, output, options.table, rows)
    return run


def _estimate(run: AnyRun, other: CountedOutput) -> list[Bounds]:
    """Run the first jobs for a moment, then read the input to its end and count.

    A step takes at least the time to draw its random numbers. At most each step of a chain waits for the model once.
    """
    costs: list[Cost] = []
    sizes: list[StateSizes] = []

    def begin(job: ChainJob) -> None:
        if not sizes:
            assert run.model is not None
            sizes.append(StateSizes(run.model))
        costs.append(job.cost(sizes[0]))

    trial = _trial(run, begin)
    if trial is None:
        return []
    all_at_once = True
    while (job := run.next_job(wait=True)) is not None:
        all_at_once = False
        begin(job)
        job.sink.close()
    steps, records, size = (Size(*map(sum, zip(*(getattr(cost, name) for cost in costs), strict=True)))
                            for name in ("steps", "records", "bytes"))
    chains = sum(cost.chains for cost in costs)
    how = f"{trial.rounds} rounds timed; at most with {trial.began - run.io.began:.1f} s before the first one"
    if trial.speed:
        how += f"; {clock(steps.most / trial.speed)} at the speed of these rounds"
    return [Bounds(run.jobs_name, len(costs), len(costs)), Bounds("chains", chains, chains),
            Bounds("steps", steps.least, steps.most),
            Bounds("seconds", steps.least * trial.planned, trial.seconds(costs, all_at_once), how),
            *output_bounds(other, records, size)]


class _Trial(NamedTuple):
    """What the trial measured.

    began: when its first round began. rounds: number of rounds. jobs: mean number of jobs in work. length: tokens of
    their texts, mean. alone, together: seconds of a round of one job and of all, in the slowest part of the trial.
    pace: steps that each chain makes in a round, at most 1, in the part where they are fewest. planned: seconds to
    draw the random numbers of a step. speed: steps a second of all chains, 0 where nothing was timed.
    """

    began: float
    rounds: int
    jobs: float
    length: float
    alone: float
    together: float
    pace: float
    planned: float
    speed: float

    def seconds(self, costs: Sequence[Cost], all_at_once: bool) -> float:
        """Maximum time of a run: a round of r jobs takes a + b r seconds, and a step of a job takes a round.

        While further jobs wait for room, as many are in work as in the trial; after that there are no more rounds than
        the longest job has. all_at_once: whether all jobs were in work from the beginning.
        """
        each = max(0.0, self.together - self.alone) / (self.jobs - 1) if self.jobs > 1 else 0.0
        common = max(0.0, self.alone - each)
        stretched = [cost.depth / self.pace * max(1.0, cost.n / self.length) for cost in costs]
        rounds = max(stretched) + (0 if all_at_once else sum(stretched) / self.jobs)
        return self.began + common * rounds + each * sum(stretched)
