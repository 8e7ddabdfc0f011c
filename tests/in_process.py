"""A command run in this process: what a shell would see of it, in milliseconds."""

import importlib
import io
import signal
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import orjson
import pytest


class Answer(NamedTuple):
    """What a command left behind."""

    status: int
    out: bytes
    err: str

    @property
    def records(self):
        return [orjson.loads(line) for line in self.out.split(b"\n")[:-1]]

    def of(self, kind):
        return [record for record in self.records if record["type"] == kind]


def answer(command, content, folder):
    """Run `mlm-NAME OPTION...` without the mlm- in a folder, with an input; no shell, no quotes."""
    name, *arguments = command.split(" ")
    folder = Path(folder)
    (folder / "in").write_bytes(content)
    said, status = io.StringIO(), None
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with pytest.MonkeyPatch.context() as patch, (folder / "in").open("rb") as given, (folder / "out").open("wb") as out:
        patch.chdir(folder)
        patch.setattr(sys, "stdin", given)
        patch.setattr(sys, "stdout", SimpleNamespace(fileno=out.fileno, isatty=lambda: False))
        patch.setattr(sys, "stderr", said)
        patch.setattr(warnings, "showwarning", warnings.showwarning)
        try:
            importlib.import_module(f"mlmglauber.commands.{name}.command").main.main(arguments)
        except SystemExit as ended:
            status = int(ended.code)
        finally:
            for number, handler in handlers:
                signal.signal(number, handler)
    return Answer(status, (folder / "out").read_bytes(), said.getvalue())
