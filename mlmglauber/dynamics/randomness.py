"""Randomness as data: every draw is a function of (seed, record, chain, step, purpose).

A chain has one counter-based stream (Philox 4x64; Salmon et al. 2011) for each purpose. The uniform of step k is word k
of the stream and is computed without the ones before it. So a chain is the same alone or in a batch, before or after a
resume, on one machine or on ten.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

WORDS = 4
"""Number of 64-bit words that Philox makes of each value of its counter."""


class Stream:
    """An endless sequence of uniforms on [0, 1) that can be read from any place.

    seed: of the run. record: name of the input. chain: number of the chain of that input. purpose: what the uniforms
    are for, a word without digits.

    >>> stream = Stream(seed=1, record="0", chain=0, purpose="token")
    >>> bool((stream.uniforms(5, 3) == stream.uniforms(0, 8)[5:]).all())
    True
    """

    def __init__(self, seed: int, record: str, chain: int, purpose: str) -> None:
        # The length of the record keeps ("1", 12) and ("11", 2) apart.
        name = f"{seed}:{len(record.encode())}:{record}:{chain}:{purpose}"
        digest = hashlib.blake2b(name.encode(), digest_size=16, person=b"mlmglauber").digest()
        self.key = int.from_bytes(digest, "little")

    def uniforms(self, start: int, count: int) -> NDArray[np.float64]:
        """(count,) the uniforms of steps start ... start + count - 1, each a multiple of 2^-53."""
        first, offset = divmod(start, WORDS)
        generator = np.random.Philox(key=self.key, counter=first)
        raw = generator.random_raw(offset + count)[offset:]
        return np.asarray((raw >> np.uint64(11)) * 2.0**-53)


def drawn_seed() -> int:
    """A fresh seed below 2^48 from the operating system for a run that was given none."""
    return int.from_bytes(hashlib.blake2b(np.random.SeedSequence().generate_state(4).tobytes(), digest_size=6).digest(),
                          "little")
