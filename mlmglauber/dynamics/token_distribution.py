"""One tempered conditional, kept for further draws: its blocks, and the tokens of those blocks that are known.

A share of less than 2^-53 holds no uniform k * 2^-53 of its own, so such blocks and tokens are left out. At low
temperature few remain, and a conditional that took a forward pass to compute is kept in a few hundred bytes.
"""

from math import exp, inf, isinf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.draws import NOTHING_ELSE, Values
from mlmglauber.models.blocks import BLOCK, BlockRows, Floats, Ids, tempered_weights

SMALLEST = 2.0**-53
Ends = tuple[tuple[float, float], tuple[float, float]]
"""(low, high) of each of the two uniforms of a draw."""


class TokenDraw(NamedTuple):
    """One draw: the token, log p_tau of it, and whether no error within the tolerance could have changed it."""

    token: int
    logp: float
    certain: bool


class _Tokens(NamedTuple):
    """The tokens of one block: their ids, running shares of the block, and log-probabilities."""

    ids: NDArray[np.int32]
    edges: Values
    logps: Values


class TokenDistribution:
    """One conditional at one temperature.

    level: the precision it was computed in. shift: the largest error of its log-odds, 0 where it defines the chain.
    A block whose tokens are not known answers None.
    """

    __slots__ = ("_blocks", "_dense", "_edges", "_known", "_stood", "level", "shift")

    def __init__(self, masses: Floats, shift: float, level: int) -> None:
        """masses: (K,) of all blocks, normalised."""
        self._blocks, self._edges = _kept(masses)
        self.shift, self.level = shift, level
        self._stood: tuple[int, float] | None = None
        self._known: dict[int, _Tokens] = {}
        self._dense: Floats | None = None

    @classmethod
    def of_row(cls, log_probs: Floats, tau: float, tolerance: float, level: int) -> "TokenDistribution | None":
        """Of one (V,) row at tau = 1, all blocks known; None where it is no law.

        tolerance: see draws.draw. At a tau so low that the tolerance decides, an argmax of two near tokens is kept with
        an infinite shift: no draw from it is certain.

        >>> made = TokenDistribution.of_row(np.log([.5, .3, .2]), 0.5, 0.0, 0)
        >>> made.draw(0.0, 0.7).token, round(float(np.exp(made.logp(0))), 4)
        (1, 0.6579)
        """
        top = log_probs.max()
        if not np.isfinite(top):
            return None
        cold = np.array([tau <= 2 * tolerance])
        weights = tempered_weights(log_probs[None], np.array([tau]), cold)[0]
        shift = tolerance / tau if not cold[0] else 0.0
        if cold[0] and tolerance and len(log_probs) > 1:
            second, best = np.partition(log_probs, -2)[-2:]
            if best - second < 2 * tolerance + NOTHING_ELSE * tau:
                shift = np.inf
        dense = np.zeros((-(-len(weights) // BLOCK), BLOCK))
        dense.reshape(-1)[: len(weights)] = weights / weights.sum()
        made = cls(dense.sum(axis=1), shift, level)
        made._dense = dense
        return made

    def learn(self, rows: BlockRows, k: int, old: int) -> None:
        """Take over what the k-th row tells: the chosen block, that of the token that stood there, and its share."""
        self._stood = old, float(rows.logp_old[k])
        for block, shares in ((int(rows.chosen[k]), rows.inside[k]), (old // BLOCK, rows.beside[k])):
            if block not in self._known:
                self._learn(block, shares)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        known = sum(part.nbytes for tokens in self._known.values() for part in tokens)
        return self._blocks.nbytes + self._edges.nbytes + known + (0 if self._dense is None else self._dense.nbytes)

    @property
    def complete(self) -> bool:
        """Whether the tokens of all its blocks are known."""
        return self._dense is not None or len(self._known) >= len(self._blocks)

    def compact(self, most: int) -> bool:
        """Keep the tokens that a uniform can reach instead of all; whether they lie in so few blocks."""
        if len(self._blocks) > most:
            return False
        for block in self._blocks.tolist():
            self._tokens(block)
        self._dense = None
        return True

    def draw(self, first: float, second: float) -> TokenDraw | None:
        """The token that two uniforms on [0, 1) draw; None where its block is not known."""
        k = min(int(self._edges.searchsorted(first, side="right")), len(self._blocks) - 1)
        tokens = self._tokens(int(self._blocks[k]))
        if tokens is None:
            return None
        j = min(int(tokens.edges.searchsorted(second, side="right")), len(tokens.ids) - 1)
        certain = not isinf(self.shift)
        if self.shift and certain:
            certain = all(low <= u < high for u, (low, high) in zip((first, second), self._ends(k, tokens, j),
                                                                   strict=True))
        return TokenDraw(int(tokens.ids[j]), float(tokens.logps[j]), certain)

    def ends(self, token: int) -> Ends | None:
        """The uniforms that certainly draw a token; None for one that is not known, or never drawn."""
        found = self._place(token)
        return None if found is None or isinf(self.shift) else self._ends(*found)

    def logp(self, token: int) -> float | None:
        """log p_tau(token) in nats; None for a token that is not known: too small to be drawn, or in another block."""
        found = self._place(token)
        if found is not None:
            return float(found[1].logps[found[2]])
        return self._stood[1] if self._stood is not None and self._stood[0] == token else None

    def share(self, token: int) -> float:
        """p_tau(token), 0 for a token that was left out."""
        logp = self.logp(token)
        return 0.0 if logp is None else float(np.exp(logp))

    @property
    def largest(self) -> int:
        """An id that no token it knows of exceeds."""
        return int(self._blocks[-1] + 1) * BLOCK - 1

    def support(self) -> tuple[Ids, Values]:
        """The ids of the tokens of a complete distribution and their log-probabilities, -inf where a share is 0."""
        if self._dense is not None:
            with np.errstate(divide="ignore"):
                return np.arange(self._dense.size), np.log(self._dense.reshape(-1))
        known = [self._known[block] for block in self._blocks.tolist()]
        return (np.concatenate([tokens.ids for tokens in known]).astype(np.int64),
                np.concatenate([tokens.logps for tokens in known]))

    def whole(self, vocab: int) -> Values:
        """(V,) p_tau of every token, of a complete distribution."""
        if self._dense is not None:
            shares = np.zeros(vocab)
            size = min(vocab, self._dense.size)
            shares[:size] = self._dense.reshape(-1)[:size]
            return shares
        shares = np.zeros(vocab)
        for tokens in self._known.values():
            shares[tokens.ids] = np.exp(tokens.logps)
        return shares

    def _place(self, token: int) -> "tuple[int, _Tokens, int] | None":
        block = token // BLOCK
        k = int(self._blocks.searchsorted(block))
        if k == len(self._blocks) or self._blocks[k] != block:
            return None
        tokens = self._tokens(block)
        if tokens is None:
            return None
        j = int(tokens.ids.searchsorted(token))
        return (k, tokens, j) if j < len(tokens.ids) and tokens.ids[j] == token else None

    def _ends(self, k: int, tokens: "_Tokens", j: int) -> Ends:
        grow = exp(min(self.shift, 700.0))
        return _ends(self._edges, k, grow), _ends(tokens.edges, j, grow)

    def _tokens(self, block: int) -> "_Tokens | None":
        found = self._known.get(block)
        if found is None and self._dense is not None:
            self._learn(block, self._dense[block])
            found = self._known.get(block)
        return found

    def _learn(self, block: int, shares: Floats) -> None:
        total = float(shares.sum(dtype=np.float64))
        if total <= 0:
            return
        kept, edges = _kept(shares)
        logps = np.log(shares[kept].astype(np.float64))
        self._known[block] = _Tokens((kept + block * BLOCK).astype(np.int32), edges, logps)


def _ends(edges: Values, place: int, grow: float) -> tuple[float, float]:
    """An interval of running shares, narrowed as in draws.narrowed; nothing moves its outermost ends."""
    low, high = -inf, inf
    if place > 0:
        low = float(edges[place - 1])
        low = low * grow / (1 - low + low * grow)
    if place + 1 < len(edges):
        high = float(edges[place])
        high = high / (high + (1 - high) * grow)
    return low, high


def _kept(shares: Floats) -> tuple[NDArray[np.int32], Values]:
    """(the places of those that a uniform can reach, their running shares of the sum)."""
    kept = np.flatnonzero(shares >= SMALLEST * shares.sum(dtype=np.float64))
    edges = np.cumsum(shares[kept], dtype=np.float64)
    edges /= edges[-1]
    return kept.astype(np.int32), edges
