"""Time of a rectangle against a script that scores each of its four rows in a call of its own."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

COUNT = 100
BY_HAND = 12


def ours(lm: Any, texts: list[list[int]], noise: bool) -> float:
    """Wall seconds of a rectangle in our measure: draw alternatives, four conditionals each, again for noise."""
    from mlmglauber.measures.rectangle.delta import Rectangle, Rows, asks, measure
    from mlmglauber.measures.rectangle.draw import draw_sites, draw_tokens

    begin = time.perf_counter()
    for k, text in enumerate(texts):
        ids, rows = np.array(text), Rows(lm, 64)
        uniforms = np.random.default_rng(k).random((COUNT, 4))
        pairs = draw_sites(uniforms[:, :2], np.arange(len(ids)))
        sites = np.unique(pairs).tolist()
        known = dict(zip(sites, rows.keep([ids] * len(sites), sites), strict=True))
        asked = []
        for (i, j), (_, _, u, v) in zip(pairs.tolist(), uniforms.tolist(), strict=True):
            a, b = (draw_tokens("conditional", int(ids[s]), [w], lm.allowed, known[s])[0] for s, w in ((i, u), (j, v)))
            asked += asks(ids, Rectangle(i, j, int(ids[i]), int(ids[j]), a, b))
        measure(rows, asked)
        if noise:
            measure(rows, asked, again=True)
    return (time.perf_counter() - begin) / COUNT / len(texts)


def by_hand(model: Any, lm: Any, texts: list[list[int]]) -> float:
    """Wall seconds of a rectangle in the script: four masked rows, one call each, full logits, float32."""
    import torch

    generator = np.random.default_rng(0)
    begin = time.perf_counter()
    for text in texts:
        for _ in range(BY_HAND):
            i, j = generator.choice(len(text), 2, replace=False).tolist()
            to_a, to_b = generator.choice(np.flatnonzero(lm.allowed), 2).tolist()
            total = 0.0
            for site, other, token in ((i, j, None), (i, j, to_b), (j, i, None), (j, i, to_a)):
                ids = torch.tensor([[*lm.prefix, *text, *lm.suffix]])
                if token is not None:
                    ids[0, other + 1] = token
                ids[0, site + 1] = lm.mask_id
                with torch.no_grad():
                    row = torch.log_softmax(model(ids).logits[0, site + 1], dim=0)
                total += float(row[to_a if site == i else to_b] - row[text[site]])
    return (time.perf_counter() - begin) / BY_HAND / len(texts)


def rectangle_rows(folder: Path, bert_base: Callable[[Path], str]) -> Iterator[tuple[str, str, str, bool]]:
    """(what, figure, target, whether it is reached) at BERT-base size."""
    import torch
    from transformers import AutoModelForMaskedLM

    from mlmglauber.models.masked_lm import MaskedLM

    place = bert_base(folder)
    plain = AutoModelForMaskedLM.from_pretrained(Path(place), dtype=torch.float32).eval()
    found = {}
    for dtype in ("float32", "bfloat16"):
        lm = MaskedLM.open(place, dtype=dtype)
        generator = np.random.default_rng(5)
        texts = [generator.choice(np.flatnonzero(lm.allowed), 30).tolist() for _ in range(2)]
        hand = by_hand(plain, lm, texts)
        for noise in (False, True):
            found[dtype, noise] = hand / ours(lm, texts, noise)
    for (dtype, noise), ratio in found.items():
        wanted = 3.0 if dtype == "bfloat16" or not noise else None
        yield (f"rectangles at BERT-base size, n = 30, {COUNT} a text, {dtype}{', with noise' if noise else ''}",
               f"{ratio:.1f} x", f">= {wanted:g} x" if wanted else "", wanted is None or ratio >= wanted)
