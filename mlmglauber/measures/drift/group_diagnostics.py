"""Whether chains of one group have mixed: diagnostics of their distances to one reference that all of them share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.drift.series import Series
from mlmglauber.measures.statistics.diagnostics import diagnose

MOST = 1 << 20
"""Maximum number of readings of a chain whose records stand at uneven steps."""

Values = NDArray[np.float64]


def mixing(chains: Sequence[Series], n: int | None) -> dict[str, Any]:
    """Diagnostics of the second halves of independent chains, of 1 - cosine to the group's common reference.

    Drift itself is no test of mixing: each chain's is to its own start, and independent states drift by different
    amounts from different starts. All chains are compared over the same time, until `until` steps after their first
    record; chains that end before are left out, and `cut` says so.
    """
    ends = [_end(chain) for chain in chains]
    until = common_end(ends)
    kept = [chain for chain, end in zip(chains, ends, strict=True) if end >= until]
    told: dict[str, Any] = {"of": "second half of 1 - cosine to the first state of the group's first chain",
                            "resampled": False, "spacing": None, "until": until, "left_out": len(chains) - len(kept)}
    if (cut := _cut(ends, until)) is not None:
        told["cut"] = cut
    rows, told["resampled"], told["spacing"] = _readings(kept, n, until)
    rows = rows[:, rows.shape[1] // 2 :]
    if np.isnan(rows).any():
        return told | {"chains": len(kept), "draws": rows.shape[1], "reason": "undefined drifts"}
    found = diagnose(rows, [chain.start for chain in kept])._asdict()
    if found["nested_reason"] is None:
        del found["nested_reason"]
    return told | found


def common_end(ends: Sequence[int]) -> int:
    """The end until which chains that end at different times are compared: that which keeps most of their time.

    It is the end e with the largest e x (chains that end at e or later); of equals the latest.

    >>> common_end([80, 1600, 1600, 1600]), common_end([90, 92, 95])
    (1600, 90)
    """
    return max(ends, key=lambda end: (end * sum(other >= end for other in ends), end))


def _end(chain: Series) -> int:
    """Steps from a chain's first record to its last defined one."""
    known = np.flatnonzero(~np.isnan(np.frombuffer(chain.distances, dtype=np.float64)))
    return chain.steps[int(known[-1])] - chain.steps[0] if len(known) else 0


def _cut(ends: Sequence[int], until: int) -> str | None:
    """What is left out because chains end at different times; None where they do not."""
    short = [end for end in ends if end < until]
    longest = max(ends)
    parts = []
    if short:
        span = f"step {short[0]}" if min(short) == max(short) else f"steps {min(short)} to {max(short)}"
        verb = "ends" if len(short) == 1 else "end"
        parts.append(f"{len(short)} of {len(ends)} chains {verb} at {span} of {longest} and "
                     f"{'is' if len(short) == 1 else 'are'} left out of the diagnostics")
    if until < longest:
        parts.append(f"the diagnostics stop at step {until}, where the first of the other chains ends")
    return "; ".join(parts) or None


def _readings(chains: Sequence[Series], n: int | None, until: int) -> tuple[Values, bool, int | None]:
    """(M, N) distances until a common end; whether chains were read at other steps than their records; the spacing.

    Chains that are looked at at the same steps are stacked as they are. Others, as --on-change gives them, are read
    once a sweep, or MOST times: between two records a state stays what it was.
    """
    looks = []
    for chain in chains:
        times = chain.times() - chain.steps[0]
        looks.append((times[times <= until], np.frombuffer(chain.distances, dtype=np.float64)[times <= until]))
    first = looks[0][0]
    changes = any(chain.shows_all for chain in chains) and int(np.diff(first).max(initial=1)) > 1
    if not changes and all(np.array_equal(times, first) for times, _ in looks):
        return np.array([values for _, values in looks]), False, int(np.diff(first).max()) if len(first) > 1 else None
    spacing = max(n or 1, until // MOST)
    grid = np.arange(0, until + 1, spacing)
    rows = [values[np.searchsorted(times, grid, side="right") - 1] for times, values in looks]
    return np.array(rows), True, spacing
