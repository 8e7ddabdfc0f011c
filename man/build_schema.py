"""Write the JSON Schema of the records: `python man/build_schema.py`.

The schema is made from the TypedDicts of mlmglauber/stream/record_types, so types and schema cannot differ. A test
compares man/mlm-records.schema.json with the result.
"""

import json
from pathlib import Path
from textwrap import fill
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from mlmglauber.stream.record_types import RECORD_TYPES
from mlmglauber.stream.record_types.fields import NAMED, RULES, Limit, NullReason, Schema, when
from mlmglauber.stream.record_types.progress import ProgressLine
from mlmglauber.stream.record_types.summaries import SUMMARY_TYPES, SummaryRecord

PATH = Path(__file__).parent / "mlm-records.schema.json"
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
WIDTH = 118
"""Maximum number of characters of a line, its comma and the space after a colon aside."""
REASON = "^(.*_)?reason$"


def value_schema(kind: Any, named: bool = True) -> Schema:
    """The schema of a field's type. named: whether types that the schema defines once are referred to by name."""
    for name, alias in NAMED.items():
        if named and kind == alias:
            return {"$ref": f"#/$defs/{name}"}
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if kind in TYPES:
        return {"type": TYPES[kind]}
    if origin is NotRequired:
        return value_schema(parts[0], named)
    if origin is Annotated:
        limits = {mark.keyword: mark.value for mark in kind.__metadata__ if isinstance(mark, Limit)}
        return value_schema(parts[0], not limits) | limits
    if origin is Literal:
        return {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
    if origin in (Union, UnionType):
        return union_schema(parts)
    if origin is list:
        return {"type": "array"} | ({} if parts[0] is Any else {"items": value_schema(parts[0])})
    if origin is dict:
        return {"type": "object"} | ({} if parts[1] is Any else {"additionalProperties": value_schema(parts[1])})
    if is_typeddict(kind):
        return object_schema(kind)
    raise TypeError(f"no JSON Schema for the type {kind}")


def union_schema(parts: tuple[Any, ...]) -> Schema:
    """The schema of a union: one list of types where that says the same as anyOf."""
    schemas = [value_schema(part, named=False) for part in parts]
    if any("enum" in schema for schema in schemas):
        return {"enum": [value for schema in schemas for value in schema.get("enum", [None])]}
    types = [schema.get("type") for schema in schemas]
    if len(set(types)) < len(types) or None in types or {"integer", "array"} <= set(types):
        return {"anyOf": [value_schema(part) for part in parts]}
    whole: Schema = {"type": types}
    for schema in schemas:
        whole |= {keyword: value for keyword, value in schema.items() if keyword != "type"}
    return whole


def null_rules(fields: dict[str, Any]) -> list[Schema]:
    """For each field that may be null with a reason: the rule that the reason is there."""
    found = []
    for name, kind in fields.items():
        for mark in marks(kind):
            if isinstance(mark, NullReason):
                then: Schema = {"required": [mark.fields[0]]}
                if len(mark.fields) > 1:
                    then = {"anyOf": [{"required": [field]} for field in mark.fields]}
                if mark.text:
                    then |= {"properties": {mark.fields[0]: {"type": "string"}}}
                found.append(when(name, {"type": "null"}, then))
    return found


def marks(kind: Any) -> list[Any]:
    """All marks of Annotated on a field's type."""
    if get_origin(kind) is NotRequired:
        return marks(get_args(kind)[0])
    return list(kind.__metadata__) if get_origin(kind) is Annotated else []


def object_schema(record_type: Any) -> Schema:
    """The schema of a TypedDict."""
    fields = get_type_hints(record_type, include_extras=True)
    schema: Schema = {"type": "object"}
    required = [name for name in fields if name in record_type.__required_keys__]
    if required:
        schema["required"] = required
    schema["properties"] = {name: value_schema(kind) for name, kind in fields.items()}
    rules = null_rules(fields) + list(RULES.get(record_type, ()))
    return schema | ({"allOf": rules} if rules else {})


def summary_schema() -> Schema:
    """The schema of summaries: the fields of all, then those of each pair (of, over)."""
    schema = object_schema(SummaryRecord)
    for of in dict.fromkeys(of for of, _ in SUMMARY_TYPES):
        overs = [over for other, over in SUMMARY_TYPES if other == of]
        schema["allOf"].append(when("of", {"const": of}, {"properties": {"over": {"enum": overs}}}))
    for (of, over), kinds in SUMMARY_TYPES.items():
        schemas = [object_schema(kind) for kind in kinds]
        schema["allOf"].append({"if": {"properties": {"of": {"const": of}, "over": {"const": over}},
                                       "required": ["of", "over"]},
                                "then": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}})
    schema["patternProperties"] = {REASON: {"type": ["string", "null"]}}
    return schema


def whole_schema() -> Schema:
    """The schema of any line of records."""
    definitions = {name: object_schema(kind) | {"patternProperties": {REASON: {"type": "string"}}}
                   for name, kind in RECORD_TYPES.items()}
    definitions["summary"] = summary_schema()
    parts = {name: value_schema(kind, named=False) for name, kind in NAMED.items()}
    parts["progress"] = object_schema(ProgressLine) | {"patternProperties": {REASON: {"type": "string"}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Records of mlmglauber, schema mlm/1",
        "description": "The schema of one line of JSON Lines; #/$defs/TYPE is the schema of one type of record. "
                       "mlm-records(5) says what the fields mean.",
        "$comment": "Made by man/build_schema.py. Records of other types, or without a type, belong to the user and "
                    "may hold anything; records of these types may have further fields.",
        "type": "object",
        "allOf": [when("type", {"const": name}, {"$ref": f"#/$defs/{name}"}) for name in definitions],
        "$defs": definitions | parts,
    }


def formatted(value: Any, indent: int = 0) -> str:
    """JSON that breaks lines at 120 characters and no earlier."""
    line = json.dumps(value)
    if len(line) + indent <= WIDTH or not isinstance(value, (dict, list)) or not value:
        return line
    inner = " " * (indent + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {formatted(part, indent + 1)}" for key, part in value.items()]
        return "{\n" + ",\n".join(inner + part for part in parts) + f"\n{' ' * indent}}}"
    if all(isinstance(part, str) for part in value):
        words = fill(line[1:-1], WIDTH, initial_indent=inner, subsequent_indent=inner)
        return f"[\n{words}\n{' ' * indent}]"
    return "[\n" + ",\n".join(inner + formatted(part, indent + 1) for part in value) + f"\n{' ' * indent}]"


def text() -> str:
    """The content of man/mlm-records.schema.json."""
    return formatted(whole_schema()) + "\n"


def main() -> None:
    PATH.write_text(text())


if __name__ == "__main__":
    main()
