"""Vectors in records, both ways."""

import struct
from base64 import b64decode

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import to_line
from mlmglauber.stream.vectors import pack, unpack

VECTORS = arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32, allow_nan=False, allow_infinity=False))


@given(VECTORS, st.sampled_from(["float", "base64"]))
def test_a_vector_comes_back_equal(vector, encoding):
    record = orjson.loads(to_line({"embedding": pack(vector, encoding)}))
    assert unpack(record["embedding"]).astype(np.float32).tobytes() == vector.tobytes()


def test_base64_is_little_endian_float32():
    assert b64decode(pack(np.array([1.5, -2.0], np.float32), "base64")) == struct.pack("<2f", 1.5, -2.0)
    assert pack(np.array([1.5], ">f4"), "base64") == pack(np.array([1.5], "<f4"), "base64")


@pytest.mark.parametrize("value", [None, "", "AAA", "AAAA!", "AAAAAAA=", [], {}, 1.0, ["1"], [[1.0]], [None], [True],
                                   [1.0, "x"], [10**400], [1e39]])
def test_anything_else_is_a_bad_record(value):
    with pytest.raises(RecordError):
        unpack(value)
