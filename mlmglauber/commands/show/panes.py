"""The screen of --follow: each chain in a pane, below them the legend and the keys."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlmglauber.commands.show.chains import ShownState
from mlmglauber.commands.show.drawing import Piece, bracketed, broken, coloured, legend

if TYPE_CHECKING:
    from rich.layout import Layout
    from rich.panel import Panel
    from rich.text import Text

PANE_WIDTH, PANE_HEIGHT = 40, 5
"""Least size of a pane in cells, its frame included."""
STALE = 20
"""Number of frames in which a chain did not move until a new chain may take its pane."""
SPARE = 1
"""Number of lines at the bottom that are left empty: a command before this one may draw its progress there."""


class Panes:
    """The chains that are shown, at most as many as fit; each keeps its pane while it moves."""

    def __init__(self, color: bool) -> None:
        self.color = color
        self._frame = 0
        self._states: dict[tuple[str, str], ShownState] = {}
        self._moved: dict[tuple[str, str], int] = {}
        self._hidden: set[tuple[str, str]] = set()

    @property
    def states(self) -> list[ShownState]:
        """The states that are shown."""
        return list(self._states.values())

    def take(self, states: Sequence[ShownState], width: int, height: int) -> None:
        """Show these states, which change together, on a screen of this size."""
        self._frame += 1
        room = _room(width, self._height(width, height))
        while len(self._states) > room:
            self._remove(min(self._moved, key=self._moved.__getitem__))
        for state in states:
            key = state.chain, state.tau
            if key not in self._states and len(self._states) >= room:
                oldest = min(self._moved, key=self._moved.__getitem__)
                if self._frame - self._moved[oldest] < STALE:
                    self._hidden.add(key)
                    continue
                self._remove(oldest)
            self._hidden.discard(key)
            self._states[key], self._moved[key] = state, self._frame

    def _remove(self, key: tuple[str, str]) -> None:
        del self._states[key], self._moved[key]
        self._hidden.add(key)

    def screen(self, width: int, height: int, status: Sequence[str]) -> "Layout":
        """The panes, the legend, and a line of status, on a screen of this size."""
        from rich.layout import Layout
        from rich.text import Text

        rows = self._height(width, height)
        columns = _columns(len(self._states), width, rows)
        body = Layout(name="panes")
        lines = [self.states[k : k + columns] for k in range(0, len(self._states), columns)]
        height_of = rows // max(1, len(lines))
        if lines:
            body.split_column(*(_row([Layout(self._pane(state, width // columns, height_of)) for state in line],
                                     columns) for line in lines))
        else:
            body.update(Text("waiting for states"))
        root = Layout()
        foot = [_text(line) for line in self._legend(width, height)]
        hidden = [f"{len(self._hidden)} more chains"] if self._hidden else []
        line = "  ".join([*status[:1], *hidden, *status[1:]])
        foot.append(Text(line, style="dim", no_wrap=True, overflow="ellipsis"))
        root.split_column(body, *(Layout(each, size=1) for each in foot), Layout(Text(" "), size=SPARE))
        return root

    def _legend(self, width: int, height: int) -> list[list[Piece]]:
        """The lines of the legend; on a narrow screen without its first words, and none where it leaves no room."""
        if not self.color:
            return []
        lines = list(broken([piece for piece in legend() if width >= 2 * PANE_WIDTH or piece.style != "dim"], width, 0))
        return lines if len(lines) <= height // 5 else []

    def _height(self, width: int, height: int) -> int:
        """Number of lines for the panes."""
        return max(PANE_HEIGHT, height - len(self._legend(width, height)) - 1 - SPARE)

    def _pane(self, state: ShownState, width: int, height: int) -> "Panel":
        """The pane of one chain; of a text that is too long for it, the lines around the first change."""
        from rich.panel import Panel
        from rich.text import Text

        pieces = coloured(state) if self.color else [Piece(word, "", gap) for gap, word in bracketed(state)]
        lines = list(broken(pieces, max(4, width - 4), 0))
        room = max(1, height - 2)
        changed = next((k for k, line in enumerate(lines)
                        if any(piece.style or piece.text.startswith("[") for piece in line)), 0)
        first = max(0, min(changed - room // 2, len(lines) - room))
        text = Text("\n", no_wrap=True, overflow="crop").join(_text(line) for line in lines[first : first + room])
        title = f"{state.chain}  tau {state.tau}" if state.tau else state.chain
        logp = [] if state.logp is None or not state.changes else [f"{state.logp:.2f} nats"]
        below = "  ".join([f"step {state.step}", *logp, *state.notes])
        return Panel(text, title=Text(title), subtitle=Text(below), title_align="left", subtitle_align="left")


def _row(panes: "list[Layout]", columns: int) -> "Layout":
    """Panes beside each other; the last row may have fewer, of the same width."""
    from rich.layout import Layout
    from rich.text import Text

    row = Layout()
    row.split_row(*panes, *(Layout(Text(" ")) for _ in range(columns - len(panes))))
    return row


def _room(width: int, rows: int) -> int:
    """How many panes fit."""
    return max(1, width // PANE_WIDTH) * max(1, rows // PANE_HEIGHT)


def _columns(count: int, width: int, rows: int) -> int:
    """Number of panes beside each other: one if all fit below each other."""
    most = max(1, width // PANE_WIDTH)
    return next((k for k in range(1, most) if -(-count // k) * PANE_HEIGHT <= rows), most)


def _text(line: Sequence[Piece]) -> "Text":
    """A line for rich."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop")
    for k, piece in enumerate(line):
        text.append(piece.gap if k else "").append(piece.text, piece.style or None)
    return text
