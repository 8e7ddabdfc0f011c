"""Fresh environments, and the two distributions of this tree: for the tests of the installation."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEFT_OUT = (".git", ".venv", ".*_cache", ".hypothesis", "*.egg-info", "__pycache__", "build", "dist")
"""What a tree may hold besides the project's own files."""


def copy_tree(target):
    """Copy the project: a build leaves files in the tree that it runs in."""
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*LEFT_OUT))


def build(folder):
    """(sdist, wheel) of a copy of the project; the wheel is made from the sdist, as pip makes it."""
    copy_tree(folder / "tree")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "tree"])
    (sdist,), (wheel,) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    return sdist, wheel


def environment(folder, distribution):
    """An environment with the distribution alone; the libraries are those of the test's environment.

    A .pth file adds the folder of the libraries, so nothing is downloaded. It does not add this project: a .pth file
    of that folder, such as that of an editable installation, has no effect there.
    """
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run([sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet", "--no-index",
         "--no-deps", "--ignore-installed", "--no-build-isolation", distribution])
    return folder


def whole_environment(folder, *requirements):
    """An environment with its own pip and all libraries from the index, as a user makes it; torch's CPU build first."""
    run([sys.executable, "-m", "venv", folder])
    constraints = ROOT / "constraints.txt"
    for requirement in ("torch", *requirements):
        run([folder / "bin" / "pip", "install", "--quiet", "--constraint", constraints, requirement])
    return folder


def run(command, **options):
    """The finished process of a command that has to succeed; its messages are shown where it does not."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def user(environment, folder, **variables):
    """A function that runs a line of bash in a folder, as a user does who activated the environment."""
    path = f"{environment / 'bin'}{os.pathsep}/usr/local/bin{os.pathsep}/usr/bin{os.pathsep}/bin"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MLM", "PYTEST"))}

    def sh(line):
        return run(["bash", "-o", "pipefail", "-c", line], cwd=folder, timeout=1800,
                   env={**kept, "PATH": path, "VIRTUAL_ENV": str(environment), "OMP_NUM_THREADS": "1", **variables})

    return sh
