"""Writes a page: sections, tables, pictures and texts, put into page.html by jinja2, which escapes every text."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mlmglauber import __version__
from mlmglauber.commands.exact.table import exact_tables
from mlmglauber.commands.report import texts
from mlmglauber.commands.report.command_lines import command_line, grouped, quoted, source
from mlmglauber.commands.report.pictures import PagePicture
from mlmglauber.commands.report.records import ReportRecords
from mlmglauber.commands.report.sections import CAPTIONS, SUBJECTS, Subject
from mlmglauber.commands.report.summaries import tables_of
from mlmglauber.commands.report.warnings import warnings
from mlmglauber.commands.shared.table_forms import TableLayout, layout
from mlmglauber.commands.shared.tables import Table
from mlmglauber.commands.tokens.table import TEXTS
from mlmglauber.stream.printable import counted, printable, were


class TextList(NamedTuple):
    """A list of texts with a title and a sentence that says what they are."""

    title: str
    about: str
    texts: Sequence[texts.TellingText]


class Section(NamedTuple):
    """What the template shows of a subject. again: (what it makes, command line)."""

    subject: Subject
    tables: list[TableLayout]
    pictures: list[PagePicture]
    lists: list[TextList]
    notes: list[str]
    again: list[tuple[str, str]]


def page(records: ReportRecords) -> str:
    """The page in HTML."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    added = records.complete()
    sections = [section for subject in SUBJECTS if (section := _section(records, subject, added)) is not None]
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True, undefined=StrictUndefined, finalize=_finalize)
    return environment.get_template("page.html").render(
        title=records.options.title, version=__version__, sections=sections, captions=CAPTIONS,
        runs=_laid_out(records.runs.tables()), warnings=warnings(records), counts=_counts(records),
        files=", ".join(dict.fromkeys(file for files in records.files.values() for file in files)))


def _finalize(value: Any) -> Any:
    """Texts with their control characters spelled out; data URIs and line breaks of drawn characters stay."""
    if type(value) is str:  # not Markup, which the template itself has made
        return "\n".join(map(printable, value.split("\n")))
    return value


def _counts(records: ReportRecords) -> str:
    """The records of each type, as words."""
    names = {"summary": "summaries", "exact": "exact records", "tokens": "token records", "influence": "influences"}
    return ", ".join(f"{count:,} {names.get(what, what + 's') if count != 1 else what}"
                     for what, count in records.types.items())


def _laid_out(tables: Sequence[Table]) -> list[TableLayout]:
    return [layout(table) for table in tables if table.rows]


def _section(records: ReportRecords, subject: Subject, added: Sequence[str]) -> Section | None:
    """A section; None where the records have nothing for it."""
    tables = _laid_out(list(_tables(records, subject)))
    pictures = [picture for kind, what in subject.pictures
                for picture in records.pictures.of(kind, what, records.options.threshold)]
    lists = [part for part in _lists(records, subject) if part.texts]
    if not (tables or pictures or lists):
        return None
    table = _summary_again(records, subject, " --table")
    again = [*_runs_again(records, subject), *([("Tables", table)] if table else []),
             *_pictures_again(records, subject, pictures)]
    return Section(subject, tables, pictures, lists, list(_notes(records, subject, added)), again)


def _tables(records: ReportRecords, subject: Subject) -> Iterator[Table]:
    if subject.name == "texts" and records.tokens:
        yield TEXTS.of(records.tokens)
    if subject.name == "chains" and records.types["state"] > records.counts["masked"]:
        yield records.chains.table(by_run=True)
    if subject.name == "exact" and records.exact:
        yield from exact_tables(records.exact)
    for what in subject.of:
        if summaries := records.summaries.by_kind.get(what):
            yield from tables_of(what, summaries, records.runs.of("mlm-basins"))


def _lists(records: ReportRecords, subject: Subject) -> Iterator[TextList]:
    counts = records.counts
    if subject.name == "chains":
        chains = records.chain_texts
        more = f" {counted(chains.others, 'other chain')} {were(chains.others)} left out." if chains.others else ""
        hit = ("" if not counts["drift"] else " A first hit is the first recorded state whose drift is "
               f"{records.options.threshold:g} or more.")
        yield TextList("From the first text to the last", "Some chains of each temperature and length, as far as there "
                       f"is room.{hit}{more}", chains.texts())
        likely, unlikely = (list(map(texts.likelihood_text, kept.records))
                            for kept in (records.likely, records.unlikely))
        yield TextList("The likeliest texts", "By pseudo-log-likelihood a token: the mean log-probability of a token "
                       "given all others.", likely)
        yield TextList("The least likely texts", "By the same measure.", unlikely)
    if subject.name == "rectangles":
        yield TextList("The largest rectangles", "The largest |delta| among the records, and the words that were "
                       "changed.", list(map(texts.rectangle_text, records.deltas.records)))
    if subject.name == "traps":
        yield TextList("The longest traps", "Each text once, with its longest stay.",
                       list(map(texts.trap_text, records.traps.records)))
        yield TextList("Where most texts lead at tau 0", "Fixed points and cycles of the chain that always takes the "
                       "likeliest token.", list(map(texts.fixed_point_text, records.fixed_points.records)))


def _notes(records: ReportRecords, subject: Subject, added: Sequence[str]) -> Iterator[str]:
    """Sentences on tables that mlm-report made itself, and on tables that are missing."""
    of, counts, summaries = subject.of, records.counts, records.summaries.by_kind
    if "state" in of and "state" in added:
        yield ("The table was made of states that hold their drift but no embedding any more, so R-hat and ESS are not "
               f"known: {quoted(['mlm-drift', '--summary'])} of the embedded states gives them.")
    if ("pair" in of and "pair" in added) or ("rectangle" in of and "rectangle" in added):
        yield "The tables are those of --summary with its default options."
    if "influence" in of and records.types["influence"] and not summaries.get("influence"):
        yield "There is no table: it needs the summaries of mlm-influence --summary."
    if "trap" in of and counts["traps"] and not any(row["over"] == "group" for row in summaries.get("trap", ())):
        yield ("There is no table of traps by temperature: it needs all states of the chains. The command line below "
               "makes it.")
    certified = sum(row["over"] in ("token", "vocabulary") for row in summaries.get("trap", ()))
    if "trap" in of and certified:
        yield f"{certified} of the summaries are of mlm-traps certify, whose records have no table."
    if subject.name == "chains" and counts["embedded"] and not counts["drift"] and not summaries.get("state"):
        yield "The states have embeddings but no drift: mlm-drift measures it, and mlm-drift --summary makes its table."
    if subject.name == "chains" and counts["named"] and not summaries.get("basin"):
        yield "The states have regions (basin), but the tables of their visits need mlm-basins --summary."


def _runs_again(records: ReportRecords, subject: Subject) -> Iterator[tuple[str, str]]:
    """A command line for each group of runs that differ in temperature alone."""
    for command in subject.commands:
        for runs in grouped(records.runs.of(command)):
            line = command_line(runs)
            if line is not None:
                names = ", ".join(str(run["run"]) for run in runs)
                yield f"{'Run' if len(runs) == 1 else 'Runs'} {names}", line


def _summary_again(records: ReportRecords, subject: Subject, option: str = "") -> str:
    """The command line that makes the summaries of a section; empty where its runs make them."""
    command, what = subject.again
    if not any(records.summaries.by_kind.get(of) for of in subject.of) or not command:
        return ""
    unknown = "EMBEDDED_STATES" if what == "embedded" else f"{what.upper()}S"
    return f"{command}{option} {source(records.files.get(what, {}), unknown)}"


def _pictures_again(records: ReportRecords, subject: Subject,
                    pictures: Sequence[PagePicture]) -> Iterator[tuple[str, str]]:
    for picture in pictures:
        if not (picture.data or picture.text):
            continue
        plot = f"mlm-plot --kind {picture.kind} -o {picture.kind}.png"
        line = (f"{plot} {source(picture.files, 'RECORDS')}" if picture.files
                else f"{_summary_again(records, subject)} | {plot}")
        yield f"Picture: {picture.kind}", line
