"""Commands that run in the test's own process: what a shell would see of them, without the start of a process.

A fresh process also guards against what an earlier command has left behind. Therefore each run gets standard streams of
its own, which are pipes, and the warning filters of a fresh process. Afterwards the working directory, the environment,
the signal handlers and the warnings are what they were before, and files that the command left open are closed, as the
end of a process closes them. What the libraries read only when they are loaded (threads, locale) cannot be set here,
and what C libraries write to descriptor 2 is not seen. tests/project/test_in_process.py compares such runs with runs in
a real shell.
"""

import importlib
import io
import os
import re
import signal
import sys
import threading
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import orjson
import pytest

from mlmglauber.stream.errors import ExitStatus
from mlmglauber.stream.interrupts import ENDING

SETTINGS = ("MLM_MODEL", "MLM_DEVICE", "MLM_EMBEDDER", "NO_COLOR", "COLUMNS", "LINES")
"""Environment variables that a command reads when it runs; a test's commands see them only where the test sets them."""
FILTERS = ("cat", "grep", "jq", "sed", "shuf", "sort", "tail", "tee", "uniq")
"""Programs that read their whole input, so that a command before them in a pipe never sees a closed pipe."""
MAKERS = (*FILTERS, "cp", "echo", "gzip", "head", "mkdir", "printf", "zcat")
"""Programs that leave a shell as it is, so that each line of several may have a shell of its own."""
NEEDS_PROCESS = re.compile(r"(^|\s)(--dask|--help|-h|--version)\b|/dev/")
"""Options and files of a command that concern a process: workers, the start of one, its descriptors."""
NEEDS_CLOCK = re.compile(r"\b(sleep|timeout|yes|kill|wait)\b")
WORD = r"""(?:[^\s'"\\|&;<>()$`*?\[\]{}~#!]|'[^']*'|"[^"\\$`!]*")+"""
STRICT = "set -e\n"
"""The first line of lines that end with the first pipe that fails."""
COMMAND = re.compile(rf"(?P<words>{WORD}(\s+{WORD})*)(\s+<\s*(?P<source>{WORD}))?(\s+>\s*(?P<target>{WORD}))?")
PIECE = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|\|\s*\n|\|\||&&|[^'"\\]""", re.DOTALL)


SIGNALLED = [ExitStatus.INTERRUPTED, *(128 + number for number in ENDING)]
"""Exit statuses of a command that a signal has ended."""


class Result(NamedTuple):
    """What a command or a line of commands left behind."""

    status: int
    out: bytes
    err: str

    @property
    def records(self):
        return [orjson.loads(line) for line in self.out.splitlines()]

    @property
    def states(self):
        return self.of("state")

    def of(self, kind):
        return [record for record in self.records if record.get("type") == kind]


def answer(command, content, folder):
    """Run `mlm-NAME OPTION...`, written without the mlm-, in a folder on an input; no shell syntax, no quotes."""
    name, *arguments = command.split(" ")
    return run_command(name, arguments, content, folder)


def run_command(name, arguments, content, folder, target=None, timeout=120, **environment):
    """Run the command mlm-NAME in this process.

    target: the file that its standard output is, None for a pipe whose content is in the result. environment: variables
    that it sees beside those of the test.
    """
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", newline="")
    status = 0
    with (Feeder(content) as source, Collector(target) as sink, process_state(folder, timeout),
          pytest.MonkeyPatch.context() as patch):
        patch.chdir(folder)
        for variable in SETTINGS:
            patch.delenv(variable, raising=False)
        for variable, value in {"TERM": "xterm", **environment}.items():
            patch.setenv(variable, value)
        patch.setattr(sys, "stdin", SimpleNamespace(fileno=lambda: source))
        patch.setattr(sys, "stdout", SimpleNamespace(fileno=lambda: sink.descriptor, isatty=lambda: False))
        patch.setattr(sys, "stderr", said)
        try:
            importlib.import_module(f"mlmglauber.commands.{name}.command").main.main(arguments)
        except SystemExit as ended:
            status = int(ended.code)
    if status in SIGNALLED:
        raise KeyboardInterrupt  # the signal was meant for the tests, and the command has answered it
    said.flush()
    return Result(status, bytes(sink.content), said.buffer.getvalue().decode())


@contextmanager
def process_state(folder, timeout):
    """Restores afterwards what a command changes of its process, and stops it after `timeout` seconds."""

    def late(number, frame):
        raise TimeoutError(f"the command ran for {timeout} seconds")

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    handlers = [(number, signal.getsignal(number)) for number in numbers]
    variables, before = dict(os.environ), open_files(folder)
    signal.signal(signal.SIGALRM, late)
    signal.alarm(timeout)
    try:
        with warnings.catch_warnings():
            warnings.resetwarnings()  # also forgets which warnings were shown: each command shows each of them once
            for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
                warnings.simplefilter("ignore", category)
            yield
    finally:
        signal.alarm(0)
        for number, handler in handlers:
            signal.signal(number, handler)
        os.environ.clear()
        os.environ.update(variables)
        for descriptor in open_files(folder) - before:
            os.close(descriptor)


def open_files(folder):
    """The descriptors of this process that are open on files of a folder, where the system lists them."""
    found = set()
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                if Path(os.readlink(f"/proc/self/fd/{name}")).is_relative_to(folder):
                    found.add(int(name))
    return found


class Feeder:
    """A pipe that a thread fills with bytes; as a context manager it gives the descriptor to read from."""

    def __init__(self, content):
        self.content = content

    def __enter__(self):
        self.source, writes = os.pipe()

        def feed():
            with suppress(BrokenPipeError), os.fdopen(writes, "wb") as file:
                file.write(self.content)

        self.thread = threading.Thread(target=feed)
        self.thread.start()
        return self.source

    def __exit__(self, *_):
        os.close(self.source)
        self.thread.join()


class Collector:
    """A file, or a pipe that a thread reads to its end: `descriptor` to write to, afterwards `content` of the pipe."""

    def __init__(self, target):
        self.target, self.content = target, bytearray()

    def __enter__(self):
        if self.target is not None:
            self.thread = threading.Thread()
            self.descriptor = os.open(self.target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        else:
            source, self.descriptor = os.pipe()

            def collect():
                with os.fdopen(source, "rb") as file:
                    self.content += file.read()

            self.thread = threading.Thread(target=collect)
        self.thread.start()
        return self

    def __exit__(self, *_):
        os.close(self.descriptor)
        self.thread.join()


def in_process(folder, real_shell):
    """A function like `conftest.shell`, that runs mlm- commands in this process where it can.

    It can where the line consists of pipes of mlm- commands with plain words as arguments; it may begin with STRICT.
    Other programs may make the input and filter the output: bash runs these stages alone. Every other line is run by
    `real_shell`.
    """

    def run(line, stdin=b"", timeout=120, **environment):
        pipes = None
        if all(name in (*SETTINGS, "TERM") or os.environ.get(name) == value for name, value in environment.items()):
            pipes = pipes_of(line)
        if pipes is None or (stdin and len(pipes) > 1):  # whichever reads it first would have it
            return real_shell(line, stdin, timeout, **environment)
        done = Result(0, b"", "")
        for pipe in pipes:
            result = run_pipe(pipe, stdin, timeout, environment)
            done = Result(result.status, done.out + result.out, done.err + result.err)
            if done.status and line.startswith(STRICT):
                break
        return done

    def run_pipe(stages, content, timeout, environment):
        said, status = "", 0
        for stage in stages:
            command = COMMAND.fullmatch(stage) if stage.startswith("mlm-") else None
            if command is None:
                result = real_shell(stage, content, timeout, **environment)
            else:
                if command["source"]:
                    content = (folder / unquoted(command["source"])).read_bytes()
                name, *arguments = map(unquoted, re.findall(WORD, command["words"]))
                target = folder / unquoted(command["target"]) if command["target"] else None
                result = run_command(name.removeprefix("mlm-"), arguments, content, folder, target, timeout,
                                     **environment)
            content, said = result.out, said + result.err
            status = result.status or status  # as `set -o pipefail` has it
        return Result(status, content, said)

    run.folder = folder
    return run


def pipes_of(line):
    """The pipes that `in_process` can run one after the other, each a list of stages; None of any other line."""
    pipes = split(line.removeprefix(STRICT))
    if pipes is None or "mlm-" not in line or NEEDS_CLOCK.search(line):
        return None
    for stages in pipes:
        for number, stage in enumerate(stages):
            if stage.startswith("mlm-"):
                command = COMMAND.fullmatch(stage)
                if command is None or NEEDS_PROCESS.search(command["words"]):
                    return None
                if command["target"] and ("/dev/" in command["target"] or number + 1 < len(stages)):
                    return None
            elif "mlm-" in stage or not may_stand(stage.split()[0], stages[:number], len(pipes)):
                return None
    return pipes


def may_stand(program, before, pipes):
    """Whether a program may follow these stages, or begin one of so many pipes."""
    if before:
        return program in FILTERS or (program == "head" and not before[-1].startswith("mlm-"))
    return pipes == 1 or program in MAKERS


def split(line):
    """The pipes of a line, each a list of stages; None where it has an operator other than these, ; and line feeds."""
    pipes, depth = [[""]], 0
    for piece in PIECE.findall(line.strip()):
        depth += (piece == "(") - (piece == ")")
        if depth:
            pipes[-1][-1] += piece
        elif piece in ("&", "&&", "||"):
            return None
        elif piece[0] == "|":
            pipes[-1].append("")
        elif piece in (";", "\n"):
            pipes.append([""])
        else:
            pipes[-1][-1] += piece
    pipes = [[stage.strip() for stage in stages] for stages in pipes]
    return pipes if all(map(all, pipes)) else None


def unquoted(word):
    """A word of a command without its quotes."""
    return re.sub(r"""'([^']*)'|"([^"]*)\"""", lambda found: found[1] or found[2] or "", word)
