"""mlm-drift --summary: collects the drifts of each chain in a series, or in one for each piece of its schedule."""

from math import isfinite, nan
from typing import Any

from mlmglauber.commands.shared.chain_run import ChainRun, check_same_tau
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.dynamics.temperatures import Temperatures
from mlmglauber.measures.drift.cosine import Reference, Vector
from mlmglauber.measures.drift.series import DriftSeries
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import json_kind
from mlmglauber.stream.records import Record, step_of, tau_and_n, tokens_of_pll


class AllSeries:
    """The series of all chains, and one reference for all chains of a law, temperature and length.

    A chain whose temperature changes has a series for each piece of its schedule, with the reference and the common
    reference of the whole chain. fixed: whether the references come from a file, not from the chains; times are then
    counted from step 0.
    """

    def __init__(self, io: Filter, fixed: bool) -> None:
        self._filter, self._fixed = io, fixed
        self._series: list[DriftSeries] = []
        self._chains: dict[Any, DriftSeries] = {}
        """The series of the last state of each chain."""
        self._common: dict[Any, Reference] = {}

    def add(self, key: Any, record: Record, vector: Vector | None) -> None:
        """Take a state: its record with the field `drift`, and its embedding.

        Without the embedding its distance to the common reference is not known, and so neither are R-hat and ESS.
        """
        known = self._chains.get(key)
        series = self._begin(key, record) if known is None else known
        step = step_of(record, known.steps[-1] if known is not None else None)
        temperatures = None if series.piece is None else self._filter.runs.of(record).law.temperatures
        if temperatures is None:
            check_same_tau(record, series.tau)
        pll = record.get("pll")
        if pll is not None and (type(pll) not in (int, float) or not isfinite(pll)):
            raise RecordError(f'"pll" is {json_kind(pll)}, not a log-likelihood; give states as mlm-sample wrote them')
        tokens = tokens_of_pll(record)
        group = series.law, series.tau if temperatures is None else None, series.n
        distance = None if vector is None else self._distance(group, vector)
        if known is None:
            self._series.append(series)
        elif temperatures is not None:
            series = self._move_on(series, temperatures, temperatures.piece_of(step))
        self._chains[key] = series
        series.take(step, nan if record["drift"] is None else record["drift"], nan if distance is None else distance,
                    pll / tokens if pll is not None and tokens else None)
        series.truncated += bool(record.get("truncated"))

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
        """The series of the first state of a chain."""
        run: ChainRun = self._filter.runs.of(record)
        coupled = record.get("coupled")
        tau, n = tau_and_n(record)
        temperatures = run.law.temperatures
        piece = None if temperatures is None else temperatures.piece_of(step_of(record, None))
        if temperatures is not None and piece is not None:
            tau = temperatures.pieces[piece].tau
        return DriftSeries(key[0], key[1], key[2], tau, n, run.law, 0 if self._fixed else None, bool(run.shows_all),
                           None if coupled is None else str(coupled), piece)

    def _move_on(self, series: DriftSeries, temperatures: Temperatures, piece: int) -> DriftSeries:
        """The series of a later piece of a chain, or the same one; those between are added where they have a state.

        A piece begins with the state in which the piece before it ends. Where not every change is recorded, that state
        is known only if the last record is of that step.
        """
        for number in range((series.piece or 0) + 1, piece + 1):
            start = temperatures.start_of(number)
            following = DriftSeries(series.run, series.text, series.chain, temperatures.pieces[number].tau, series.n,
                                    series.law, start, series.shows_all, series.coupled, number)
            if series.shows_all and series.steps[-1] < start:
                series.stay(series, start)
            if series.steps and series.steps[-1] == start:
                following.stay(series, start)
            if following.steps or number == piece:
                self._series.append(following)
            series = following
        return series

    def all(self) -> list[DriftSeries]:
        """The series, in the order of their first states."""
        return self._series
