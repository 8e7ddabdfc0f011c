"""--dask: the blocks of an input answered by the workers of dask.distributed, written in input order.

The client reads lines and writes bytes; at most AHEAD blocks for each worker are under way or wait to be written, so a
slow reader of the output or a slow producer of the input holds everything up and nothing piles up. A worker that dies
costs its blocks' time: the scheduler gives them to another. A block that kills its workers again and again is taken
apart, and the line that does it is told of as a bad record.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
import orjson

from mlmglauber.commands.shared.chain_run import Runs
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.process import KEEP_MEMORY, allowed_threads
from mlmglauber.commands.shared.spread.worker import Answer, Block, run_block
from mlmglauber.stream.errors import MlmError, RecordError
from mlmglauber.stream.records import Line, Record, is_input, parse, record_id

LINES = 16
"""Lines of a block, when so many are at hand."""
AHEAD = 3
"""Blocks for each worker that are under way or wait to be written."""
WHOLE = ("summary", "fail_above", "path", "pca", "resume", "check", "from_run", "summarize", "table", "csv", "md")
"""Options that need all records in one place."""
RUN_RECORD = re.compile(rb'"type"\s*:\s*"run"')
"""What a line of a run record holds; few others do."""


def distribute(filter: Filter, command: str, address: str, options: dict[str, Any]) -> None:
    """Run a command over its input on the workers at an address, or on local:N processes of this machine."""
    for name in WHOLE:
        if options.get(name):
            raise click.UsageError(f"--dask writes records as they come; --{name.replace('_', '-')} needs them all: "
                                   f"run {command} without it, on the output")
    if command == "mlm-couple" and options["start"] in (None, "pair") and not (options["start"] is None
                                                                                and options["lag"]):
        raise click.UsageError("--start pair takes two records at a time, which --dask may give to two workers; use "
                               "--shard, or another --start")
    try:
        import distributed  # noqa: F401 - that it is there
    except ImportError as error:
        raise MlmError("--dask needs dask.distributed; install mlmglauber[dask]") from error
    if "seed" in options and options["seed"] is None:
        from mlmglauber.dynamics.randomness import drawn_seed

        options["seed"] = drawn_seed()
    blocks = _Blocks(filter, unique=command == "mlm-sample")
    first = blocks.next(wait=True)
    if first is None:  # nothing to do: no cluster
        return
    resources = {"GPU": 1} if str(options.get("device", "")).startswith("cuda") else {}
    with _cluster(address, resources) as (client, workers), filter.words.bar("records") as progress:
        if not workers():
            filter.words.say(f"--dask {address}: no worker there yet; waiting for one")
        job = _Job(filter, command, options, client, resources)
        job.submit(first)
        while True:
            while job.room(workers()):
                block = blocks.next(wait=job.idle)
                if block is None:
                    break
                job.submit(block)
            if job.idle:
                break
            progress(job.write_next())
            filter.output.flush()


class _Blocks:
    """The input in blocks: as many lines as are at hand, at most LINES."""

    def __init__(self, filter: Filter, unique: bool) -> None:
        self.filter = filter
        self.count = 0
        self.first: Record | None = None
        self.seen: set[str] | None = set() if unique else None
        self.runs = Runs()

    def next(self, wait: bool) -> Block | None:
        found: list[Line] = []
        before = self.count
        while len(found) < LINES:
            line = self.filter.next_line(wait and not found)
            if line is None:
                break
            if line.content is not None and not line.content.strip(b" \t\r"):
                continue
            self.count += 1
            with self.filter.guard(line.place):
                if self._is_new(line):
                    found.append(line)
                    continue
            if not found:  # what a block holds has consecutive places
                before = self.count
            else:
                break
        return Block(found, before, self.first, tuple(self.runs.records.values())) if found else None

    def _is_new(self, line: Line) -> bool:
        """Whether a worker is to answer a line; RecordError for one whose id stood in the input before."""
        heads = line.content is not None and RUN_RECORD.search(line.content) is not None
        if self.first is not None and self.seen is None and not heads:
            return True
        try:
            record = parse(line) or {}
            name = record_id(record, self.count - 1) if is_input(record) else None
        except RecordError:
            return True  # the worker tells of it
        self.first = self.first or record
        if record.get("type") == "run":
            self.runs.take(record)
        if self.seen is not None and name is not None:
            if name in self.seen:
                raise RecordError(f"the id {name!r} stood in the input before; ids name chains, make them differ")
            self.seen.add(name)
        return True


class _Job:
    """The blocks under way, in input order."""

    def __init__(self, filter: Filter, command: str, options: dict[str, Any], client: Any,
                 resources: dict[str, int]) -> None:
        self.filter, self.command, self.options, self.client = filter, command, options, client
        self.resources = resources
        self.waiting: deque[tuple[Block, Any]] = deque()
        self.heads: dict[str, Record] = {}

    @property
    def idle(self) -> bool:
        return not self.waiting

    def room(self, workers: int) -> bool:
        return len(self.waiting) < AHEAD * max(1, workers)

    def submit(self, block: Block, at_front: bool = False) -> None:
        future = self.client.submit(run_block, self.command, block, self.options, self.filter.strict,
                                    self.filter.words.quiet, pure=False, resources=self.resources or None)
        (self.waiting.appendleft if at_front else self.waiting.append)((block, future))

    def write_next(self) -> int:
        """Wait for the first block under way and write it; the number of its lines."""
        from distributed import KilledWorker

        block, future = self.waiting.popleft()
        try:
            found: Answer = future.result()
        except KilledWorker:
            if len(block.lines) == 1:
                self.filter.bad(RecordError("this record killed the workers that were given it, one after the other; "
                                            "look at their logs, or leave it out"), block.lines[0].place)
                return 1
            for k in reversed(range(len(block.lines))):
                self.submit(block._replace(lines=[block.lines[k]], before=block.before + k), at_front=True)
            return 0
        for line in found.output.splitlines(keepends=True):
            if not line.startswith(b'{"type":"run"') or self._is_new(orjson.loads(line)):
                self.filter.output.write_line(line)
        for words in found.words:
            self.filter.words.heard(words)
        self.filter.words.bad_records += found.bad_records
        for counts, more in zip(self.filter.counts, found.counts, strict=True):
            counts.update(more)
        if found.error is not None:
            status, message = found.error
            if status == 2:
                raise click.UsageError(message)
            error = MlmError(message)
            error.status = type(error.status)(status)
            raise error
        return len(block.lines)

    def _is_new(self, run: Record) -> bool:
        """Whether a run record is to be written: each of the command's own once. MlmError where workers differ."""
        if run.get("command") != self.command:
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
    """(client, a function that counts the workers); MlmError where there are workers, none with the resources."""
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
        # As Dask sets it, a worker's memory goes back to the system at every layer: a fifth of a forward pass.
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
        why = str(error).partition("\n")[0]  # some of Dask's hold a traceback
        raise MlmError(f"--dask {address}: no scheduler there ({why}); give its address, as tcp://host:8786, or "
                       "local:N") from error
    with client:
        def workers() -> Any:
            return client.scheduler_info(n_workers=-1)["workers"].values()

        if workers() and not any(resources.keys() <= worker["resources"].keys() for worker in workers()):
            raise MlmError(f"--dask {address}: no worker has a GPU to give; start them with --resources GPU=1, or take "
                           "another --device")
        yield client, lambda: len(workers())
