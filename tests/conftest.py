"""What every test may use: the commands in a real shell, and small inputs."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent))

from in_process import SETTINGS, Result, in_process  # noqa: E402 - the path comes first

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads of two workers that spin take each other's cores

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background by a shell, as cron's jobs may be
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what the tests start is to hear of it

SLOW_FILES = ("test_pipelines.py", "test_man.py", "test_conventions.py", "test_recipes.py")


def pytest_configure(config):
    config.addinivalue_line("markers", "in_process: `sh` runs commands in the test's own process where it can")


def pytest_collection_modifyitems(items):
    """Long tests first: what is left at the end is quick, and the workers are done at one time."""
    items.sort(key=lambda item: SLOW_FILES.index(item.path.name) if item.path.name in SLOW_FILES else len(SLOW_FILES))


def pytest_terminal_summary(terminalreporter):
    """What the soak tests tried and survived, a line each."""
    reports = terminalreporter.getreports("passed")
    told = [value for report in reports if report.when == "call" for name, value in report.user_properties
            if name == "survived"]
    if told:
        terminalreporter.section("tried and survived")
        for line in told:
            terminalreporter.write_line(line)


def shell(folder):
    """A function that runs a line of bash in a folder, this environment's commands first on the PATH."""

    def run(line, stdin=b"", timeout=120, **environment):
        variables = {**os.environ, "PATH": PATH, "TERM": "xterm", **environment}
        for name in SETTINGS:
            if name not in environment:
                variables.pop(name, None)
        process = subprocess.Popen(["bash", "-o", "pipefail", "-c", line], stdin=subprocess.PIPE, cwd=folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables, process_group=0)
        try:
            out, err = process.communicate(stdin, timeout)
        except BaseException:  # bash alone would leave its commands running
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        return Result(process.returncode, out, err.decode())

    run.folder = folder
    return run


@pytest.fixture
def real_sh(tmp_path):
    """`shell` in a folder of the test's own: for what concerns processes, pipes, signals and the time."""
    return shell(tmp_path)


@pytest.fixture
def sh(request, real_sh):
    """The same, but in a test that is marked in_process commands run in the test's own process where they can."""
    return quick_shell(real_sh.folder) if request.node.get_closest_marker("in_process") else real_sh


def quick_shell(folder):
    """`shell`, with the commands in the test's own process where they can be."""
    return in_process(folder, shell(folder))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A function from a family to the folder of its checkpoint; and gpt, and st, an embedder over bert."""
    import families
    from spoiling import save_embedder

    folders = {}

    def get(name):
        if name not in folders:
            folder = folders[name] = tmp_path_factory.mktemp(name) / name
            if name == "gpt":
                families.save_causal(folder)
            elif name == "st":
                save_embedder(get("bert"), folder)
            else:
                families.save(name, folder)
        return folders[name]

    return get


@pytest.fixture
def tables(tmp_path):
    """The oracles' tables as model files in the folder of `sh`: a.json and b.json."""
    from oracles import TABLE_A, TABLE_B

    (tmp_path / "a.json").write_bytes(orjson.dumps({"tokens": ["a", "b", "c"], "tables": TABLE_A}))
    (tmp_path / "b.json").write_bytes(orjson.dumps({"tokens": ["a", "b"], "tables": TABLE_B}))
    return tmp_path


@pytest.fixture
def jq():
    """Run jq over bytes; its output, None when it failed. Skipped by name where jq is not installed."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")

    def run(arguments, content):
        done = subprocess.run(["jq", *shlex.split(arguments)], input=content, capture_output=True, check=False)
        return done.stdout if done.returncode == 0 else None

    return run
