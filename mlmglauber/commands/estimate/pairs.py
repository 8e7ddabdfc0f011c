"""Reads the states and the records of coupled pairs and sums them by kind, one pair after the other."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.commands.couple.summary import pair_of
from mlmglauber.commands.estimate.functions import StateFunction
from mlmglauber.commands.estimate.open_pair import OpenPair
from mlmglauber.commands.shared.chain_run import ChainLaw
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.measures.stationary.frequencies import TokenFrequencies
from mlmglauber.measures.stationary.unbiased import Window, cost
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record, names_of, tau_and_n

Key = tuple[Any, ...]


class EstimateKind(NamedTuple):
    """What pairs must share to be pooled: chains of one law and temperature, one length, one coupling, one window."""

    law: ChainLaw
    coupling: str
    tau: float | None
    n: int | None
    window: Window
    allow_at: str | None
    """The words that the `allow` of a text names at some sites, see site_allow."""


class KindSums:
    """The pairs of one kind: estimates, costs and meeting times of those that met, numbers of the others."""

    def __init__(self) -> None:
        self.unbiased: list[NDArray[np.float64]] = []
        self.plain: list[NDArray[np.float64]] = []
        self.costs: list[int] = []
        self.meetings: list[int] = []
        self.tokens = TokenFrequencies()
        self.censored = self.incomplete = 0


class PairRun(NamedTuple):
    """What the run record of coupled pairs says of all of them."""

    window: Window
    law: ChainLaw
    seed: Any
    coupling: str
    every: int
    """The distance of the states in steps; 1 where each change is written."""


class PairReader:
    """Sums the pairs of an input by kind. It keeps a few numbers for each pair, and no state.

    functions: of which means are wanted. tokens: whether the frequencies of tokens are. k, m: the first and the last
    step that are averaged; by default the lag, and the step to which the first chain of a pair was run.
    """

    def __init__(self, io: Filter, functions: Sequence[StateFunction], tokens: bool, k: int | None,
                 m: int | None) -> None:
        self.io, self.functions, self.tokens, self._k, self._m = io, functions, tokens, k, m
        self.kinds: dict[EstimateKind, KindSums] = {}
        self._open: dict[Key, tuple[EstimateKind, OpenPair]] = {}
        self._refused: set[Key] = set()
        """Pairs that are left out, and (run,) for runs; the reason is reported once."""
        self._done: set[Key] = set()
        self._runs: dict[Any, PairRun] = {}

    def take_states(self, records: list[Record], place: Callable[[int], str]) -> None:
        """Take states that follow each other in the input; see Filter.each_states."""
        runs, names = [record.get("run") for record in records], [record.get("id") for record in records]
        if runs.count(runs[0]) == names.count(names[0]) == len(records):
            self._take_pair(records, place)
            return
        start = 0
        for _, group in groupby(zip(runs, names, strict=True)):
            end = start + len(list(group))
            self._take_pair(records[start:end], partial(_later, place, start))
            start = end

    def _take_pair(self, records: list[Record], place: Callable[[int], str]) -> None:
        """Take states of one pair."""
        try:
            key = names_of(records[0], "run", "id")
            if key in self._refused or key[:1] in self._refused:
                return
            known = self._open.get(key)
            pair = self._begin(key, records[0], place(0)) if known is None else known[1]
        except RecordError as error:
            self.io.bad(error, place(0))
            return
        if not pair.complete:  # reported once: one state without its number makes the whole pair useless
            return
        if pair.take(records):
            return
        for number, record in enumerate(records):
            try:
                pair.check(record)
                pair.take([record])
            except RecordError as error:
                pair.complete = False
                self.io.bad(RecordError(f"{error}; this pair gives no estimate"), place(number))
                return

    def _begin(self, key: Key, record: Record, place: str) -> OpenPair:
        run = self._run_of(key, record)
        name = (run.law, run.coupling, run.seed, key[1])
        if name in self._done:
            self._refused.add(key)
            raise RecordError(f"a second pair of the name {key[1]} and the seed {run.seed}: it is the same pair again; "
                              "give each run once, and other runs other seeds")
        tau, n = tau_and_n(record)
        kind = EstimateKind(run.law, run.coupling, tau, n, run.window, self.io.runs.of(record).allow_at)
        self._done.add(name)
        self.kinds.setdefault(kind, KindSums())
        pair = OpenPair(run.window, self.functions, self.tokens, place, run.every)
        self._open[key] = kind, pair
        return pair

    def _run_of(self, key: Key, record: Record) -> PairRun:
        """The run of a state: its window, law, seed and coupling; RecordError, once, for one that cannot be used."""
        if key[0] not in self._runs:
            self._refused.add(key[:1])
            self._runs[key[0]] = self._read_run(record)
            self._refused.remove(key[:1])
        return self._runs[key[0]]

    def _read_run(self, record: Record) -> PairRun:
        run = self.io.runs.of(record)
        written = self.io.runs.records.get(str(run.run), {})
        options = written.get("options", {})
        lag, last = options.get("lag"), options.get("until")
        if not run.known or written.get("command") != "mlm-couple" or type(last) is not int or type(lag) is not int:
            what = ("no run record came before the states" if not run.known else
                    "mlm-couple --lag with --on-change or --every --until did not write the states")
            raise RecordError(f"{what} of run {run.run}, so they are left out; give all records of mlm-couple --lag L "
                              "--on-change")
        if not lag:
            raise RecordError(f"the pairs of run {run.run} have no lag, so they are left out; give pairs of mlm-couple "
                              "--lag")
        m = last if self._m is None else self._m
        if m > last:
            raise RecordError(f"the pairs of run {run.run} are left out: they run to step {last}, but --m is {m}; give "
                              "a smaller --m, or mlm-couple a larger --until")
        try:
            window = Window(lag if self._k is None else self._k, m, lag).checked()
        except ValueError as error:
            raise RecordError(f"{error} for run {run.run}; give another --k or --m") from error
        return PairRun(window, run.law, written.get("seed"), str(options.get("coupling")),
                       options.get("emit") or 1)

    def take_record(self, record: Record) -> None:
        """Take a pair record; others are left out."""
        if record.get("type") != "pair":
            return
        (run, name, number, tau, n), _ = pair_of(record)
        key = run, f"{name}/{tau}/{n}/{number}"
        if key in self._refused or key[:1] in self._refused:
            self._refused.discard(key)
            return
        if key not in self._open:
            self._begin(key, record, "")
            self.kinds[self._open.pop(key)[0]].incomplete += 1
            raise RecordError("a pair record without the states of the pair; give all records of mlm-couple "
                              "--on-change")
        kind, pair = self._open.pop(key)
        sums = self.kinds[kind]
        if record["meeting"] is None:
            sums.censored += 1
            return
        if not pair.complete:
            sums.incomplete += 1
            return
        try:
            meeting = pair.finish(record)
        except RecordError:
            sums.incomplete += 1
            raise
        steps = cost(kind.window, meeting)
        sums.unbiased.append(pair.sums.unbiased)
        sums.plain.append(pair.sums.plain)
        sums.costs.append(steps)
        sums.meetings.append(meeting)
        if pair.counts is not None:
            sums.tokens.add(pair.counts, n, kind.window.length, steps)

    def close(self) -> None:
        """Report the pairs whose pair record never came."""
        for kind, pair in self._open.values():
            self.kinds[kind].incomplete += 1
            if pair.complete:
                self.io.bad(RecordError("the pair of this state has no pair record: the input ends before it, or a "
                                        "filter left it out"), pair.place)
        self._open.clear()


def _later(place: Callable[[int], str], start: int, number: int) -> str:
    return place(start + number)
