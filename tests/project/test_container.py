"""The Containerfile, read line by line, so that no engine is needed: its RUN lines make a working installation."""

import os
import re
import subprocess
import sys
import tomllib
import urllib.request

import fresh
import pytest
from conftest import ROOT

from mlmglauber.commands.umbrella.doctor import CPU_TORCH

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def instructions():
    """(instruction, argument) for each instruction of the Containerfile, its continued lines joined."""
    lines = [line for line in (ROOT / "Containerfile").read_text().splitlines() if not line.startswith("#")]
    return [tuple(line.split(" ", 1)) for line in "\n".join(lines).replace("\\\n", " ").splitlines()]


def arguments(name):
    return [argument for instruction, argument in instructions() if instruction == name]


def test_the_instructions_are_those_that_the_tests_can_follow():
    assert {name for name, _ in instructions()} == {"FROM", "ARG", "COPY", "WORKDIR", "RUN", "CMD"}
    (image,), (source,) = arguments("FROM"), arguments("COPY")
    assert f"Programming Language :: Python :: {re.search(r'python:([0-9.]+)', image)[1]}" in PROJECT["classifiers"]
    assert source == f". {arguments('WORKDIR')[0]}"
    assert arguments("CMD") == ['["mlm"]']
    assert "mlm" in PROJECT["scripts"]


def test_the_cpu_build_of_torch_comes_first_from_the_index_that_the_doctor_names():
    first, second = arguments("RUN")
    (default,) = arguments("ARG")
    assert default == f"TORCH_INDEX={CPU_TORCH.split()[-1]}"
    assert '--index-url "$TORCH_INDEX" torch' in first
    assert "--no-deps" in first  # the index of torch need not have the versions of constraints.txt
    extras = re.search(r"'\.\[(.*)\]'", second)[1].split(",")
    assert set(extras) == set(PROJECT["optional-dependencies"]) - {"test"}


def test_an_image_gets_none_of_the_caches_of_the_tree():
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {name.removeprefix("**/") for name in ignored} == set(fresh.LEFT_OUT)


@pytest.mark.soak
def test_the_run_lines_in_a_fresh_environment(tmp_path):
    """An environment stands for the image, so /usr/src is a folder of the test and pip that of the environment.

    TORCH_INDEX in the environment is another index than PyTorch's, as for `podman build --build-arg`.
    """
    index = os.environ.get("TORCH_INDEX")
    if index is None:
        index = arguments("ARG")[0].partition("=")[2]
        try:
            urllib.request.urlopen(f"{index}/torch/", timeout=10).close()
        except OSError:
            pytest.skip(f"{index} cannot be reached; set TORCH_INDEX to another index with torch")
    environment = tmp_path / "environment"
    fresh.run([sys.executable, "-m", "venv", environment])
    folder = tmp_path
    for name, argument in instructions():
        if name == "COPY":
            fresh.copy_tree(tmp_path / argument.split()[1].lstrip("/"))
        elif name == "WORKDIR":
            folder = tmp_path / argument.lstrip("/")
            folder.mkdir(parents=True, exist_ok=True)
        elif name == "RUN":
            fresh.user(environment, folder, TORCH_INDEX=index)(argument)
    sh = fresh.user(environment, folder)
    assert "mlm COMMAND" in sh("mlm").stdout
    assert sh("python -c 'import torch; print(torch.version.cuda)'").stdout == "None\n"
    table = sh("head -n 4 \"$(mlm examples)/passages.txt\" | mlm-sample --tau 2 --length 8 --sweeps 4 --seed 1 | "
               "mlm-embed | mlm-drift --summary --table").stdout
    assert "Drift by temperature and length" in table
    assert " 2.00 " in table
    assert subprocess.run(["find", tmp_path / "usr", "-name", "build", "-o", "-name", "*.egg-info"],
                          capture_output=True, check=True).stdout == b""
