"""The blocks of code of README and docs/*.md, for the tests that run them.

A block is indented by four spaces, or fenced and marked as python. One that begins with a command is run; another one
is the output of the block of commands before it, where `...` stands for lines that are left out. A comment before a
block says how it is run:

    <!-- long -->       as it stands, and compared, by make soak; with fewer steps, and not compared, by make test
    <!-- soak -->       by make soak alone
    <!-- wheel -->      by test_install.py, where a wheel is installed
    <!-- elsewhere -->  never here: it needs a network, a cluster or other models; a test of its own covers its script
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
COMMANDS = ("bash ", "cat ", "echo ", "for ", "grep ", "head ", "make ", "mlm ", "mlm-", "mlm\n", "printf ", "sh ",
            "share=")
NETWORK = ("apptainer ", "docker ", "git ", "hf ", "pip ", "pipx ", "podman ", "python3 -m venv ", "sbatch ", "uv ")
"""Commands of blocks that are never run here, without a mark."""
MARKS = ("long", "soak", "wheel", "elsewhere")
PARTS = (r"<!-- (?P<mark>\w+) -->|^```python\n(?P<python>(?:.*\n)*?)^```$"
         r"|(?:^|\n)\n(?P<code>(?: {4}.*\n)(?:(?: {4}.*)?\n)*)")
"""A mark, a fenced block of Python, or an indented block."""


class Block(NamedTuple):
    """Code of a page, its language, its mark, and the output that the page shows below it."""

    code: str
    language: str
    mark: str
    output: str


def blocks(page):
    """The blocks of a page that can be run, in order."""
    found, mark = [], ""
    for match in re.finditer(PARTS, (ROOT / page).read_text(), re.MULTILINE):
        if match["mark"]:
            mark = match["mark"]
        elif match["python"]:
            found.append(Block(match["python"], "python", mark, ""))
            mark = ""
        else:
            for part in re.split(r"\n(?:\s*\n)+(?= {4}\S)", match["code"].rstrip()):
                text = re.sub(r"^ {4}", "", part.strip("\n"), flags=re.MULTILINE) + "\n"
                if text.startswith(COMMANDS + NETWORK):
                    found.append(Block(text, "sh", "elsewhere" if text.startswith(NETWORK) else mark, ""))
                    mark = ""
                else:
                    assert found, f"{page} shows an output before the first command: {text}"
                    found[-1] = found[-1]._replace(output=found[-1].output + text)
    return found
