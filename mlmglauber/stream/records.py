"""Parses lines to records, and reads the fields that name a record and hold its text or its token ids."""

from collections.abc import Mapping
from typing import Any

import orjson

from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.formats import BLANKS, MAX_LINE, Line
from mlmglauber.stream.json_values import DEEPEST, as_json, json_kind, loads, to_line
from mlmglauber.stream.lines import Lines

__all__ = ["Line", "Lines", "Record", "to_line"]  # and what is defined here

SCHEMA = "mlm/1"
"""The version of the records; a new version is one that changes the meaning of a field."""

Record = dict[str, Any]
"""A record; record_types has the fields of each type."""


class BrokenJsonError(RecordError):
    """A line is broken JSON, not a plain text."""


def parse(line: Line, plain_text: bool = True) -> Record | None:
    """The record of a line; None for a blank line.

    plain_text: whether a line that is not JSON is a text, {"text": line}. RecordError for a line that begins like an
    object but is broken, for JSON values other than objects, for invalid UTF-8 and for lone surrogates.
    """
    if line.content is None:
        raise RecordError(line.error or f"the line has more than {MAX_LINE} bytes; split the text", line.place)
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
            remedy = "write one object per line (jq -c '.[]' FILE)"
        kind = json_kind(value).split(" ", 1)[-1]
        raise RecordError(f"a JSON {kind}, not an object; {remedy}", line.place)
    return value


def objects(lines: list[bytes]) -> list[Record] | None:
    """The records of whole lines, None where one of them is not a JSON object or is too long or nested.

    A fast way for lines as commands write them; integers beyond 64 bits may come as floats.
    """
    try:
        records = list(map(orjson.loads, lines))
    except orjson.JSONDecodeError:
        return None
    if set(map(type, records)) != {dict} or max(map(len, lines)) > MAX_LINE:
        return None
    deep = (line for line in lines if len(line) > 2 * DEEPEST)  # a shorter one has not enough brackets
    return records if all(line.count(b"[") + line.count(b"{") <= DEEPEST for line in deep) else None


def _plain(content: bytes, place: str, reason: str, accepted: bool) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(f"invalid UTF-8 at byte {error.start + 1}; convert the file with iconv", place) from error
    if text.startswith("{") or not accepted:
        raise BrokenJsonError(f"not a JSON object ({reason}); correct or remove the line", place)
    if next((char for char in text if char.isprintable() and not char.isspace()), "") == "{":
        raise BrokenJsonError("invisible characters before the JSON object; remove them", place)
    return text


def check_schema(record: Record, place: str) -> None:
    """RecordError for a run record of another version of the schema, whose fields may have other meanings."""
    schema = record.get("schema", SCHEMA)
    if record.get("type") == "run" and schema != SCHEMA:
        raise RecordError(f"the records have schema {as_json(schema)}, but this version reads {as_json(SCHEMA)}; use "
                          "the version of mlmglauber that wrote them", place)


SUITE_TYPES = frozenset({"run", "state", "rectangle", "influence", "pair", "trap", "exact", "tokens", "summary"})
"""The types of the records that the commands write; record_types has their fields."""


def is_input(record: Record) -> bool:
    """Whether a record may be an input text: a state, or a record of the user. Others are passed on unchanged."""
    kind = record.get("type")
    return not isinstance(kind, str) or kind not in SUITE_TYPES or kind == "state"


def chain_key(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """The name of a state's chain: (run, id, chain); an integer id is the same as the string of its digits."""
    run, name, chain = names_of(record, "run", "id", "chain")
    return run, name if name is None else str(name), chain


def tau_and_n(record: Record) -> tuple[float | None, int | None]:
    """The temperature and the number of tokens of a state, None where it has none; RecordError for bad values."""
    tau, n = record.get("tau"), record.get("n")
    if type(tau) not in (int, float, type(None)) or type(n) not in (int, type(None)) or not 0 <= (n or 0) < 1 << 31:
        raise RecordError('"tau" or "n" is not a number; give state records of mlm-sample')
    return tau, n


def tokens_of_pll(record: Record) -> int | None:
    """Number of tokens over which `pll` is a sum: `scored_tokens` of mlm-score, else n; None where it is not known.

    Scores of a causal model have no pll: one beside them is of the chain and of its n tokens. RecordError for a value
    that is not a number.
    """
    count = record.get("n") if "log_likelihood" in record else record.get("scored_tokens", record.get("n"))
    if type(count) not in (int, type(None)) or not 0 <= (count or 0) < 1 << 31:
        raise RecordError('"scored_tokens" or "n" is not a number; give records of mlm-sample or mlm-score')
    return count or None


def step_of(record: Record, last: int | None) -> int:
    """The step of a chain's next state, by default last + 1; RecordError for a step that is not after `last`."""
    step = record.get("step", 0 if last is None else last + 1)
    if type(step) is not int or not (-1 if last is None else last) < step < 1 << 62:
        raise RecordError(f"step {as_json(step)} does not come after the step before; sort the records of a chain "
                          "by step")
    return step


def names_of(record: Mapping[str, Any], *fields: str) -> tuple[Any, ...]:
    """The values of fields that hold names; RecordError for a value that is not a string, an integer or null."""
    for field in fields:
        value = record.get(field, "")
        if isinstance(value, bool) or not isinstance(value, (str, int, type(None))):
            raise RecordError(f'"{field}" is {json_kind(value)}, not a name; give records of this suite')
    return tuple(record.get(field) for field in fields)


def shown_name(name: Any) -> str:
    """A name in a message."""
    return "none named" if name is None else str(name)


def repeated_id(name: str) -> str:
    """The message for an input with the id of an earlier input."""
    return f"an input before this one has the id {name!r} too; ids name chains, so make them differ"


STATE_KEY = ("run", "id", "chain", "step")


def record_id(record: Record, place: int) -> str:
    """The id of an input: "run/id/chain/step" for a complete state, else its own id, else its place in the input.

    An id is a string, or an integer, which stands for its digits. place: counted from 0.
    """
    if record.get("type") == "state" and all(record.get(key) is not None for key in STATE_KEY):
        return "/".join(str(part) for part in names_of(record, *STATE_KEY))
    name = record.get("id", place)
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise RecordError('"id" is neither a string nor an integer; correct it')
    return str(name)


def text_or_ids(record: Record) -> tuple[str | None, list[int] | None]:
    """(text, None) of an input record, or (None, ids) if it has token ids; RecordError if it has neither."""
    ids = record.get("ids")
    if ids is not None:
        if not isinstance(ids, list) or not all(type(token) is int for token in ids):
            raise RecordError('"ids" is not a list of integers; correct it')
        return None, ids
    if "text" not in record:
        raise RecordError('no "text" and no "ids"; add one of them')
    return text_of(record), None


def text_of(record: Record) -> str:
    """The text of a record; RecordError for a value that is not a string, and for an empty text."""
    text = record["text"]
    if not isinstance(text, str):
        raise RecordError(f'"text" is {json_kind(text)}, not a string; write it between quotes')
    if not text.strip():
        raise RecordError('"text" is empty; give a text, or leave the record out')
    return text


def has_masks(record: Mapping[str, Any]) -> bool:
    """Whether a record is a state with masked sites, as --start mask makes them; such a state is not a text.

    >>> has_masks({"type": "state", "masked": 2}), has_masks({"type": "state"}), has_masks({"masked": 2})
    (True, False, False)
    """
    count = record.get("masked")
    return record.get("type") == "state" and type(count) is int and count > 0


def has_vector(record: Mapping[str, Any]) -> bool:
    """Whether a record has an embedding, valid or not; null with `embedding_reason` means that it has none.

    >>> has_vector({"embedding": [1]}), has_vector({"embedding": None, "embedding_reason": "one point"}), has_vector({})
    (True, False, False)
    """
    return "embedding" in record and (record["embedding"] is not None or "embedding_reason" not in record)
