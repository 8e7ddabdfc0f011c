"""The JSON Schema of the records: every command's records fit it, broken ones do not."""

import re
import sys
from itertools import groupby
from typing import get_type_hints

import orjson
import pytest
from conftest import ROOT
from in_process import answer
from jsonschema import Draft202012Validator
from oracles import TABLE_A, TABLE_B
from record_schema import SCHEMA, VALIDATOR

from mlmglauber.stream.record_types import RECORD_TYPES
from mlmglauber.stream.record_types.summaries import SUMMARY_TYPES, SummaryRecord
from mlmglauber.stream.records import SUITE_TYPES

sys.path.insert(0, str(ROOT / "man"))
import build_schema

TEXTS = b'{"id":"x","text":"a b","topic":"p","foo":[1,{"bar":null}]}\n{"id":"y","text":"c c","topic":"q"}\n'
MODEL = "-m a.json"
CHAINS = "states", f"sample {MODEL} --seed 1 --steps 60 --every 1 -c 2 -t 0,0.5,1 --energy 2"

# Which input, which command; `texts` is TEXTS, `states` what CHAINS gives, the others are made of it.
RUNS = [
    ("texts", f"sample {MODEL} --seed 1 --steps 40 --on-change --scan systematic --freeze 0"),
    ("texts", "sample -m b.json --seed 1 --sweeps 3 --start mask"),
    ("texts", f"rect {MODEL} --seed 1 --rectangles 3"),
    ("texts", f"rect {MODEL} --seed 1 --no-noise --draw uniform --tau 2"),
    ("texts", "rect -m zero.json --seed 1 --draw uniform"),
    ("texts", f"rect {MODEL} --seed 1 --summary"),
    ("states", f"rect {MODEL} --seed 1 --rectangles 1"),
    ("words", "rect --seed 1 --site lovely --to awful --site bad --to good"),
    ("words", "influence --seed 1 --replacements 1 --matrix"),
    ("words", "tokens --length 5"),
    ("texts", f"tokens {MODEL}"),
    ("states", "rect --path --summary"),
    ("states", f"score {MODEL}"),
    ("states", "score --by word -m zero.json"),
    ("texts", f"influence {MODEL} --seed 1 -t 0,0.2,1 --matrix"),
    ("texts", f"influence {MODEL} --seed 1 --draw worst"),
    ("texts", "influence -m zero.json --seed 1"),
    ("texts", f"influence {MODEL} --seed 1 -t 0.2,1 --summary"),
    ("texts", f"influence {MODEL} --seed 1 --summary --keep-mb 0"),
    ("texts", f"exact {MODEL} --top 3 -t 0,0.5,1 --matrix --compare states"),
    ("texts", f"exact {MODEL} --top 2 --sites 0"),
    ("texts", f"couple {MODEL} --seed 1 --max-steps 2 --pairs 3 -t 0.2,2"),
    ("texts", f"couple {MODEL} --seed 1 --start perturb:1 --max-steps 90 --every 30"),
    ("texts", f"couple {MODEL} --seed 1 --start random --lag 3 --max-steps 9 --pairs 4"),
    ("texts", f"couple {MODEL} --seed 1 --lag 3 --on-change --until 20 --pairs 4"),
    ("on_change", "estimate --of count:a --tokens 2 --target-se 0.1"),
    ("pairs", "couple --summarize"),
    ("lagged", "couple --summarize"),
    ("states", f"traps {MODEL} -s 3"),
    ("states", f"traps {MODEL} -s 1 -r 0"),
    ("states", "traps --no-model -s 3"),
    ("states", f"traps {MODEL} -s 3 --basin 0.2 --support"),
    ("texts", f"traps {MODEL} --find -t 0,1 --basin 0.01 --support"),
    ("states", "traps --no-model -s 3 --summary"),
    ("states", f"traps {MODEL} -s 3 --summary"),
    ("texts", f"traps {MODEL} --find -t 0,1"),
    ("texts", f"traps {MODEL} --find --summary"),
    ("texts", f"traps {MODEL} --certify a --scan-tokens 2 --seed 1"),
    ("embedded", "drift"),
    ("embedded", "drift --summary"),
    ("embedded", "basins --examples topics"),
    ("embedded", "basins --examples topics --reject 0.99 --keep-embedding"),
    ("embedded", "basins --examples topics --summary"),
    ("embedded", "basins --clusters 2 --summary --start-field topic --min-steps 2"),
    ("few", "embed"),
]


def embedded(states):
    """States with plane vectors in the place of a model's, some without a direction."""
    for k, state in enumerate(states):
        yield state | {"embedding": [0, 0] if k % 9 == 4 else [state["ids"][0] - 0.5, state["ids"][1] - 1.5],
                       "embedder": "e"}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The records that each line of RUNS, and CHAINS, writes."""
    folder = tmp_path_factory.mktemp("schema")
    zero = [[[0.5, 0.5, 0.0], *TABLE_A[0][1:]], TABLE_A[1]]
    for name, tables in (("a", TABLE_A), ("b", TABLE_B), ("zero", zero)):
        tokens = list("abc"[: len(tables[0])])
        (folder / f"{name}.json").write_bytes(orjson.dumps({"tokens": tokens, "tables": tables}))
    (folder / "topics").write_bytes(b"".join(
        orjson.dumps({"label": label, "embedding": [k % 2 + 1, sign * (k % 3 + 1)], "embedder": "e"}) + b"\n"
        for label, sign in (("up", 1), ("down", -1)) for k in range(6)))
    inputs, found = {"texts": TEXTS, "words": b"the food was lovely and the service was bad\n"}, {}

    def run(given, command):
        done = answer(f"{command} -q", inputs[given], folder)
        assert done.status == (65 if "b.json" in command else 0), done.err  # b.json has no c
        found[command] = done.records
        return done.records

    def lines(records):
        return b"".join(orjson.dumps(record) + b"\n" for record in records)

    name, command = CHAINS
    records = run("texts", command)
    inputs[name] = lines(records)
    (folder / name).write_bytes(inputs[name])
    states = [record for record in records if record["type"] == "state"]
    inputs |= {"embedded": lines(embedded(states)), "few": lines(states[:3])}
    for given, command in RUNS:
        records = run(given, command)
        if command.startswith("couple") and "--summarize" not in command:
            key = "on_change" if "--on-change" in command else "lagged" if "--lag" in command else "pairs"
            inputs[key] = inputs.get(key, b"") + lines(records)
    return found


def test_the_schema_is_the_one_that_build_schema_makes():
    assert build_schema.PATH.read_text() == build_schema.text(), "run man/build_schema.py"


def fields(record_type):
    """The fields of a TypedDict."""
    return set(get_type_hints(record_type))


def test_the_manual_lists_the_fields_of_every_type_and_no_others():
    """The field `type` and reasons aside, which the introduction explains for all types."""
    sections = dict(re.findall(r"^\.Ss (\w+)\n(.*?)(?=^\.S[sh] )", (ROOT / "man" / "mlm-records.5").read_text(),
                               re.MULTILINE | re.DOTALL))
    assert set(sections) == SUITE_TYPES
    for kind, record_type in RECORD_TYPES.items():
        listed = [name for names in re.findall(r"^\.It Va (.*)$", sections[kind], re.MULTILINE)
                  for name in names.split(" , ")]
        assert len(listed) == len(set(listed)), kind
        assert set(listed) == fields(record_type) - {"type"}, kind
    for over in {over for _, over in SUMMARY_TYPES}:
        assert re.search(rf"\b{over}\b", sections["summary"]), over


def test_every_field_of_every_record_is_described(outputs):
    """Reasons aside, whose names the marks of fields give, and the fields of the users' own texts."""
    for command, records in outputs.items():
        for record in records:
            kinds = [RECORD_TYPES.get(record["type"], SummaryRecord)]
            if record["type"] == "summary":
                kinds += SUMMARY_TYPES[record["of"], record["over"]]
            described = set().union(*map(fields, kinds))
            found = {name for name in record if not re.fullmatch("(.*_)?reason", name)} - {"topic", "foo"}
            assert found <= described, (command, found - described)


def test_every_record_fits(outputs):
    assert outputs.keys() == {CHAINS[1], *(command for _, command in RUNS)}
    for command, records in outputs.items():
        assert records, command
        for record in records:
            errors = [f"{'/'.join(map(str, error.path))}: {error.message}" for error in VALIDATOR.iter_errors(record)]
            assert not errors, (command, errors, record)


def test_the_schema_tells_of_every_type_and_summary_and_of_no_other(outputs):
    Draft202012Validator.check_schema(SCHEMA)
    told = [part["if"]["properties"]["type"]["const"] for part in SCHEMA["allOf"]]
    records = [record for found in outputs.values() for record in found]
    assert len(told) == len(set(told))
    assert {record["type"] for record in records} == set(told) == SUITE_TYPES
    pairs = {(part["if"]["properties"]["of"]["const"], over)
             for part in SCHEMA["$defs"]["summary"]["allOf"] if part["if"]["required"] == ["of"]
             for over in part["then"]["properties"].get("over", {"enum": []})["enum"]}
    assert pairs == {(record["of"], record["over"]) for record in records if record["type"] == "summary"}


def samples(outputs):
    """The record with fewest nulls of each type, of each command's run and of each kind of summary."""

    def kind(record):
        return record["type"], *(str(record.get(field)) for field in ("command", "of", "over", "found"))

    records = sorted((record for found in outputs.values() for record in found), key=kind)
    for _, same in groupby(records, kind):
        yield min(same, key=lambda record: sum(value is None for value in record.values()))


def required(record):
    """The fields that a type's schema asks of every record of it."""
    return SCHEMA["$defs"][record["type"]]["required"]


def test_broken_records_are_refused(outputs):
    tried = list(samples(outputs))
    assert {record["type"] for record in tried} == SUITE_TYPES
    for record in tried:
        assert VALIDATOR.is_valid(record | {"more": {"of": ["the", "user's"]}})
        own = SCHEMA["$defs"][record["type"]]["properties"]
        for field in set(required(record)) - {"type"}:
            without = {key: value for key, value in record.items() if key != field}
            assert not VALIDATOR.is_valid(without), (field, record)
        for field in set(own) & set(record) - {"type"}:
            assert not VALIDATOR.is_valid(record | {field: {"no": "such"}}) or own[field].get("type") == "object", field


@pytest.mark.parametrize(("kind", "change"), [
    ("run", {"schema": "mlm/2"}), ("run", {"run": "no digits"}), ("state", {"step": -1}), ("state", {"step": 0.5}),
    ("state", {"ids": []}), ("state", {"ids": ["a"]}), ("state", {"drift": None}), ("state", {"drift": 2.5}),
    ("state", {"pll": None, "pll_reason": 7}), ("state", {"n": 0}), ("rectangle", {"delta": None}),
    ("rectangle", {"logp_i": [[-1, -1]]}), ("rectangle", {"tau": 0}), ("influence", {"estimate": "upper"}),
    ("influence", {"residence": None}), ("influence", {"eps": 1}), ("exact", {"tmix": None}), ("exact", {"states": 0}),
    ("exact", {"likeliest": [{"text": "a"}]}), ("pair", {"meeting": None, "censored": True}),
    ("pair", {"censored": "no"}), ("pair", {"coupling": "other"}), ("trap", {"escape": 1.5}), ("trap", {"kind": "odd"}),
    ("trap", {"margin": None}), ("trap", {"bound": 1}), ("trap", {"basin": {"least": 0.1}}),
    ("summary", {"over": "moon"}), ("summary", {"of": "run"}),
], ids=str)
def test_values_out_of_range_and_nulls_without_a_reason_are_refused(outputs, kind, change):
    record = next(record for record in samples(outputs) if record["type"] == kind)
    reasons = {"reason", *(f"{field}_reason" for field in change)}
    kept = {key: value for key, value in record.items() if key not in reasons}
    assert VALIDATOR.is_valid(kept)
    assert not VALIDATOR.is_valid(kept | change)


def test_what_is_the_users_own_fits():
    for record in ({"text": "a"}, {"type": "own", "step": "x"}, {"type": 7}, {}):
        assert VALIDATOR.is_valid(record)
    assert not VALIDATOR.is_valid([])
