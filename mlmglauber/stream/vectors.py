"""Embeddings in records: a list of numbers, or base64 of little-endian float32, as in OpenAI's embeddings API."""

import struct
from base64 import b64encode
from binascii import Error, a2b_base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.stream.errors import RecordError

FLOAT32 = np.dtype("<f4")
NUMBERS = {int, float}


def pack(vector: NDArray[np.float32], encoding: str) -> Any:
    """A vector as the value of a field.

    encoding: "base64" for a string; "float" for an array, which is written as a list. AssertionError for a vector that
    is not finite.

    >>> pack(np.array([1.0, -2.0], np.float32), "base64")
    'AACAPwAAAMA='
    """
    if not np.isfinite(vector).all():
        raise AssertionError("the vector is not finite; it must become a bad record, or null with a reason")
    if encoding == "base64":
        return b64encode(vector.astype(FLOAT32, copy=False).tobytes()).decode("ascii")
    return np.ascontiguousarray(vector)


def unpack(value: Any) -> NDArray[np.float32]:
    """The vector of a field in either encoding; RecordError for other values. Numbers may be infinite or NaN.

    >>> unpack("AACAPwAAAMA="), unpack([1, -2])
    (array([ 1., -2.], dtype=float32), array([ 1., -2.], dtype=float32))
    """
    if isinstance(value, str):
        try:
            content = a2b_base64(value, strict_mode=True)
        except (Error, ValueError) as error:
            raise RecordError("the embedding is not base64; embed the record again") from error
        if not content or len(content) % 4:
            raise RecordError(f"the embedding has {len(content)} bytes, not a multiple of 4; embed the record again")
        return np.frombuffer(content, dtype=FLOAT32)
    if isinstance(value, list) and value and set(map(type, value)) <= NUMBERS:
        try:
            # Three times as fast as np.array. float32 gives the same vector as base64 does.
            return np.frombuffer(struct.pack(f"<{len(value)}f", *value), dtype=FLOAT32)
        except (OverflowError, struct.error) as error:
            raise RecordError("the embedding has a number beyond float32; embed the record again") from error
    raise RecordError("the embedding is neither a list of numbers nor base64; embed the record again")
