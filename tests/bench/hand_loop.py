"""The Gibbs loops that people write by hand: chains batched, torch.multinomial, one site a step.

One asks the model for all logits, the other takes the masked row out before the head.
"""

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


@torch.no_grad()
def gathering_loop(model: Any, ids: torch.Tensor, mask_id: int, steps: int, tau: float = 1.0) -> torch.Tensor:
    """The same for a BertForMaskedLM, whose head sees the masked row of each chain alone."""
    rows = torch.arange(len(ids), device=ids.device)
    for _ in range(steps):
        sites = torch.randint(1, ids.shape[1] - 1, (len(ids),), device=ids.device)
        masked = ids.clone()
        masked[rows, sites] = mask_id
        hidden = model.bert(masked, attention_mask=torch.ones_like(masked))[0]
        law = torch.softmax(model.cls(hidden[rows, sites]) / tau, dim=-1)
        ids[rows, sites] = torch.multinomial(law, 1)[:, 0]
    return ids
