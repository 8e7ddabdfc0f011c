"""Makes text of unknown origin safe to print on a terminal; small helpers for messages."""


def printable(text: str) -> str:
    r"""A text with its control characters, escape sequences and line breaks written as backslash escapes.

    >>> printable("caf\u00e9 \x1b[31m\n")
    'café \\x1b[31m\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "text"), counted(0, "text"), counted(2, "text")
    ('1 text', '0 texts', '2 texts')
    """
    return f"{count} {noun}" + ("" if count == 1 else "s")


def sentence(note: str) -> str:
    """A note as a sentence, with a capital letter where it begins with one of a to z.

    >>> sentence("2 traps"), sentence("a trap"), sentence("\u03c4 = 1")
    ('2 traps.', 'A trap.', '\u03c4 = 1.')
    """
    return (note[:1].upper() if note[:1].isascii() else note[:1]) + note[1:] + "."


def were(count: int) -> str:
    """"was" or "were", as a number needs it.

    >>> were(1), were(2)
    ('was', 'were')
    """
    return "was" if count == 1 else "were"
