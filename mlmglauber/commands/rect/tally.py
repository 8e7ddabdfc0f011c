"""What mlm-rect keeps of each rectangle for its summary, and the summary records."""

from array import array
from collections import Counter
from collections.abc import Iterator
from math import inf
from operator import index
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.measures.rectangle.summary import Deltas, summarise
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record

NAMED = "named"
"""What stands in the place of `draw` for rectangles that were named."""
OF_MODEL = ("hash", "revision", "dtype")
OF_DRAW = ("seed", "rectangles", "gap", "freeze")
"""Settings of a run that a named rectangle does not depend on."""


class RectangleKey(NamedTuple):
    """What rectangles of one run share: model, temperature, draw, and the run of chains whose states they are of."""

    model: str
    tau: float
    run: str
    draw: str
    states_of: str | None


class _Kept:
    """Rectangles that are summed up together."""

    def __init__(self) -> None:
        self.sizes, self.noise, self.rounding, self.distances = array("d"), array("d"), array("d"), array("q")
        self.texts: list[tuple[str, str]] = []
        self.undefined = 0

    def add(self, other: "_Kept") -> None:
        self.sizes += other.sizes
        self.noise += other.noise
        self.rounding += other.rounding
        self.distances += other.distances
        self.texts += other.texts
        self.undefined += other.undefined

    def deltas(self) -> Deltas:
        return Deltas(np.frombuffer(self.sizes), np.frombuffer(self.noise), np.frombuffer(self.rounding),
                      np.frombuffer(self.distances, np.int64), self.texts)


class RectangleTally:
    """Rectangles by kind. Runs of the same settings are joined, others kept apart."""

    def __init__(self) -> None:
        self._kinds: dict[RectangleKey, _Kept] = {}
        self._runs: dict[str, Record] = {}
        self._drawn: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return sum(len(kept.sizes) + kept.undefined for kept in self._kinds.values())

    def take_run(self, record: Record) -> None:
        """A run record, which tells the settings of its rectangles, before or behind them."""
        if record.get("command") == "mlm-rect" and isinstance(record.get("options"), dict):
            self._runs[str(record.get("run"))] = record

    def take(self, record: Record) -> None:
        """A rectangle record; RecordError where it lacks its fields, or is one more than its run drew."""
        try:
            state = record.get("of_state")
            origin = (str(state["run"]), str(state["id"])) if isinstance(state, dict) else None
            kind = RectangleKey(str(record["model"]), float(record["tau"]), str(record.get("run")),
                        str(record.get("draw", NAMED)), None if origin is None else origin[0])
            value, noise, rounding = (None if record.get(name) is None else float(record[name])
                                      for name in ("delta", "noise", "rounding"))
            if "delta" not in record:
                raise KeyError("delta")
            distance = abs(index(record["i"]) - index(record["j"]))
            if distance >= 1 << 31:
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise RecordError("a rectangle record without its fields; these are not mlm-rect's") from error
        self._check_count(kind, str(record.get("id")))
        kept = self._kinds.setdefault(kind, _Kept())
        if value is None:
            kept.undefined += 1
            return
        kept.sizes.append(abs(value))
        kept.noise.append(float("nan") if noise is None else noise)
        kept.rounding.append(float("nan") if rounding is None else rounding)
        kept.distances.append(distance)
        kept.texts.append(origin or (kind.run, str(record.get("id"))))

    def _check_count(self, kind: RectangleKey, name: str) -> None:
        """More rectangles of a text than its run drew are the same ones twice."""
        if kind.draw == NAMED:
            return
        most = self._most(kind.run)
        if self._drawn[kind.run, name] >= most:
            raise RecordError(f"more rectangles of {name!r} than run {kind.run} drew ({most}); give each file once")
        self._drawn[kind.run, name] += 1

    def _most(self, run: str) -> float:
        """The number of rectangles that a run drew for each text; infinite where it is not known."""
        count = self._runs.get(run, {}).get("options", {}).get("rectangles")
        return count if type(count) is int else inf

    def means(self) -> list[tuple[str, float]]:
        """(what they are of, mean |delta|) of each group."""
        found = [(settings, kept) for settings, _, kept in self._groups() if len(kept.sizes)]
        return [(", ".join(f"{key} {value}" for key, value in settings.items() if isinstance(value, (str, int, float))),
                 float(np.frombuffer(kept.sizes).mean())) for settings, kept in found]

    def joined(self) -> list[str]:
        """A sentence for whoever should know what was joined and what was kept apart."""
        groups = list(self._groups())
        told = [f"{len(runs)} runs of the same settings are joined: {', '.join(runs)}"
                for _, runs, _ in groups if len(runs) > 1]
        twice = dict.fromkeys(run for (run, _), count in self._drawn.items() if count > self._most(run))
        told += [f"run {run} has more rectangles of a text than it drew; give each file once" for run in twice]
        differing = Counter((settings["model"], settings["tau"]) for settings, _, _ in groups)
        for (model, tau), count in differing.items():
            if count > 1:
                mine = [settings for settings, _, _ in groups if (settings["model"], settings["tau"]) == (model, tau)]
                names = dict.fromkeys(key for settings in mine for key in settings)
                apart = [key for key in names if len({repr(settings.get(key)) for settings in mine}) > 1]
                told.append(f"{count} groups of {model} at tau {tau:g} are kept apart; they differ in "
                            f"{', '.join(apart)}")
        return told

    def _groups(self) -> Iterator[tuple[Record, list[str], _Kept]]:
        """(settings, runs, rectangles), in order of appearance."""
        groups: dict[str, tuple[Record, list[str], _Kept]] = {}
        for kind, kept in self._kinds.items():
            settings = self._settings(kind)
            _, runs, whole = groups.setdefault(repr(settings), (settings, [], _Kept()))
            whole.add(kept)
            if kind.run not in runs:
                runs.append(kind.run)
        yield from groups.values()

    def _settings(self, kind: RectangleKey) -> Record:
        """What a summary tells of a kind of rectangles: runs that agree in it are joined."""
        known: Record = {"model": kind.model, "tau": kind.tau, "draw": kind.draw,
                         **({} if kind.states_of is None else {"states_of": kind.states_of})}
        run = self._runs.get(kind.run)
        if run is None:
            return known | {"run": kind.run, "settings_reason": "no run record"}
        options: dict[str, Any] = run["options"]
        known |= {name: run[name] for name in OF_MODEL if run.get(name) is not None} | {"length": options.get("length")}
        if kind.draw != NAMED:
            known |= {name: {"seed": run.get("seed"), **options}.get(name) for name in OF_DRAW}
        return {name: value for name, value in known.items() if value is not None}

    def summaries(self) -> list[Record]:
        """One for each group, then one for each of its distances |i - j|."""
        whole, parts = [], []
        for settings, runs, kept in self._groups():
            if not len(kept.sizes):
                continue
            head = {"type": "summary", "of": "rectangle"}
            deltas = kept.deltas()
            whole.append({**head, "over": "model", **settings, "runs": runs, "undefined": kept.undefined,
                          **summarise(deltas)})
            for distance in np.unique(deltas.distances).tolist():
                parts.append({**head, "over": "distance", **settings, "runs": runs, "distance": distance,
                              **summarise(deltas.at(deltas.distances == distance))})
        return whole + parts
