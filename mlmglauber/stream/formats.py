"""Converts plain text, FASTA and tables (CSV, TSV) to JSON Lines, so that all other code reads only JSON Lines."""

import csv
import io
from typing import NamedTuple

from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import dumps, loads_object

MAX_LINE = 16 * 1024 * 1024
"""Maximum number of bytes of a line; a longer one is refused before it is in memory."""
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANKS = b" \t\r"

SUFFIXES = {".fasta": "fasta", ".fa": "fasta", ".faa": "fasta", ".fna": "fasta", ".csv": "csv", ".tsv": "tsv"}
"""The format of a file by the end of its name, a further .gz aside."""
FORMATS = ("jsonl", "text", "fasta", "csv", "tsv")
"""The values of --format."""
SEPARATORS = {"csv": ",", "tsv": "\t"}


class Line(NamedTuple):
    """One line of input.

    place: FILE:LINE. content: the bytes without the line feed; None for a line that cannot be read, and then `error`
    says why. plain: whether the line may be plain text. stop: whether the input cannot be read any further.
    """

    place: str
    content: bytes | None
    error: str | None = None
    plain: bool = True
    stop: bool = False


class Reading(NamedTuple):
    """How inputs of texts are read.

    form: one of FORMATS; None to choose by the end of the file's name and otherwise line by line, JSON or plain text.
    field: the field that holds the text, "text" by default. upper: whether FASTA letters become capitals.
    """

    form: str | None = None
    field: str | None = None
    upper: bool = False


class Format:
    """JSON Lines in which, with `plain`, a line that is not JSON is a plain text. Other formats are subclasses."""

    def __init__(self, plain: bool = True, field: str | None = None) -> None:
        self._plain, self._field = plain, field
        self.direct = type(self) is Format and field is None
        """Whether lines that are JSON objects need no conversion."""

    def takes_as_it_is(self, content: bytes) -> bool:
        """Whether a line needs no conversion: it looks like one JSON object from its first byte to its last."""
        return (self.direct and content.startswith(b"{") and content.endswith(b"}") and len(content) <= MAX_LINE)

    def take(self, line: Line) -> list[Line]:
        """The lines of JSON that the next line of the input completes."""
        if line.content is None:
            return [line]
        content = line.content.strip(BLANKS)
        if content[:1] in (b"{", b"["):
            document = _looks_like_a_document(content)
            if document:
                what = ("a JSON value over several lines; write one object per line (jq -c '.[]' FILE for an array, "
                        "jq -c . FILE for objects), or give --text for plain text")
                return [line._replace(content=None, error=what, stop=True)]
            if content.startswith(b"{") and not content.endswith(b"}"):
                self._plain = False  # this line is broken JSON, so later lines are not plain text either
            elif self._field is not None and content.startswith(b"{"):
                return [_with_text(line, content, self._field)]
        return [line] if self._plain else [line._replace(plain=False)]

    def end(self) -> list[Line]:
        """The lines of JSON that the end of the input completes."""
        return []

    def only_json(self) -> None:
        """From here on no line is plain text."""
        self._plain = False


class TextFormat(Format):
    """Each line is a text, even if it looks like JSON."""

    def take(self, line: Line) -> list[Line]:
        if line.content is None or not line.content.strip(BLANKS):
            return [line]
        return [_made(line, {"text": line.content.strip(BLANKS)})]


class FastaFormat(Format):
    """Sequences: a line of ">", id and description, then lines of letters that are joined to one text."""

    def __init__(self, upper: bool) -> None:
        super().__init__()
        self._upper = upper
        self._head: Line | None = None
        self._letters: list[bytes] = []
        self._size = 0

    def take(self, line: Line) -> list[Line]:
        if line.content is None and self._head is not None:
            self._size = MAX_LINE + 1  # marks the whole sequence as unreadable
            return []
        if line.content is None:
            return [line]
        content = line.content.strip(BLANKS)
        if content.startswith(b">"):
            made = self.end()
            self._head = line
            return made
        if not content or content.startswith(b";"):  # old FASTA files have comments that begin with a semicolon
            return []
        if self._head is None:
            return [line._replace(content=None, error='the first sequence has no line of ">" before it; give '
                                                      "FASTA, or another --format", stop=True)]
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
        letters = letters.removesuffix(b"*")  # the stop codon of a translated sequence
        if not letters:
            return [head._replace(content=None, error="a sequence without letters; remove it")]
        name, _, description = (head.content or b"").strip(BLANKS)[1:].strip().partition(b" ")
        fields = {"id": name} if name else {}
        if description.strip():
            fields["description"] = description.strip()
        return [_made(head, fields | {"text": letters.upper() if self._upper else letters})]


class TableFormat(Format):
    """A table whose first row names the columns; each further row is a record of strings, which may span lines."""

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
            return self._broken("a quoted field has no closing quote; add it", stop=True)
        try:
            rows = list(csv.reader(io.StringIO(self._row.decode("utf-8"), newline="\n"), delimiter=self._separator,
                                   strict=True))
        except UnicodeDecodeError as error:
            return self._broken(f"invalid UTF-8 at byte {error.start + 1}; convert the file with iconv")
        except csv.Error as error:
            if "unexpected end" in str(error):  # a quoted field goes on in the next line
                return []
            return self._broken(f"not a row of a table ({error}); correct or remove it")
        first, self._first, self._row = self._first, None, b""
        return self._record(first, rows[0])

    def _record(self, first: Line, row: list[str]) -> list[Line]:
        if self._columns is None:
            self._columns = [name.strip() for name in row]
            why = None
            if self._name not in self._columns:
                why = (f"no column {self._name!r} for the text; choose one of {', '.join(self._columns)} with "
                       "--text-field")
            elif len(set(self._columns)) < len(self._columns):
                why = "two columns have the same name; rename one"
            return [] if why is None else [first._replace(content=None, error=why, stop=True)]
        if len(row) != len(self._columns):
            return [first._replace(content=None, error=f"the row has {len(row)} fields, the first row "
                                                       f"{len(self._columns)}; correct the row")]
        fields = dict(zip(self._columns, row, strict=True))
        text = fields.pop(self._name)
        return [first._replace(content=dumps(fields | {"text": text}))]

    def _broken(self, why: str, stop: bool = False) -> list[Line]:
        first, self._first, self._row = self._first, None, b""
        assert first is not None
        return [first._replace(content=None, error=why, stop=stop)]

    def end(self) -> list[Line]:
        return self._broken("a quoted field has no closing quote; add it") if self._first is not None else []


def format_of(path: str, reading: Reading | None) -> Format:
    """The format of the input of this name; without a Reading JSON Lines, with plain text if the command accepts it."""
    if reading is None:
        return Format()
    name = path.lower().removesuffix(".gz")
    form = reading.form or next((form for suffix, form in SUFFIXES.items() if name.endswith(suffix)), None)
    if form == "text":
        return TextFormat()
    if form == "fasta":
        return FastaFormat(reading.upper)
    if form in SEPARATORS:
        return TableFormat(SEPARATORS[form], reading.field)
    return Format(plain=form is None, field=reading.field)


def _looks_like_a_document(content: bytes) -> bool:
    """Whether a line that begins with a bracket opens an array or object that goes on over several lines."""
    inside = content[1:].lstrip(BLANKS)
    if not inside or content.startswith(b"{"):
        return not inside
    opens = inside[:1] in (b"{", b'"') or (inside[:1] == b"[" and inside[1:].lstrip(BLANKS)[:1] in (
        b"", b'"', b"{", b"[", b"-", *(b"%d" % digit for digit in range(10))))
    return opens and not content.endswith(b"]")


def _made(line: Line, fields: dict[str, bytes]) -> Line:
    """A line of JSON with fields of UTF-8 bytes; an unreadable line where they are not UTF-8."""
    try:
        return line._replace(content=dumps({key: value.decode("utf-8") for key, value in fields.items()}))
    except UnicodeDecodeError as error:
        return line._replace(content=None, error=f"invalid UTF-8 at byte {error.start + 1}; convert the file with "
                                                 "iconv")


def _with_text(line: Line, content: bytes, field: str) -> Line:
    """A JSON object with `field` as its text; records of the suite without that field are unchanged."""
    try:
        record = loads_object(content)
    except RecordError:
        return line  # the reader of records reports what is wrong
    if record is None or field == "text" or (field not in record and "type" in record):
        return line
    if field not in record:
        return line._replace(content=None, error=f'the record has no field "{field}", which --text-field names; add it')
    text = record.pop(field)
    return line._replace(content=dumps(record | {"text": text}))


def is_utf_16(line: bytes) -> bool:
    """Whether a line is UTF-16: it begins with a byte order mark, or every second byte is zero."""
    if line.startswith(UTF_16_MARKS):
        return True
    start = line[:32]
    if len(start) < 8 or 0 not in start[:2]:
        return False
    return any(not any(start[k::2]) and all(start[1 - k :: 2]) for k in (0, 1))
