"""mlm-drift --summary: collects the drifts of each chain in a series."""

from math import isfinite, nan
from typing import Any

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.measures.drift.cosine import Reference, Vector
from mlmglauber.measures.drift.series import DriftSeries
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import json_kind
from mlmglauber.stream.records import Record, step_of, tau_and_n, tokens_of_pll


class AllSeries:
    """The series of all chains, and one reference for all chains of a law, temperature and length.

    fixed: whether the references come from a file, not from the chains; times are then counted from step 0.
    """

    def __init__(self, io: Filter, fixed: bool) -> None:
        self._filter, self._fixed = io, fixed
        self._chains: dict[Any, DriftSeries] = {}
        self._common: dict[Any, Reference] = {}

    def add(self, key: Any, record: Record, vector: Vector | None) -> None:
        """Take a state: its record with the field `drift`, and its embedding.

        Without the embedding its distance to the common reference is not known, and so neither are R-hat and ESS.
        """
        series = self._chains.get(key)
        if series is None:
            series = self._begin(key, record)
        step = step_of(record, series.steps[-1] if series.steps else None)
        pll = record.get("pll")
        if pll is not None and (type(pll) not in (int, float) or not isfinite(pll)):
            raise RecordError(f'"pll" is {json_kind(pll)}, not a log-likelihood; give states as mlm-sample wrote them')
        tokens = tokens_of_pll(record)
        distance = None if vector is None else self._distance((series.law, series.tau, series.n), vector)
        self._chains[key] = series
        series.steps.append(step)
        series.drifts.append(nan if record["drift"] is None else record["drift"])
        series.distances.append(nan if distance is None else distance)
        series.truncated += bool(record.get("truncated"))
        if pll is not None and tokens:
            series.pll_steps.append(step)
            series.plls.append(pll / tokens)

    def _distance(self, group: Any, vector: Vector) -> float | None:
        """The distance of an embedding to the reference of its group, which is the first one that is defined."""
        common = self._common.get(group)
        if common is None or common.reason is not None:
            common = Reference(vector)
        if len(vector) != len(common.vector):
            raise RecordError(f"the embedding has {len(vector)} dimensions, those before have {len(common.vector)}; "
                              "embed all records with one model")
        self._common[group] = common
        return common.drift(vector)[0]

    def _begin(self, key: Any, record: Record) -> DriftSeries:
        run = self._filter.runs.of(record)
        coupled = record.get("coupled")
        return DriftSeries(key[0], key[1], key[2], *tau_and_n(record), run.law, 0 if self._fixed else None,
                           bool(run.shows_all), None if coupled is None else str(coupled))

    def all(self) -> list[DriftSeries]:
        """The series, in the order of their first states."""
        return list(self._chains.values())
