"""An output that shows the records of a command in the place of writing them."""

import os

import orjson

from mlmglauber.commands.show.lines import Form, LineWriter, Place, shows
from mlmglauber.stream.output import BufferedOutput, Output


def terminal_width(descriptor: int) -> int:
    """Cells of a line: COLUMNS, else those of the terminal of this file descriptor, which may change; else 80."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isascii() and asked.isdigit() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(descriptor).columns or 80
    except OSError:
        return 80


class ShownOutput(Output):
    """Shows states on a terminal as mlm-show does, in the place of their records; other records are not shown."""

    def __init__(self, output: BufferedOutput, color: bool) -> None:
        super().__init__(output.path)
        self._output = output
        self._writer = LineWriter(Form.TEXT, Place(True, color), lambda: terminal_width(output.descriptor))

    def write_line(self, line: bytes) -> None:
        record = orjson.loads(line)
        if shows(record):
            self._output.write_line(self._writer.lines(record).encode())

    def flush(self) -> None:
        self._output.flush()
