"""--dry-run of mlm-sample and mlm-couple: the first chains run for a moment, all others are counted."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from mlmglauber.commands.shared.dry_run import PLANNED, SECONDS, Bounds, MeasuredOutput, write_estimate
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.progress import short
from mlmglauber.commands.shared.resumable import ChainJob, Cost, ResumableRun


def write_run_estimate(io: Filter, options: Any, run_class: type[ResumableRun[Any, Any]], kind: str) -> None:
    """Write the estimate of a whole run: what a file of --resume holds is neither read nor taken off.

    kind: the type of the records that answer an input.
    """
    output = io.output
    io.output = measured = MeasuredOutput(kind)
    with run_class(io, replace(options, resume=None)) as run:
        rows = _estimate(run, measured)
    if rows:
        write_estimate(io, output, options.table, rows)


def _estimate(run: ResumableRun[Any, Any], measured: MeasuredOutput) -> list[Bounds]:
    """Read the input to its end, run the first jobs for a moment, count all.

    At most each step needs a conditional of its own, as costly as the steps that the model answered in the trial. At
    least only the conditionals of Cost.conditionals are computed, at the price of a row of a call, and each step costs
    its random numbers.
    """
    costs: list[Cost] = []
    jobs: list[ChainJob] = []
    while run.has_room(jobs) and (job := run.next_job(wait=True)) is not None:
        costs.append(job.cost())
        jobs.append(job)
    if not jobs:
        return []
    rounds, slow, fast = _trial(run, jobs)
    walker = jobs[0].walker
    begin = perf_counter()
    walker.plan(0, PLANNED)
    planned = (perf_counter() - begin) / PLANNED
    for job in jobs:
        job.sink.close()
    while (job := run.next_job(wait=True)) is not None:
        costs.append(job.cost())
        job.sink.close()
    steps, conditionals, records = (
        (sum(getattr(cost, name)[0] for cost in costs), sum(getattr(cost, name)[1] for cost in costs))
        for name in ("steps", "conditionals", "records"))
    chains = sum(cost.chains for cost in costs)
    how = (f"{short(fast * 1e3)} ms a conditional, {short(slow * 1e3)} with all else; {rounds} batches; the model is "
           "open already")
    return [Bounds(run.jobs_name, len(costs), len(costs)), Bounds("chains", chains, chains), Bounds("steps", *steps),
            Bounds("conditionals", conditionals[0], conditionals[1], run.conditionals_how),
            Bounds("seconds", conditionals[0] * fast + steps[0] * planned, conditionals[1] * slow, how),
            *measured.bounds(*records)]


def _trial(run: ResumableRun[Any, Any], jobs: Sequence[ChainJob]) -> tuple[int, float, float]:
    """Run jobs for SECONDS: (batches, seconds of a step that the model answered, seconds of a conditional)."""
    counters = run.engine.counters

    def now() -> tuple[float, ...]:
        steps = sum(job.steps for job in jobs if not job.finished)
        return perf_counter(), counters.answered or steps, counters.seconds, counters.rows

    start = before = now()
    rounds = 0
    while any(not job.finished for job in jobs) and (rounds < 3 or perf_counter() - start[0] < SECONDS):
        run.step(jobs)
        rounds += 1
        if rounds == 1:
            before = now()  # the first call of a model is slower
    after = now()
    if after[1] <= before[1] or after[3] == before[3]:
        before = start
    seconds, answered, model_seconds, rows = (end - begin for end, begin in zip(after, before, strict=True))
    slow = seconds / answered if answered > 0 else 0.0
    return rounds, slow, min(slow, model_seconds / rows) if rows else slow
