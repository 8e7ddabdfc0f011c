"""The fields of every record: TypedDicts from which man/build_schema.py makes the JSON Schema, one file per subject."""

from typing import Any

from mlmglauber.stream.record_types.exact import ExactRecord
from mlmglauber.stream.record_types.influence import InfluenceRecord
from mlmglauber.stream.record_types.pair import PairRecord
from mlmglauber.stream.record_types.rectangle import RectangleRecord
from mlmglauber.stream.record_types.run import RunRecord
from mlmglauber.stream.record_types.state import StateRecord
from mlmglauber.stream.record_types.tokens import TokensRecord
from mlmglauber.stream.record_types.trap import TrapRecord

RECORD_TYPES: dict[str, Any] = {
    "run": RunRecord, "state": StateRecord, "rectangle": RectangleRecord, "influence": InfluenceRecord,
    "exact": ExactRecord, "pair": PairRecord, "trap": TrapRecord, "tokens": TokensRecord}
"""The type of each record by its `type`; summary records are in summaries.py."""
