"""Computes BlockRows on the model's device, so that block masses and two blocks are copied back, not V logits per row.

The same code runs on a CPU and on a GPU. A CPU takes few rows at a time, so that they stay in its cache.
"""

from typing import Any

import numpy as np

from mlmglauber.models.blocks import BLOCK, TINY, BlockRows

CACHED = 1 << 18
"""Maximum number of logits that a CPU processes at a time: 1 MiB in float32."""


def device_block_rows(torch: Any, logits: Any, old: Any, taus: Any, uniforms: Any, cold: Any) -> BlockRows:
    """The BlockRows of (B, V) logits, -inf for banned tokens.

    logits: a float32 or float64 tensor, which is overwritten. old, taus, uniforms, cold: (B,) tensors on the same
    device, as in blocks.block_rows; taus and uniforms are float64.
    """
    rows = len(logits) if logits.is_cuda else max(1, CACHED // logits.shape[1])
    parts = [_part(torch, *(tensor[k : k + rows] for tensor in (logits, old, taus, uniforms, cold)))
             for k in range(0, len(logits), rows)]
    columns = [column[0] if len(column) == 1 else torch.cat(column) for column in zip(*parts, strict=True)]
    return BlockRows(*(column.cpu().numpy() for column in columns))


def _part(torch: Any, logits: Any, old: Any, taus: Any, uniforms: Any, cold: Any) -> tuple[Any, ...]:
    count, vocab = logits.shape
    places = torch.arange(count, device=logits.device)
    top = logits.amax(dim=1)  # the maximum of a row with NaN is NaN
    finite = torch.isfinite(top)
    gap = torch.full((count,), torch.inf, dtype=torch.float64, device=logits.device)
    some_cold = bool(cold.any())
    if some_cold and vocab > 1:
        two = logits.topk(2, dim=1).values
        gap = torch.where(cold, (two[:, 0] - two[:, 1]).double(), gap)
    scale = torch.where(cold, torch.ones_like(taus), taus)
    present = (logits[places, old].double() - top.double()) / torch.where(taus > 0, taus, torch.ones_like(taus))
    if some_cold:
        hard = torch.full_like(logits[cold], -torch.inf)
        hard[torch.arange(len(hard), device=logits.device), logits[cold].argmax(dim=1)] = 0.0
    if not bool((scale == 1).all()):
        logits = logits.sub_(top[:, None]).div_(scale.to(logits.dtype)[:, None])
    if some_cold:
        logits[cold] = hard
    shares = torch.softmax(logits, dim=1)
    share = shares[places, old].double()
    small = present + shares.amax(dim=1).double().log()  # the largest share is 1 / sum_v exp((l_v - max l) / tau)
    logp_old = torch.where((taus > 0) & (share < TINY), small, share.log())
    whole = vocab // BLOCK
    masses = shares[:, : whole * BLOCK].unflatten(1, (whole, BLOCK)).sum(dim=2)
    if whole * BLOCK < vocab:
        masses = torch.cat([masses, shares[:, whole * BLOCK :].sum(dim=1, keepdim=True)], dim=1)
    edges = masses.double().cumsum(dim=1)
    total = edges[:, -1:]
    chosen = torch.minimum((edges <= uniforms[:, None] * total).sum(dim=1), (edges < total).sum(dim=1))
    return (masses, chosen, _block(torch, shares, chosen), _block(torch, shares, old // BLOCK), logp_old, gap, finite,
            torch.full_like(gap, torch.inf))


def _block(torch: Any, shares: Any, blocks: Any) -> Any:
    """(B, BLOCK) probabilities of one block of each row, 0 beyond the vocabulary."""
    ids = blocks[:, None] * BLOCK + torch.arange(BLOCK, device=shares.device)
    values = shares.gather(1, ids.clamp(max=shares.shape[1] - 1))
    return torch.where(ids < shares.shape[1], values, torch.zeros_like(values))


def as_tensors(torch: Any, device: str, *arrays: np.ndarray[Any, Any]) -> list[Any]:
    """The arrays as tensors on a device."""
    return [torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in arrays]
