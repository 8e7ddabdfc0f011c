"""Reads the states and the records of coupled pairs and sums them by kind, one pair after the other."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.commands.couple.summary import pair_of
from mlmglauber.commands.shared.chain_run import ChainLaw
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.measures.stationary.frequencies import PairCounts, TokenFrequencies
from mlmglauber.measures.stationary.unbiased import PairPath, PairSums, Window, cost
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record, names_of, tau_and_n

Key = tuple[Any, ...]


class EstimateKind(NamedTuple):
    """What pairs must share to be pooled: chains of one law and temperature, one length, one window."""

    law: ChainLaw
    coupling: str
    tau: float | None
    n: int | None
    window: Window


class KindSums:
    """The pairs of one kind: estimates, costs and meeting times of those that met, numbers of the others."""

    def __init__(self) -> None:
        self.unbiased: list[Any] = []
        self.plain: list[Any] = []
        self.costs: list[int] = []
        self.meetings: list[int] = []
        self.tokens = TokenFrequencies()
        self.censored = self.incomplete = 0


class OpenPair:
    """A pair whose states are being read."""

    def __init__(self, kind: EstimateKind, place: str, functions: int, tokens: bool) -> None:
        self.kind, self.place = kind, place
        self.sums = PairSums(kind.window, functions)
        self.counts = PairCounts() if tokens else None
        self.path = PairPath(kind.window, self._spend)
        self.steps = [-1, -1]
        """The last step of each chain that was read."""
        self.complete = True
        """Whether all states so far had the numbers that are wanted."""

    def _spend(self, state: tuple[Any, Any], average: int, corrected: int) -> None:
        self.sums.spend(state[0], average, corrected)
        if self.counts is not None:
            self.counts.spend(state[1], average, corrected)

    def take(self, record: Record, values: Any) -> None:
        """Take one state; RecordError for one that does not follow the states before it."""
        chain, step, lag = record["chain"], record["step"], self.kind.window.lag
        first = lag if chain == 0 else 0
        if self.steps[chain] < 0 and step != first:
            raise RecordError(f"the first state of chain {chain} is that of step {step}, not of step {first}; give all "
                              "states that mlm-couple --emit-lagged wrote, in their order")
        if step <= self.steps[chain]:
            raise RecordError(f"step {step} of chain {chain} does not come after step {self.steps[chain]}; give the "
                              "states in the order in which mlm-couple wrote them")
        self.steps[chain] = step
        state = values, record.get("ids")
        if chain == 0:
            self.path.lead(step, state)
        elif record.get("met"):
            self.path.meet(step + lag)
        elif self.path.meeting is not None:
            raise RecordError("the second chain has a state after the chains met; give records as mlm-couple wrote them")
        else:
            self.path.follow(step, state)


class PairReader:
    """Sums the pairs of an input by kind. It keeps a few numbers for each pair, and no state."""

    def __init__(self, io: Filter, functions: Sequence[Callable[[Record], float]], tokens: bool,
                 k: int | None, m: int | None) -> None:
        self.io, self.functions, self.tokens, self._k, self._m = io, functions, tokens, k, m
        self.kinds: dict[EstimateKind, KindSums] = {}
        self._open: dict[Key, OpenPair] = {}
        self._done: set[Key] = set()
        self._windows: dict[str, tuple[Window, ChainLaw, Any, str]] = {}

    def take(self, record: Record) -> None:
        """Take a state or a pair record; others are left out."""
        kind = record.get("type")
        if kind == "state":
            self._state(record)
        elif kind == "pair":
            self._pair(record)

    def close(self) -> None:
        """Report the pairs whose pair record never came."""
        for pair in self._open.values():
            self.kinds[pair.kind].incomplete += 1
            self.io.bad(RecordError("the pair of this state has no pair record: the input ends before it, or a filter "
                                    "left it out"), pair.place)
        self._open.clear()

    def _state(self, record: Record) -> None:
        if self.io.leaves_out(record):
            return
        run, name, number = names_of(record, "run", "coupled", "pair")
        if number is None or name is None or record.get("chain") not in (0, 1) or type(record.get("step")) is not int:
            raise RecordError("a state of no coupled pair; give the states that mlm-couple --emit-lagged writes")
        key = run, name, number, record.get("tau"), record.get("n")
        pair = self._open.get(key) or self._begin(key, record)
        if not pair.complete:  # reported once: one state without its number makes the whole pair useless
            return
        try:
            values = np.array([function(record) for function in self.functions])
            if self.tokens and not isinstance(record.get("ids"), list):
                raise RecordError('the state has no "ids", which --tokens needs')
            pair.take(record, values)
        except RecordError as error:
            pair.complete = False
            raise RecordError(f"{error}; this pair gives no estimate") from error

    def _begin(self, key: Key, record: Record) -> OpenPair:
        run = str(key[0])
        if run not in self._windows:
            self._windows[run] = self._read_run(record)
        window, law, seed, coupling = self._windows[run]
        name = (law, coupling, seed, *key[1:])
        if name in self._done:
            raise RecordError("a second pair of the same name and seed: it has the same states as the first, so it adds "
                              "nothing; give each run once")
        self._done.add(name)
        tau, n = tau_and_n(record)
        kind = EstimateKind(law, coupling, tau, n, window)
        self.kinds.setdefault(kind, KindSums())
        self._open[key] = OpenPair(kind, self.io.place, len(self.functions), self.tokens)
        return self._open[key]

    def _read_run(self, record: Record) -> tuple[Window, ChainLaw, Any, str]:
        """The window, law, seed and coupling of a run, from its run record and --k and --m."""
        run = self.io.runs.of(record)
        written = self.io.runs.records.get(str(run.run), {})
        options = written.get("options", {})
        lag, last = options.get("lag"), options.get("emit_lagged")
        if not run.known or type(lag) is not int or type(last) is not int or not last:
            raise RecordError(f"no run record of mlm-couple --emit-lagged came before the states of run {run.run}; give "
                              "all its records")
        m = last if self._m is None else self._m
        if m > last:
            raise RecordError(f"--m {m} is beyond step {last}, to which run {run.run} wrote states; give a smaller --m")
        try:
            window = Window(lag if self._k is None else self._k, m, lag).checked()
        except ValueError as error:
            raise RecordError(f"{error} for run {run.run}; give another --k or --m") from error
        return window, run.law, written.get("seed"), str(options.get("coupling"))

    def _pair(self, record: Record) -> None:
        (run, name, number, tau, n), _ = pair_of(record)
        pair = self._open.pop((run, name, number, record.get("tau"), n), None)
        if pair is None:
            raise RecordError("a pair record without states; give the records that mlm-couple --emit-lagged writes")
        sums, end = self.kinds[pair.kind], record.get("last_step")
        if record["meeting"] is None:
            sums.censored += 1
        elif not pair.complete:
            sums.incomplete += 1
        elif pair.path.meeting is None or type(end) is not int or end < pair.kind.window.m:
            sums.incomplete += 1
            raise RecordError("states of this pair are missing: its meeting or its last steps; give all records that "
                              "mlm-couple wrote")
        else:
            pair.path.finish(end)
            steps = cost(pair.kind.window, record["meeting"])
            sums.unbiased.append(pair.sums.unbiased)
            sums.plain.append(pair.sums.plain)
            sums.costs.append(steps)
            sums.meetings.append(record["meeting"])
            if pair.counts is not None:
                sums.tokens.add(pair.counts, n, pair.kind.window.length, steps)
