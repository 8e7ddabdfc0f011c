"""Hot chains of a model of BERT-base size against hand-written loops, each in a process of its own."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

CHAINS, SITES, STEPS = 16, 30, 12
ALTERNATIONS = 3
WANTED = {"full": 1.3, "gather": 1.3}
NAMES = {"full": "a loop with all logits", "gather": "a loop with the logits of the masked site only"}


def hot_rows(folder: Path, bert_base: Callable[[Path], str]) -> Iterator[tuple[str, str, str, bool]]:
    """(what, figure, target, whether it is reached), from processor seconds of a step, without opening the model."""
    place = bert_base(folder)
    kinds = ["ours", *WANTED]
    spent: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(ALTERNATIONS):
        for kind in kinds:
            spent[kind].append(_elsewhere(kind, place))
    for kind, wanted in WANTED.items():
        ratio = statistics.median(spent[kind]) / statistics.median(spent["ours"])
        yield (f"BERT-base size, {CHAINS} chains, tau 1, float32, against {NAMES[kind]}",
               f"{ratio:.2f} x ({1000 * statistics.median(spent['ours']):.0f} ms an update of all chains)",
               f">= {wanted:g} x", ratio >= wanted)


def _elsewhere(kind: str, place: str) -> float:
    """Processor seconds of a step, measured in a new process."""
    done = subprocess.run([sys.executable, "-m", "tests.bench.hot", kind, place], check=True, capture_output=True,
                          text=True, cwd=Path(__file__).parents[2])
    return float(done.stdout)


def _measure(kind: str, place: str) -> float:
    """Processor seconds of one step of all chains, in this process."""
    starts = np.random.default_rng(0).integers(1000, 30000, (CHAINS, SITES)).tolist()
    run = _ours(place, starts) if kind == "ours" else _loop(kind, place, starts)
    run(2)
    begin = time.process_time()
    run(STEPS)
    return (time.process_time() - begin) / STEPS


def _ours(place: str, starts: list[list[int]]) -> Callable[[int], object]:
    """Our engine as a function of the number of steps."""
    from mlmglauber.commands.shared.process import settle_process

    settle_process()
    from mlmglauber.dynamics.chain import Chain, OutputSchedule
    from mlmglauber.dynamics.engine import Engine
    from mlmglauber.models.masked_lm import MaskedLM

    engine = Engine(MaskedLM.open(place, dtype="float32"))

    def run(steps: int) -> None:
        chains = [Chain(ids, tau=1.0, seed=1, record=str(k), number=0, schedule=OutputSchedule(steps, every=0))
                  for k, ids in enumerate(starts)]
        while any(chain.step < steps for chain in chains):
            engine.advance(chains)

    return run


def _loop(kind: str, place: str, starts: list[list[int]]) -> Callable[[int], object]:
    """A hand-written loop as a function of the number of steps."""
    import torch
    from transformers import AutoTokenizer, BertForMaskedLM

    from tests.bench.hand_loop import gathering_loop, hand_loop

    model = BertForMaskedLM.from_pretrained(place).eval()
    tokenizer = AutoTokenizer.from_pretrained(place)
    ids = torch.tensor([[tokenizer.cls_token_id, *start, tokenizer.sep_token_id] for start in starts])
    loop = hand_loop if kind == "full" else gathering_loop
    return lambda steps: loop(model, ids, tokenizer.mask_token_id, steps)


if __name__ == "__main__":
    print(_measure(*sys.argv[1:]))
