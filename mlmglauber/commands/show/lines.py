"""Turns records into the lines that mlm-show writes, on a terminal and in a pipe or file."""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from mlmglauber.commands.show.chains import ShownChains, ShownState, ShownTrap, run_line
from mlmglauber.commands.show.drawing import Piece, bracketed, broken, coloured, differing, legend, painted, replaced
from mlmglauber.stream.records import Record, is_input

STEP = 6
"""Digits of a step that leave the texts of a terminal in one column."""


class Form(Enum):
    """What is written for a state."""

    TEXT = "its text, with what changed"
    LOG = "one line a change"
    DIFF = "what differs from the start"


class Place(NamedTuple):
    """Where lines go. terminal: whether they are broken at its width and grouped by chain; color: whether words are
    coloured."""

    terminal: bool
    color: bool


def shows(record: Record) -> bool:
    """Whether a record is shown: a state, a run or a trap; also an input text, which is a state without a chain."""
    return record.get("type") in ("run", "trap") or is_input(record)


class LineWriter:
    """Turns each record into lines.

    On a terminal a line names the chain where another chain stood before; elsewhere each line names its chain.
    width: called before each state; the cells of a line, None for any number.
    """

    def __init__(self, form: Form, place: Place, width: Callable[[], int | None]) -> None:
        self.form, self.place, self.width = form, place, width
        self.chains = ShownChains(from_start=form is Form.DIFF)
        self._heading: tuple[str, str] | None = None
        self._explained = False

    def lines(self, record: Record) -> str:
        """The lines of a record that `shows` accepts; RecordError for a bad one."""
        kind = record.get("type")
        if kind == "trap":
            return self._trap(self.chains.trap(record))
        if kind == "run":
            return "" if self.form is Form.LOG else self._written([Piece(run_line(record), "dim")], 4)
        state = self.chains.state(record)
        return self.on_terminal(state) if self.place.terminal or self.place.color else self._plain(state)

    def _plain(self, state: ShownState) -> str:
        """The lines of a state in a pipe or file: one, or with --log one for each change."""
        head = f"{state.chain}  tau {state.tau}  step {state.step}  " if state.tau else \
            f"{state.chain}  step {state.step}  "
        if self.form is Form.LOG:
            return "".join(f"{head}{painted(line, False)}\n" for line in self._changes(state))
        if self.form is Form.TEXT:
            text = "".join(map("".join, bracketed(state))).lstrip(" ")
        else:
            text = painted(differing(state, False), False)
        for note in self._notes(state):
            text += f"  {note}"
        return f"{head}{text}".rstrip() + "\n"

    def on_terminal(self, state: ShownState) -> str:
        """The lines of a state on a terminal."""
        color = self.place.color
        step = Piece(f"step {state.step:>{STEP}}", "dim")
        indent = len(step.text) + 2
        if self.form is Form.LOG:
            bodies = [[step, *line] for line in self._changes(state)]
        else:
            text = coloured(state) if color else [Piece(word, "", gap) for gap, word in bracketed(state)]
            if self.form is Form.DIFF:
                text = differing(state, color)
            notes = [Piece(note, "bold" if note == "trap" else "dim", "  ") for note in self._notes(state)]
            bodies = [[step, *(piece._replace(gap="  ") for piece in text[:1]), *text[1:], *notes]]
        written = ""
        if bodies and (state.chain, state.tau) != self._heading:
            self._heading = state.chain, state.tau
            written += self._written(_heading(state.chain, state.tau, state.n), 4)
        if color and not self._explained and any(change.logp is not None for change in state.changes):
            self._explained = True
            written += self._written(legend(), 4)
        return written + "".join(self._written(body, indent) for body in bodies)

    def _notes(self, state: ShownState) -> list[str]:
        """What stands behind the text of a state."""
        alone = state.logp is None or not state.changes or self.form is Form.DIFF
        return state.notes if alone else [f"{state.logp:.2f} nats", *state.notes]

    def _changes(self, state: ShownState) -> Iterator[list[Piece]]:
        """For --log: what stands behind the step, for each change."""
        for change in state.changes:
            new = state.words.text(change.first, change.end)
            line = [] if change.site is None else [Piece(f"site {change.site}", "dim", "  ")]
            pieces = replaced(change, new, True)
            line += [pieces[0]._replace(gap="  ", style=""), *pieces[1:]]
            if change.logp is not None:
                line.append(Piece(f"{change.logp:.2f} nats", "dim", "  "))
            yield line

    def _trap(self, trap: ShownTrap) -> str:
        """The line of a trap."""
        chain = [Piece(part) for part in (trap.chain, f"tau {trap.tau}" if trap.tau else "") if part]
        pieces = [*chain, Piece("trap", "bold"), Piece(trap.what), Piece(trap.text)]
        return self._written([piece._replace(gap="  ") for piece in pieces], 4)

    def _written(self, pieces: Sequence[Piece], indent: int) -> str:
        width = self.width() if self.place.terminal else None
        return "".join(f"{painted(line, self.place.color)}\n" for line in broken(pieces, width, indent))


def _heading(chain: str, tau: str, n: int) -> list[Piece]:
    """The line above the states of a chain."""
    fields = [f"chain {chain}", f"tau {tau}" if tau else "", f"{n} sites"]
    return [Piece(field, "bold", "  ") for field in fields if field]

