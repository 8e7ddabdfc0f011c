"""Drift over many chains: means with intervals, hitting times, diagnostics, for each group and each temperature."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mlmglauber.measures.drift.group_diagnostics import GroupDiagnostics, group_diagnostics
from mlmglauber.measures.drift.hitting_times import HittingScale, HittingTimes, hitting_scale, hitting_times
from mlmglauber.measures.drift.series import DriftSeries
from mlmglauber.measures.statistics.chain_groups import grouped
from mlmglauber.measures.statistics.intervals import Interval, cluster_mean


class PllChange(NamedTuple):
    """Mean pseudo-log-likelihood in nats per token: of first records, over second halves, and the change of a chain.

    A chain that moves from its text to other likely texts keeps its pseudo-log-likelihood; a chain that dissolves into
    noise loses it.
    """

    start: Interval
    plateau: Interval
    change: Interval


class GroupDrift(NamedTuple):
    """Chains of one law, temperature and length: `states` records of `texts` texts.

    final, plateau: means over chains of the last drift and of the mean drift over the second half, each with its 95 %
    interval over texts; plateau_sd: standard deviation of the plateau over chains, None for one chain. frozen: number
    of chains whose drift is constant in the second half. pll: None where no record has a pseudo-log-likelihood.
    """

    chains: int
    texts: int
    states: int
    final: Interval
    plateau: Interval
    plateau_sd: float | None
    frozen: int
    hitting: Sequence[HittingTimes]
    diagnostics: GroupDiagnostics
    pll: PllChange | None


class TemperatureDrift(NamedTuple):
    """Chains of one law and temperature: how many there are, their lengths, and how hitting times grow with them."""

    chains: int
    lengths: Sequence[int]
    hitting: Sequence[HittingScale]


def of_group(chains: Sequence[DriftSeries], thresholds: Sequence[float]) -> GroupDrift:
    """What independent chains of one law, temperature and length have in common."""
    texts = [chain.start for chain in chains]
    plateaus = [chain.plateau() for chain in chains]
    known = np.array([plateau for plateau in plateaus if plateau is not None])
    n = chains[0].n
    return GroupDrift(
        len(chains), len(set(texts)), sum(len(chain.drifts) for chain in chains),
        mean_over_texts([chain.drifts[-1] for chain in chains], texts), mean_over_texts(plateaus, texts),
        float(known.std(ddof=1)) if len(known) > 1 else None, sum(chain.frozen() is True for chain in chains),
        [hitting_times(n, chains, threshold) for threshold in thresholds], group_diagnostics(chains, n),
        _pll(chains, texts))


def of_temperature(chains: Sequence[DriftSeries], thresholds: Sequence[float]) -> TemperatureDrift:
    """C of T = C n ln n over all lengths at one temperature, and the test of growth beyond n ln n."""
    lengths = sorted(((key[0] or 0, members) for key, members in grouped(chains, lambda chain: (chain.n,))),
                     key=lambda item: item[0])
    return TemperatureDrift(len(chains), sorted({chain.n for chain in chains if chain.n is not None}),
                            [hitting_scale(lengths, threshold) for threshold in thresholds])


def mean_over_texts(values: Sequence[float | None], texts: Sequence[str]) -> Interval:
    """The mean over the chains that have a value (None and NaN are none), with its 95 % interval over texts.

    >>> mean_over_texts([0.5, None, 1.0], ["a", "a", "b"]).value
    0.75
    """
    kept = [(value, text) for value, text in zip(values, texts, strict=True) if value is not None and value == value]
    if not kept:
        return Interval(None, None, None, "no chain has a value")
    return cluster_mean([value for value, _ in kept], [text for _, text in kept], "plain")


def _pll(chains: Sequence[DriftSeries], texts: Sequence[str]) -> PllChange | None:
    if not any(chain.plls for chain in chains):
        return None
    starts, ends = [chain.pll_start() for chain in chains], [chain.pll_plateau() for chain in chains]
    changes = [None if start is None or end is None else end - start for start, end in zip(starts, ends, strict=True)]
    return PllChange(*(mean_over_texts(part, texts) for part in (starts, ends, changes)))
