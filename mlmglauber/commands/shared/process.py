"""Prepares the process of a command: standard streams, threads, and how freed memory is kept."""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

TRIM_AT, MAP_AT = 1 << 28, 1 << 25
"""Bytes of free memory from which the C library returns memory to the system, and the least size of a block that it
requests from the system directly."""
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(TRIM_AT), "MALLOC_MMAP_THRESHOLD_": str(MAP_AT)}
"""The same settings as environment variables, for processes that are started."""


def occupy_streams() -> None:
    """Open the null device for each standard stream that is closed; data cannot be read or written there.

    Otherwise the next file that is opened would get the number of the stream, and warnings would be written into it.
    """
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest number that is free
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def settle_process() -> None:
    """Set the threads, and keep freed memory for the next layer of a model."""
    settle_threads()
    keep_memory()


def keep_memory() -> None:
    """Tell the C library to keep freed memory, up to TRIM_AT bytes, unless the user has set its variables.

    By default glibc gives the memory of each large layer back to the system and asks for it again at the next one: a
    tenth of the time of a forward pass at BERT-base size. Another C library is left as it is.
    """
    if KEEP_MEMORY.keys() & os.environ.keys():
        return
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        if hasattr(library, "gnu_get_libc_version"):
            trim, mapped = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
            library.mallopt(trim, TRIM_AT)
            library.mallopt(mapped, MAP_AT)


def settle_threads() -> None:
    """Set the variables that the numeric libraries read when they are loaded, unless the user has set them.

    Otherwise they ignore a container's share of the processors, and idle threads, which wait in a loop, take processor
    time from the other commands of a pipe.
    """
    os.environ.setdefault("OMP_NUM_THREADS", str(allowed_threads()))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def allowed_threads() -> int:
    """Number of processors that this process may run on, or of whole ones in its control group's share, if fewer."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(count, _quota()))


def _quota(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Number of whole processors in the share of the control group (version 2, then 1); 65536 if there is no limit."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
        return int(int(quota) / int(period)) if quota != "max" else 1 << 16
    except (OSError, ValueError):
        pass
    try:
        quota, period = ((root / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(int(quota) / int(period)) if int(quota) > 0 else 1 << 16
    except (OSError, ValueError):
        return 1 << 16
