"""Finds out where an interrupted run stopped, and prepares its file so that the run can continue there.

The states of one input are written in the order of their steps. Of the input that was not finished, the states of the
last step may be incomplete: they are removed, and each chain continues from its last state before them.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from mlmglauber.stream.errors import LockedError, OutputError, UsageError
from mlmglauber.stream.output import AppendingOutput
from mlmglauber.stream.records import Record, to_line
from mlmglauber.stream.same import differing_fields


class ResumePoint(NamedTuple):
    """Where an interrupted run stopped.

    finished: ids of the inputs whose chains are complete. unfinished: the id of the next one, None where the file has
    no states. states: by run and chain, the last state of each of its chains before `step`. step: the last step in the
    file. passed_on: number of records of the input that were passed on unchanged.
    """

    finished: frozenset[str]
    unfinished: str | None
    states: dict[tuple[str, int], Record]
    step: int
    passed_on: int


BEGINNING = ResumePoint(frozenset(), None, {}, -1, 0)
"""The resume point of a new file."""


def open_locked(path: str) -> int:
    """A descriptor of the file, which is created if it is missing; LockedError if another run is writing to it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}; choose a file that can be written") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise LockedError(f"{path}: another run is writing to it; wait for its end, or choose another file") from error
    return descriptor


def first_record(descriptor: int, path: str) -> Record | None:
    """The run record at the beginning of the file; None if there is none yet."""
    for record, _, _ in _whole_records(descriptor, path):
        return record if record.get("type") == "run" else None
    return None


def continue_file(descriptor: int, path: str, head: Sequence[Record]) -> ResumePoint:
    """Prepare a file for more lines of a run, and return where the run stopped.

    head: the run records of this run, which are written to a new file. Incomplete lines and states are removed.
    UsageError for a file of another run, with the fields that differ.
    """
    runs = {str(record["run"]) for record in head}
    finished: set[str] = set()
    unfinished: str | None = None
    states: dict[tuple[str, int], Record] = {}
    before: dict[tuple[str, int], Record] = {}  # the last states before `step`
    step, cut, end, count, passed_on, passed_on_at_cut = -1, 0, 0, 0, 0, 0
    for record, offset, after in _whole_records(descriptor, path):
        end = after
        if count < len(head):
            _check_same_run(record, head[count], path)
            count += 1
            continue
        if record.get("run") not in runs or record.get("type") != "state":
            passed_on += 1
            continue
        if record["id"] != unfinished:
            if unfinished is not None:
                finished.add(unfinished)
            unfinished, step, states, before = record["id"], record["step"], {}, {}
            cut, passed_on_at_cut = offset, passed_on
        elif record["step"] != step:
            before, step = dict(states), record["step"]
            cut, passed_on_at_cut = offset, passed_on
        states[record["run"], record["chain"]] = record
    if count < len(head):
        if not to_line(head[count]).startswith(os.pread(descriptor, len(to_line(head[count])) + 1, end)):
            raise UsageError(f"{path}: the file is not empty and does not begin with a run record; choose another file")
        end = 0
    os.ftruncate(descriptor, end if unfinished is None else cut)
    os.lseek(descriptor, 0, os.SEEK_END)
    if count < len(head):
        output = AppendingOutput(descriptor)
        for record in head:
            output.write(record)
        output.flush()
        return BEGINNING
    return ResumePoint(frozenset(finished), unfinished, before, step,
                       passed_on if unfinished is None else passed_on_at_cut)


def _check_same_run(there: Record, record: Record, path: str) -> None:
    """UsageError where the run record of the file differs from that of this run."""
    here = orjson.loads(to_line(record))
    differing = differing_fields(there, here)
    if there.get("versions") != here.get("versions"):
        differing.append("versions")
    if not differing:
        return
    if there.get("draw", 1) != here.get("draw", 1) and there.get("type") == "run":
        raise UsageError(f"{path}: the file was begun with version {there.get('draw', 1)} of the draw, this is version "
                         f"{here.get('draw', 1)}, so the same seed gives other chains; choose another file")
    raise UsageError(f"{path}: the file was begun by another run ({', '.join(differing)} differ); repeat that run's "
                     "options and input, or choose another file")


def _whole_records(descriptor: int, path: str) -> Iterator[tuple[Record, int, int]]:
    """(record, offset of its line, offset of the next line) for each line of the file that ends with a line feed.

    UsageError for a line that is not a record; the file is not changed.
    """
    end = 0
    with open(os.dup(descriptor), "rb") as file:
        file.seek(0)
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            begin, end = end, end + len(line)
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                record = None
            if not isinstance(record, dict):
                remedy = f"keep the lines before (head -n {number - 1}), or " if number > 1 else ""
                raise UsageError(f"{path}:{number}: the line is not a record; {remedy}choose another file")
            yield record, begin, end
