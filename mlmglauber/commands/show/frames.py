"""The states that --follow shows one after the other, and the way back through them."""

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.show.chains import ShownChains, ShownState
from mlmglauber.stream.records import Record, is_input

AHEAD = 256
"""Maximum number of states that are read before they are shown; a faster producer waits."""
KEPT = 1000
"""Maximum number of frames that one can step back."""


class Frame(NamedTuple):
    """The chains that change together: the state of each before, None for a new chain, and after."""

    changes: list[tuple[ShownState | None, ShownState]]


class StateReader:
    """Reads states in a thread of its own, so that keys are answered while the input is slow."""

    def __init__(self, io: Filter) -> None:
        self._io = io
        self._states: queue.Queue[ShownState | None] = queue.Queue(AHEAD)
        self._chains = ShownChains()
        self._error: BaseException | None = None
        self.ended = False
        """Whether all states were taken."""
        io.lines.before_wait = lambda: None
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            self._io.each(self._take)
        except BaseException as error:  # raised where the states are taken
            self._error = error
        self._states.put(None)

    def _take(self, record: Record) -> None:
        if record.get("type") == "trap":
            self._chains.trap(record)
        elif is_input(record):
            self._states.put(self._chains.state(record))

    def next(self) -> ShownState | None:
        """The next state; None at the end of the input and where none has come yet."""
        if self.ended:
            return None
        try:
            state = self._states.get_nowait()
        except queue.Empty:
            return None
        if state is None:
            self.ended = True
            if self._error is not None:
                raise self._error
        return state


class Frames:
    """Puts states together to frames, in each of which a chain changes once at most, and goes back and forward."""

    def __init__(self, next_state: Callable[[], ShownState | None]) -> None:
        self._next_state = next_state
        self._held: ShownState | None = None  # of a chain that the last frame had already
        self._last: dict[tuple[str, str], ShownState] = {}
        self._past: deque[Frame] = deque(maxlen=KEPT)
        self._back = 0
        self.count = 0
        """Number of frames that were made."""

    @property
    def place(self) -> int:
        """The number of the frame that is shown, from 1."""
        return self.count - self._back

    def forward(self) -> list[ShownState]:
        """The states of the next frame; none where no state has come."""
        if self._back:
            self._back -= 1
            return [after for _, after in self._past[-1 - self._back].changes]
        states: dict[tuple[str, str], ShownState] = {}
        while (state := self._held or self._next_state()) is not None:
            self._held = None
            key = state.chain, state.tau
            if key in states:
                self._held = state
                break
            states[key] = state
        if states:
            self._past.append(Frame([(self._last.get(key), state) for key, state in states.items()]))
            self._last.update(states)
            self.count += 1
        return list(states.values())

    def back(self) -> list[ShownState]:
        """The states that stood before the frame that is shown; none at the first frame that is kept."""
        if self._back >= len(self._past) - 1:
            return []
        frame = self._past[-1 - self._back]
        self._back += 1
        return [before for before, _ in frame.changes if before is not None]
