"""Coupled chains against a hand-written loop over one pair: a ratio in one run."""

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np


def by_hand(model: Any, first: list[int], second: list[int], mask_id: int, steps: int) -> float:
    """Wall seconds of a step of one pair: a batch of its two chains, full logits, the same maximal coupling."""
    import torch

    ids = torch.tensor([[101, *first, 102], [101, *second, 102]])
    begin = time.perf_counter()
    with torch.no_grad():
        for _ in range(steps):
            site = int(torch.randint(1, ids.shape[1] - 1, (1,)))
            masked = ids.clone()
            masked[:, site] = mask_id
            logits = model(masked, attention_mask=torch.ones_like(masked)).logits
            p, q = torch.softmax(logits[:, site], dim=-1)
            overlap = torch.minimum(p, q)
            if torch.rand(()) < overlap.sum():
                ids[:, site] = torch.multinomial(overlap, 1)
            else:
                ids[0, site], ids[1, site] = torch.multinomial(p - overlap, 1), torch.multinomial(q - overlap, 1)
    return (time.perf_counter() - begin) / steps


def ours(lm: Any, starts: list[list[int]], steps: int) -> float:
    """Wall seconds of a step of one pair when many pairs run together, meetings and distances recorded."""
    from mlmglauber.dynamics.coupled_chains import CoupledChains, lead_in
    from mlmglauber.dynamics.coupled_engine import CoupledEngine
    from mlmglauber.dynamics.engine import Engine

    engine = CoupledEngine(Engine(lm, rows=64))
    groups = []
    for k in range(0, len(starts), 2):
        chains = [lead_in(ids, 0, tau=1.0, seed=1, record=str(k), number=0) for ids in starts[k : k + 2]]
        groups.append(CoupledChains(chains, tau=1.0, seed=1, record=str(k), number=0, coupling="maximal", steps=steps,
                                    vocab=lm.vocab_size))
    begin = time.perf_counter()
    while working := [group for group in groups if not group.finished]:
        engine.advance(working)
    return (time.perf_counter() - begin) / sum(group.step for group in groups)


def couple_rows(folder: Path, bert_base: Callable[[Path], str]) -> Iterator[tuple[str, str, str, bool]]:
    """(what, figure, target, whether it is reached); the hand-written loop runs before and after each of our runs."""
    from transformers import AutoModelForMaskedLM

    from mlmglauber.models.masked_lm import MaskedLM

    place = bert_base(folder)
    lm = MaskedLM.open(place, dtype="bfloat16", rows=64, exact_width=True)
    model = AutoModelForMaskedLM.from_pretrained(place, dtype="float32").eval()
    starts = np.random.default_rng(0).integers(1000, 30000, (64, 30)).tolist()
    by_hand(model, starts[0], starts[1], lm.mask_id or 0, 2)
    ours(lm, starts, 1)
    ratios, seconds = [], []
    for k in range(0, 6, 2):
        before = by_hand(model, starts[k], starts[k + 1], lm.mask_id or 0, 12)
        mine = ours(lm, starts, 4)
        after = by_hand(model, starts[k], starts[k + 1], lm.mask_id or 0, 12)
        ratios.append(statistics.mean((before, after)) / mine)
        seconds.append((mine, (before + after) / 2))
    ratio = statistics.median(ratios)
    mine, theirs = (statistics.median(pair[k] for pair in seconds) for k in (0, 1))
    yield ("mlm-couple, BERT-base size, n = 30, 32 pairs, bfloat16, against a hand-written loop a pair, float32",
           f"{ratio:.2f} x ({1000 * mine:.0f} ms against {1000 * theirs:.0f} ms a step of one pair)", ">= 4 x",
           ratio >= 4)
