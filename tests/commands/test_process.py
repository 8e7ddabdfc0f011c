"""What a command's process sets before it computes."""

import os
import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from mlmglauber.commands.shared.process import keep_memory
if sys.argv[1] == "keep":
    keep_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def layers():
    for _ in range(20):
        kept = [np.ones(1 << 20) for _ in range(4)]
        del kept
layers()
before = faults()
layers()
print(faults() - before)
"""


def faults(how, **environment):
    done = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True,
                          env=os.environ | environment)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told")
def test_freed_memory_is_kept_for_the_next_layer():
    assert faults("leave") > 10_000
    assert faults("keep") < 1_000
    assert faults("keep", MALLOC_TRIM_THRESHOLD_="0") > 10_000
