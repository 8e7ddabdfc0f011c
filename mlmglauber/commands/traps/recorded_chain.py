"""One chain, read from its state records: whether they show every change, and the traps that they complete."""

from collections.abc import Sequence

from mlmglauber.commands.shared.chain_run import ChainRun
from mlmglauber.commands.shared.inputs import OWN_FIELDS
from mlmglauber.measures.traps.tracker import Tracker, Trap
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record


class RecordedChain:
    """One chain that is read from state records: its name, its trap tracker, the resolution of its records."""

    def __init__(self, record: Record, number: int, text: int, run: ChainRun, tracker: Tracker) -> None:
        self.tau, self.n = run.tau_of(record), len(record["ids"])
        self.fields = {key: record.get(key) for key in ("run", "id", "chain")} | {"tau": self.tau, "n": self.n}
        self.inherited = {key: value for key, value in record.items() if key not in OWN_FIELDS}
        self.number, self.text, self.run, self.tracker = number, text, run, tracker
        self.first_step = record["step"]
        self.counts = True
        """Whether it counts in summaries: of two coupled chains only the first one does."""
        self._state: tuple[int, ...] | None = None
        self._step, self._unexplained = -1, 1

    def see(self, record: Record, ids: list[int], step: int) -> Sequence[Trap]:
        """Take the next state; the traps that it completes. RecordError if it does not follow the state before it."""
        state = tuple(ids)
        resolution = 1
        if self._state is not None:
            if len(state) != self.n:
                raise RecordError(f"the state has {len(state)} tokens, earlier states of this chain have {self.n}; "
                                  "make run/id/chain unique")
            if step <= self._step:
                raise RecordError(f"step {step} comes after step {self._step} of this chain; sort its records by step")
            resolution = self._unseen(record, state, step - self._step)
        self._state, self._step = state, step
        return self.tracker.see(step, state, resolution, record.get("text"))

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
