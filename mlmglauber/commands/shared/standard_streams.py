"""Standard streams that whoever started us has closed."""

import os
import sys


def occupy_streams() -> None:
    """Open the null device in the place of a closed standard stream: reading or writing data there fails, words vanish.

    Otherwise the next file that is opened would take its number, and words for standard error end in that file.
    """
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest number that is free
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
