"""Computes everything after the last attention for the masked site only, since only its logits are needed.

A conditional needs the last hidden state at its own site, (B, 1, H) of (B, width, H). The last attention reads all
sites, but later layers act on each site separately. A cut there saves three quarters of the last layer, and a cut
before the head saves (B, width, V) logits.
"""

import inspect
from typing import Any


class MaskedRow:
    """Reduces the hidden states of a model to one site per state. Set `rows`, (B,) sites, before each forward pass."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.rows: Any = None

    def attach(self, model: Any, early: bool = True) -> "list[Any]":
        """Add hooks that cut after the encoder and, with `early`, already after the last attention if possible.

        Returns the hooks, so that they can be removed.
        """
        hooks = [model.base_model.register_forward_hook(self._after_encoder)]
        place = _after_last_attention(model.base_model) if early else None
        if place is not None:
            hooks.append(place.register_forward_pre_hook(self._after_attention))
        return hooks

    def _cut(self, hidden: Any) -> Any:
        """(B, width, H) to (B, 1, H)."""
        return hidden[self._torch.arange(len(hidden), device=hidden.device), self.rows][:, None]

    def _after_attention(self, module: Any, arguments: Any) -> Any:
        return tuple(self._cut(hidden) for hidden in arguments)

    def _after_encoder(self, module: Any, arguments: Any, output: Any) -> Any:
        hidden = output[0]
        if hidden.shape[1] == 1:  # cut already, or only one token
            return output
        rows = self._cut(hidden)
        if isinstance(output, tuple):
            return (rows, *output[1:])
        output["last_hidden_state"] = rows
        return output


def _after_last_attention(encoder: Any) -> Any:
    """The module after the last attention, which adds its residual input; None for models not built like BERT."""
    places = [module for name, module in encoder.named_modules() if name.endswith("attention.output")
              and list(inspect.signature(module.forward).parameters) == ["hidden_states", "input_tensor"]]
    return places[-1] if places else None
