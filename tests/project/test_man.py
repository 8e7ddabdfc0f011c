"""The man pages: made from the commands, lint-clean, and their examples run."""

import importlib
import re
import shutil
import subprocess
import sys

import click
import orjson
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "man"))
import build

pytestmark = pytest.mark.in_process

NAMES = sorted(build.COMMANDS)
WORDS = 18
"""Of each passage that the examples run on: enough for their --length, and quick."""
FEW = 24
"""Passages that the examples run on in `make test`."""
PAGES = sorted([*(ROOT / "man").glob("*.1"), *(ROOT / "man").glob("*.5"), *(ROOT / "man").glob("*.7")])


@pytest.fixture
def mandoc():
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")

    def run(*arguments):
        return subprocess.run(["mandoc", *arguments], capture_output=True, text=True, check=False)

    return run


def test_every_command_has_a_page():
    from importlib.metadata import entry_points

    installed = {entry.name for entry in entry_points(group="console_scripts") if entry.name.startswith("mlm-")}
    assert installed == set(NAMES)
    others = {"mlm-records.5", "mlm-glauber.7", "mlm-spread.7", "mlm-api.7"}
    assert {page.name for page in PAGES} == {*(f"{name}.1" for name in NAMES)} | others
    assert {path.name for path in (ROOT / "bin").iterdir()} == {*NAMES, "mlm", "launch"}


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_the_one_that_build_makes(name):
    assert (ROOT / "man" / f"{name}.1").read_text() == build.page(name, build.COMMANDS[name]), "run man/build.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lint(mandoc, page):
    done = mandoc("-Tlint", "-Wwarning", str(page))
    assert done.stdout == ""
    assert done.returncode == 0


@pytest.mark.parametrize("name", NAMES)
def test_options_are_those_of_help(mandoc, name):
    text = mandoc("-Tutf8", "-O", "width=200", str(ROOT / "man" / f"{name}.1")).stdout
    text = re.sub(r".\x08", "", text).replace("\u2010", "-").replace("\u2212", "-")
    options = text[text.index("\nOPTIONS") : text.index("\nINPUT")]
    entries = [line for line in options.splitlines() if re.match(r" {5}-", line)]
    in_page = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", " ".join(entries)))
    command = importlib.import_module(f"mlmglauber.commands.{name[4:]}.command").main
    context = click.Context(command, help_option_names=["-h", "--help"])
    in_help = {flag for option in command.get_params(context) if isinstance(option, click.Option) and not option.hidden
               for flag in (*option.opts, *option.secondary_opts)}
    assert in_page == in_help
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "INPUT", "OUTPUT", "EXIT STATUS", "ENVIRONMENT",
                    "EXAMPLES", "SEE ALSO"):
        assert f"\n{section}\n" in "\n" + text


def examples(name):
    text = (ROOT / "man" / f"{name}.1").read_text()
    blocks = re.findall(r"\.Bd -literal\n(.*?)\.Ed", text[text.index(".Sh EXAMPLES") :], re.S)
    return [block.replace("\\e", "\\") for block in blocks]


EXAMPLES = [pytest.param(example, id=f"{name} {k}") for name in NAMES for k, example in enumerate(examples(name), 1)]
FIRST = [pytest.param(example, id=name) for name in NAMES for example in examples(name)[:1]]


@pytest.mark.parametrize("example", FIRST)
def test_the_first_example_of_a_page_runs(sh, example):
    """On few passages, with at most three sweeps, and a third of the steps where there are a thousand or more."""
    example = re.sub(r"head -n ([3-9]|\d\d)\b", "head -n 2", example)
    example = re.sub(r"--sweeps (?:[4-9]|\d{2,})\b", "--sweeps 3", example)
    example = re.sub(r"--steps (\d{4,})", lambda found: f"--steps {int(found[1]) // 3}", example)
    run_example(sh, example, None if "mlm-tokens passages" in example else FEW)  # few passages have unknown words


@pytest.mark.soak
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_as_they_stand(sh, example):
    run_example(sh, example)


def run_example(sh, example, passages=None):
    if "jq" in example and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    lines = (ROOT / "examples" / "passages.jsonl").read_bytes().splitlines()[:passages]
    records = [orjson.loads(line) for line in lines]
    short = [record | {"text": " ".join(record["text"].split()[:WORDS])} for record in records]
    (sh.folder / "passages.jsonl").write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in short))
    done = sh(example)
    assert (done.status, done.err) == (0, "")
    assert done.out or [path for path in sh.folder.glob("*.jsonl") if path.name != "passages.jsonl"]
