"""Hand-written Gibbs loops to compare with: chains in one batch, torch.multinomial, one site in each step.

One computes the logits of all sites; the other applies the head to the masked site of each chain only.
"""

from typing import Any

import torch


@torch.no_grad()
def hand_loop(model: Any, ids: torch.Tensor, mask_id: int, steps: int, tau: float = 1.0) -> torch.Tensor:
    """The states after so many steps. ids: (B, width) token ids with a special token at each end, changed in place."""
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
    """The same for a BertForMaskedLM, with the head on the masked site of each chain only."""
    rows = torch.arange(len(ids), device=ids.device)
    for _ in range(steps):
        sites = torch.randint(1, ids.shape[1] - 1, (len(ids),), device=ids.device)
        masked = ids.clone()
        masked[rows, sites] = mask_id
        hidden = model.bert(masked, attention_mask=torch.ones_like(masked))[0]
        law = torch.softmax(model.cls(hidden[rows, sites]) / tau, dim=-1)
        ids[rows, sites] = torch.multinomial(law, 1)[:, 0]
    return ids
