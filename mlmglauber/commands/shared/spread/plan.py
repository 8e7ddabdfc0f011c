"""What a command declares about its work so that --shard and --dask can divide it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _nothing_to_refuse(options: Any) -> None:
    """No combination of options is refused."""


@dataclass(frozen=True)
class Spread:
    """How the work of a command can be divided.

    needs_all: names of the options that need all records in one process, which --dask refuses. unique_ids: whether
    the ids of its inputs must differ over the whole input. check: raises a click.UsageError for options that --dask
    cannot serve for another reason.
    """

    needs_all: tuple[str, ...] = ()
    unique_ids: bool = False
    check: Callable[[Any], None] = _nothing_to_refuse
