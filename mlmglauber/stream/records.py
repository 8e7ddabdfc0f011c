"""Lines to records: strict JSON, one object a record; what names a record and what text it holds."""

from collections.abc import Mapping
from typing import Any

import orjson

from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.formats import BLANKS, MAX_LINE, Line
from mlmglauber.stream.json_values import as_json, json_kind, loads, to_line
from mlmglauber.stream.lines import Lines

__all__ = ["Line", "Lines", "Record", "to_line"]  # and what is defined here

SCHEMA = "mlm/1"

Record = dict[str, Any]


class BrokenJsonError(RecordError):
    """A line that was meant as an object of JSON and is none."""


def parse(line: Line, plain_text: bool = True) -> Record | None:
    """The record of a line, None for a blank one.

    A line that is no JSON value is plain text, {"text": line}, where that is accepted. A line that starts like an
    object but is none, another JSON value, invalid UTF-8 and a lone surrogate are RecordErrors.
    """
    if line.content is None:
        raise RecordError(line.error or f"the line is longer than {MAX_LINE} bytes; split the text", line.place)
    content = line.content.strip(BLANKS)
    if not content:
        return None
    accepted = plain_text and line.plain
    try:
        value = loads(content)
    except orjson.JSONDecodeError as error:
        return {"text": _plain(content, line.place, str(error), accepted)}
    if not isinstance(value, dict):
        remedy = f'write {{"text": ...}}{", or give --text for plain text" if accepted else ""}'
        if isinstance(value, list):
            remedy = "write one object a line (jq -c '.[]' FILE)"
        kind = json_kind(value).split(" ", 1)[-1]
        raise RecordError(f"a JSON {kind}, not an object; {remedy}", line.place)
    return value


def _plain(content: bytes, place: str, reason: str, accepted: bool) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(f"invalid UTF-8 at byte {error.start + 1}; convert the file with iconv", place) from error
    if text.startswith("{") or not accepted:
        raise BrokenJsonError(f"not a JSON object ({reason}); mend or remove the line", place)
    if _visible(text).startswith("{"):
        raise BrokenJsonError("invisible characters before the object of JSON; remove them", place)
    return text


def _visible(text: str) -> str:
    """A text from its first character on that can be seen."""
    return text[next((k for k, char in enumerate(text) if char.isprintable() and not char.isspace()), len(text)) :]


def check_schema(record: Record, place: str) -> None:
    """A run record of another major schema is a RecordError: its fields may mean something else."""
    schema = record.get("schema", SCHEMA)
    if record.get("type") == "run" and schema != SCHEMA:
        raise RecordError(f"records of schema {as_json(schema)}, this program reads {as_json(SCHEMA)}; use the version "
                          "that wrote them", place)


SUITE_TYPES = frozenset({"run", "state", "rectangle", "influence", "pair", "trap", "exact", "tokens", "summary"})
"""What `type` may say of a record that a command of the suite wrote; mlm-records(5) tells their fields."""


def is_input(record: Record) -> bool:
    """Whether a record may be the text that a command starts from; what else the suite wrote is passed on as it is."""
    kind = record.get("type")
    return not isinstance(kind, str) or kind not in SUITE_TYPES or kind == "state"


def chain_key(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """What names the chain of a state: run, id and chain; an id that is a number names what its digits name."""
    run, own, chain = names_of(record, "run", "id", "chain")
    return run, own if own is None else str(own), chain


def tau_and_n(record: Record) -> tuple[float | None, int | None]:
    """The temperature and the number of tokens of a state, None for one that it does not tell."""
    tau, n = record.get("tau"), record.get("n")
    if type(tau) not in (int, float, type(None)) or type(n) not in (int, type(None)) or not 0 <= (n or 0) < 1 << 31:
        raise RecordError('"tau" or "n" is no number; these are not state records of mlm-sample')
    return tau, n


def step_of(record: Record, last: int | None) -> int:
    """The step of a chain's next state; without one, the number after `last`."""
    step = record.get("step", 0 if last is None else last + 1)
    if type(step) is not int or not (-1 if last is None else last) < step < 1 << 62:
        raise RecordError(f"step {as_json(step)} does not come after the step before; sort the records of a chain "
                          "by step")
    return step


def names_of(record: Mapping[str, Any], *fields: str) -> tuple[Any, ...]:
    """The values of fields that name something; RecordError for a value that cannot be a name."""
    for field in fields:
        value = record.get(field, "")
        if isinstance(value, bool) or not isinstance(value, (str, int, type(None))):
            raise RecordError(f'"{field}" is {json_kind(value)}, no name; these are not records of this suite')
    return tuple(record.get(field) for field in fields)


def shown_name(name: Any) -> str:
    """A name as a message shows it."""
    return "none named" if name is None else str(name)


def repeated_id(name: str) -> str:
    """The message for an input whose id another input before it has."""
    return f"an input before this one has the id {name!r} too; ids name chains, so make them differ"


STATE_KEY = ("run", "id", "chain", "step")


def record_id(record: Record, place: int) -> str:
    """The id of an input: a state's whole key where it has one, else its own, else its place in the input.

    The one rule for ids: a string, or the digits of an integer; what has none is called by its place, from 0 on.
    """
    if record.get("type") == "state" and all(record.get(key) is not None for key in STATE_KEY):
        return "/".join(str(part) for part in names_of(record, *STATE_KEY))
    own = record.get("id", place)
    if isinstance(own, bool) or not isinstance(own, (str, int)):
        raise RecordError('"id" is neither a string nor an integer; correct it')
    return str(own)


def text_or_ids(record: Record) -> tuple[str | None, list[int] | None]:
    """The text or, before it, the token ids of an input record; RecordError when it has neither."""
    ids = record.get("ids")
    if ids is not None:
        if not isinstance(ids, list) or not all(type(token) is int for token in ids):
            raise RecordError('"ids" is not a list of integers; correct it')
        return None, ids
    if "text" not in record:
        raise RecordError('no "text" and no "ids"; add one of them')
    return text_of(record), None


def text_of(record: Record) -> str:
    """The text of a record that has one; RecordError for a value that is no string, and for an empty one."""
    text = record["text"]
    if not isinstance(text, str):
        raise RecordError(f'"text" is {json_kind(text)}, not a string; write it between quotes')
    if not text.strip():
        raise RecordError('"text" is empty; give a text, or leave the record out')
    return text


def has_masks(record: Mapping[str, Any]) -> bool:
    """Whether a record is a state with masked sites, `masked`, as a chain of --init mask has at first: it is no text.

    >>> has_masks({"type": "state", "masked": 2}), has_masks({"type": "state"}), has_masks({"masked": 2})
    (True, False, False)
    """
    count = record.get("masked")
    return record.get("type") == "state" and type(count) is int and count > 0


def has_vector(record: Mapping[str, Any]) -> bool:
    """Whether a record has an embedding, or claims to; null with its reason, `embedding_reason`, is none.

    >>> has_vector({"embedding": [1]}), has_vector({"embedding": None, "embedding_reason": "one point"}), has_vector({})
    (True, False, False)
    """
    return "embedding" in record and (record["embedding"] is not None or "embedding_reason" not in record)
