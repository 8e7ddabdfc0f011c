"""mlm-plot: a picture of records."""

from collections import Counter
from typing import TYPE_CHECKING

import click

from mlmglauber.commands.plot.options import PlotOptions
from mlmglauber.commands.shared.command import record_command
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.option_types import Real
from mlmglauber.pictures.kinds import KINDS, Uses, open_kind, summary_of, uses
from mlmglauber.stream.errors import ExitStatus, MlmError, RecordError
from mlmglauber.stream.printable import counted, were
from mlmglauber.stream.records import has_masks

if TYPE_CHECKING:
    from mlmglauber.pictures.panel import Picture
    from mlmglauber.pictures.thinned_lists import ThinnedLists
    from mlmglauber.stream.records import Record

SUFFIXES = (".png", ".svg", ".pdf")

DESCRIPTION = (
    "Draw records: what they are says what is drawn of them.\n\n"
    "Reads records of the other commands and writes one picture, a column of a paper wide, as PNG, SVG or PDF by the "
    "suffix of FILE; -o - is PNG on standard output. Large inputs are thinned evenly, so memory is bounded."
)

EXAMPLES = """\
  mlm-sample --tau 0.5,1,2 --chains 4 passages.txt | mlm-embed | mlm-drift | mlm-plot -o drift.pdf
  mlm-couple --tau 0.5,1,2,4 --length 8,16 passages.txt | mlm-couple --summarize | mlm-plot -o phase.png
  mlm-drift --summary embedded.jsonl | mlm-plot --kind drift --terminal"""


@click.option("--kind", type=click.Choice(list(KINDS)), help="What to draw, where records say several things: see "
              "mlm-plot(1) for what each kind draws.")
@click.option("--threshold", type=Real(0, 2), default=0.5, show_default=True, metavar="D",
              help="The drift at which drift curves have a line.")
@click.option("--terminal", is_flag=True, help="Draw with characters, on standard output or into FILE; needs no "
              "matplotlib.")
def plot(io: Filter, options: PlotOptions) -> None:
    """All records are read, and the picture is written at the end."""
    path = click.get_current_context().params["output"]
    form = "text" if options.terminal else _form(path)
    seen = Seen(options.kind)

    def handle(record: "Record") -> None:
        progress(1)
        seen.take(record)

    with io.reporter.bar("records") as progress:
        io.each(handle)
    try:
        picture = seen.picture(options.threshold)
    except MlmError as error:
        error.status = ExitStatus.BAD_RECORD if io.reporter.bad_records else error.status
        raise
    for note in [*seen.notes(), *picture.notes]:
        io.reporter.warn(note)
    io.output.write_line(_drawn(picture, form))


def _form(path: str | None) -> str:
    """The format that a path asks for; before anything is read it is certain that it can be written."""
    import sys
    from importlib.util import find_spec

    if path is None:
        raise click.UsageError("a picture needs a place: -o FILE.png, FILE.svg or FILE.pdf, -o - for PNG on standard "
                               "output, or --terminal")
    if path == "-" and sys.stdout.isatty():
        raise click.UsageError("standard output is a terminal; use --terminal, or -o FILE.png")
    if path != "-" and not path.lower().endswith(SUFFIXES):
        raise click.UsageError(f"{path}: the suffix says the format; use {', '.join(SUFFIXES)}")
    if find_spec("matplotlib") is None:
        raise MlmError("pictures need matplotlib; pip install 'mlmglauber[plot]', or draw with --terminal")
    return "png" if path == "-" else path.lower()[-3:]


def _drawn(picture: "Picture", form: str) -> bytes:
    if form == "text":
        from shutil import get_terminal_size

        from mlmglauber.pictures.characters import text

        return text(picture, max(40, min(get_terminal_size().columns, 120))).encode()
    from mlmglauber.pictures.figure import content, figure

    return content(figure(picture), form)


class Seen:
    """What was found in the records, and what is kept of them for each kind of picture."""

    def __init__(self, asked: str | None) -> None:
        self.asked = asked
        self.found: Counter[str] = Counter()
        self.own: dict[str, None] = {}
        self.held: dict[str, ThinnedLists] = {}
        self.masked = 0
        """States with masked sites: they are no texts, and have no drift and no place in a plane."""

    def take(self, record: "Record") -> None:
        """Count a record and keep what its picture needs; RecordError where that is missing."""
        what = str(record.get("type", "of no type"))
        self.found[f"summaries of {summary_of(record)}" if what == "summary" else what] += 1
        if has_masks(record):
            self.masked += 1
            return
        found: Uses = uses(record)
        self.own |= dict.fromkeys(found.own)
        if self.asked is None:
            names = found.own or found.other
        else:
            names = (self.asked,) if self.asked in (*found.own, *found.other) else ()
        for name in names:
            self._keep(name, record)

    def _keep(self, name: str, record: "Record") -> None:
        kind = open_kind(name)
        if name not in self.held:
            from mlmglauber.pictures.thinned_lists import ThinnedLists

            self.held[name] = ThinnedLists(kind.LIMIT)
        try:
            items = list(kind.items(record))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = (error.args[0] if isinstance(error, ValueError) else f'no "{error.args[0]}"'
                    if isinstance(error, KeyError) else "a field is of another kind")
            raise RecordError(f"a record of type {record['type']} without the fields of one ({what}); give records as "
                              "their command wrote them") from error
        for key, item in items:
            self.held[name].add(key, item)

    def picture(self, threshold: float) -> "Picture":
        """The one picture that the records make; MlmError where there is none, or where there are two."""
        if self.asked is None and len(self.own) > 1:
            raise MlmError(f"these records ({self._told()}) can be drawn as {' and as '.join(self.own)}; choose with "
                           "--kind")
        if not self.found:
            raise MlmError("no records, nothing to draw; pipe in what another command of the suite wrote")
        name = self.asked or next(iter(self.own), None)
        if name is None:
            more = "; states need mlm-embed and mlm-drift, or mlm-embed --pca 2" if self.found["state"] else ""
            more += "; states with masked sites were left out" if self.masked else ""
            more += "; summaries of mlm-rect --path are not drawn" if self.found["summaries of path"] else ""
            raise MlmError(f"nothing to draw in {self._told()}; mlm-plot(1) tells what is drawn{more}")
        held = self.held[name].lists if name in self.held else {}
        made = open_kind(name).picture(held, threshold) if held else None
        if made is None or not made.panels:
            why = "".join(f"; {note}" for note in made.notes) if made is not None else ""
            raise MlmError(f"nothing for --kind {name} in {self._told()}{why}; it draws {KINDS[name]}")
        return made

    def notes(self) -> list[str]:
        """What was thinned."""
        said = []
        if self.masked:
            what = "is no text," if self.masked == 1 else "are no texts,"
            said.append(f"{counted(self.masked, 'state')} with masked sites, which {what} {were(self.masked)} left out")
        for name, held in self.held.items():
            if held.stride > 1:
                said.append(f"{name}: of each series 1 in {held.stride} is drawn")
            if held.left_out:
                said.append(f"{name}: series beyond the first {len(held.lists)} are not drawn")
        return said

    def _told(self) -> str:
        return ", ".join(f"{count} {what}" for what, count in self.found.items())


main = record_command(plot, PlotOptions, DESCRIPTION, EXAMPLES)

if __name__ == "__main__":
    main()
