"""How far a command has come: what it counts, and what follows from the counts (total, rate, time left)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

WINDOW = 30
"""Number of looks, about one a second, over which rates are taken."""


class Reach(NamedTuple):
    """How much of the input is read: `factor`, the number of its records divided by that of the records read so far.

    exact: whether the input is read to its end, so that factor is 1; before, factor is an estimate from the sizes of
    the files.
    """

    factor: float
    exact: bool


class ProgressState(NamedTuple):
    """What is known at one moment. seconds: since the work began. The other fields are those of `as_json`."""

    done: float
    total: float | None
    estimated: bool
    rate: float | None
    seconds_left: float | None
    from_memory: float | None
    resumed: float
    open: bool


@dataclass
class Progress:
    """The counts of a command's work, which the command sets and a display reads.

    unit: what is counted. label: what the work is about, for people. total: the units of the whole work, None where
    they follow from `planned` and `reach`. done: units that need no more work. planned: units of the inputs read so
    far. made: units that were really made in this run, None where these are all that are done; units that a pair of
    chains saves by its meeting are done and not made. resumed: units that an earlier run made. from_memory: share of
    the steps made without waiting for the model. finished: (number of texts or pairs that are finished, their name).
    reach: how much of the input is read, None while the input is open.
    """

    unit: str
    label: str = ""
    total: float | None = None
    reach: Callable[[], Reach | None] = lambda: None
    done: float = 0
    planned: float = 0
    made: float | None = None
    resumed: float = 0
    from_memory: float | None = None
    finished: tuple[int, str] | None = None

    def __post_init__(self) -> None:
        self._looks: deque[tuple[float, float, float]] = deque(maxlen=WINDOW)

    def __call__(self, amount: float) -> None:
        """Count so many units as done."""
        self.done += amount
        self._begin()

    def plan(self, amount: float, done: float = 0) -> None:
        """Add the work of one input. done: what an earlier run has done of it."""
        self._begin()
        self.planned += amount
        self.done += done
        self.resumed += done

    def _begin(self) -> None:
        if not self._looks:
            self._looks.append((monotonic(), self.done, self._made()))

    def _made(self) -> float:
        return self.done - self.resumed if self.made is None else self.made

    def look(self, now: float | None = None, keep: bool = True) -> ProgressState:
        """What is known now, a time of `monotonic`. keep: whether later looks take their rates from here."""
        now = monotonic() if now is None else now
        done, made = self.done, self._made()
        reach = Reach(1, True) if self.total is not None else self.reach()
        total, planned = self.total, max(self.planned, done)
        if total is None and reach is not None and (planned or reach.exact):
            total = planned * reach.factor
        rate = left = None
        if self._looks:
            then, done_then, made_then = self._looks[0]
            if now > then:
                rate = (made - made_then) / (now - then)
                speed = (done - done_then) / (now - then)
                if total is not None and speed > 0:
                    left = max(0.0, total - done) / speed
        if keep and self._looks:  # before the work begins, the model is opened
            self._looks.append((now, done, made))
        share = self.resumed / total if total else 0.0
        estimated = total is not None and reach is not None and not reach.exact
        return ProgressState(done, total, estimated, rate, left, self.from_memory, share, reach is None)

    def as_json(self, command: str, look: ProgressState) -> dict[str, Any]:
        """This state as --progress=json writes it; counts are whole numbers."""
        rounded = {name: None if value is None else round(value, 3) for name, value in (
            ("rate", look.rate), ("seconds_left", look.seconds_left), ("from_memory", look.from_memory),
            ("resumed", look.resumed))}
        record = {"type": "progress", "command": command, "unit": self.unit, "done": round(look.done),
                  "total": None if look.total is None else round(look.total), "estimated": look.estimated, **rounded}
        if self.finished is not None:
            record[self.finished[1]] = self.finished[0]
        if look.total is None:
            record["reason"] = f"total: {'the end of the input is not known' if look.open else 'nothing was read yet'}"
        return record


def line(command: str, progress: Progress, look: ProgressState, cells: int) -> tuple[str, str, str]:
    """The line of a look in at most so many cells: what stands before the bar, the done part of the bar, the rest.

    Where there is no room for all parts, the amount comes first, then the share and the time left, the bar, the rate,
    the share from memory, and the others.
    """
    of = "" if look.total is None else f"/{'~' if look.estimated else ''}{short(look.total)}"
    parts = {"amount": f"{short(look.done)}{of} {progress.unit}"}
    done = None if not look.total else min(1.0, look.done / look.total)
    if done is not None:
        parts["share"] = f"{done:.0%}"
    if look.seconds_left is not None:
        parts["left"] = f"{clock(look.seconds_left)} left"
    if done is not None:
        parts["bar"] = ""
    if look.rate is not None:
        parts["rate"] = f"{short(look.rate)}/s"
    if look.from_memory is not None:
        parts["memory"] = f"{look.from_memory:.0%} from memory"
    if progress.finished is not None:
        parts["finished"] = f"{progress.finished[0]} {progress.finished[1]}"
    if progress.resumed:
        parts["resumed"] = f"resumed at {look.resumed:.0%}" if look.total else f"resumed at {short(progress.resumed)}"
    if look.open:
        parts["open"] = "input open"
    if progress.label:
        parts["label"] = progress.label
    head = f"{command}:"
    room, kept = cells - len(head), []
    for name, text in parts.items():
        need = 5 if name == "bar" else len(text) + 2
        if need <= room:
            kept.append(name)
            room -= need
    length = min(20, 4 + room) if "bar" in kept else 0
    rest = ", ".join(parts[name] for name in ("amount", "share", "rate", "memory", "left", "resumed", "finished",
                                              "open", "label") if name in kept)
    filled = round(length * (done or 0))
    bar = f" {'━' * filled}", "─" * (length - filled)
    return f"{head}", bar[0] if length else "", f"{bar[1] if length else ''} {rest}"[:max(0, cells - len(head))]


def short(number: float) -> str:
    """A count in at most five characters up to 1e15.

    >>> [short(number) for number in (7, 999.4, 12_345, 2_500_000)]
    ['7', '999', '12.3k', '2.5M']
    """
    for unit in ("", "k", "M", "G", "T"):
        if abs(number) < 999.5 or unit == "T":
            break
        number /= 1000
    digits = 1 if (unit and number < 99.95) or (not unit and 0 < number < 10 and number != int(number)) else 0
    return f"{number:.{digits}f}{unit}"


def clock(seconds: float) -> str:
    """A duration as minutes:seconds, hours:minutes:seconds, or days and hours.

    >>> clock(75), clock(4000), clock(200_000)
    ('1:15', '1:06:40', '2 d 7 h')
    """
    whole = round(seconds)
    if whole >= 2 * 86400:
        return f"{whole // 86400} d {whole % 86400 // 3600} h"
    minutes, hours = whole // 60 % 60, whole // 3600
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
