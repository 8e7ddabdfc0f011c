"""The pictures of a page: one for each kind that the records allow."""

from base64 import b64encode
from importlib.util import find_spec
from typing import NamedTuple

from mlmglauber.pictures.kinds import summary_of, uses
from mlmglauber.pictures.records import PictureRecords
from mlmglauber.stream.errors import MlmError
from mlmglauber.stream.printable import sentence
from mlmglauber.stream.records import Record

LARGEST_SVG = 300_000
"""Maximum number of bytes of a picture in SVG; a larger one is shown as PNG."""
DPI = 300
CHARACTERS = 96
"""Width of a picture that is drawn with characters."""


class PagePicture(NamedTuple):
    """A picture of a page: data, a data URI, or text where matplotlib is not installed.

    drawn: a type of records, or "summary of" a type. files: the files of these records; none where mlm-report made the
    summaries itself.
    """

    kind: str
    drawn: str
    files: dict[str, None]
    data: str
    text: str
    notes: list[str]


class PagePictures:
    """Keeps, for each kind of picture, what it needs of the records."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], PictureRecords] = {}
        """By kind and by what is drawn: records and summaries make two pictures of a kind."""
        self.files: dict[tuple[str, str], dict[str, None]] = {}

    def take(self, record: Record, file: str | None) -> None:
        """Keep what the pictures need of a record of a file; RecordError for one that cannot be drawn."""
        kinds = uses(record)
        for kind in (*kinds.default, *kinds.other):
            what = str(record.get("type"))
            drawn = "state" if kind == "plane" else f"summary of {summary_of(record)}" if what == "summary" else what
            self.kept.setdefault((kind, drawn), PictureRecords(kind)).take(record)
            files = self.files.setdefault((kind, drawn), {})
            files |= {} if file is None else {file: None}

    def of(self, kind: str, what: str, threshold: float) -> list[PagePicture]:
        """The pictures of a kind that are made of records of a type, or of summaries of them.

        What cannot be drawn is left out, with a note where the records say why. Where both records and summaries of
        them can be drawn as the same picture, the records are.
        """
        found = []
        for (name, drawn), records in self.kept.items():
            raw, files = drawn.removeprefix("summary of "), self.files[name, drawn]
            if (name, raw) != (kind, what) or (raw != drawn and kind != "drift" and (kind, raw) in self.kept):
                continue
            try:
                picture = records.picture(threshold)
            except MlmError as error:
                if "nothing for --kind" not in str(error):
                    found.append(PagePicture(kind, drawn, files, "", "", [f"Not drawn: {error}."]))
                continue
            notes = [sentence(note) for note in [*records.notes(), *picture.notes]]
            if find_spec("matplotlib") is None:
                from mlmglauber.pictures.characters import text

                found.append(PagePicture(kind, drawn, files, "", text(picture, CHARACTERS), notes))
                continue
            from mlmglauber.pictures.figure import content, figure

            form, image = "svg+xml", content(figure(picture), "svg")
            if len(image) > LARGEST_SVG:
                form, image = "png", content(figure(picture), "png", DPI)
            data = f"data:image/{form};base64,{b64encode(image).decode()}"
            found.append(PagePicture(kind, drawn, files, data, "", notes))
        return found
