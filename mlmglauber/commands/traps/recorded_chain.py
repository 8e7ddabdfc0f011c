"""One chain as its state records tell it: whether they show every change, and the traps that they decide."""

from collections.abc import Sequence

from mlmglauber.commands.shared.chain_run import ChainRun
from mlmglauber.commands.shared.inputs import OWN_FIELDS
from mlmglauber.measures.traps.tracker import Tracker, Trap
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record


class RecordedChain:
    """One chain: its name, its traps so far, and whether its records show every change."""

    def __init__(self, record: Record, number: int, text: int, run: ChainRun, tracker: Tracker) -> None:
        self.tau, self.n = run.tau_of(record), len(record["ids"])
        self.named = {key: record.get(key) for key in ("run", "id", "chain")} | {"tau": self.tau, "n": self.n}
        self.inherited = {key: value for key, value in record.items() if key not in OWN_FIELDS}
        self.number, self.text, self.run, self.tracker = number, text, run, tracker
        self.first_step = record["step"]
        self.counts = True
        """Whether it counts in summaries: of two coupled chains the first one does."""
        self._state: tuple[int, ...] | None = None
        self._step, self._doubt = -1, 1

    def see(self, record: Record, ids: list[int], step: int) -> Sequence[Trap]:
        """The next state; the traps that it decides."""
        state = tuple(ids)
        resolution = 1
        if self._state is not None:
            if len(state) != self.n:
                raise RecordError(f"a state of {len(state)} tokens in a chain of {self.n}; are two chains of one name?")
            if step <= self._step:
                raise RecordError(f"step {step} does not come after step {self._step}; sort the records of a chain by "
                                  "step")
            resolution = self._unseen(record, state, step - self._step)
        self._state, self._step = state, step
        return self.tracker.see(step, state, resolution, record.get("text"))

    def _unseen(self, record: Record, state: tuple[int, ...], steps: int) -> int:
        """1 where nothing can have happened unseen since the record before, else the steps in between.

        Where every change is told, a state differs from the one before as its own record says. An unchanged state is
        told as well, at the end: in the midst of a chain it is a sign of thin records, unless the run record says no.
        """
        doubt, self._doubt = self._doubt, 1
        if steps == 1:
            return doubt
        before, site = self._state, record.get("site")
        assert before is not None
        if self.run.shows_all is False:
            return steps
        if state == before:
            if record.get("changed"):
                return max(doubt, steps)  # it left, and came back with this very step
            if self.run.shows_all is None and "pll" not in record:
                self._doubt = steps
            return doubt
        explained = (type(site) is int and 0 <= site < self.n and record.get("old") == before[site]
                     and state[:site] == before[:site] and state[site + 1 :] == before[site + 1 :])
        return doubt if explained else max(doubt, steps)
