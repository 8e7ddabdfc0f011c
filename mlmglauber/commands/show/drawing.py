"""Draws states as lines: words in colours or in brackets, broken at the width of a terminal."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from mlmglauber.commands.show.chains import ShownState
from mlmglauber.commands.show.comparison import WordChange

CHANCES = ((-0.6931471805599453, "black on green", ">= 50 %"), (-2.302585092994046, "black on cyan", "10 to 50 %"),
           (-4.605170185988092, "black on yellow", "1 to 10 %"), (float("-inf"), "bold white on red", "< 1 %"))
"""Least log-probability of a new token, the style of its word, and how the legend names it. Dark letters on bright
colours can be read on dark and on bright terminals; the rarest are the other way round."""
LEGEND = "New words by the probability of their token:"
UNKNOWN = "bold underline"
"""The style of a changed word whose log-probability the record does not have."""
VANISHED = "_"
"""What stands in the place of a word that vanished."""
SKIPPED = "..."
"""What stands, with --diff, in the place of words that do not differ."""


class Piece(NamedTuple):
    """A part of a line with its style; gap: what separates it from the part before on the same line."""

    text: str
    style: str = ""
    gap: str = " "


def style_of(logp: float | None) -> str:
    """The style of a changed word.

    >>> style_of(-0.1), style_of(-9), style_of(None)
    ('black on green', 'bold white on red', 'bold underline')
    """
    if logp is None:
        return UNKNOWN
    return next(style for least, style, _ in CHANCES if logp >= least)


def legend() -> list[Piece]:
    """What the colours mean."""
    return [*(Piece(word, "dim") for word in LEGEND.split(" ")),
            *(Piece(f" {name} ", style) for _, style, name in CHANCES), Piece("not recorded", UNKNOWN)]


def bracketed(state: ShownState) -> list[tuple[str, str]]:
    """The words of a state, each after the spaces before it; its changes are [old -> new]."""
    words = state.words
    pairs = list(zip(words.gaps, words.parts, strict=True))
    for change in reversed(state.changes):
        text = f"[{change.old} -> {words.text(change.first, change.end)}]"
        pairs[change.first : change.end] = [(max(change.gap, _gap(state, change)), text)]
    return pairs


def coloured(state: ShownState) -> list[Piece]:
    """The words of a state, changed ones in the colour of their probability."""
    words = state.words
    pieces: list[Piece] = []
    place = 0
    for change in state.changes:
        pieces += _unchanged(state, place, change.first)
        text = words.text(change.first, change.end) or VANISHED
        pieces.append(Piece(text, style_of(change.logp), _gap(state, change)))
        place = change.end
    return pieces + _unchanged(state, place, None)


def _unchanged(state: ShownState, first: int, end: int | None) -> list[Piece]:
    words = state.words
    return [Piece(part, "", gap) for part, gap in zip(words.parts[first:end], words.gaps[first:end], strict=True)]


def _gap(state: ShownState, change: WordChange) -> str:
    """The spaces before the new text of a change; before an empty one those of the old text."""
    return state.words.gaps[change.first] if change.first < change.end else change.gap


def differing(state: ShownState, color: bool) -> list[Piece]:
    """For --diff: the changes alone, with SKIPPED for what lies before, between and after them."""
    pieces: list[Piece] = []
    place = 0
    for change in state.changes:
        if change.first > place:
            pieces.append(Piece(SKIPPED, "dim"))
        pieces += replaced(change, state.words.text(change.first, change.end), color)
        place = change.end
    if not pieces:
        return [Piece("as at the start", "dim")]
    return [*pieces, Piece(SKIPPED, "dim")] if place < len(state.words.parts) else pieces


def replaced(change: WordChange, new: str, color: bool) -> list[Piece]:
    """An old text and the one in its place."""
    if not color:
        return [Piece(f"[{change.old} -> {new}]")]
    return [Piece(change.old or VANISHED, "dim"), Piece("->", "dim"), Piece(new or VANISHED, style_of(change.logp))]


def broken(pieces: Sequence[Piece], width: int | None, indent: int) -> Iterator[list[Piece]]:
    """Pieces in lines of at most `width` cells; later lines begin with `indent` spaces, fewer on a narrow terminal.

    A word that is wider than a line is cut between its letters. width: None for one line of any width.
    """
    if width is None:
        yield list(pieces)
        return
    indent = min(indent, width // 4)
    line: list[Piece] = []
    used = 0
    for piece in pieces:
        size = cells(piece.text)
        gap = len(piece.gap) if line else 0
        if line and used + gap + size > width:
            yield line
            line, used, gap = [Piece(" " * indent, "", "")], indent, 0
            piece = piece._replace(gap="")
        if used + gap + size > width:
            first, *rest = _cut(piece.text, width - used - gap, width - indent)
            line.append(piece._replace(text=first))
            for text in rest:
                yield line
                line, used = [Piece(" " * indent, "", ""), Piece(text, piece.style, "")], indent + cells(text)
            continue
        line.append(piece)
        used += gap + size
    if line:
        yield line


def _cut(text: str, first: int, others: int) -> list[str]:
    """A text in parts of at most this many cells each, two at least: a wide letter must have room."""
    from rich.cells import chop_cells

    head, *_ = chop_cells(text, max(2, first))
    rest = text[len(head):]
    return [head, *chop_cells(rest, max(2, others))] if rest else [head]


def cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def painted(line: Sequence[Piece], color: bool) -> str:
    """A line as a terminal reads it, without its end."""
    parts: list[str] = []
    for k, piece in enumerate(line):
        if k:
            parts.append(piece.gap)
        parts.append(_ansi(piece.style).format(piece.text) if color and piece.style else piece.text)
    return "".join(parts)


@cache
def _ansi(style: str) -> "Painter":
    return Painter(style)


class Painter:
    """Writes the escape sequences of a style around texts."""

    def __init__(self, style: str) -> None:
        from rich.color import ColorSystem
        from rich.style import Style

        self._before, self._after = Style.parse(style).render("\0", color_system=ColorSystem.STANDARD).split("\0")

    def format(self, text: str) -> str:
        """The text between the escape sequences."""
        return f"{self._before}{text}{self._after}"
