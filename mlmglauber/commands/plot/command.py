"""mlm-plot: a picture of records."""

from typing import TYPE_CHECKING

import click

from mlmglauber.commands.plot.options import PlotOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.help_groups import Group
from mlmglauber.commands.shared.option_types import Real
from mlmglauber.pictures.kinds import KINDS, WITH_PAGE
from mlmglauber.pictures.palette import STYLES, WIDTH
from mlmglauber.pictures.records import PictureRecords
from mlmglauber.stream.errors import ExitStatus, MlmError

if TYPE_CHECKING:
    from mlmglauber.pictures.panel import Picture
    from mlmglauber.stream.records import Record

WIDTHS = (1.5, 30.0)
"""Smallest and largest width of a picture in inches."""
SUFFIXES = (".png", ".svg", ".pdf", ".html")
PAGES = f"a page is made of the kinds {', '.join(WITH_PAGE[:-1])} and {WITH_PAGE[-1]}"

DESCRIPTION = (
    "Draw records: their type decides what is drawn.\n\n"
    "Reads records of the other commands and writes one picture, a column of a paper wide, as PNG, SVG or PDF by the "
    "suffix of FILE; -o - is PNG on standard output. FILE.html is an interactive page for a browser. "
    "Large inputs are thinned evenly, so memory is bounded."
)

EXAMPLES = """\
  mlm-sample --tau 0.5,1,2 --chains 4 passages.txt | mlm-embed | mlm-drift | mlm-plot -o drift.pdf
  mlm-couple --tau 0.5,1,2,4 --length 8,16 passages.txt | mlm-couple --summary | mlm-plot -o phase.png
  mlm-drift --summary embedded.jsonl | mlm-plot --kind drift --terminal
  mlm-sample --tau 0.3 --on-change passages.txt | tee chain.jsonl | mlm-traps > traps.jsonl
  cat chain.jsonl traps.jsonl | mlm-plot --kind spacetime --width 7 -o spacetime.png
  mlm-embed --pca 2 chain.jsonl | mlm-plot --kind plane -o plane.html"""

GROUPS = (
    Group("Picture", "kind color-by terminal", "threshold"),
    Group("Look", "panels title style width", "dpi"),
)


@click.option("--kind", type=click.Choice(list(KINDS)), help="What to draw, where records can be drawn in several "
              "ways; mlm-plot(1) says what each kind draws.")
@click.option("--threshold", type=Real(0, 2), default=0.5, show_default=True, metavar="D",
              help="Draw a line at this drift in drift curves.")
@click.option("--color-by", type=click.Choice(["age", "logp"]), default="age", show_default=True,
              help="Colour a space-time picture by how long each token has stood, or by its log-probability.")
@click.option("--panels", metavar="LIST", help="Draw these panels in this order, each by its number, from 1 on, or by "
              "a part of its title, as in 2,1.")
@click.option("--title", metavar="TEXT", help="Write this above all panels.")
@click.option("--style", type=click.Choice(list(STYLES)), default="default", show_default=True,
              help="paper: axes and legends in 8 points, text in SVG that stays text, PNG of 600 dots an inch.")
@click.option("--width", type=Real(WIDTHS[0], WIDTHS[1]), metavar="INCHES",
              help="Width of the picture.  [default: 3.375, a column; panels of 3 inches or more stand side by side]")
@click.option("--dpi", type=click.IntRange(20, 1200), metavar="DOTS",
              help="Dots per inch of a PNG, and of matrices in SVG and PDF.  [default: 200; 600 with --style paper]")
@click.option("--terminal", is_flag=True, help="Draw with characters, on standard output or into FILE; does "
              "not need matplotlib.")
def plot(io: Filter, options: PlotOptions) -> None:
    """Read all records, then write the picture."""
    path = click.get_current_context().params["output"]
    form = _form(path, options)
    records = PictureRecords(options.kind, options.color_by, WITH_PAGE if form == "html" else ())

    def handle(record: "Record") -> None:
        progress(1)
        records.take(record)

    with io.bar("records") as progress:
        io.each(handle)
    try:
        if form == "html" and records.name not in (None, *WITH_PAGE):
            raise click.UsageError(f"{path}: {PAGES}, and these records are drawn as {records.name}; use -o FILE.png")
        picture = _chosen(records.picture(options.threshold), options)
        notes = [*records.notes(), *picture.notes]
        if form == "html":
            rendered, more = _page(picture, str(records.name), notes)
        else:
            rendered, more = _rendered(picture, form, options), []
    except MlmError as error:
        error.status = ExitStatus.BAD_RECORD if io.reporter.bad_records else error.status
        raise
    for note in [*notes, *more]:
        io.reporter.warn(note)
    io.output.write_line(rendered)


def _chosen(picture: "Picture", options: PlotOptions) -> "Picture":
    """The picture with the panels and the title that the options ask for."""
    from mlmglauber.pictures.panel import select_panels

    picture = picture._replace(title=" ".join((options.title or "").split()))
    if options.panels is None:
        return picture
    try:
        return select_panels(picture, options.panels.split(","))
    except ValueError as error:
        raise click.UsageError(f"--panels: {error}") from error


def _form(path: str | None, options: PlotOptions) -> str:
    """The format of the picture, by the suffix of the path; UsageError or MlmError if it cannot be written.

    Called before the input is read, so that a long pipe does not end with this error.
    """
    import sys
    from importlib.util import find_spec

    page = path is not None and path.lower().endswith(".html")
    if page or options.terminal:
        _check_looks(options, path if page else None)
    if options.terminal:
        return "text"
    if path is None:
        raise click.UsageError("no place for the picture; give -o FILE.png, FILE.svg, FILE.pdf or FILE.html, -o - for "
                               "PNG on standard output, or --terminal")
    if path == "-" and sys.stdout.isatty():
        raise click.UsageError("standard output is a terminal; use --terminal, or -o FILE.png")
    if path != "-" and not path.lower().endswith(SUFFIXES):
        raise click.UsageError(f"{path}: the suffix is not that of a picture; use {', '.join(SUFFIXES)}")
    if page:
        if find_spec("plotly") is None:
            raise MlmError("pages need plotly; pip install 'mlmglauber[html]'")
        return "html"
    if find_spec("matplotlib") is None:
        raise MlmError("pictures need matplotlib; pip install 'mlmglauber[plot]', or draw with --terminal")
    return "png" if path == "-" else path.lower()[-3:]


def _check_looks(options: PlotOptions, page: str | None) -> None:
    """UsageError for options that a page or a picture of characters does not have; page: the path of the page."""
    if page is not None and options.terminal:
        raise click.UsageError(f"{page}: --terminal draws with characters, and a page cannot hold them; leave one out")
    if options.width or options.dpi or options.style != "default":
        raise click.UsageError("--style, --width and --dpi need a picture in a file; leave out --terminal, or them"
                               if page is None else "--style, --width and --dpi are for PNG, SVG and PDF; a page takes "
                               "the width of its window")
    if page is not None and options.kind not in (None, *WITH_PAGE):
        raise click.UsageError(f"{page}: {PAGES}, not of {options.kind}; use -o FILE.png")


def _page(picture: "Picture", kind: str, notes: list[str]) -> tuple[bytes, list[str]]:
    """The page of a picture, and notes on what the page leaves out beside that."""
    from mlmglauber import __version__
    from mlmglauber.pictures.page.document import document

    return document(picture, kind, notes, __version__)


def _rendered(picture: "Picture", form: str, options: PlotOptions) -> bytes:
    if form == "text":
        from shutil import get_terminal_size

        from mlmglauber.pictures.characters import text

        return text(picture, max(40, min(get_terminal_size().columns, 120))).encode()
    from mlmglauber.pictures.figure import content, figure

    return content(figure(picture, options.style, options.width or WIDTH), form, options.dpi, options.style)


main = record_command(plot, PlotOptions, DESCRIPTION, EXAMPLES, GROUPS)

if __name__ == "__main__":
    main()
