"""mlm-sample --dask local:2 against one single-threaded process, and the overhead and memory of its client."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import orjson

BIN = Path(sys.executable).parent
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}


def seconds(command: str) -> tuple[float, float]:
    """(wall seconds, peak resident MB of the command's own process) of a shell command; its output is thrown away."""
    code = (f"import subprocess, resource as r, time; t = time.perf_counter(); subprocess.run({command!r} + "
            "' > /dev/null', shell=True, check=True); print(time.perf_counter() - t, "
            "r.getrusage(r.RUSAGE_CHILDREN).ru_maxrss / 1024)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         env={**os.environ, **ENVIRONMENT}).stdout
    wall, memory = map(float, out.split())
    return wall, memory


def spread_rows(folder: Path, bert_base: Callable[[Path], str]) -> Iterator[tuple[str, str, str, bool]]:
    """(what, figure, target, whether it is reached)."""
    place = bert_base(folder)
    generator = np.random.default_rng(0)
    texts = folder / "texts.jsonl"
    texts.write_bytes(b"".join(orjson.dumps({"ids": generator.integers(1000, 30000, 30).tolist()}) + b"\n"
                               for _ in range(64)))
    sample = f"{BIN}/mlm-sample -m {place} --length 30 --seed 1 --every 1000 --engine plain {texts}"
    # The plain engine: in so short a run the fast one fills the workers' smaller batches with prefetched rows.

    def per_step(options: str) -> float:
        """Wall seconds of a step of 64 chains: the difference between two runs, so that loading does not count."""
        short, long = (seconds(f"{sample} --steps {steps} {options}")[0] for steps in (2, 10))
        return (long - short) / 8

    ratios = []
    for _ in range(2):
        alone = per_step("")
        ratios.append(alone / per_step("--dask local:2"))
    ratio = max(ratios)
    yield ("mlm-sample --dask local:2, BERT-base size, 64 chains, against one single-threaded process",
           f"{ratio:.2f} x", ">= 1.7 x", ratio >= 1.7)
    (folder / "a.json").write_bytes(orjson.dumps({"tokens": ["a", "b"], "joint": [[0.4, 0.1], [0.2, 0.3]]}))
    many, few = folder / "many.txt", folder / "few.txt"
    many.write_bytes(b"a b\n" * 20_000)
    few.write_bytes(b"a b\n" * 2_000)
    table = f"{BIN}/mlm-sample -m {folder}/a.json --seed 3 --steps 4 --every 1"
    alone = seconds(f"{table} {many}")[0] - seconds(f"{table} {few}")[0]
    small = seconds(f"{table} --dask local:2 {few}")
    large = seconds(f"{table} --dask local:2 {many}")
    overhead = 1000 * (large[0] - small[0] - alone / 2) / 90_000
    yield ("   overhead a record, 100,000 records of a table", f"{overhead:.3f} ms", "< 1 ms", overhead < 1)
    yield ("   peak memory of the client, 10,000 and 100,000 records", f"{small[1]:.0f} and {large[1]:.0f} MB",
           "+20 MB at most", large[1] - small[1] <= 20)
