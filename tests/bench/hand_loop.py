"""The Gibbs loop that people write by hand: chains batched, full logits, torch.multinomial, one site a step."""

from typing import Any

import torch


@torch.no_grad()
def hand_loop(model: Any, ids: torch.Tensor, mask_id: int, steps: int, tau: float = 1.0) -> torch.Tensor:
    """ids: (B, width) with special tokens at both ends. Returns the states after so many steps."""
    rows = torch.arange(len(ids), device=ids.device)
    for _ in range(steps):
        sites = torch.randint(1, ids.shape[1] - 1, (len(ids),), device=ids.device)
        masked = ids.clone()
        masked[rows, sites] = mask_id
        logits = model(masked, attention_mask=torch.ones_like(masked)).logits
        law = torch.softmax(logits[rows, sites] / tau, dim=-1)
        ids[rows, sites] = torch.multinomial(law, 1)[:, 0]
    return ids
