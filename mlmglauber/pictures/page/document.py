"""A page: one file of HTML with the figure, plotly's script and a small one of its own, which asks for nothing else."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files

import orjson

from mlmglauber.pictures.page.figure import PageFigure, page_figure
from mlmglauber.pictures.panel import Picture
from mlmglauber.stream.printable import printable, sentence

TITLES = {
    "phase": "Meeting times over temperature and length",
    "plane": "Chains in a plane of embeddings",
    "spacetime": "Chains, site by site and step by step",
    "times": "Times against temperature",
}
CHOOSING = "A click in the legend hides a name or shows it again, a double click shows it alone."
ENLARGING = "Drag over a part to enlarge it; a double click in the picture shows all again."
READING = {
    "phase": "Each cell is the median meeting time at a temperature and a length, in units of n ln n; a line is the "
             f"temperature at which the median crosses a budget. Point at a cell or a mark for its numbers. {CHOOSING} "
             f"{ENLARGING}",
    "plane": "Each point is a state, coloured by its step; a white square is the first state of a chain and the large "
             "mark in the chain's colour its last one up to the step of the slider. Point at a state for its text. "
             f"{CHOOSING} {ENLARGING}",
    "spacetime": "Each row is a site of the text and time runs to the right; an orange line is a step that changes the "
                 "site's token, the colour is that of the bar below. Point at a cell for its word. Drag from left to "
                 "right to look closer: words appear where they have room. A double click shows all again.",
    "times": "Each large mark is a median with its 95 % interval, each small one a chain or a pair. Point at a mark "
             f"for its numbers. {CHOOSING} {ENLARGING}",
}
"""How to read a page, by the kind of its picture."""


def document(picture: Picture, kind: str, notes: Sequence[str], version: str) -> tuple[bytes, list[str]]:
    """(content, notes) of the page of a picture: equal pictures give equal bytes.

    notes: sentences about what the picture leaves out, which the page shows; those of the page itself are added to the
    result. version: that of the suite.
    """
    from jinja2 import Environment, StrictUndefined
    from plotly.offline import get_plotlyjs

    made = page_figure(picture)
    script, plotly = _source("page.js"), get_plotlyjs()
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    page = environment.from_string(_source("page.html")).render(
        title=printable(picture.title) or TITLES[kind], reading=READING[kind],
        slider=len(made.stops) > 1,
        notes=[printable(sentence(note)) for note in [*notes, *made.notes]], version=version,
        figure=_embedded(made), plotly=plotly, script=script, hashes=[_hash(plotly), _hash(script)],
        last=len(made.stops) - 1)
    return page.encode(), made.notes


def _source(name: str) -> str:
    return files("mlmglauber.pictures.page").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """The hash by which a Content-Security-Policy allows a script."""
    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"


def _embedded(made: PageFigure) -> str:
    """The figure as JSON that can stand in an element of HTML: none of its characters begins a tag or an entity."""
    from plotly.graph_objects import Figure

    figure = Figure({"data": made.data, "layout": {"template": {}} | made.layout})  # ValueError for what plotly lacks
    fitted = [{"trace": trace, "texts": list(map(list, texts))} for trace, texts in made.fitted.items()]
    content = orjson.dumps(figure.to_plotly_json() | {"stops": made.stops, "fitted": fitted},
                           option=orjson.OPT_SERIALIZE_NUMPY).decode()
    for character in "<>&\u2028\u2029":
        content = content.replace(character, f"\\u{ord(character):04x}")
    return content
