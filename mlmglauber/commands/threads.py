"""How many threads a command computes with: those that it is allowed, and none that wait by spinning."""

import os
from pathlib import Path


def settle_threads() -> None:
    """Set what the numeric libraries read when they are loaded; what the user has set stands.

    Without it a container's share of the processors is not seen, and a command of a pipe whose threads wait in a loop
    for their next piece of work takes the processor from its neighbours.
    """
    os.environ.setdefault("OMP_NUM_THREADS", str(allowed_threads()))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def allowed_threads() -> int:
    """The processors that this process may run on, or the whole ones in its share of a control group, if fewer."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(count, _quota()))


def _quota(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Whole processors in the share of the control group (version 2, then 1); many where there is no limit."""
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
