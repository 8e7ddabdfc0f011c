"""Whether the chains of a group have mixed: diagnostics of their distances to one reference that all of them share."""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.measures.drift.series import DriftSeries
from mlmglauber.measures.statistics.diagnostics import Diagnostics, diagnose

DISAGREEING = 1.1
"""R-hat from which on chains are far from one law (Gelman and Rubin 1992); converged is the stricter 1.01."""
MOST_READINGS = 1 << 20
"""Maximum number of values that are read from a chain whose records are at uneven steps."""

Values = NDArray[np.float64]


class GroupDiagnostics(NamedTuple):
    """Diagnostics of the second halves of chains, over the same time.

    resampled: whether values were read at other steps than those of the records, every `spacing` steps. until: steps
    after each chain's first record to which the chains are compared. left_out: number of chains that end before; cut: a
    sentence about them, None where all chains end together. diagnostics: None where a distance is undefined. chains,
    draws: the shape of the compared values.
    """

    resampled: bool
    spacing: int | None
    until: int
    left_out: int
    cut: str | None
    chains: int
    draws: int
    diagnostics: Diagnostics | None

    def steps_for(self, error: float) -> tuple[int | None, str | None]:
        """Number of steps of each chain, from its first record, at which mcse_mean falls to `error`; or why none.

        mcse_mean falls as 1 / sqrt(steps) once chains have mixed, so the number is until (mcse_mean / error)^2. It is
        not known while chains disagree: then their standard error says nothing of the time that they still need.
        """
        known = self.diagnostics
        if known is None or known.mcse_mean is None:
            return None, "no mcse_mean: " + ((known and known.reason) or "undefined drifts")
        if known.rhat_rank is not None and known.rhat_rank >= DISAGREEING:
            return None, f"rhat_rank is {known.rhat_rank:.2f}: the chains have not come to one law yet"
        return max(1, ceil(self.until * (known.mcse_mean / error) ** 2)), None


def group_diagnostics(chains: Sequence[DriftSeries], n: int | None) -> GroupDiagnostics:
    """Diagnostics of independent chains of n tokens, from 1 - cosine to the group's common reference.

    Drift itself does not show mixing: each chain has its own start as reference, and independent states are at
    different distances from different starts. Chains that end before the common end are left out.
    """
    ends = [_end(chain) for chain in chains]
    until = common_end(ends)
    kept = [chain for chain, end in zip(chains, ends, strict=True) if end >= until]
    rows, resampled, spacing = _readings(kept, n, until)
    rows = rows[:, rows.shape[1] // 2 :]
    diagnostics = None if np.isnan(rows).any() else diagnose(rows, [chain.start for chain in kept])
    return GroupDiagnostics(resampled, spacing, until, len(chains) - len(kept), _cut(ends, until), len(kept),
                            rows.shape[1], diagnostics)


def even_looks(times: NDArray[np.int64]) -> tuple[NDArray[np.int64], int | None]:
    """The places of evenly spaced looks among ascending `times`, and their distance in steps; None for one look.

    The distance is the smallest d such that times[0], times[0] + d, ... are all there, up to less than d before the
    end.

    >>> even_looks(np.array([0, 7, 14, 15])), even_looks(np.array([0, 10, 16, 20, 30, 32, 40]))
    ((array([0, 1, 2]), 7), (array([0, 1, 3, 4, 6]), 10))
    """
    since = times - times[0]
    for gap in since[1:].tolist():
        wanted = np.arange(0, since[-1] + 1, gap)
        places = np.searchsorted(since, wanted)
        if np.array_equal(since[places], wanted):
            return places, gap
    return np.arange(1), None


def common_end(ends: Sequence[int]) -> int:
    """The end to which chains of different lengths are compared: the one that keeps most of their time.

    It is the end e for which e x (number of chains that end at e or later) is largest; the latest of equal ones.

    >>> common_end([80, 1600, 1600, 1600]), common_end([90, 92, 95])
    (1600, 90)
    """
    return max(ends, key=lambda end: (end * sum(other >= end for other in ends), end))


def _end(chain: DriftSeries) -> int:
    """Steps from a chain's first record to its last defined distance."""
    known = np.flatnonzero(~np.isnan(np.frombuffer(chain.distances, dtype=np.float64)))
    return chain.steps[int(known[-1])] - chain.steps[0] if len(known) else 0


def _cut(ends: Sequence[int], until: int) -> str | None:
    """A sentence that says which chains are left out, and where the others stop; None where all chains end together."""
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


def _readings(chains: Sequence[DriftSeries], n: int | None, until: int) -> tuple[Values, bool, int | None]:
    """(M, N) distances up to a common end; whether they are at other steps than the records; their spacing in steps.

    Chains with records at the same, evenly spaced steps are stacked as they are; of records that are not evenly spaced
    those are taken which are, see `even_looks`. Chains whose records show every change are read once a sweep (every n
    steps), or MOST_READINGS times: between two records the state stays the same. So are chains with records at
    different steps.
    """
    looks = []
    for chain in chains:
        times = chain.times() - chain.steps[0]
        looks.append((times[times <= until], np.frombuffer(chain.distances, dtype=np.float64)[times <= until]))
    first = looks[0][0]
    changes = any(chain.shows_all for chain in chains)
    if not changes and all(np.array_equal(times, first) for times, _ in looks):
        places, gap = even_looks(first)
        if 2 * len(places) >= len(first):
            return np.array([values[places] for _, values in looks]), False, gap
    spacing = max(n or 1, until // MOST_READINGS)
    grid = np.arange(0, until + 1, spacing)
    rows = [values[np.searchsorted(times, grid, side="right") - 1] for times, values in looks]
    return np.array(rows), True, spacing
