"""Grids of bounded size that hold every change of a chain: what the space-time picture keeps of states."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.pictures.token_words import TokenWords

COLUMNS = 720
"""Maximum number of columns of a grid."""
CHAINS = 6
"""Maximum number of chains with a grid."""
TRAPS = 10_000
"""Maximum number of traps that are kept."""
SHARE = 64
"""A stay is remembered by itself if it takes at least one part in this number of all steps."""


class ChainState(NamedTuple):
    """A state of a chain: its step, ids and text, the site of the step and the log-probability of the token there."""

    step: int
    ids: list[int]
    site: Any
    logp: float
    text: str
    tau: float | None


class Stay(NamedTuple):
    """A token that stood at a site from step `first` until step `last`, where the next change or the end is."""

    site: int
    first: int
    last: int
    token: int


class ChangeGrid:
    """The changes of one chain in cells of sites and columns of equally many steps.

    A chain that outgrows the last column makes every two columns one, twice as wide. So each cell knows whether a
    token changed in it, no matter how long the chain is.

    >>> grid = ChangeGrid(ChainState(0, [5, 6], None, np.nan, "", None))
    >>> grid.take(ChainState(1000, [5, 7], 1, -2.0, "", None))
    >>> grid.width, np.argwhere(grid.changed).tolist(), grid.ages()[:, 500].tolist()
    (2, [[1, 500]], [1001.0, 1.0])
    """

    def __init__(self, state: ChainState) -> None:
        n = len(state.ids)
        self.tau = state.tau
        """The temperature; None where it is not known, or changes."""
        self.first_ids, self.ids = list(state.ids), list(state.ids)
        self.start = self.last = state.step
        self.width = 1
        """Number of steps of a column."""
        self.changes = 0
        """Number of changes so far."""
        self.skipped = False
        """Whether a change is not among the states."""
        self.unknown = False
        """Whether a change came without a log-probability."""
        self._latest: NDArray[np.int64] = np.full((n, COLUMNS), -1, np.int64)
        """The step of the last change in each cell; -1 for none."""
        self._logp: NDArray[np.float32] = np.full((n, COLUMNS), np.nan, np.float32)
        """The log-probability of the token of that change."""
        self._token: NDArray[np.int64] = np.full((n, COLUMNS), -1, np.int64)
        """The token of that change."""
        self._since = [state.step] * n
        self._stays: list[Stay] = []

    def take(self, state: ChainState) -> None:
        """Take the next state; ValueError for one that is not the next."""
        if state.step <= self.last or len(state.ids) != len(self.ids):
            raise ValueError("it does not come after the chain's state before; sort the states by step")
        if state.tau != self.tau:
            self.tau = None
        at_once = state.step == self.last + 1
        self.last = state.step
        while state.step - self.start >= COLUMNS * self.width:
            self._widen()
        if state.ids == self.ids:
            return
        sites = [k for k, (old, new) in enumerate(zip(self.ids, state.ids, strict=True)) if old != new]
        self.skipped |= not at_once and sites != [state.site]
        column = (state.step - self.start) // self.width
        for site in sites:
            self._latest[site, column] = state.step
            self._logp[site, column] = state.logp
            self._token[site, column] = state.ids[site]
            self._stays.append(Stay(site, self._since[site], state.step, self.ids[site]))
            self._since[site] = state.step
        self.unknown |= bool(np.isnan(state.logp))
        self.changes += len(sites)
        self.ids = list(state.ids)
        if len(self._stays) > 4 * SHARE * len(self.ids):
            self._stays = self._long(self._stays)

    def _widen(self) -> None:
        """Make every two columns one."""
        later = self._latest[:, 1::2] >= 0
        empty = COLUMNS - later.shape[1]

        def joined(cells: NDArray[Any], missing: Any) -> NDArray[Any]:
            pairs = np.where(later, cells[:, 1::2], cells[:, ::2])
            return np.pad(pairs, ((0, 0), (0, empty)), constant_values=missing)

        self._logp, self._token = joined(self._logp, np.nan), joined(self._token, -1)
        self._latest = joined(self._latest, -1)
        self.width *= 2

    @property
    def columns(self) -> int:
        """Number of columns up to the last state."""
        return (self.last - self.start) // self.width + 1

    @property
    def edges(self) -> NDArray[np.float64]:
        """(columns + 1,) the steps between the columns."""
        return np.asarray(np.minimum(self.start + self.width * np.arange(self.columns + 1), self.last + 1), np.float64)

    @property
    def changed(self) -> NDArray[np.bool_]:
        """(n, columns) whether a token changed in each cell."""
        return np.asarray(self._latest[:, : self.columns] >= 0)

    def since(self) -> NDArray[np.int64]:
        """(n, columns) the step since which the token at the end of each cell had stood then."""
        return np.asarray(np.maximum.accumulate(np.maximum(self._latest[:, : self.columns], self.start), axis=1))

    def ages(self) -> NDArray[np.float64]:
        """(n, columns) how many steps the token at the end of each cell had stood then."""
        return np.asarray(self.edges[None, 1:] - self.since(), np.float64)

    def logps(self) -> NDArray[np.float64]:
        """(n, columns) the log-probability with which the token at the end of each cell was drawn; NaN at the start."""
        return np.asarray(self._standing(self._logp), np.float64)

    def tokens(self) -> NDArray[np.int64]:
        """(n, columns) the token at the end of each cell."""
        drawn = self._standing(self._token)
        return np.asarray(np.where(drawn < 0, np.array(self.first_ids)[:, None], drawn))

    def _standing(self, cells: NDArray[Any]) -> NDArray[Any]:
        """(n, columns) what belongs to the last change until the end of each cell; that of column 0 before any."""
        place = np.where(self.changed, np.arange(self.columns), 0)
        return np.take_along_axis(cells, np.maximum.accumulate(place, axis=1), axis=1)

    def stays(self) -> list[Stay]:
        """The stays of at least one step in SHARE, and those at the end."""
        standing = [Stay(site, self._since[site], self.last + 1, token) for site, token in enumerate(self.ids)]
        return [*self._long(self._stays), *standing]

    def _long(self, stays: Sequence[Stay]) -> list[Stay]:
        least = (self.last - self.start) / SHARE
        return [stay for stay in stays if stay.last - stay.first >= least]


class ChangeGrids:
    """The grids of the first chains, the traps, and the words of their tokens.

    It has the same methods as ThinnedLists; its memory does not grow with the length of the chains.
    """

    def __init__(self, color_by: str) -> None:
        self.color_by = color_by
        self.words = TokenWords()
        self.traps: list[Any] = []
        self.models: dict[Any, str] = {}
        """The model of each run."""
        self._grids: dict[Hashable, ChangeGrid] = {}
        self._left_out: set[Hashable] = set()

    def add(self, key: Hashable, item: Any) -> None:
        """Take a state under the key of its chain, a trap under "traps", or a run with its model under "models"."""
        if key == "models":
            self.models |= dict([item]) if len(self.models) < TRAPS else {}
            return
        if key == "traps":
            self.traps += [item] * (len(self.traps) < TRAPS)
            return
        if key in self._grids:
            self._grids[key].take(item)
        elif len(self._grids) < CHAINS:
            self._grids[key] = ChangeGrid(item)
        else:
            self._left_out |= {key} if len(self._left_out) < TRAPS else set()
            return
        self.words.learn(item.ids, item.text)

    @property
    def complete(self) -> bool:
        """Whether there are changes, and no chain's states skip one."""
        grids = self._grids.values()
        return any(grid.changes for grid in grids) and not any(grid.skipped for grid in grids)

    @property
    def lists(self) -> dict[Hashable, Sequence[Any]]:
        """What was kept, by key."""
        self.words.settle()
        return {**{key: [grid] for key, grid in self._grids.items()}, "traps": self.traps, "words": [self.words],
                "color_by": [self.color_by], "models": list(self.models.items())} if self._grids else {}

    def notes(self, name: str) -> list[str]:
        """What is not drawn, in sentences."""
        if not self._left_out:
            return []
        return [f"{name}: the first {CHAINS} of {CHAINS + len(self._left_out)} chains are drawn; select records for "
                "the others"]
