"""--dask: divides an input into blocks, lets workers of dask.distributed answer them, writes answers in input order.

The client reads lines and writes bytes. At most AHEAD blocks for each worker are in work or wait to be written, so the
memory stays bounded if the reader of the output is slow. When a worker dies, the scheduler gives its blocks to
another one. A block that kills several workers is divided into single lines, and the line that kills a worker again is
reported as a bad record.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
import orjson

from mlmglauber.commands.shared.chain_run import Runs
from mlmglauber.commands.shared.filter import Filter, Function
from mlmglauber.commands.shared.options import Options
from mlmglauber.commands.shared.process import KEEP_MEMORY, allowed_threads
from mlmglauber.commands.shared.spread.plan import Spread
from mlmglauber.commands.shared.spread.worker import Answer, Block, run_block
from mlmglauber.stream.errors import MlmError, RecordError
from mlmglauber.stream.records import Line, Record, is_input, parse, record_id, repeated_id

LINES = 16
"""Maximum number of lines in a block, which has fewer if fewer have arrived."""
AHEAD = 3
"""Maximum number of blocks for each worker that are in work or wait to be written."""
RUN_RECORD = re.compile(rb'"type"\s*:\s*"run"')
"""Matches every line that holds a run record, and few other lines."""


def run_on_workers(io: Filter, function: Function, options: Options, spread: Spread, address: str) -> None:
    """Run a command's function over its input on the workers at an address, or on local:N processes of this machine."""
    for name in spread.needs_all:
        value = getattr(options, name)
        if value not in (None, False, "", "records"):  # "records" is --no-table
            option = value if name == "table" and value != "text" else name.replace("_", "-")
            raise click.UsageError(f"--dask divides the input, and --{option} needs all records in one process; run "
                                   f"{io.reporter.command} without --dask on the output")
    spread.check(options)
    try:
        import distributed  # noqa: F401 - checks that it is installed
    except ImportError as error:
        raise MlmError("--dask needs dask.distributed; install mlmglauber[dask]") from error
    if getattr(options, "seed", 0) is None:
        from mlmglauber.dynamics.randomness import drawn_seed

        options = replace(options, seed=drawn_seed())  # type: ignore[call-arg]
    blocks = _Blocks(io, spread.unique_ids)
    first = blocks.next(wait=True)
    if first is None:  # nothing to do: no cluster
        return
    resources = {"GPU": 1} if str(getattr(options, "device", "")).startswith("cuda") else {}
    with _cluster(address, resources) as (client, workers), io.bar("records") as progress:
        if not workers():
            io.reporter.warn(f"--dask {address}: no worker has connected yet; waiting for one")
        job = _Job(io, function, options, client, resources)
        progress.plan(len(first.lines))
        job.submit(first)
        while True:
            while job.room(workers()):
                block = blocks.next(wait=job.idle)
                if block is None:
                    break
                progress.plan(len(block.lines))
                job.submit(block)
            if job.idle:
                break
            progress(job.write_next())
            io.output.flush()


class _Blocks:
    """The input in blocks: the lines that have arrived, at most LINES."""

    def __init__(self, io: Filter, unique: bool) -> None:
        self.io = io
        self.count = 0
        self.first: Record | None = None
        self.ids: set[str] | None = set() if unique else None
        """The ids of the inputs so far, if they must differ."""
        self.runs = Runs()

    def next(self, wait: bool) -> Block | None:
        lines: list[Line] = []
        before = self.count
        while len(lines) < LINES:
            line = self.io.next_line(wait and not lines)
            if line is None:
                break
            if line.content is not None and not line.content.strip(b" \t\r"):
                continue
            self.count += 1
            with self.io.guard(line.place):
                if self._is_new(line):
                    lines.append(line)
                    continue
            if not lines:  # the lines of a block must be consecutive
                before = self.count
            else:
                break
        self.io.count = self.count
        return Block(lines, before, self.first, tuple(self.runs.records.values())) if lines else None

    def _is_new(self, line: Line) -> bool:
        """Whether a worker answers the line; RecordError for an id that is not new."""
        heads = line.content is not None and RUN_RECORD.search(line.content) is not None
        if self.first is not None and self.ids is None and not heads:
            return True
        try:
            record = parse(line) or {}
            name = record_id(record, self.count - 1) if is_input(record) else None
        except RecordError:
            return True  # the worker reports it
        self.first = self.first or record
        if record.get("type") == "run":
            self.runs.take(record)
        if self.ids is not None and name is not None:
            if name in self.ids:
                raise RecordError(repeated_id(name))
            self.ids.add(name)
        return True


class _Job:
    """The blocks in work, in input order."""

    def __init__(self, io: Filter, function: Function, options: Options, client: Any,
                 resources: dict[str, int]) -> None:
        self.io, self.function, self.options, self.client = io, function, options, client
        self.resources = resources
        self.waiting: deque[tuple[Block, Any]] = deque()
        self.heads: dict[str, Record] = {}

    @property
    def idle(self) -> bool:
        return not self.waiting

    def room(self, workers: int) -> bool:
        return len(self.waiting) < AHEAD * max(1, workers)

    def submit(self, block: Block, at_front: bool = False) -> None:
        future = self.client.submit(run_block, self.function, block, self.options, self.io.strict,
                                    self.io.reporter.quiet, pure=False, resources=self.resources or None)
        (self.waiting.appendleft if at_front else self.waiting.append)((block, future))

    def write_next(self) -> int:
        """Wait for the first block in work and write its answer; the number of its lines."""
        from distributed import KilledWorker

        block, future = self.waiting.popleft()
        try:
            answer: Answer = future.result()
        except KilledWorker:
            if len(block.lines) == 1:
                self.io.bad(RecordError("this record killed several workers, one after the other; look at their "
                                        "logs, or leave the record out"), block.lines[0].place)
                return 1
            for k in reversed(range(len(block.lines))):
                self.submit(block._replace(lines=[block.lines[k]], before=block.before + k), at_front=True)
            return 0
        for line in answer.output.splitlines(keepends=True):
            if not line.startswith(b'{"type":"run"') or self._is_new(orjson.loads(line)):
                self.io.output.write_line(line)
        for report in answer.reports:
            self.io.reporter.relay(report)
        self.io.reporter.bad_records += answer.bad_records
        for counts, more in zip(self.io.counts, answer.counts, strict=True):
            counts.update(more)
        if answer.error is not None:
            status, message = answer.error
            if status == 2:
                raise click.UsageError(message)
            error = MlmError(message)
            error.status = type(error.status)(status)
            raise error
        return len(block.lines)

    def _is_new(self, run: Record) -> bool:
        """Whether to write a run record: each of the command's own once. MlmError if workers differ in it."""
        if run.get("command") != self.io.reporter.command:
            return True
        same = {key: value for key, value in run.items() if key not in ("device", "threads")}
        known = self.heads.setdefault(str(run["run"]), same)
        if known is same:
            self._check_versions(run)
            if any(head.get("hash") != run.get("hash") for head in self.heads.values()):
                raise MlmError("two workers have different weights for this model; give them the same files")
            return True
        if known != same:
            differing = [key for key in same if known.get(key) != same[key]]
            raise MlmError(f"two workers differ in {', '.join(differing)}; give them the same versions and files")
        return False

    def _check_versions(self, run: Record) -> None:
        for name, there in run.get("versions", {}).items():
            try:
                here = version(name.replace("_", "-"))
            except PackageNotFoundError:
                continue
            if here != there:
                raise MlmError(f"the workers have {name} {there}, this client {here}; install the same versions")


@contextmanager
def _cluster(address: str, resources: dict[str, int]) -> Iterator[tuple[Any, Callable[[], int]]]:
    """(client, a function that counts the workers); MlmError if there are workers, but none with the resources."""
    import logging

    import dask
    import distributed

    client_at: Any = distributed.Client
    local_cluster: Any = distributed.LocalCluster
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    local = re.fullmatch(r"local:([1-9]\d{0,3})", address)
    if local is not None:
        count = int(local[1])
        threads = str(max(1, allowed_threads() // count))
        # With Dask's setting, a worker returns memory to the system at every layer: a fifth of a forward pass.
        environment = {"OMP_NUM_THREADS": threads, **KEEP_MEMORY}
        try:
            with dask.config.set({"distributed.nanny.pre-spawn-environ": environment}):
                cluster = local_cluster(n_workers=count, threads_per_worker=1, dashboard_address=None,
                                        silence_logs=logging.CRITICAL, resources=resources)
        except RuntimeError as error:
            raise MlmError(f"--dask {address}: the workers did not start ({error}); try fewer") from error
        with cluster, client_at(cluster, set_as_default=False) as client:
            yield client, lambda: count
        return
    try:
        client = client_at(address, timeout=5, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        why = str(error).partition("\n")[0]  # some errors of Dask contain a traceback
        raise MlmError(f"--dask {address}: no scheduler there ({why}); give its address, as tcp://host:8786, or "
                       "local:N") from error
    with client:
        def workers() -> Any:
            return client.scheduler_info(n_workers=-1)["workers"].values()

        if workers() and not any(resources.keys() <= worker["resources"].keys() for worker in workers()):
            raise MlmError(f"--dask {address}: no worker offers a GPU; start them with --resources GPU=1, or choose "
                           "another --device")
        yield client, lambda: len(workers())
