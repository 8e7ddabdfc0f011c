"""The options of mlm-embed."""

from dataclasses import dataclass
from typing import Any

from mlmglauber.commands.shared.options import DeviceOptions


@dataclass(frozen=True, kw_only=True)
class EmbedOptions(DeviceOptions):
    """Values of the options of mlm-embed."""

    model: str
    batch_size: int
    encoding: str
    dims: int | None
    normalize: bool
    prompt: str | None
    prompt_name: str | None
    pca: int | None

    @property
    def opening(self) -> dict[str, Any]:
        """The keyword arguments of `Embedder.open` that these options give."""
        names = ("revision", "device", "trust_remote_code", "allow_pickle", "normalize", "prompt", "prompt_name",
                 "dims")
        return {"rows": self.batch_size, **{name: getattr(self, name) for name in names}}
