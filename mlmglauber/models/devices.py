"""The device, the number formats and the library versions that a model computes with."""

import copy
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber import __version__
from mlmglauber.stream.errors import UsageError

TIMED_CALLS = 3
"""Number of timed calls per number format; the fastest one counts."""
SLOWER = 1.2
"""A number format that takes so many times as long as float32 is reported as slow."""


def pick_device(device: str) -> str:
    """The device of --device (auto, cpu, cuda or cuda:N) as torch names it; auto is a GPU where there is one.

    UsageError for any other name, and for a GPU that this machine does not have.
    """
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise UsageError(f"--device {device}: no such device; auto, cpu, cuda or cuda:N")
    if device != "cpu" and (not torch.cuda.is_available() or int((device + ":0").split(":")[1])
                            >= torch.cuda.device_count()):
        raise UsageError(f"--device {device}: no such GPU on this machine; use --device cpu")
    return device


def send(array: NDArray[np.int64], device: str) -> Any:
    """A tensor on the device; the copy to a GPU runs beside the computation."""
    import torch

    tensor = torch.from_numpy(array)
    if device.startswith("cuda"):
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor


def plain_attention() -> AbstractContextManager[Any]:
    """A context in which attention runs step by step, by the library's reference kernel, not by a fused one."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kernel: AbstractContextManager[Any] = sdpa_kernel([SDPBackend.MATH])
    return kernel


def higher_formats(dtype: Any, exact: bool) -> list[Any]:
    """The number formats in which draws are repeated where a model's own is too coarse; the last defines its chains.

    dtype: the model's own. exact: whether chains of bfloat16 and float16 models are those of float64.
    """
    import torch

    if dtype == torch.float32:
        return [torch.float64]
    return [torch.float32, torch.float64] if exact and dtype != torch.float64 else []


def in_format(model: Any, dtype: Any) -> Any:
    """A copy of a model in another number format. Each weight is converted at once, not copied first."""
    import torch

    converted: dict[int, Any] = {}
    for weight in model.parameters():
        converted[id(weight)] = torch.nn.Parameter(weight.detach().to(dtype), requires_grad=False)
    return copy.deepcopy(model, converted).to(dtype)


def slowdown(in_own_format: Callable[[], float], in_float32: Callable[[], float]) -> float | None:
    """How many times as long as a call in float32 one in the model's own format takes; None below SLOWER.

    in_own_format, in_float32: make one call in the format and return its seconds.
    """
    seconds, others = (min(call() for _ in range(TIMED_CALLS)) for call in (in_own_format, in_float32))
    return seconds / others if seconds > SLOWER * others else None


def format_name(dtype: Any) -> str:
    """The name of a number format without "torch."."""
    return str(dtype).removeprefix("torch.")


def library_versions() -> dict[str, str]:
    """The versions of the libraries that a model's numbers are computed with, as they are installed."""
    import torch

    return {"mlmglauber": __version__, "torch": torch.__version__, "transformers": version("transformers"),
            "tokenizers": version("tokenizers"), "numpy": np.__version__}


def accelerator() -> tuple[str | None, bool]:
    """The name of the first GPU, None where torch finds none; whether torch was built for a GPU that is not there."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name(0), False
    return None, torch.version.cuda is not None
