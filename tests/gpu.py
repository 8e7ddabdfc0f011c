"""`make gpu`: the states of chains on a GPU are those on the CPU; updates a second beside the hand-written loop.

Without a GPU it says so and ends with status 0.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
CASES = (("float32", 1.0, 2.0), ("float32", 0.3, 5.0), ("bfloat16", 1.0, 0.0), ("bfloat16", 0.3, 0.0))
"""Number format, temperature, and how many times faster than the hand-written loop it is wanted to be."""


def same_states(place: str, count: int, steps: int) -> bool:
    """Whether fast and plain engine, in batches of 1, 64 and 1024 rows, give on cuda the states of the CPU."""
    import test_same_chain as chains

    from mlmglauber.dynamics.engine import Engine
    from mlmglauber.dynamics.plain import advance
    from mlmglauber.dynamics.precision import Precision
    from mlmglauber.models.opening import open_model

    def trajectory(device: str, rows: int, plain: bool) -> str:
        lm = open_model(place, device=device, rows=rows)
        move = Engine(lm, rows).advance
        if plain:
            precision = Precision(lm)
            return chains.trajectory(lm, lambda group: advance(precision, group, rows), count, steps)
        return chains.trajectory(lm, move, count, steps)

    expected = trajectory("cpu", 64, False)
    return all(trajectory("cuda", rows, plain) == expected for rows in (1, 64, 1024) for plain in (False, True))


def updates_a_second(place: str, dtype: str, tau: float, chains: int = 256, n: int = 30, steps: int = 40) -> Any:
    """(ours, the hand-written loop's) updates a second of `chains` chains."""
    import numpy as np
    import torch
    from transformers import AutoModelForMaskedLM

    from mlmglauber.dynamics.chain import Chain, OutputSchedule
    from mlmglauber.dynamics.engine import Engine
    from mlmglauber.models.masked_lm import MaskedLM
    from tests.bench.hand_loop import hand_loop

    lm = MaskedLM.open(place, device="cuda", dtype=dtype, rows=1024, exact_width=True)
    starts = np.random.default_rng(0).choice(np.flatnonzero(lm.allowed), (chains, n))
    engine = Engine(lm, 1024)

    def ours(last: int) -> None:
        group = [Chain(start, tau=tau, seed=last, record=str(k), number=0, schedule=OutputSchedule(last, every=0))
                 for k, start in enumerate(starts)]
        while any(chain.step < last for chain in group):
            engine.advance(group)

    model = AutoModelForMaskedLM.from_pretrained(place, dtype=getattr(torch, dtype)).eval().to("cuda")
    whole = torch.tensor([[*lm.prefix, *start, *lm.suffix] for start in starts.tolist()]).to("cuda")
    rates = []
    for run in (ours, lambda last: hand_loop(model, whole.clone(), lm.mask_id or 0, last, tau)):
        run(3)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run(steps)
        torch.cuda.synchronize()
        rates.append(chains * steps / (time.perf_counter() - begin))
    return rates


def main() -> int:
    """0 where all states are the same and every wanted ratio is reached, or where there is no GPU."""
    import torch

    if not torch.cuda.is_available():
        print("no GPU here: nothing was tried")
        return 0
    os.environ["MLM_DEVICE"] = "cuda"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    from tests.bench.__main__ import bert_base

    good = True
    with tempfile.TemporaryDirectory() as folder:
        base = bert_base(Path(folder))
        for name, place, count, steps in (("tiny-en", "tiny-en", 8, 200), ("BERT-base size", base, 4, 30)):
            same = same_states(place, count, steps)
            good &= same
            print(f"{name}: cuda gives the states of the CPU: {same}")
        for dtype, tau, wanted in CASES:
            ours, theirs = updates_a_second(base, dtype, tau)
            good &= ours >= wanted * theirs
            print(f"BERT-base size, {dtype}, tau {tau}: {ours:,.0f} updates/s, {ours / theirs:.2f} x the hand-written "
                  f"loop" + (f" (wanted: {wanted:g} x)" if wanted else ""))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
