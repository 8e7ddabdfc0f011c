"""Go on where an interrupted run left its file: what is whole in it, and from where each chain goes on.

Within a record states are written step by step. Of the record that was in work, the states of the last step may not
all be there, so they are cut off; every chain goes on from its last state before them.
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


class Left(NamedTuple):
    """What an interrupted run left.

    The ids that are done, the one in work, its chains' last states before its last step, that step, and how many
    records of the input were passed on.
    """

    done: frozenset[str]
    current: str | None
    states: dict[tuple[str, int], Record]
    step: int
    passed: int


NOTHING = Left(frozenset(), None, {}, -1, 0)


def open_locked(path: str) -> int:
    """A descriptor of the file, made if need be, that no other run holds."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}; choose a file that can be written") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise LockedError(f"{path}: another run is writing it; wait for its end or choose another file") from error
    return descriptor


def first_record(descriptor: int, path: str) -> Record | None:
    """The run record at the head of the file, None if there is none yet."""
    for record, _, _ in _whole_records(descriptor, path):
        return record if record.get("type") == "run" else None
    return None


def take_up(descriptor: int, path: str, head: Sequence[Record]) -> Left:
    """Compare the file's head with the run records of this run, cut off what is not whole, and tell what is left.

    The file is left at its end, ready for more lines. A head of another run is a UsageError naming what differs.
    """
    runs = {str(record["run"]) for record in head}
    finished: set[str] = set()
    current: str | None = None
    states: dict[tuple[str, int], Record] = {}
    before: dict[tuple[str, int], Record] = {}  # the last states before the last step
    step, cut, end, count, passed, passed_at_cut = -1, 0, 0, 0, 0, 0
    for record, offset, after in _whole_records(descriptor, path):
        end = after
        if count < len(head):
            _same(record, head[count], path)
            count += 1
            continue
        if record.get("run") not in runs or record.get("type") != "state":
            passed += 1
            continue
        if record["id"] != current:
            if current is not None:
                finished.add(current)
            current, step, states, before = record["id"], record["step"], {}, {}
            cut, passed_at_cut = offset, passed
        elif record["step"] != step:
            before, step = dict(states), record["step"]
            cut, passed_at_cut = offset, passed
        states[record["run"], record["chain"]] = record
    if count < len(head):
        if not to_line(head[count]).startswith(os.pread(descriptor, len(to_line(head[count])) + 1, end)):
            raise UsageError(f"{path}: no run was begun in it, and it is not empty; choose another file")
        end = 0
    os.ftruncate(descriptor, end if current is None else cut)
    os.lseek(descriptor, 0, os.SEEK_END)
    if count < len(head):
        output = AppendingOutput(descriptor)
        for record in head:
            output.write(record)
        output.flush()
        return NOTHING
    return Left(frozenset(finished), current, before, step, passed if current is None else passed_at_cut)


def _same(there: Record, record: Record, path: str) -> None:
    here = orjson.loads(to_line(record))
    differing = differing_fields(there, here)
    if there.get("versions") != here.get("versions"):
        differing.append("versions")
    if not differing:
        return
    if there.get("draw", 1) != here.get("draw", 1) and there.get("type") == "run":
        raise UsageError(f"{path}: it was begun with version {there.get('draw', 1)} of the draw, this is version "
                         f"{here.get('draw', 1)}: the same seed gives other chains; choose another file")
    raise UsageError(f"{path}: it was begun by another run ({', '.join(differing)} differ); "
                     "repeat that run's options and input, or choose another file")


def _whole_records(descriptor: int, path: str) -> Iterator[tuple[Record, int, int]]:
    """(record, where it begins, where it ends) of every line of the file that ends in a line feed.

    UsageError for a line that is no record: the file is no run's, and is left as it is.
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
                mend = f"cut the file there (head -n {number - 1}), or " if number > 1 else ""
                raise UsageError(f"{path}:{number}: no record; {mend}choose another file")
            yield record, begin, end
