"""The options of mlm-traps."""

from dataclasses import dataclass
from typing import Any

from mlmglauber.commands.shared.options import TextOptions


@dataclass(frozen=True, kw_only=True)
class TrapsOptions(TextOptions):
    """Values of the options of mlm-traps."""

    min_steps: int
    radius: int
    basin: float | None
    support: bool
    no_model: bool
    summary: bool
    table: str
    find: bool
    max_sweeps: int
    certify: tuple[str, ...]
    scan_tokens: int | None
    contexts: int
    draw: str
    candidates: int
    tau: list[float]
    seed: int | None

    @property
    def certifying(self) -> bool:
        """Whether --certify or --scan-tokens is given."""
        return bool(self.certify) or self.scan_tokens is not None

    def of_chains(self) -> dict[str, Any]:
        """The options that the run record of trap records holds."""
        return self._only("basin", "min_steps", "radius", "support")

    def of_search(self) -> dict[str, Any]:
        """The options that the run record of --find holds."""
        return self._only("basin", "find", "length", "max_sweeps", "support", "tau")

    def of_certificates(self) -> dict[str, Any]:
        """The options that the run record of --certify and --scan-tokens holds."""
        return self._only("candidates", "certify", "contexts", "draw", "length", "scan_tokens", "tau")

    def _only(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}
