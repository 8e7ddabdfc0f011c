"""What people sent us, as a terminal may be shown it."""


def printable(text: str) -> str:
    r"""A text in which control characters, escape sequences and line breaks are spelled out.

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


def were(count: int) -> str:
    """The verb of a number.

    >>> were(1), were(2)
    ('was', 'were')
    """
    return "was" if count == 1 else "were"
