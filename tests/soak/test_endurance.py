"""A long run of the pipe sample | embed | drift: flat memory and no lost record; the rate is told."""

import json
import os
import re
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import ROOT

BIN = Path(sys.executable).parent
PASSAGES = ROOT / "examples" / "passages.jsonl"
STEPS = int(os.environ.get("ENDURANCE_STEPS", 1_000_000))
CHAINS, EVERY = 8, 50
SAMPLE = f"mlm-sample --length 24 --chains {CHAINS} --steps {STEPS // CHAINS} --every {EVERY} -t 0.2 --seed 1"
STAGES = (f"{SAMPLE} --cache-mb 16".split(), ["mlm-embed"], ["mlm-drift"])  # a memory that is soon full

pytestmark = [pytest.mark.soak,
              pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="memory and time are read from /proc")]


def usage(process):
    """(resident MB, processor seconds) of a process so far."""
    resident = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(fields[11]) + int(fields[12])
    return (int(resident[1]) / 1024 if resident else 0.0), ticks / os.sysconf("SC_CLK_TCK")


def test_a_million_steps(tmp_path, record_property):
    """Memory from a fifth of the run to its end within 5 %; time by the processor's clock, whatever else runs."""
    passage = PASSAGES.read_bytes().split(b"\n")[0] + b"\n"
    (tmp_path / "in").write_bytes(passage)
    out, processes, source = tmp_path / "out", [], (tmp_path / "in").open("rb")
    for number, (name, *arguments) in enumerate(STAGES, 1):
        sink = out.open("wb") if number == len(STAGES) else subprocess.PIPE
        processes.append(subprocess.Popen([BIN / name, *arguments], stdin=source, stdout=sink))
        source.close()
        source = processes[-1].stdout
    wanted = STEPS // EVERY + CHAINS  # with step 0
    marks, seen, states = [], 0, 0
    with out.open("rb") as reader:
        while states < wanted:
            line = reader.readline()
            if not line.endswith(b"\n"):
                assert all(process.poll() in (None, 0) for process in processes)
                reader.seek(-len(line), os.SEEK_CUR)
                time.sleep(0.05)
                continue
            states += line.startswith(b'{"type":"state"')
            if states * 10 // wanted > seen:
                seen = states * 10 // wanted
                if seen < 10:  # at the end the processes may be gone
                    marks.append([usage(process) for process in processes])
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    records = [json.loads(line) for line in out.read_bytes().splitlines()]
    steps = [(record["chain"], record["step"]) for record in records if record["type"] == "state"]
    assert len(set(steps)) == len(steps) == wanted
    for (name, *_), *at in zip(STAGES, *marks, strict=True):
        early, late = at[1][0], at[-1][0]
        rates = [after[1] - before[1] for before, after in pairwise(at)]
        record_property("survived", f"{name}: {STEPS:,} steps of {CHAINS} chains, {wanted:,} records, none lost; "
                        f"{early:.0f} MB after a fifth, {late:.0f} MB at the end; processor seconds a tenth: "
                        f"{rates[0]:.1f} (second), {rates[-1]:.1f} (ninth)")
        assert late < 1.05 * early + 2
