"""How long traps last: survival curves on logarithmic axes, with the geometric law of stays in a single state."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.measures.statistics.survival import kaplan_meier
from mlmglauber.pictures.palette import GREY, ordered
from mlmglauber.pictures.panel import PANELS, SERIES, Axis, Curve, Panel, Picture, Points, Values, chosen, counted
from mlmglauber.pictures.reading import number, perhaps

LIMIT = 100_000
LEAST_SHARE = 0.5
"""Lower end of the survival axis, as a share of one trap."""


class TrapStay(NamedTuple):
    """A trap's residence in steps, whether it is censored, and the escape probability of its representative state."""

    residence: float
    censored: bool
    escape: float | None


class TrapKind(NamedTuple):
    """The search that found a trap: length of the texts, radius, minimum number of steps."""

    n: int
    radius: int
    least: int


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """One trap under the key of its kind and temperature."""
    kind = TrapKind(*(int(number(record, name)) for name in ("n", "radius", "min_steps")))
    yield (kind, perhaps(record, "tau")), TrapStay(number(record, "residence"), bool(record["censored"]),
                                               perhaps(record, "escape"))


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """A panel for each length, a curve for each temperature."""
    del threshold
    notes: list[str] = []
    kinds: dict[TrapKind, dict[float | None, Sequence[TrapStay]]] = {}
    for key, found in kept.items():
        assert isinstance(key, tuple)
        kinds.setdefault(key[0], {})[key[1]] = found
    drawn = chosen(sorted(kinds), PANELS, "kinds of traps", notes)
    return Picture([_panel(kind, kinds[kind], notes) for kind in drawn], notes)


def _panel(kind: TrapKind, by_tau: Mapping[float | None, Sequence[TrapStay]], notes: list[str]) -> Panel:
    taus = chosen(sorted(by_tau, key=lambda tau: (tau is None, tau or 0)), SERIES // 2, "temperatures", notes)
    layers: list[Any] = []
    lawful = cut = False
    for tau, look in zip(taus, ordered(len(taus)), strict=True):
        traps = by_tau[tau]
        steps, censored = np.array([t.residence for t in traps]), np.array([t.censored for t in traps])
        curve = kaplan_meier(steps, censored)
        x = np.concatenate([[kind.least], curve.times, [max(steps.max(), kind.least)]]).astype(np.float64)
        y = np.concatenate([[1.0], curve.survival, curve.survival[-1:] if len(curve.survival) else [1.0]])
        end = np.where(y > 0, y, np.nan)
        label = "" if tau is None else f"τ = {tau:g}, "
        layers.append(Curve(x, end, f"{label}{counted(len(traps), 'trap')}", look.color, stairs=True))
        if censored.any():
            there = np.searchsorted(x, steps[censored], side="right") - 1
            layers.append(Points(steps[censored], end[there], "", look.color, "|"))
            cut = True
        escapes = np.array([np.nan if t.escape is None else t.escape for t in traps])
        if np.isfinite(escapes).all():
            lawful = True
            t = np.geomspace(kind.least, 3 * steps.max(), 120)
            layers.append(Curve(t, law(t, escapes, kind.least), "", look.color, dashed=True))
    if lawful:
        nowhere = np.array([np.nan])
        color = layers[0].color if len(taus) == 1 else GREY
        label_of_law = "geometric, one state: (1 − escape)ᵗ" + ("" if len(taus) == 1 else ", in the colour of its τ")
        layers.append(Curve(nowhere, nowhere, label_of_law, color, dashed=True))
    if cut:
        layers.append(Points(np.array([np.nan]), np.array([np.nan]), "cut off by the end of the records", GREY, "|"))
    smallest = LEAST_SHARE / max(len(traps) for traps in by_tau.values())
    where = "one state" if kind.radius == 0 else f"within {counted(kind.radius, 'change')}"
    return Panel(f"n = {kind.n}, {where}, at least {counted(kind.least, 'step')}",
                 Axis("residence t (steps)", log=True),
                 Axis("share of longer traps", log=True, low=smallest, high=1.3), layers)


def law(t: Values, escapes: Values, least: int) -> Values:
    """P(T > t | T >= least) for geometric stays: the mean of (1 - e)^(t - least + 1) over escape probabilities e.

    >>> law(np.array([9.0, 10.0]), np.array([0.5]), 10).tolist()
    [1.0, 0.5]
    """
    lasted = np.maximum(np.floor(t)[:, None] - least + 1, 0)
    shares = ((1 - escapes) ** lasted).mean(axis=1)
    return np.asarray(np.where(shares > 0, shares, np.nan))
