"""The options of mlm-report."""

from dataclasses import dataclass

from mlmglauber.commands.shared.options import Options


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Options):
    """Values of the options of mlm-report."""

    title: str
    threshold: float
    texts: int
