"""What people sent us, as a terminal may be shown it."""


def printable(text: str) -> str:
    r"""A text in which control characters, escape sequences and line breaks are spelled out.

    >>> printable("caf\u00e9 \x1b[31m\n")
    'café \\x1b[31m\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
