"""The options of mlm-show."""

from dataclasses import dataclass

from mlmglauber.commands.shared.options import Options


@dataclass(frozen=True, kw_only=True)
class ShowOptions(Options):
    """Values of the options of mlm-show; `follow`, `log` and `diff` exclude each other."""

    follow: bool
    fps: float | None
    log: bool
    diff: bool
    color: str
