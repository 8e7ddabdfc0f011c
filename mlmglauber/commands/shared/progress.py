"""How far a command has come: what it counts, and what follows from the counts (total, rate, time left)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

from mlmglauber.commands.shared.nullable import nullable
from mlmglauber.stream.printable import counted

WINDOW = 30
"""Number of states, about one a second, over which rates are taken."""


class InputLength(NamedTuple):
    """How long the input is: `factor`, the number of its records divided by that of the records read so far.

    exact: whether the input is read to its end, so that factor is 1; before, factor is an estimate from the sizes of
    the files.
    """

    factor: float
    exact: bool


class ProgressState(NamedTuple):
    """What is known at one moment.

    done: units that need no more work. total: units of the whole work, None where it is not known. estimated: whether
    the total is an estimate. rate: units made a second. seconds_left, seconds: until the end, and since the work
    began, 0 before. input_open: whether more input may come, of which nothing is known.
    """

    done: float
    total: float | None
    estimated: bool
    rate: float | None
    seconds_left: float | None
    seconds: float
    input_open: bool


@dataclass
class Progress:
    """The counts of a command's work, which the command sets and a display reads.

    unit: what is counted. label: what the work is about, for people. total: the units of the whole work, None where
    they follow from `planned` and `input_length`, or are not known. input_length: how long the input is, None while
    that is not known; the function itself is None for work whose length does not follow from an input.

    done: units that need no more work. planned: units of the inputs read so far. made: units that were really made in
    this run, None where these are all that are done; units that a pair of chains saves by its meeting are done and not
    made. resumed: units that an earlier run made. from_memory: share of the steps made without waiting for the model.
    finished: (number of texts or pairs that are finished, their name).
    """

    unit: str
    label: str = ""
    total: float | None = None
    input_length: Callable[[], InputLength | None] | None = None
    done: float = 0
    planned: float = 0
    made: float | None = None
    resumed: float = 0
    from_memory: float | None = None
    finished: tuple[int, str] | None = None

    def __post_init__(self) -> None:
        self._began: float | None = None
        self._past: deque[tuple[float, float, float]] = deque(maxlen=WINDOW)

    def __call__(self, amount: float) -> None:
        """Count so many units as done."""
        self._begin()
        self.done += amount

    def plan(self, amount: float, done: float = 0) -> None:
        """Add the work of one input. done: what an earlier run has done of it."""
        self._begin()
        self.planned += amount
        self.done += done
        self.resumed += done

    def _begin(self) -> None:
        """Start the clock with the first input: before it, the model is opened."""
        if self._began is None:
            self._began = monotonic()
            self._past.append((self._began, self.done - self.resumed, self._made()))

    def _made(self) -> float:
        return self.done - self.resumed if self.made is None else self.made

    def state(self, now: float | None = None, keep: bool = True) -> ProgressState:
        """What is known now, a time of `monotonic`. keep: whether later states take their rates from here."""
        now = monotonic() if now is None else now
        done, new, made = self.done, self.done - self.resumed, self._made()
        length = self.input_length() if self.input_length is not None and self.total is None else None
        total = self.total
        if length is not None and (self.planned or done):
            total = max(self.planned, done) * length.factor
        rate = left = None
        if self._past:
            then, new_then, made_then = self._past[0]
            if now > then:
                rate = (made - made_then) / (now - then)
                speed = (new - new_then) / (now - then)
                if total is not None and (speed > 0 or done >= total):
                    left = (total - done) / speed if done < total else 0.0
            if keep:
                self._past.append((now, new, made))
        return ProgressState(done, total, length is not None and not length.exact, rate, left,
                             0.0 if self._began is None else now - self._began,
                             self.input_length is not None and self.total is None and length is None)

    def as_json(self, command: str, state: ProgressState) -> dict[str, Any]:
        """A state as --progress=json writes it; counts are whole numbers."""
        if state.input_open:
            why = "the input has not ended"
        elif self.input_length is None:
            why = "it depends on the results"
        else:
            why = "no work is known yet"
        record = {
            "type": "progress", "command": command, "unit": self.unit, **({"label": self.label} if self.label else {}),
            "done": round(state.done), **nullable("total", _rounded(state.total, 0), why), "estimated": state.estimated,
            **nullable("rate", _rounded(state.rate), "no work has begun"),
            "seconds": round(state.seconds, 3),
            **nullable("seconds_left", _rounded(state.seconds_left),
                       "the total is not known" if state.total is None else "nothing was done yet")}
        if self.from_memory is not None:
            record["from_memory"] = round(self.from_memory, 4)
        if self.finished is not None:
            record |= {self.finished[1]: self.finished[0], "resumed": round(self.resumed)}
        return record


def _rounded(value: float | None, digits: int = 3) -> float | None:
    if value is None:
        return None
    return round(value, digits) if digits else round(value)


def line(command: str, progress: Progress, state: ProgressState, cells: int) -> tuple[str, str, str]:
    """The line of a state in at most so many cells: what stands before the bar, the done part of the bar, the rest.

    Where there is no room for all parts, the amount comes first, then the share and the time left, the bar, the rate,
    the share from memory, and the others.
    """
    of = "" if state.total is None else f"/{'~' if state.estimated else ''}{short(state.total)}"
    parts = {"amount": f"{short(state.done)}{of} {progress.unit}"}
    done = None if not state.total else min(1.0, state.done / state.total)
    if done is not None:
        parts["share"] = f"{done:.0%}"
    if state.seconds_left is not None:
        parts["left"] = f"{clock(state.seconds_left)} left"
    if done is not None:
        parts["bar"] = ""
    if state.rate is not None and state.done:
        parts["rate"] = f"{short(state.rate)}/s"
    if progress.from_memory is not None:
        parts["memory"] = f"{progress.from_memory:.0%} from memory"
    if progress.resumed:
        at = f"{progress.resumed / state.total:.0%}" if state.total else short(progress.resumed)
        parts["resumed"] = f"resumed at {at}"
    if progress.finished is not None:
        count, name = progress.finished
        parts["finished"] = counted(count, name.removesuffix("s"))
    if state.input_open:
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
    bar = (f" {'━' * filled}", "─" * (length - filled)) if length else ("", "")
    return head, bar[0], f"{bar[1]} {rest}"[: max(0, cells - len(head))]


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
