"""--dry-run of mlm-sample and mlm-couple: the first chains run for a moment, all others are counted."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from mlmglauber.commands.shared.dry_run import MARGIN, SECONDS, Bounds, CountedOutput, output_bounds, write_estimate
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.line_size import NONE, StateSizes
from mlmglauber.commands.shared.progress import clock
from mlmglauber.commands.shared.resumable import ChainJob, Cost, ResumableRun
from mlmglauber.stream.output import InOrder

PLANNED = 4096
"""Number of steps whose random numbers are drawn to measure what a step takes at least."""
BLOCKS = 4
"""Number of parts of the trial; the slowest one gives the upper bound of the time."""
AnyRun = ResumableRun[Any, Any]
RunT = TypeVar("RunT", bound=AnyRun)


def write_run_estimate(io: Filter, options: Any, run_class: Callable[[Filter, Any], RunT]) -> RunT:
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
    while (job := run.next_job(wait=True)) is not None:
        begin(job)
        job.sink.close()
    chains, size = sum(cost.chains for cost in costs), sum((cost.size for cost in costs), NONE)
    least, most = (sum(cost.steps[end] for cost in costs) for end in (0, 1))
    records = sum(cost.records[0] for cost in costs), sum(cost.records[1] for cost in costs)
    how = f"{trial.start:.1f} s before the first round; rounds timed: {trial.rounds}"
    if trial.speed:
        how += f"; {clock(most / trial.speed)} at the speed of these rounds"
    return [Bounds(run.jobs_name, len(costs), len(costs)), Bounds("chains", chains, chains),
            Bounds("steps", least, most),
            Bounds("seconds", (trial.start + least * trial.planned) / MARGIN, trial.seconds(costs), how),
            *output_bounds(other, records, size)]


class _Trial(NamedTuple):
    """What the trial measured.

    start: seconds before its first round. rounds: number of rounds. first: number of jobs in its first round. jobs,
    length: mean number of jobs in work, and of tokens of their texts. alone, together: seconds for which a chain waits
    in a round of one job and of all, in the slowest part of the trial. own: seconds of a step of all chains of a job
    beside this waiting. pace: steps that a chain makes in a round, at most 1, in the part where they are fewest.
    planned: seconds to draw the random numbers of a step. speed: steps a second of all chains, 0 where that was not
    timed.
    """

    start: float
    rounds: int
    first: int
    jobs: float
    length: float
    alone: float
    together: float
    own: float
    pace: float
    planned: float
    speed: float

    def seconds(self, costs: Sequence[Cost]) -> float:
        """Maximum time of a run: in a round of r jobs chains wait a + b r seconds, and each step takes a round.

        While further jobs wait for room, as many are in work as in the trial; after that there are no more rounds than
        the longest job needs.
        """
        each = max(0.0, self.together - self.alone) / (self.jobs - 1) if self.jobs > 1 else 0.0
        common = max(0.0, self.alone - each)
        rounds = [cost.depth / self.pace * max(1.0, cost.n / self.length) for cost in costs]
        one_after_another = max(rounds) + (sum(rounds) / self.jobs if len(costs) > self.first else 0)
        return MARGIN * (self.start + common * one_after_another + (each + self.own) * sum(rounds))


class _Round(NamedTuple):
    """One round. seconds, waited: all of it, and those in which chains waited for the model. jobs: those in work.

    steps: of all chains. depth: sum over jobs of the steps of one chain. answered: steps for which a chain waited.
    """

    seconds: float
    waited: float
    jobs: int
    steps: int
    depth: float
    answered: int


def _trial(run: AnyRun, begin: Callable[[ChainJob], None]) -> _Trial | None:
    """Run jobs for SECONDS, then the longest of them alone for half of that; None for an input without a job."""
    in_work: deque[ChainJob] = deque()
    rounds: list[_Round] = []
    lengths: list[int] = []
    if not run.admit(in_work, begin, wait=True):
        return None
    first, started, planned = len(in_work), perf_counter(), _planning(in_work[0])
    while in_work and _goes_on(started, SECONDS, rounds):
        if working := [job for job in in_work if not job.finished]:
            lengths += [job.planned.sites for job in working]
            rounds.append(_round(run, working))
        run.retire(in_work)
        run.admit(in_work, begin, wait=True)
    alone: list[_Round] = []
    left = [job for job in in_work if not job.finished]
    longest = max(left, key=lambda job: job.planned.sites, default=None)
    after = perf_counter()
    while longest is not None and len(left) > 1 and not longest.finished and _goes_on(after, SECONDS / 2, alone):
        alone.append(_round(run, [longest]))
    for job in in_work:
        job.sink.close()
    if not rounds:  # no job has a step
        return _Trial(started - run.io.began, 0, first, 1, 1, 0.0, 0.0, 0.0, 1.0, planned, 0.0)
    timed = rounds[1:] or rounds
    pace = min(sum(each.depth for each in part) / sum(each.jobs for each in part) for part in _parts(timed))
    together = _waiting(timed)
    return _Trial(started - run.io.began, len(rounds) + len(alone), first,
                  sum(each.jobs for each in timed) / len(timed), sum(lengths) / len(lengths),
                  _waiting(alone) if alone else together, together,
                  sum(each.seconds - each.waited for each in timed) / max(1, sum(each.depth for each in timed)),
                  max(1e-3, min(1.0, pace)), planned,
                  sum(each.steps for each in timed) / sum(each.seconds for each in timed) if len(rounds) > 1 else 0.0)


def _goes_on(begin: float, seconds: float, rounds: Sequence[_Round]) -> bool:
    """Whether there are fewer than three rounds, or the time has not passed."""
    return len(rounds) < 3 or perf_counter() - begin < seconds


def _round(run: AnyRun, jobs: Sequence[ChainJob]) -> _Round:
    """Advance jobs by a round."""
    def counts() -> tuple[float, int, float, int]:
        counters = run.engine.counters
        return counters.waited, sum(job.steps for job in jobs), sum(job.depth for job in jobs), counters.answered

    before, begin = counts(), perf_counter()
    run.step(jobs)
    seconds = perf_counter() - begin
    waited, steps, depth, answered = (now - then for now, then in zip(counts(), before, strict=True))
    if not run.counts:  # every step waits
        waited, answered = seconds, steps
    return _Round(seconds, waited, len(jobs), int(steps), depth, int(answered))


def _waiting(rounds: Sequence[_Round]) -> float:
    """Seconds for which chains wait for the model in a round in which they do, in the slowest part of the rounds."""
    waiting = [each for each in rounds if each.answered] or rounds
    return max(sum(each.waited for each in part) / len(part) for part in _parts(waiting))


def _parts(rounds: Sequence[_Round]) -> list[Sequence[_Round]]:
    """At most BLOCKS parts of about the same size."""
    size = -(-len(rounds) // BLOCKS)
    return [rounds[k : k + size] for k in range(0, len(rounds), size)]


def _planning(job: ChainJob) -> float:
    """Seconds to draw the random numbers of one step."""
    begin = perf_counter()
    job.planned.plan(0, PLANNED)
    return (perf_counter() - begin) / PLANNED
