"""Whether two outputs hold the same records: equal states, log-probabilities to 3e-5 (mlmglauber/stream/same.py)."""

import orjson

from mlmglauber.stream.same import differing_fields


def assert_same_records(these, those):
    """Two outputs as bytes, record by record."""
    first, second = ([orjson.loads(line) for line in content.splitlines()] for content in (these, those))
    assert len(first) == len(second)
    for number, (a, b) in enumerate(zip(first, second, strict=True), start=1):
        assert not differing_fields(a, b), f"record {number}: {differing_fields(a, b)} in {a} and {b}"
