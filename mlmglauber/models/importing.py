"""Opening torch and what stands on it: a third of the time is the garbage collector's, and is saved."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection inside, where libraries are imported and a model is loaded, nor later over what they leave.

    They are seven hundred thousand objects that live as long as the process; the collector would go through them again
    and again while they come, and once more at exit. Only the first time: with torch there, nothing is done, and a
    model that is opened later is collected like any other object.
    """
    if "torch" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
