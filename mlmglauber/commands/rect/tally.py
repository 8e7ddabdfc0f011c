"""The numbers that mlm-rect keeps of each rectangle for its summary, and the summary records."""

from array import array
from collections import Counter
from collections.abc import Iterator
from math import inf
from operator import index
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.commands.rect.summary import delta_fields
from mlmglauber.measures.rectangle.summary import Deltas
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record

NAMED = "named"
"""The value of `draw` for rectangles that were named, not drawn."""
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


class _Deltas:
    """The numbers of rectangles that are summed up together."""

    def __init__(self) -> None:
        self.sizes, self.noise, self.rounding, self.distances = array("d"), array("d"), array("d"), array("q")
        self.texts: list[tuple[str, str]] = []
        self.undefined = 0

    def add(self, other: "_Deltas") -> None:
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
    """The rectangles of an input by their keys; runs of the same settings are joined, others stay apart."""

    def __init__(self) -> None:
        self._deltas: dict[RectangleKey, _Deltas] = {}
        self._runs: dict[str, Record] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        """Number of drawn rectangles by (run, id of the text)."""
        self._texts: dict[tuple[str, str], tuple[str, str]] = {}
        """Each name of a text once: all its rectangles refer to the same tuple."""

    def take_run(self, record: Record) -> None:
        """Take a run record, which holds the settings of its rectangles; it may come before or after them."""
        if record.get("command") == "mlm-rect" and isinstance(record.get("options"), dict):
            self._runs[str(record.get("run"))] = record

    def take(self, record: Record) -> None:
        """Take a rectangle record; RecordError if fields are missing or its run drew fewer rectangles of the text."""
        try:
            state = record.get("of_state")
            origin = (str(state["run"]), str(state["id"])) if isinstance(state, dict) else None
            key = RectangleKey(str(record["model"]), float(record["tau"]), str(record.get("run")),
                               str(record.get("draw", NAMED)), None if origin is None else origin[0])
            value, noise, rounding = (None if record.get(name) is None else float(record[name])
                                      for name in ("delta", "noise", "rounding"))
            if "delta" not in record:
                raise KeyError("delta")
            distance = abs(index(record["i"]) - index(record["j"]))
            if distance >= 1 << 31:
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise RecordError("a rectangle record lacks fields; give records as mlm-rect wrote them") from error
        self._check_count(key, str(record.get("id")))
        deltas = self._deltas.setdefault(key, _Deltas())
        if value is None:
            deltas.undefined += 1
            return
        deltas.sizes.append(abs(value))
        deltas.noise.append(float("nan") if noise is None else noise)
        deltas.rounding.append(float("nan") if rounding is None else rounding)
        deltas.distances.append(distance)
        text = origin or (key.run, str(record.get("id")))
        deltas.texts.append(self._texts.setdefault(text, text))

    def _check_count(self, key: RectangleKey, name: str) -> None:
        """RecordError if there are more rectangles of a text than its run drew: some were given twice."""
        if key.draw == NAMED:
            return
        most = self._most(key.run)
        if self._counts[key.run, name] >= most:
            raise RecordError(f"run {key.run} drew {most} rectangles of {name!r}, and more of them came; give each "
                              "file once")
        self._counts[key.run, name] += 1

    def _most(self, run: str) -> float:
        """Number of rectangles that a run drew for each text; infinite where it is not known."""
        count = self._runs.get(run, {}).get("options", {}).get("rectangles")
        return count if type(count) is int else inf

    def means(self) -> list[tuple[str, float]]:
        """(settings as words, mean |delta|) of each group."""
        groups = [(settings, deltas) for settings, _, deltas in self._groups() if len(deltas.sizes)]
        return [(", ".join(f"{key} {value}" for key, value in settings.items() if isinstance(value, (str, int, float))),
                 float(np.frombuffer(deltas.sizes).mean())) for settings, deltas in groups]

    def warnings(self) -> list[str]:
        """Sentences on runs that were joined, runs given twice, and groups that stay apart."""
        groups = list(self._groups())
        sentences = [f"{len(runs)} runs of the same settings are joined: {', '.join(runs)}"
                     for _, runs, _ in groups if len(runs) > 1]
        twice = dict.fromkeys(run for (run, _), count in self._counts.items() if count > self._most(run))
        sentences += [f"run {run} has more rectangles of a text than it drew; give each file once" for run in twice]
        pairs = Counter((settings["model"], settings["tau"]) for settings, _, _ in groups)
        for (model, tau), count in pairs.items():
            if count > 1:
                mine = [settings for settings, _, _ in groups if (settings["model"], settings["tau"]) == (model, tau)]
                names = dict.fromkeys(key for settings in mine for key in settings)
                differing = [key for key in names if len({repr(settings.get(key)) for settings in mine}) > 1]
                sentences.append(f"{count} groups of {model} at tau {tau:g} are kept apart; they differ in "
                                 f"{', '.join(differing)}")
        return sentences

    def _groups(self) -> Iterator[tuple[Record, list[str], _Deltas]]:
        """(settings, runs, rectangles), in order of appearance."""
        groups: dict[str, tuple[Record, list[str], _Deltas]] = {}
        for key, deltas in self._deltas.items():
            settings = self._settings(key)
            _, runs, whole = groups.setdefault(repr(settings), (settings, [], _Deltas()))
            whole.add(deltas)
            if key.run not in runs:
                runs.append(key.run)
        yield from groups.values()

    def _settings(self, key: RectangleKey) -> Record:
        """The settings that a summary shows of rectangles of one key: runs with equal settings are joined."""
        settings: Record = {"model": key.model, "tau": key.tau, "draw": key.draw,
                            **({} if key.states_of is None else {"states_of": key.states_of})}
        run = self._runs.get(key.run)
        if run is None:
            return settings | {"run": key.run, "settings_reason": "no run record"}
        options: dict[str, Any] = run["options"]
        settings |= {name: run[name] for name in OF_MODEL if run.get(name) is not None}
        settings["length"] = options.get("length")
        if key.draw != NAMED:
            settings |= {name: {"seed": run.get("seed"), **options}.get(name) for name in OF_DRAW}
        return {name: value for name, value in settings.items() if value is not None}

    def summaries(self) -> list[Record]:
        """A summary for each group, then one for each of its distances |i - j|."""
        whole, parts = [], []
        for settings, runs, kept in self._groups():
            if not len(kept.sizes):
                continue
            head = {"type": "summary", "of": "rectangle"}
            deltas = kept.deltas()
            whole.append({**head, "over": "model", **settings, "runs": runs, "undefined": kept.undefined,
                          **delta_fields(deltas)})
            for distance in np.unique(deltas.distances).tolist():
                parts.append({**head, "over": "distance", **settings, "runs": runs, "distance": distance,
                              **delta_fields(deltas.at(deltas.distances == distance))})
        return whole + parts
