"""Exact results for a small chain: its stationary distribution, and its mixing time beside the bound."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.palette import category
from mlmglauber.pictures.panel import (
    SERIES,
    Axis,
    Curve,
    Panel,
    Picture,
    Points,
    chosen,
    distinct_labels,
    shortened,
    tau_axis,
)
from mlmglauber.pictures.reading import BROKEN, number, perhaps

LIMIT = 20_000
STATES = 6


class Solved(NamedTuple):
    """The results of one text at one temperature.

    likeliest: states as (ids, text, probability). tmix: mixing time in steps at eps, a lower bound where not exact.
    bound: its upper bound from influences.
    """

    text: str
    tau: float
    likeliest: Sequence[tuple[tuple[int, ...], str, float]]
    tmix: float | None
    exact: bool
    bound: float | None
    eps: float


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """The results of one exact record, under the key of its text."""
    states = [(tuple(map(int, state["ids"])), str(state["text"]), number(state, "probability"))
              for state in record["likeliest"] or []]
    yield (str(record["id"]),), Solved(str(record["text"]), number(record, "tau"), states, perhaps(record, "tmix"),
                                       bool(record["tmix_exact"]), perhaps(record, "bound"), number(record, "eps"))


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """The likeliest states of the first text, and the mixing times of all, against temperature."""
    del threshold
    notes: list[str] = []
    every = [solved for found in kept.values() for solved in found]
    axis = tau_axis([solved.tau for solved in every])
    texts: list[Any] = chosen(list(kept), SERIES // 2, "texts", notes)
    if len(kept) > 1:
        notes.append(f"the stationary law is that of the first text, {texts[0][0]}")
    panels = [_law(sorted(kept[texts[0]], key=lambda solved: solved.tau), axis),
              _mixing([(name, kept[key]) for name, key in zip(distinct_labels([key[0] for key in texts], 40), texts,
                                                              strict=True)], axis)]
    return Picture([panel for panel in panels if panel.layers], notes)


def _law(series: Sequence[Solved], axis: Axis) -> Panel:
    """Probabilities of the likeliest states; a state has no point where it is not among the likeliest."""
    most: dict[tuple[int, ...], float] = {}
    texts: dict[tuple[int, ...], str] = {}
    for solved in series:
        for ids, text, probability in solved.likeliest:
            most[ids], texts[ids] = max(most.get(ids, 0.0), probability), text
    layers: list[Any] = []
    drawn = sorted(most, key=lambda ids: -most[ids])[:STATES]
    for k, (ids, name) in enumerate(zip(drawn, state_names([texts[ids] for ids in drawn], drawn), strict=True)):
        y = np.array([{state: p for state, _, p in solved.likeliest}.get(ids, np.nan) for solved in series])
        x, look = np.array([solved.tau for solved in series]), category(k)
        layers.append(Curve(x, y, name, look.color, mark=look.mark))
    title = f"{shortened(series[0].text)}: likeliest states"
    return Panel(title, axis, Axis("stationary probability μ", low=0), layers)


def state_names(texts: Sequence[str], ids: Sequence[tuple[int, ...]]) -> list[str]:
    """Names of states: their texts. Where two states have the same text, or a text is blank or has undecodable bytes,
    the token ids are added.

    >>> state_names(["a b", "\ufffd", "\ufffd"], [(1, 2), (3,), (4,)])
    ['a b', '\ufffd (ids 3)', '\ufffd (ids 4)']
    """
    unclear = [BROKEN in text or list(texts).count(text) > 1 or not text.strip() for text in texts]
    return distinct_labels([f"{text} (ids {' '.join(map(str, state))})" if hidden else text
                       for text, state, hidden in zip(texts, ids, unclear, strict=True)])


def _mixing(texts: Sequence[tuple[str, Sequence[Solved]]], axis: Axis) -> Panel:
    layers: list[Any] = []
    for k, (name, series) in enumerate(texts):
        look, prefix = category(k), f"{name}: " if len(texts) > 1 else ""
        other = look if len(texts) > 1 else category(1)
        series = sorted(series, key=lambda solved: solved.tau)
        x = np.array([solved.tau for solved in series])
        tmix, bound = (np.array([np.nan if part is None else part for part in parts]) for parts in
                       ([s.tmix for s in series], [s.bound for s in series]))
        exact = np.array([solved.exact for solved in series])
        if (exact & ~np.isnan(tmix)).any():
            layers.append(Curve(x, np.where(exact, tmix, np.nan), f"{prefix}mixing time", look.color, mark="o"))
        if (~exact & ~np.isnan(tmix)).any():
            layers.append(Points(x[~exact], tmix[~exact], f"{prefix}mixing time at least", look.color, "^",
                                 hollow=True))
        if not np.isnan(bound).all():
            layers.append(Curve(x, bound, f"{prefix}bound from α < 1", other.color, dashed=True, mark="s"))
    eps = sorted({solved.eps for _, series in texts for solved in series})
    epsilons = f"ε\u00a0=\u00a0{', '.join(f'{e:g}' for e in eps)}"
    return Panel("", axis, Axis(f"mixing time, {epsilons} (steps)", log=True), layers)
