"""mlm-traps --no-model: state records a minute on one core, and memory as the chains grow longer."""

import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import orjson

WANTED = 200_000
"""Target in records a minute."""


def states(count: int, path: Path, chains: int = 8, n: int = 24) -> None:
    """Write state records as of --on-change: chains flicker around one state, then leave it for another one."""
    rng = np.random.default_rng(0)
    heads = [rng.integers(0, 9000, n).tolist() for _ in range(chains)]
    now, steps = [list(head) for head in heads], [0] * chains
    with open(path, "wb") as file:
        for k in range(count):
            chain = k % chains
            ids, head = now[chain], heads[chain]
            away = [site for site in range(n) if ids[site] != head[site]]
            site = away[0] if away and rng.random() < 0.7 else int(rng.integers(n))
            old, new = ids[site], int(rng.integers(9000))
            if away and site == away[0]:
                new = head[site]
            ids[site] = new
            steps[chain] += int(rng.integers(1, 20))
            if rng.random() < 0.002:
                heads[chain] = list(ids)
            file.write(orjson.dumps({
                "type": "state", "run": "r", "id": "t", "chain": chain, "step": steps[chain], "tau": 0.5, "n": n,
                "text": "some words of about this length stand in each of the records of a chain of that many",
                "ids": ids, "site": site, "old": old, "new": new, "changed": True, "logp_old": -1.25,
                "logp_new": -2.5}) + b"\n")


def trap_rows(folder: Path, peak: Callable[[str], tuple[float, float]]) -> Iterator[tuple[str, str, str, bool]]:
    """(what, figure, target, whether it is reached). peak: (wall seconds, peak resident MB) of a command."""
    command = f"{sys.executable} -m mlmglauber.commands.traps.command --no-model --min-steps 200"
    small = folder / "states.jsonl"
    states(100_000, small)
    (folder / "nothing").write_bytes(b"")
    start = statistics.median(peak(f"{command} < {folder}/nothing > /dev/null")[0] for _ in range(3))
    for radius in (0, 1, 2):
        runs = [peak(f"{command} -r {radius} < {small} > /dev/null") for _ in range(3)]
        rate = 60 * 100_000 / (statistics.median(run[0] for run in runs) - start)
        yield (f"mlm-traps --no-model, radius {radius}, 24 tokens", f"{rate:,.0f} records/min", f">= {WANTED:,} /min",
               rate >= WANTED)
    large = folder / "longer.jsonl"
    states(1_000_000, large)
    before, after = (peak(f"{command} < {file} > /dev/null")[1] for file in (small, large))
    yield ("   peak memory, 100,000 and 1,000,000 records of 8 chains", f"{before:.1f} and {after:.1f} MB",
           "+5 MB at most", after - before <= 5)
