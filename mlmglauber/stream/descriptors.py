"""What the system knows of an open file or pipe: how much is left to read, and whether it has ended."""

import os
import select
import stat


def unread(descriptor: int) -> int | None:
    """Number of bytes of a file behind the present place; None for a pipe or a terminal."""
    status = os.fstat(descriptor)
    return max(0, status.st_size - os.lseek(descriptor, 0, os.SEEK_CUR)) if stat.S_ISREG(status.st_mode) else None


def file_size(path: str) -> int | None:
    """Number of bytes of a file; None for anything else."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def has_ended(descriptor: int) -> bool:
    """Whether a pipe is empty and nobody can write to it any more."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return any(event & select.POLLHUP and not event & select.POLLIN for _, event in poll.poll(0))
