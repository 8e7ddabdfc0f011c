"""Makes texts of unknown origin safe in a figure of plotly, which reads a part of HTML in every text."""

from html import escape
from textwrap import wrap

from mlmglauber.pictures.panel import shortened
from mlmglauber.stream.printable import printable

WIDTH = 64
"""Maximum number of characters of a line that a page shows at a mark."""
LONGEST = 640
"""Maximum number of characters of a text that a page shows at a mark; a longer one loses its middle."""


def escaped(text: str) -> str:
    """A text that plotly shows as it is: no tag, no entity, no control character.

    >>> escaped("<b>a & b</b>\\t")
    '&lt;b&gt;a &amp; b&lt;/b&gt;\\\\t'
    """
    return escape(printable(text), quote=False)


def wrapped(text: str) -> str:
    """A text in escaped lines; they break at line breaks, and between words where they are long.

    >>> wrapped("a\\nb <i>")
    'a<br>b &lt;i&gt;'
    """
    lines = [part for line in text.split("\n") for part in wrap(shortened(line, LONGEST), WIDTH) or [""]]
    return "<br>".join(map(escaped, lines))
