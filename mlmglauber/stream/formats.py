"""JSON Lines made of other formats: plain text, FASTA, tables with commas or tabs.

A format takes the lines of one input and makes lines of JSON, so that everything behind it knows only these.
"""

import csv
import io
from typing import NamedTuple

from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import dumps, loads_object

MAX_LINE = 16 * 1024 * 1024
"""A longer line is refused before it is held in memory whole."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANKS = b" \t\r"

SUFFIXES = {".fasta": "fasta", ".fa": "fasta", ".faa": "fasta", ".fna": "fasta", ".csv": "csv", ".tsv": "tsv"}
"""The formats that the end of a file's name tells; before .gz too."""
FORMATS = ("jsonl", "text", "fasta", "csv", "tsv")
SEPARATORS = {"csv": ",", "tsv": "\t"}


class Line(NamedTuple):
    """One line of input, without its line feed; `content` is None for one that cannot be taken, `error` says why.

    plain: whether it may be plain text. stop: the input has no meaning from this line on.
    """

    place: str
    content: bytes | None
    error: str | None = None
    plain: bool = True
    stop: bool = False


class Reading(NamedTuple):
    """How inputs of texts are read.

    form: one of FORMATS; None to go by the names of the files, and for others to take each line as it looks, as an
    object of JSON or as a text. field: the field that holds the text. upper: FASTA in capitals.
    """

    form: str | None = None
    field: str | None = None
    upper: bool = False


class Format:
    """Lines of JSON or, where that is accepted, of plain text, one way or the other line by line."""

    def __init__(self, plain: bool = True, field: str | None = None) -> None:
        self._plain, self._field = plain, field
        self._direct = type(self) is Format and field is None

    def takes_as_it_is(self, content: bytes) -> bool:
        """Whether a line is taken as it is: an object of JSON from its first byte to its last."""
        return (self._direct and content.startswith(b"{") and content.endswith(b"}") and len(content) <= MAX_LINE)

    def take(self, line: Line) -> list[Line]:
        """What the next line of the input makes."""
        if line.content is None:
            return [line]
        content = line.content.strip(BLANKS)
        if content[:1] in (b"{", b"["):
            document = _looks_like_a_document(content)
            if document:
                what = ("JSON that goes on in the next line; write one object a line (jq -c '.[]' FILE for an array, "
                        "jq -c . FILE for objects), or give --text for plain text")
                return [line._replace(content=None, error=what, stop=True)]
            if content.startswith(b"{") and not content.endswith(b"}"):
                self._plain = False  # this line is a bad record, and nothing after it a text
            elif self._field is not None and content.startswith(b"{"):
                return [_with_text(line, content, self._field)]
        return [line] if self._plain else [line._replace(plain=False)]

    def end(self) -> list[Line]:
        """What the end of the input makes."""
        return []

    def only_json(self) -> None:
        """No line after this one is plain text."""
        self._plain = False


class PlainText(Format):
    """Every line a text, whatever it looks like."""

    def take(self, line: Line) -> list[Line]:
        if line.content is None or not line.content.strip(BLANKS):
            return [line]
        return [_made(line, {"text": line.content.strip(BLANKS)})]


class Fasta(Format):
    """Sequences: a line with ">", an id and a description, then lines of letters, which are joined."""

    def __init__(self, upper: bool) -> None:
        super().__init__()
        self._upper = upper
        self._head: Line | None = None
        self._letters: list[bytes] = []
        self._size = 0

    def take(self, line: Line) -> list[Line]:
        if line.content is None and self._head is not None:
            self._size = MAX_LINE + 1  # a sequence without one of its lines is none
            return []
        if line.content is None:
            return [line]
        content = line.content.strip(BLANKS)
        if content.startswith(b">"):
            made = self.end()
            self._head = line
            return made
        if not content or content.startswith(b";"):  # a comment, of the first programs
            return []
        if self._head is None:
            return [line._replace(content=None, error='a sequence without a line of ">" before it; give FASTA, or '
                                                      "another --format", stop=True)]
        self._size += len(content)
        if self._size <= MAX_LINE:
            self._letters.append(b"".join(content.split()))
        return []

    def end(self) -> list[Line]:
        head, letters, size = self._head, b"".join(self._letters), self._size
        self._head, self._letters, self._size = None, [], 0
        if head is None:
            return []
        if size > MAX_LINE:
            return [head._replace(content=None, error=f"a sequence of more than {MAX_LINE} letters; split it")]
        letters = letters.removesuffix(b"*")  # the stop of a translation
        if not letters:
            return [head._replace(content=None, error="a sequence of no letter; leave it out")]
        name, _, description = (head.content or b"").strip(BLANKS)[1:].strip().partition(b" ")
        fields = {"id": name} if name else {}
        if description.strip():
            fields["description"] = description.strip()
        return [_made(head, fields | {"text": letters.upper() if self._upper else letters})]


class Table(Format):
    """Rows of a table whose first one names the columns; each is a record of strings. A field may hold line breaks."""

    def __init__(self, separator: str, field: str | None) -> None:
        super().__init__()
        csv.field_size_limit(MAX_LINE)
        self._separator, self._name = separator, field or "text"
        self._columns: list[str] | None = None
        self._first: Line | None = None
        self._row = b""

    def take(self, line: Line) -> list[Line]:
        if line.content is None:
            return [line]
        if self._first is None:
            if not line.content.strip(BLANKS):
                return []
            self._first = line
        self._row += line.content.removesuffix(b"\r") + b"\n"
        if len(self._row) > MAX_LINE:
            return self._broken("a quoted field that does not end; close its quote", stop=True)
        try:
            rows = list(csv.reader(io.StringIO(self._row.decode("utf-8"), newline="\n"), delimiter=self._separator,
                                   strict=True))
        except UnicodeDecodeError as error:
            return self._broken(f"invalid UTF-8 at byte {error.start + 1}; convert the file with iconv")
        except csv.Error as error:
            if "unexpected end" in str(error):  # within quotes: the next line belongs to this row
                return []
            return self._broken(f"no row of a table ({error}); mend or remove it")
        first, self._first, self._row = self._first, None, b""
        return self._record(first, rows[0])

    def _record(self, first: Line, row: list[str]) -> list[Line]:
        if self._columns is None:
            self._columns = [name.strip() for name in row]
            why = None
            if self._name not in self._columns:
                why = (f"no column {self._name!r} for the text; name one of {', '.join(self._columns)} with "
                       "--text-field")
            elif len(set(self._columns)) < len(self._columns):
                why = "a name stands on two columns; rename one"
            return [] if why is None else [first._replace(content=None, error=why, stop=True)]
        if len(row) != len(self._columns):
            return [first._replace(content=None, error=f"{len(row)} fields, the first row names {len(self._columns)}; "
                                                       "mend the row")]
        fields = dict(zip(self._columns, row, strict=True))
        text = fields.pop(self._name)
        return [first._replace(content=dumps(fields | {"text": text}))]

    def _broken(self, why: str, stop: bool = False) -> list[Line]:
        first, self._first, self._row = self._first, None, b""
        assert first is not None
        return [first._replace(content=None, error=why, stop=stop)]

    def end(self) -> list[Line]:
        return self._broken("a quoted field that does not end; close its quote") if self._first is not None else []


def format_of(path: str, reading: Reading | None) -> Format:
    """The format of an input; without a Reading it is JSON Lines, or plain text where a command accepts that."""
    if reading is None:
        return Format()
    name = path.lower().removesuffix(".gz")
    form = reading.form or next((form for suffix, form in SUFFIXES.items() if name.endswith(suffix)), None)
    if form == "text":
        return PlainText()
    if form == "fasta":
        return Fasta(reading.upper)
    if form in SEPARATORS:
        return Table(SEPARATORS[form], reading.field)
    return Format(plain=form is None, field=reading.field)


def _looks_like_a_document(content: bytes) -> bool:
    """Whether a line that begins with a bracket is the first of an array, or of an object over several lines."""
    inside = content[1:].lstrip(BLANKS)
    if not inside or content.startswith(b"{"):
        return not inside
    opens = inside[:1] in (b"{", b'"') or (inside[:1] == b"[" and inside[1:].lstrip(BLANKS)[:1] in (
        b"", b'"', b"{", b"[", b"-", *(b"%d" % digit for digit in range(10))))
    return opens and not content.endswith(b"]")


def _made(line: Line, fields: dict[str, bytes]) -> Line:
    """A line of JSON made of bytes that should be UTF-8."""
    try:
        return line._replace(content=dumps({key: value.decode("utf-8") for key, value in fields.items()}))
    except UnicodeDecodeError as error:
        return line._replace(content=None, error=f"invalid UTF-8 at byte {error.start + 1}; convert the file with "
                                                 "iconv")


def _with_text(line: Line, content: bytes, field: str) -> Line:
    """An object with one of its fields as its text; records of the suite have their own."""
    try:
        record = loads_object(content)
    except RecordError:
        return line  # the reader of records tells what is wrong
    if record is None or field == "text" or (field not in record and "type" in record):
        return line
    if field not in record:
        return line._replace(content=None, error=f'no field "{field}", which --text-field names; add it')
    text = record.pop(field)
    return line._replace(content=dumps(record | {"text": text}))
