"""The chain that is read from state records, with its trap tracker, and the group that it is summarised in."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mlmglauber.commands.shared.chain_run import ChainLaw, ChainRun, check_same_tau, piece_fields
from mlmglauber.commands.shared.inputs import inherited
from mlmglauber.measures.traps.tracker import Tracker, Trap
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record


class GroupKey(NamedTuple):
    """What the chains of one summary have in common. piece: the number of the piece of a schedule."""

    law: ChainLaw
    piece: int | None
    tau: float | None
    n: int

    def order(self) -> tuple[bool, int, bool, float, int, str]:
        piece = -1 if self.piece is None else self.piece
        return self.piece is not None, piece, self.tau is None, self.tau or 0, self.n, str(self.law)

    def fields(self) -> Record:
        """The fields of the law and of the piece in a summary record."""
        return self.law.fields() | ({} if self.piece is None else piece_fields(self.piece, self.tau))


class RecordedChain:
    """One chain that is read from state records: its name, its trap tracker, the resolution of its records.

    piece: the number of the piece of its schedule in which it is. tau: the temperature, None along a ramp and where it
    is not known. With a new piece a new trap tracker begins: a trap belongs to one temperature.
    """

    def __init__(self, record: Record, number: int, text: int, run: ChainRun, tracker: Tracker) -> None:
        self.tau, self.n = run.tau_of(record), len(record["ids"])
        self.piece: int | None = None
        if run.law.temperatures is not None:
            self.piece = run.law.temperatures.piece_of(record["step"])
            self.tau = run.law.temperatures.pieces[self.piece].tau
        self._names = {key: record.get(key) for key in ("run", "id", "chain")}
        self.inherited = inherited(record)
        self.number, self.text, self.run, self.tracker = number, text, run, tracker
        self.first_step = record["step"]
        self.counts = True
        """Whether it counts in summaries: of two coupled chains only the first one does."""
        self._state: tuple[int, ...] | None = None
        self._label: Any = None
        self._step, self._unexplained = -1, 1

    @property
    def fields(self) -> Record:
        """The fields that name the chain in the record of a trap."""
        piece = {} if self.piece is None else piece_fields(self.piece, self.tau)
        return self._names | {"tau": self.tau, "n": self.n} | piece

    @property
    def key(self) -> GroupKey:
        """The group that it belongs to now."""
        return GroupKey(self.run.law, self.piece, self.tau, self.n)

    def ends_piece(self, step: int) -> bool:
        """Whether a step belongs to a later piece of the schedule than the present one."""
        temperatures = self.run.law.temperatures
        return temperatures is not None and self.piece is not None and temperatures.piece_of(step) > self.piece

    def end_piece(self, step: int) -> Sequence[Trap]:
        """End the present piece before a record of this step; its last traps, the open ones as censored.

        The chain is assumed to stay in its last state to the end of the piece; the resolution says for how many steps
        that is not known.
        """
        temperatures = self.run.law.temperatures
        assert temperatures is not None
        assert self.piece is not None
        self._stay(temperatures.start_of(self.piece + 1), step)
        return self.tracker.end()

    def begin_piece(self, step: int) -> None:
        """Begin the next piece of the schedule, in the last state; step: that of the next record."""
        temperatures = self.run.law.temperatures
        assert temperatures is not None
        assert self.piece is not None
        self.piece += 1
        self.tau, self.first_step = temperatures.pieces[self.piece].tau, temperatures.start_of(self.piece)
        self.tracker = Tracker(self.tracker.radius, self.tracker.min_steps)
        self._stay(self.first_step, step)

    def _stay(self, until: int, step: int) -> None:
        """See the last state again at a step without a record, between the last record and the one of `step`."""
        if self._state is not None and until > self.tracker.step:
            self.tracker.see(until, self._state, 1 if self.run.shows_all else step - self._step, self._label)

    def see(self, record: Record, ids: list[int], step: int) -> Sequence[Trap]:
        """Take the next state; the traps that it completes. RecordError if it does not follow the state before it."""
        state = tuple(ids)
        resolution = 1
        if self._state is not None:
            if len(state) != self.n:
                raise RecordError(f"the state has {len(state)} tokens, earlier states of this chain have {self.n}; "
                                  "make run/id/chain unique")
            if self.piece is None:
                check_same_tau(record, self.tau)
            if step <= self._step:
                raise RecordError(f"step {step} comes after step {self._step} of this chain; sort its records by step")
            resolution = self._unseen(record, state, step - self._step)
        self._state, self._step, self._label = state, step, record.get("text")
        return self.tracker.see(step, state, resolution, self._label)

    def _unseen(self, record: Record, state: tuple[int, ...], steps: int) -> int:
        """The resolution at a record: 1 if no change can be missing since the last record, else the steps in between.

        Where every change is recorded, a state differs from the one before exactly as its own record says. An unchanged
        state is recorded at the end of a chain; before the end it is a sign of missing records, unless the run record
        says that all are there.
        """
        before_last, self._unexplained = self._unexplained, 1
        if steps == 1:
            return before_last
        before, site = self._state, record.get("site")
        assert before is not None
        if self.run.shows_all is False:
            return steps
        if state == before:
            if record.get("changed"):
                return max(before_last, steps)  # it left the state and came back with this step
            if self.run.shows_all is None and "pll" not in record:
                self._unexplained = steps
            return before_last
        explained = (type(site) is int and 0 <= site < self.n and record.get("old") == before[site]
                     and state[:site] == before[:site] and state[site + 1 :] == before[site + 1 :])
        return before_last if explained else max(before_last, steps)
