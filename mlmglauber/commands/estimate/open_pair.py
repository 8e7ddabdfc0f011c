"""One pair of mlm-estimate: its states from the first one to its pair record."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlmglauber.commands.estimate.functions import StateFunction
from mlmglauber.measures.stationary.frequencies import PairCounts
from mlmglauber.measures.stationary.unbiased import PairPath, PairSums, States, Steps, Window
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import as_json
from mlmglauber.stream.records import Record

SAME = 1e-4
"""Maximum difference of a function on equal states, absolute or relative: embeddings differ by rounding between
batches."""

LONGEST = 1 << 40
"""Steps of a chain are below this, so that sums of weights are exact."""


class OpenPair:
    """A pair whose states are being read."""

    def __init__(self, window: Window, functions: Sequence[StateFunction], tokens: bool, place: str,
                 every: int = 1) -> None:
        """every: the distance of the states in steps; between them a state counts as if it stayed."""
        self.every, self.window, self.functions, self.tokens, self.place = every, window, functions, tokens, place
        self.sums = PairSums(window, len(functions))
        self.counts = PairCounts() if tokens else None
        self.path = PairPath(window, self._spend)
        self.steps, self.read = [-1, -1], [0, 0]
        """The last step of each chain that was read, and the number of its states."""
        self.complete = True
        """Whether all states so far had the numbers that are wanted."""
        self._n: int | None = None

    def _spend(self, states: States, average: Steps, corrected: Steps) -> None:
        self.sums.spend(states[:1], average, corrected)
        if self.counts is not None:
            self.counts.spend(states[1:], average, corrected)

    def take(self, records: Sequence[Record]) -> bool:
        """Take states of this pair; False, and nothing is taken, where one of them is bad: `check` says which."""
        states = self._states(records)
        chains, steps = [record.get("chain") for record in records], [record.get("step") for record in records]
        if states is None or not {0, 1}.issuperset(chains) or set(map(type, [*chains, *steps])) != {int}:
            return False
        try:
            of, at = np.array(chains), np.array(steps, dtype=np.int64)
        except OverflowError:
            return False
        met = np.array([record.get("met") is True for record in records])
        parts = []
        for chain, places in enumerate((np.flatnonzero(of == 0), np.flatnonzero(of == 1))):
            if not len(places):
                continue
            mine = at[places]
            before = self.steps[chain] if self.read[chain] else 0
            known = self.path.meetings[chain] is not None
            joined = met[places]
            if (mine[0] <= before if self.read[chain] else mine[0] != 0) or mine[-1] >= LONGEST or (
                    (mine[1:] <= mine[:-1]) | joined[:-1] & ~joined[1:]).any():
                return False
            if (known and not joined[0]) or (chain == 1 and (known or joined[:-1].any())):
                return False
            parts.append((chain, places, mine))
        for chain, places, mine in parts:
            meeting = int(mine[met[places].argmax()]) if met[places].any() else None
            rows = [part[places] for part in states]
            (self.path.lead if chain == 0 else self.path.follow)(mine, rows, meeting)
            self.steps[chain] = int(mine[-1])
            self.read[chain] += len(places)
        return True

    def _states(self, records: Sequence[Record]) -> list[NDArray[np.float64] | NDArray[np.int64]] | None:
        """The values of the functions (J, F) and, with tokens, the ids (J, n); None where a state has none."""
        columns = [function.column(records) for function in self.functions]
        known = [column for column in columns if column is not None]
        if len(known) < len(columns):
            return None
        values = np.stack(known, axis=1) if known else np.empty((len(records), 0))
        if not self.tokens:
            return [values]
        rows = [record.get("ids") for record in records]
        try:
            ids = np.array(rows, dtype=np.int64)
        except (TypeError, ValueError, OverflowError):
            return None
        self._n = ids.shape[1] if self._n is None and ids.ndim == 2 else self._n
        whole = ids.ndim == 2 and ids.shape[1] == self._n and ((ids >= 0) & (ids < 1 << 31)).all()
        return [values, ids] if whole and all(type(token) is int for token in rows[0] or ()) else None

    def check(self, record: Record) -> None:
        """RecordError for a state that `take` does not take alone."""
        for function in self.functions:
            function.of(record)
        if self.tokens and self._states([record]) is None:
            raise RecordError('"ids" is missing, or is no list of token ids like those of the states before')
        chain, step = record.get("chain"), record.get("step")
        if type(chain) is not int or chain not in (0, 1) or type(step) is not int or not 0 <= step < LONGEST:
            raise RecordError(f"chain {as_json(chain)}, step {as_json(step)}: not a state of a pair; give states as "
                              "mlm-couple wrote them")
        if not self.read[chain] and step:
            raise RecordError(f"the first state of chain {chain} is that of step {step}, not of step 0; give all "
                              "states that mlm-couple wrote, in their order")
        if self.read[chain] and step <= self.steps[chain]:
            raise RecordError(f"step {step} of chain {chain} comes after step {self.steps[chain]}; give the states in "
                              "the order in which mlm-couple wrote them")
        if self.path.meetings[chain] is not None and (chain == 1 or record.get("met") is not True):
            raise RecordError(f"chain {chain} has this state after the chains met; give states as mlm-couple wrote "
                              "them")

    def finish(self, record: Record) -> int:
        """End the pair with its pair record; the meeting. RecordError if states are missing, or are not those of it."""
        written, last = record.get("states"), record.get("last_step")
        if not isinstance(written, list) or len(written) != 2 or type(last) is not int:
            raise RecordError('"states" or "last_step" is missing; give pair records of mlm-couple --on-change')
        for chain in (0, 1):
            if written[chain] != self.read[chain]:
                raise RecordError(f"{self.read[chain]} of {written[chain]} states of chain {chain} came before this "
                                  "pair record; give all of them")
        try:
            meeting = self.path.finish(last)
        except ValueError as error:
            raise RecordError(f"{error}, although its pair record says otherwise; give records as mlm-couple wrote them"
                              ) from error
        lag, joint = self.window.lag, record["meeting"] - self.window.lag
        seen = lag + -(-joint // self.every) * self.every  # the first state at the meeting or behind it
        if meeting != seen and (meeting, joint) != (lag, 1):
            raise RecordError(f"the states meet at step {meeting}, but \"meeting\" is {record['meeting']}; give "
                              "records as mlm-couple wrote them")
        self._check_functions()
        return int(record["meeting"])

    def _check_functions(self) -> None:
        """RecordError where a function has two values on one state: that of the two chains at their meeting."""
        x, y = (states[0][0] if states is not None else None for states in self.path.at_meeting)
        if x is None or y is None:
            return
        for function, a, b in zip(self.functions, x.tolist(), y.tolist(), strict=True):
            if abs(a - b) > SAME * max(1.0, abs(a), abs(b)):
                raise RecordError(f'"{function.name}" is {a:g} in the first chain and {b:g} in the second where they '
                                  "meet, so it is not a function of the state alone; for mlm-drift give --reference "
                                  "FILE")
