"""The JSON Schema of the records, and its validator."""

import orjson
from conftest import ROOT
from jsonschema import Draft202012Validator

SCHEMA = orjson.loads((ROOT / "man" / "mlm-records.schema.json").read_bytes())
VALIDATOR = Draft202012Validator(SCHEMA)
