"""Commands on a pseudo-terminal, and what its screen shows."""

import os
import re
import select
import subprocess
import time
from contextlib import contextmanager

from conftest import PATH

SGR = re.compile(r"\x1b\[[0-9;]*m")
CODE = re.compile(r"\x1b\[2K|\x1b\[[0-9;]*m|\r|\n|.", re.DOTALL)


@contextmanager
def on_terminal(command, folder, columns=100, rows=24, **environment):
    """A command whose terminal is a pseudo-terminal of this size; its standard input is a pipe."""
    import fcntl
    import pty
    import struct
    import termios

    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    variables = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        ["bash", "-c", command], cwd=folder, stdin=subprocess.PIPE, stdout=terminal, stderr=terminal,
        env={**variables, "PATH": PATH, "TERM": "xterm-256color", **environment}, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0))
    os.close(terminal)
    try:
        yield process, master
    finally:
        process.stdin.close()
        process.kill()
        process.wait()
        os.close(master)


def read_until(master, wanted=None, seconds=120):
    """What the terminal was sent, up to the text that is wanted, or to the end of the command."""
    seen, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                block = os.read(master, 1 << 16)
            except OSError:
                break
            if not block:
                break
            seen += block
        if wanted is not None and wanted in SGR.sub("", seen.decode(errors="ignore")):
            break
    text = seen.decode()
    assert wanted is None or wanted in SGR.sub("", text), text
    return text


def screen(text):
    """The lines of a terminal after a text whose only codes are colours, carriage returns and emptied lines."""
    lines, column = [[]], 0
    for code in CODE.findall(text):
        if code == "\n":
            lines.append([])
        elif code == "\r":
            column = 0
        elif code == "\x1b[2K":
            lines[-1] = []
        elif not SGR.fullmatch(code):
            lines[-1] += " " * (column + 1 - len(lines[-1]))
            lines[-1][column] = code
            column += 1
    return ["".join(line).rstrip() for line in lines]
