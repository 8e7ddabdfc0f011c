"""The fast engine against a hand-written loop from the same states: each row is a ratio in one run."""

import resource
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

PASSAGES = Path(__file__).parents[2] / "examples" / "passages.jsonl"


class Ran(NamedTuple):
    """Of a run, for each step of one chain: wall seconds, rows and calls of the model, changes; the model's share."""

    seconds: float
    rows: float
    calls: float
    share: float
    changes: float

    def __str__(self) -> str:
        return (f"a step: {1000 * self.seconds:.3g} ms, {self.rows:.3g} rows, {self.calls:.3g} calls, "
                f"{self.changes:.2g} changes, {100 * self.share:.0f} % in the model")


def run(lm: Any, starts: list[list[int]], tau: float, steps: int, memory: int = 256 << 20) -> Ran:
    """Run our engine over these chains to the end; the events of changed states are made and thrown away."""
    from mlmglauber.dynamics.chain import Chain, OutputSchedule
    from mlmglauber.dynamics.engine import Engine

    engine = Engine(lm, rows=64, memory=memory)
    chains = [Chain(ids, tau=tau, seed=1, record=str(k), number=0, schedule=OutputSchedule(steps, every=0))
              for k, ids in enumerate(starts)]
    changes, begin = 0, time.perf_counter()
    while any(chain.step < steps for chain in chains):
        engine.advance(chains)
        for chain in chains:
            changes += len(chain.events)
            chain.events.clear()
    taken = time.perf_counter() - begin
    done = steps * len(chains)
    return Ran(taken / done, engine.counters.rows / done, engine.counters.calls / done, engine.counters.seconds / taken,
               changes / done)


def by_hand(model: Any, lm: Any, starts: list[list[int]], tau: float, steps: int) -> float:
    """Wall seconds of a step of one chain in the hand-written loop: float32, full logits, all chains in one batch."""
    import torch

    from tests.bench.hand_loop import hand_loop

    ids = torch.tensor([[*lm.prefix, *start, *lm.suffix] for start in starts])
    begin = time.perf_counter()
    hand_loop(model, ids, lm.mask_id, steps, tau)
    return (time.perf_counter() - begin) / steps / len(starts)


def compare(place: str, dtype: str, starts: list[list[int]], tau: float, steps: int,
            hand_steps: int) -> tuple[float, Ran]:
    """(how many times faster our engine is, our run); the hand-written loop runs before and after it."""
    from transformers import AutoModelForMaskedLM

    from mlmglauber.models.masked_lm import MaskedLM

    lm = MaskedLM.open(place, dtype=dtype, rows=64, exact_width=True)
    model = AutoModelForMaskedLM.from_pretrained(place, dtype="float32").eval()
    by_hand(model, lm, starts, tau, 2)
    before = by_hand(model, lm, starts, tau, hand_steps)
    ours = run(lm, starts, tau, steps)
    after = by_hand(model, lm, starts, tau, hand_steps)
    return statistics.mean((before, after)) / ours.seconds, ours


def tiny_starts(count: int, n: int) -> list[list[int]]:
    """The first n tokens of so many of the passages, for tiny-en."""
    from mlmglauber.models.opening import open_model

    tiny = open_model("tiny-en")
    texts = [tiny.encode(orjson.loads(line)["text"]) for line in PASSAGES.read_bytes().splitlines()]
    return [ids[:n] for ids in texts if len(ids) >= n][:count]


def peak_flops(dtype: str) -> float:
    """Floating-point operations a second that torch reaches here in a product of 2048 x 2048 matrices."""
    import torch

    a, b = (torch.randn(2048, 2048, dtype=getattr(torch, dtype)) for _ in range(2))
    times = []
    for _ in range(6):
        begin = time.perf_counter()
        a @ b
        times.append(time.perf_counter() - begin)
    return 2 * 2048**3 / min(times)


def engine_rows(folder: Path, bert_base: Callable[[Path], str]) -> Iterator[tuple[str, str, str, bool]]:
    """(what, figure, target, whether it is reached) of every case."""
    import mlmglauber

    tiny = str(Path(mlmglauber.__file__).parent / "models" / "tiny_en")
    for dtype in ("float32", "bfloat16"):
        yield f"matrix peak in {dtype}", f"{peak_flops(dtype) / 1e12:.2f} TFLOP/s", "-", True
    cases = [("tau 0.1, 8 chains", 0.1, 8, 5000, {"float32": 8, "bfloat16": 15}),
             ("tau 0.2, 8 chains", 0.2, 8, 5000, {"float32": 4, "bfloat16": 8}),
             ("tau 0.5, 8 chains", 0.5, 8, 5000, {"float32": 2.5, "bfloat16": 5}),
             ("tau 1, 64 chains", 1.0, 64, 60, {"float32": 1.35, "bfloat16": 4})]
    for name, tau, count, steps, wanted in cases:
        starts = tiny_starts(count, 24)
        for dtype, least in wanted.items():
            ratio, ours = compare(tiny, dtype, starts, tau, steps, 12)
            yield (f"tiny-en, n = 24, {name}, {steps} steps, {dtype}", f"{ratio:.2f} x ({ours})", f">= {least:g} x",
                   ratio >= least)
    yield from _base(folder, bert_base)
    yield from _memory(tiny)


def _base(folder: Path, bert_base: Callable[[Path], str]) -> Iterator[tuple[str, str, str, bool]]:
    """At BERT-base size: a trapped chain, a chain that changes in about one step of ten, and hot chains."""
    import torch
    from transformers import BertForMaskedLM

    place = bert_base(folder)
    generator = np.random.default_rng(0)
    starts = generator.integers(1000, 30000, (64, 30)).tolist()
    stuck = str(folder / "stuck")
    model = BertForMaskedLM.from_pretrained(place)
    with torch.no_grad():
        model.cls.predictions.bias[2000] = 1e4
    model.save_pretrained(stuck)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (folder / "stuck" / file).write_bytes((Path(place) / file).read_bytes())
    ratio, ours = compare(stuck, "float32", [[2000] * 30], 1.0, 2_000_000, 8)
    yield ("BERT-base size, one chain, a stuck state, float32", f"{ratio:,.0f} x, {1 / ours.seconds:,.0f} steps/s",
           ">= 200 x; >= 200,000 steps/s", ratio >= 200 and 1 / ours.seconds >= 200_000)
    tau = _tau_of_change(place, starts[0], 0.1)
    ratio, ours = compare(place, "bfloat16", starts[:1], tau, 1500, 8)
    yield (f"BERT-base size, one chain, P(change) about 0.1 (tau {tau:.3f}), bfloat16", f"{ratio:.2f} x ({ours})",
           ">= 4 x",
           ratio >= 4)
    ratio, ours = compare(place, "bfloat16", starts, 1.0, 8, 3)
    yield "BERT-base size, 64 chains, tau 1, bfloat16", f"{ratio:.2f} x ({ours})", ">= 5 x", ratio >= 5


def _tau_of_change(place: str, start: list[int], wanted: float) -> float:
    """A temperature at which a chain of this model changes a token in about the wanted share of its steps."""
    from mlmglauber.dynamics.chain import Chain, OutputSchedule
    from mlmglauber.dynamics.engine import Engine
    from mlmglauber.models.masked_lm import MaskedLM

    engine = Engine(MaskedLM.open(place, dtype="bfloat16", exact_width=True))
    low, high = 1e-3, 1.0
    for _ in range(7):
        tau = (low * high) ** 0.5
        chain = Chain(start, tau=tau, seed=1, record="0", number=0, schedule=OutputSchedule(600, every=0))
        while chain.step < 600:
            engine.advance([chain])
        changes = sum(event.step > 200 for event in chain.events) / 400
        if 0.8 * wanted <= changes <= 1.2 * wanted:
            break
        low, high = (tau, high) if changes < wanted else (low, tau)
    return tau


def _memory(tiny: str) -> Iterator[tuple[str, str, str, bool]]:
    """Peak memory after 10,000 and after 100,000 steps of one chain that keeps moving."""
    from mlmglauber.models.masked_lm import MaskedLM

    lm = MaskedLM.open(tiny, exact_width=True)
    start = tiny_starts(1, 8)
    run(lm, start, 0.5, 10_000, memory=16 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    run(lm, start, 0.5, 100_000, memory=16 << 20)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield ("peak memory after 100,000 steps against after 10,000, --cache-mb 16", f"{after - before:+.1f} MB",
           "+10 MB at most", after - before <= 10)
