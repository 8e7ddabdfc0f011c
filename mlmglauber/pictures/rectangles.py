"""The rectangle test: histograms of |delta| beside the noise of rounding, for each model and temperature."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mlmglauber.pictures.palette import category
from mlmglauber.pictures.panel import (
    SERIES,
    Axis,
    Bars,
    Panel,
    Picture,
    Rule,
    Values,
    chosen,
    distinct_labels,
    shortened,
)
from mlmglauber.pictures.reading import number, perhaps

LIMIT = 200_000
LEAST = 1e-9
"""Minimum |delta| in nats that has a bar of its own; smaller ones are in the leftmost bar."""
PER_DECADE = 4
"""Number of bars for a factor of ten."""


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """(|delta|, noise) in nats, under the key of model and temperature; nothing for a delta of null."""
    delta, noise = perhaps(record, "delta"), perhaps(record, "noise")
    if delta is not None:
        yield (str(record["model"]), number(record, "tau")), (abs(delta), np.nan if noise is None else abs(noise))


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """One panel: a histogram for each model and temperature on a logarithmic axis, and the largest noise of each."""
    del threshold
    notes: list[str] = []
    keys: list[Any] = chosen(list(kept), SERIES - 1, "models and temperatures", notes)
    if not keys:
        return Picture([])
    found = {key: np.array(kept[key], dtype=np.float64).T for key in keys}
    several = len({tau for _, tau in keys}) > 1
    borders = bins(np.concatenate([part.ravel() for part in found.values()]))
    layers: list[Any] = []
    names = distinct_labels([model for model, _ in keys]) if not several else [shortened(model) for model, _ in keys]
    for k, (model, tau) in enumerate(keys):
        sizes, noise = found[model, tau]
        shares = np.histogram(np.clip(sizes, borders[0], borders[-1]), borders)[0] / len(sizes)
        name = names[k] + (f", τ {tau:g}" if several else "")
        layers.append(Bars(borders, shares, f"{name}: mean {sizes.mean():.2g}", category(k).color))
        if np.nanmax(noise, initial=0.0) > borders[0]:
            layers.append(Rule(float(np.nanmax(noise)), "", category(k).color, upright=True))
    below = any((part[0] < borders[0]).any() for part in found.values())
    tail = "; leftmost bar: 0 and below" if below else ""
    if any(isinstance(layer, Rule) for layer in layers):
        layers.append(Rule(np.nan, "largest noise of rounding", upright=True))
    return Picture([Panel("", Axis(f"|δ| (nats{tail})", log=True), Axis("share of rectangles", low=0), layers)], notes)


def bins(values: Values) -> Values:
    """Borders of logarithmic bars for all values above LEAST; the leftmost bar also takes the values below.

    >>> bins(np.array([0.0, 0.2, 1.5])).round(2).tolist()
    [0.1, 0.18, 0.32, 0.56, 1.0, 1.78]
    """
    seen = values[values > LEAST]
    low, high = (np.log10(seen.min()), np.log10(seen.max())) if len(seen) else (np.log10(LEAST), 0.0)
    first = np.floor(low * PER_DECADE) - int((values[~np.isnan(values)] <= LEAST).any())
    last = max(np.ceil(high * PER_DECADE), first + 1)
    return np.asarray(10.0 ** (np.arange(first, last + 1) / PER_DECADE))
