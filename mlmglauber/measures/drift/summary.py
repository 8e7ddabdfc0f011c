"""What many drift series say together: of each chain, of each temperature and length, of each temperature."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mlmglauber.measures.drift.holding import mean
from mlmglauber.measures.drift.mixing import mixing
from mlmglauber.measures.drift.series import Series
from mlmglauber.measures.drift.times import over_lengths, survival
from mlmglauber.measures.statistics.intervals import cluster_mean

Summary = dict[str, Any]

__all__ = ["Series", "summarise"]


def summarise(series: Sequence[Series], thresholds: Sequence[float]) -> Iterator[Summary]:
    """A summary for each chain; then for each law, temperature and length; then for each law and temperature.

    Of two coupled chains the first one counts in what is said of many: after they meet they are the same chain.
    """
    for chain in series:
        yield chain.summary(thresholds)
    single = independent(series)
    left = {key: len(members) for key, members in _grouped(series, _group)}
    for key, members in _grouped(single, _group):
        yield of_group(members, thresholds, left[key] - len(members))
    for (_, tau), members in _grouped(single, lambda chain: (chain.law, chain.tau)):
        yield of_temperature(tau, members, thresholds)


def independent(series: Sequence[Series]) -> list[Series]:
    """The chains that are independent of each other: of those coupled in a pair, the first."""
    found: dict[Hashable, Series] = {}
    for place, chain in enumerate(series):
        found.setdefault(place if chain.coupled is None else (chain.run, chain.text), chain)
    return list(found.values())


def _group(chain: Series) -> tuple[Hashable, float | None, int | None]:
    return chain.law, chain.tau, chain.n


def _grouped(series: Iterable[Series], key: Callable[[Series], tuple[Any, ...]]) -> list[tuple[Any, list[Series]]]:
    """(key, its chains): the laws as they come, then by temperature and length, unknown ones last."""
    groups: dict[Any, list[Series]] = {}
    for chain in series:
        groups.setdefault(key(chain), []).append(chain)
    laws = {law: place for place, law in enumerate(dict.fromkeys(found[0] for found in groups))}

    def order(item: tuple[Any, list[Series]]) -> tuple[Any, ...]:
        return laws[item[0][0]], *((part is None, part or 0) for part in item[0][1:])

    return sorted(groups.items(), key=order)


def of_group(chains: Sequence[Series], thresholds: Sequence[float], coupled: int = 0) -> Summary:
    """Means over chains with their intervals over texts, survival of each threshold, and diagnostics.

    coupled: how many chains were left out since each is coupled with one of these.
    """
    first = chains[0]
    texts = [chain.start for chain in chains]
    plateaus = [mean(chain.values(), chain.weights()) for chain in chains]
    known = np.array([plateau for plateau in plateaus if plateau is not None])
    told: Summary = {
        "type": "summary", "of": "state", "over": "group", "tau": first.tau, "n": first.n, **first.told,
        "chains": len(chains), "texts": len(set(texts)), "count": sum(len(chain.drifts) for chain in chains),
        **mean_over_texts("final", [chain.drifts[-1] for chain in chains], texts),
        **mean_over_texts("plateau", plateaus, texts),
        "plateau_sd": float(known.std(ddof=1)) if len(known) > 1 else None,
        "frozen_chains": sum(chain.frozen() is True for chain in chains),
        "hitting": [survival(first.n, chains, threshold) for threshold in thresholds],
        "diagnostics": mixing(chains, first.n),
    }
    if coupled:
        told["coupled_left_out"] = coupled
    return told | _pll(chains, texts)


def of_temperature(tau: float | None, chains: Sequence[Series], thresholds: Sequence[float]) -> Summary:
    """C(tau) of T = C n ln n over all lengths at one temperature, and the test of growth beyond n ln n."""
    lengths = [(key[0] or 0, members) for key, members in _grouped(chains, lambda chain: (chain.n,))]
    return {"type": "summary", "of": "state", "over": "tau", "tau": tau, **chains[0].told, "chains": len(chains),
            "lengths": sorted({chain.n for chain in chains if chain.n is not None}),
            "hitting": [over_lengths(sorted(lengths, key=lambda item: item[0]), threshold)
                        for threshold in thresholds]}


def mean_over_texts(name: str, values: Sequence[float | None], texts: Sequence[str]) -> Summary:
    """The mean over chains that have a value (not-a-number is none), with its 95 % interval over texts, as fields.

    >>> mean_over_texts("final", [0.5, None, 1.0], ["a", "a", "b"])["final"]
    0.75
    """
    kept = [(value, text) for value, text in zip(values, texts, strict=True) if value is not None and value == value]
    if not kept:
        return {name: None, f"{name}_low": None, f"{name}_high": None, f"{name}_reason": "no chain has a value"}
    found = cluster_mean([value for value, _ in kept], [text for _, text in kept], "plain")
    told = {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
    return told if found.reason is None else told | {f"{name}_reason": found.reason}


def _pll(chains: Sequence[Series], texts: Sequence[str]) -> Summary:
    """Mean pseudo-log-likelihood a token at the start and in the second half, and its change; empty where none is told.

    A chain that wanders from its text to others as likely keeps it; one that dissolves into noise loses it.
    """
    if not any(chain.plls for chain in chains):
        return {}
    starts, ends = [chain.pll_start() for chain in chains], [chain.pll_plateau() for chain in chains]
    changes = [None if start is None or end is None else end - start for start, end in zip(starts, ends, strict=True)]
    return {**mean_over_texts("pll_start", starts, texts), **mean_over_texts("pll_plateau", ends, texts),
            **mean_over_texts("pll_change", changes, texts)}
