"""Hitting and meeting times by temperature, in steps and in units of n ln n."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.measures.meeting.times import c_and_growth
from mlmglauber.measures.statistics.intervals import between
from mlmglauber.measures.statistics.scaling import Times, fit_c, n_log_n
from mlmglauber.measures.statistics.survival import median_interval
from mlmglauber.pictures.palette import BLACK, GREY, category
from mlmglauber.pictures.panel import PANELS, SERIES, Axis, Panel, Picture, Points, beside, chosen, tau_axis
from mlmglauber.pictures.reading import law_of, number, perhaps, with_interval

LIMIT = 100_000
LEAST = 0.5
"""The number of steps at which a logarithmic axis shows a time of 0."""


class Time(NamedTuple):
    """The time of a chain or pair; where censored, how long it was watched. least: lower bound of the time."""

    tau: float
    n: int
    steps: float
    censored: bool
    text: str
    least: float


class Middle(NamedTuple):
    """The Kaplan-Meier median of one temperature and length with its 95 % interval.

    horizon: the step until which all chains or pairs were watched.
    """

    tau: float
    n: int
    median: float | None
    low: float | None
    high: float | None
    horizon: float


class Slope(NamedTuple):
    """C of T = C n ln n over all lengths at one temperature, with its 95 % interval."""

    tau: float
    c: float | None
    low: float | None
    high: float | None


class Story(NamedTuple):
    """A kind of times: the title of its panel, the label of its axis, and how the chains were made."""

    title: str
    axis: str
    law: str


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """Times, medians and slopes of a record of mlm-drift --summary, mlm-couple or mlm-couple --summarize."""
    if record["tau"] is None or ("n" in record and record["n"] is None):
        return
    tau, over = number(record, "tau"), record.get("over")
    if record["type"] == "pair" or record["of"] == "pair":
        title = ", ".join([f"{record['coupling']} coupling", f"start {record['start']}"]
                          + ([f"lag {record['lag']}"] if record["lag"] else []))
        story = Story(title, "meeting time (joint steps)", law_of(record))
        if record["type"] == "pair":
            steps = number(record, "max_steps" if record["censored"] else "meeting")
            lead = 0 if record["censored"] else number(record, "lag")
            yield (story, tau, record["n"]), Time(tau, int(number(record, "n")), steps - lead, bool(record["censored"]),
                                                  f"{record['run']}/{record['id']}", steps - lead)
            return
        parts = [(story, record)]
    else:
        parts = [(Story(f"drift ≥ {number(part, 'threshold'):g}", "hitting time (steps)", law_of(record)), part)
                 for part in record["hitting"]]
    for story, part in parts:
        if over == "chain":
            steps = number(record, "watched") if part["censored"] else number(part, "time")
            least = steps if part["censored"] else number(part, "at_least")
            text = record["id"] if record.get("coupled") is None else record["coupled"]
            yield (story, tau, record["n"]), Time(tau, int(number(record, "n")), steps, bool(part["censored"]),
                                                  str(text), least)
        elif over == "group":
            yield story, Middle(tau, int(number(record, "n")), perhaps(part, "median"), perhaps(part, "median_low"),
                                perhaps(part, "median_high"), number(part, "horizon"))
        elif over == "tau":
            yield story, Slope(tau, perhaps(part, "c"), perhaps(part, "c_low"), perhaps(part, "c_high"))


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """For each kind of times a panel in steps, and one in units of n ln n with the fitted C."""
    del threshold  # the records have their own
    notes: list[str] = []
    stories: dict[Story, list[Any]] = {}
    for key, found in kept.items():
        stories.setdefault(key if isinstance(key, Story) else key[0], []).extend(found)  # type: ignore[index]
    panels = []
    laws = len({story.law for story in stories})
    for kind in chosen(list(stories), PANELS // 2, "kinds of times", notes):
        every = stories[kind]
        story = kind._replace(title=f"{kind.law}: {kind.title}") if laws > 1 and kind.law else kind
        times = [item for item in every if isinstance(item, Time)]
        middles = [item for item in every if isinstance(item, Middle)] or _middles(times)
        slopes = [item for item in every if isinstance(item, Slope)] or _slopes(times)
        if not middles:
            continue
        axis = tau_axis([item.tau for item in middles])
        lengths = chosen(sorted({item.n for item in middles}), SERIES - 1, "lengths", notes)
        panels.append(_in_steps(story, axis, times, middles, lengths))
        if any(n_log_n(n) for n in lengths):
            panels.append(_in_units(axis, middles, slopes, lengths))
    return Picture(panels, notes)


def _cells(times: Sequence[Time]) -> list[tuple[float, int, Times, Times]]:
    """(tau, n, lower bounds of the times, times) of each temperature and length."""
    by_cell: dict[tuple[float, int], list[Time]] = {}
    for time in times:
        by_cell.setdefault((time.tau, time.n), []).append(time)
    cells = []
    for (tau, n), cell in sorted(by_cell.items()):
        least, most = (Times(n, np.array(part), np.array([t.censored for t in cell]), [t.text for t in cell])
                       for part in ([t.least for t in cell], [t.steps for t in cell]))
        cells.append((tau, n, least, most))
    return cells


def _middles(times: Sequence[Time]) -> list[Middle]:
    middles = []
    for tau, n, least, cell in _cells(times):
        middle = between(*(median_interval(part.times, part.censored, part.texts) for part in (least, cell)))
        watched = cell.times[cell.censored].min() if cell.censored.any() else cell.times.max()
        middles.append(Middle(tau, n, middle.value, middle.low, middle.high, float(watched)))
    return middles


def _slopes(times: Sequence[Time]) -> list[Slope]:
    cells = _cells(times)
    fits = []
    for tau in sorted({c[0] for c in cells}):
        fit = c_and_growth([most for other, _, _, most in cells if other == tau])[0]
        least = fit_c([least for other, _, least, _ in cells if other == tau])
        fits.append((tau, fit if fit.value is None else between(least, fit)))
    return [Slope(tau, fit.value, fit.low, fit.high) for tau, fit in fits]


def _nan(values: Sequence[float | None]) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _shown(steps: Any) -> Any:
    return np.maximum(steps, LEAST)


def _in_steps(story: Story, axis: Axis, times: Sequence[Time], middles: Sequence[Middle],
              lengths: Sequence[int]) -> Panel:
    layers: list[Any] = []
    for k, n in enumerate(lengths):
        look = category(k)
        for censored in (False, True):
            seen = [time for time in times if time.n == n and time.censored == censored]
            if seen:
                x = beside(np.array([time.tau for time in seen]), axis, k, len(lengths))
                layers.append(Points(x, _shown(np.array([time.steps for time in seen])), "", look.color,
                                     "2" if censored else look.mark, faint=True,
                                     hover=[_told(time, story.axis) for time in seen]))
        layers += _medians(axis, [item for item in middles if item.n == n], 1.0, k, len(lengths), f"n = {n}")
    if any(time.censored for time in times):
        layers.append(_entry("censored", GREY, "2"))
    return Panel(f"{story.title}: median, 95 %", axis, Axis(story.axis, log=True), layers + _unreached(middles))


def _told(time: Time, what: str) -> str:
    """What a page shows at a time, in lines."""
    if time.censored:
        steps = f"not within {time.steps:,g} steps"
    else:
        steps = f"{time.steps:,g}" if time.least == time.steps else f"{time.least:,g} to {time.steps:,g}"
    return f"{time.text}\nn = {time.n}, τ = {time.tau:g}\n{what}: {steps}"


def _entry(label: str, color: str, mark: str, hollow: bool = False) -> Points:
    """A mark that is only in the legend."""
    return Points(np.array([np.nan]), np.array([np.nan]), label, color, mark, hollow=hollow)


def _unreached(middles: Sequence[Middle]) -> list[Points]:
    """The legend entry of triangles, where there is one."""
    missing = any(item.median is None for item in middles)
    return [_entry("median not reached", GREY, "^", hollow=True)] if missing else []


def _medians(axis: Axis, mine: Sequence[Middle], unit: float, k: int, count: int, label: str) -> list[Any]:
    """Medians with their intervals, divided by `unit`; a hollow triangle at the horizon is one that was not reached."""
    mine = sorted(mine)
    look = category(k)
    x = beside(np.array([item.tau for item in mine]), axis, k, count)
    ends = ("median", "low", "high")
    median, low, high = (_shown(_nan([getattr(item, end) for item in mine])) / unit for end in ends)
    missing = np.isnan(median)
    horizon = _shown(np.array([item.horizon for item in mine])) / unit
    names = [f"n = {item.n}, τ = {item.tau:g}\n" for item in mine]
    hover = ["" if gone else f"{name}median, 95 %: {with_interval(*drawn)}"
             for name, gone, *drawn in zip(names, missing, median, low, high, strict=True)]
    layers: list[Any] = [Points(x, median, label, look.color, look.mark, np.where(missing, np.nan, low),
                                np.where(missing, np.nan, high), hover=hover)]
    if missing.any():  # its interval is open above
        hover = [f"{name}median not reached, watched until {end:.4g}"
                 + ("" if np.isnan(least) else f"\n95 %: from {least:.4g} on")
                 for name, end, least, gone in zip(names, horizon, low, missing, strict=True) if gone]
        layers.append(Points(x[missing], horizon[missing], "", look.color, "^", low[missing],
                             np.full(missing.sum(), np.nan), hollow=True, hover=hover))
    return layers


def _in_units(axis: Axis, middles: Sequence[Middle], slopes: Sequence[Slope], lengths: Sequence[int]) -> Panel:
    """Medians of each length in units of n ln n, and beside them C of each temperature."""
    layers: list[Any] = []
    known = sorted(slope for slope in slopes if slope.c)
    count = len(lengths) + bool(known)
    for k, n in enumerate(lengths):
        unit, mine = n_log_n(n), [item for item in middles if item.n == n]
        if unit:
            layers += _medians(axis, mine, unit, k, count, f"n = {n}")
    if known:
        x = beside(np.array([slope.tau for slope in known]), axis, count - 1, count)
        c, low, high = (_nan([getattr(slope, end) for slope in known]) for end in ("c", "low", "high"))
        over = "of all lengths" if len(lengths) > 1 else f"of n = {lengths[0]}"
        hover = [f"τ = {slope.tau:g}\nC {over}, 95 %: {with_interval(*ends)}"
                 for slope, *ends in zip(known, c, low, high, strict=True)]
        layers.append(Points(x, c, f"C {over}, 95 %", BLACK, "x", low, high, hover=hover))
    return Panel("", axis, Axis("time / (n ln n)", log=True), layers + _unreached(middles))
