"""--dry-run of mlm-sample and mlm-couple: the first chains run for a moment, all others are counted."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

from mlmglauber.commands.shared.dry_run import PLANNED, SECONDS, Bounds, MeasuredOutput, write_estimate
from mlmglauber.commands.shared.filter import Filter
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
    how = (f"{fast * 1e3:.2g} ms a conditional, {slow * 1e3:.2g} with its step, in {rounds} rounds; opening the model "
           "comes before")
    return [Bounds(run.jobs_name, len(costs), len(costs)), Bounds("chains", chains, chains), Bounds("steps", *steps),
            Bounds("conditionals", conditionals[0], conditionals[1], run.conditionals_how),
            Bounds("seconds", conditionals[0] * fast + steps[0] * planned, conditionals[1] * slow, how),
            *measured.bounds(*records),
            Bounds("cache", 0, run.options.cache_mb << 20, "bytes, up to --cache-mb")]


class _Round(NamedTuple):
    """One round of the trial: seconds, steps, those that the model answered, seconds and rows of its calls."""

    seconds: float
    steps: int
    answered: int
    model_seconds: float
    rows: int


def _trial(run: ResumableRun[Any, Any], jobs: Sequence[ChainJob]) -> tuple[int, float, float]:
    """Run jobs for SECONDS: (rounds, seconds of a step that the model answers, seconds of a conditional alone).

    The price of a step is taken from rounds in which the model answered half of the steps or more. The first round is
    left out where there is another one, since a model's first call is slower.
    """
    counters = run.engine.counters
    rounds: list[_Round] = []

    def counts() -> tuple[int, int, float, int]:
        plain = 0 if run.counts else sum(job.steps for job in jobs)
        return counters.steps + plain, counters.answered + plain, counters.seconds, counters.rows

    begin = perf_counter()
    while any(not job.finished for job in jobs) and (len(rounds) < 3 or perf_counter() - begin < SECONDS):
        start, before = perf_counter(), counts()
        run.step(jobs)
        seconds = perf_counter() - start
        steps, answered, model_seconds, rows = (now - then for now, then in zip(counts(), before, strict=True))
        rounds.append(_Round(seconds, int(steps), int(answered), model_seconds, int(rows)))
    rounds_after = rounds[1:] or rounds
    priced = [each for each in rounds_after if each.answered and 2 * each.answered >= each.steps] or rounds
    answered, rows = sum(each.answered for each in priced), sum(each.rows for each in rounds_after)
    slow = sum(each.seconds for each in priced) / answered if answered else 0.0
    return len(rounds), slow, min(slow, sum(each.model_seconds for each in rounds_after) / rows) if rows else slow
