"""What mlm-rect keeps of each rectangle for its summary, and the summary records."""

from array import array
from operator import index

import numpy as np

from mlmglauber.measures.rectangle_summary import Deltas, summarise
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record


class Tally:
    """Rectangles by model and temperature: |delta|, noise, distance and text of each."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, float], tuple[array[float], array[float], array[int], list[str]]] = {}
        self._undefined: dict[tuple[str, float], int] = {}

    def take(self, record: Record) -> None:
        try:
            key = (str(record["model"]), float(record["tau"]))
            value, noise = (None if record[name] is None else float(record[name]) for name in ("delta", "noise"))
            distance = abs(index(record["i"]) - index(record["j"]))
            if distance >= 1 << 31:
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise RecordError("a rectangle record without its fields; these are not mlm-rect's") from error
        if value is None:
            self._undefined[key] = self._undefined.get(key, 0) + 1
            return
        sizes, noises, distances, texts = self._groups.setdefault(key, (array("d"), array("d"), array("q"), []))
        sizes.append(abs(value))
        noises.append(float("nan") if noise is None else noise)
        distances.append(distance)
        texts.append(str(record.get("id")))

    def mean(self) -> float | None:
        """Mean |delta| over all rectangles."""
        sizes = [np.frombuffer(group[0]) for group in self._groups.values()]
        return float(np.concatenate(sizes).mean()) if sizes else None

    def summaries(self) -> list[Record]:
        """One for each model and temperature, then one for each of their distances |i - j|."""
        whole, parts = [], []
        for (model, tau), (sizes, noise, distances, texts) in self._groups.items():
            head = {"type": "summary", "of": "rectangle"}
            deltas = Deltas(np.frombuffer(sizes), np.frombuffer(noise), np.frombuffer(distances, np.int64), texts)
            undefined = self._undefined.get((model, tau), 0)
            whole.append({**head, "over": "model", "model": model, "tau": tau, "undefined": undefined,
                          **summarise(deltas)})
            for distance in np.unique(deltas.distances).tolist():
                parts.append({**head, "over": "distance", "model": model, "tau": tau, "distance": distance,
                              **summarise(deltas.at(deltas.distances == distance))})
        return whole + parts
