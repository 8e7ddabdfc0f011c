"""Processor time of commands on one short text: plain BERT checkpoints opened fast, and through the whole libraries."""

import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator

TEXT = b"the cat sat on the mat\n"
RUNS = 5
COMMANDS = {"rect": ["--site", "cat", "--to", "dog", "--site", "mat", "--to", "rug", "--seed", "1"],
            "sample": ["--sweeps", "1", "--seed", "1"], "embed": []}
LIMIT = 0.6
"""Maximum ratio of the two times."""
RUN = """
import importlib, sys
name, way, *rest = sys.argv[1:]
if way == "libraries":
    from mlmglauber.models import fast_start
    fast_start.masked_lm = fast_start.sentence_model = lambda *_: None
importlib.import_module(f"mlmglauber.commands.{name}.command").main(rest)
"""


def processor_seconds(name: str, way: str) -> tuple[float, bytes]:
    """Processor seconds of a command, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", RUN, name, way, *COMMANDS[name]], input=TEXT, stdout=subprocess.PIPE,
                          check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def start_rows() -> Iterator[tuple[str, str, str, bool]]:
    """A row for each command: the ratio of the medians of alternating runs, whose outputs must be equal."""
    for name in COMMANDS:
        spent: dict[str, list[float]] = {"fast": [], "libraries": []}
        outputs = set()
        for _ in range(RUNS):
            for way, times in spent.items():
                seconds, output = processor_seconds(name, way)
                times.append(seconds)
                outputs.add(output)
        fast, slow = (statistics.median(times) for times in spent.values())
        yield (f"mlm-{name}, one text, processor time against opening through the libraries",
               f"{fast / slow:.2f} x ({fast:.2f} s)", f"<= {LIMIT:g} x", fast <= LIMIT * slow and len(outputs) == 1)
