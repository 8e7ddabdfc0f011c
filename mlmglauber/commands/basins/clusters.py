"""mlm-basins --clusters: keeps all records until the end, then puts them into clusters."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.commands.basins.examples import run_record
from mlmglauber.commands.basins.options import BasinsOptions
from mlmglauber.commands.basins.run import Job
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.nullable import nullable
from mlmglauber.measures.regions.clustering import cluster
from mlmglauber.measures.regions.labelling import NO_NAME, unit_of
from mlmglauber.stream.errors import MlmError, RecordError
from mlmglauber.stream.records import Record, has_vector

NO_PROBABILITY = "k-means gives none"


class Clustering(Job):
    """Regions by k-means. Every record is kept, since the last one may change all regions."""

    def __init__(self, io: Filter, options: BasinsOptions) -> None:
        super().__init__(io, options)
        self._records: list[tuple[str, Record, NDArray[np.float32] | None]] = []

    def add(self, record: Record) -> None:
        vector = self._vector(record) if has_vector(record) else None
        if vector is not None:
            size = next((len(other) for _, _, other in self._records if other is not None), len(vector))
            if len(vector) != size:
                raise RecordError(f"the embedding has {len(vector)} dimensions, those before have {size}; embed all "
                                  "records with one model")
        if vector is not None or not self.options.summary:
            self._records.append((self.io.place, record, vector))

    def finish(self) -> None:
        """Find the clusters and write all records."""
        units = [(None, None) if vector is None else unit_of(vector) for _, _, vector in self._records]
        sound = [k for k, (unit, reason) in enumerate(units) if unit is not None and reason is None]
        members = dict(zip(sound, self._cluster(sound, units), strict=True)) if sound else {}
        for k, (place, record, vector) in enumerate(self._records):
            with self.io.guard(place):
                if vector is None:
                    self.io.output.write(record)
                else:
                    self._answer(record, members.get(k, NO_NAME), None, units[k][1] or NO_PROBABILITY)
        super().finish()

    def _cluster(self, sound: list[int], units: list[Any]) -> list[int]:
        count = self.options.clusters
        assert count is not None
        try:
            clusters = cluster(np.array([units[k][0] for k in sound]), count, self.options.seed)
        except ValueError as error:
            raise MlmError(f"--clusters {count}: {error}; ask for fewer clusters") from error
        self.names = tuple(str(k + 1) for k in range(count))
        rows = [{"basin": name, "size": int(size), "nearest": self._records[sound[nearest]][1].get("text")}
                for name, size, nearest in zip(self.names, clusters.sizes, clusters.nearest, strict=True)]
        fields: Record = {"clusters": rows} | nullable("silhouette", clusters.silhouette,
                                                       "each vector is a cluster of its own, or the sample is in one")
        options = {"method": "k-means", "clusters": count, "seed": self.options.seed}
        self._write_head(run_record(options, self.identity, [clusters.sizes.tolist()], fields))
        return [int(member) for member in clusters.members]
