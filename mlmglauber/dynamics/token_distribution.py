"""One tempered conditional that is kept for further draws: its blocks, and the tokens of the blocks that are known.

A block or token with a share below 2^-53 is left out: uniforms are multiples of 2^-53, too coarse for it. At low
temperature few tokens remain, and a conditional that took a forward pass to compute is kept in a few hundred bytes.
"""

from math import exp, inf, isinf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.draws import NEGLIGIBLE_GAP, Values
from mlmglauber.models.blocks import BLOCK, BlockRows, Floats, Ids, tempered_weights
from mlmglauber.models.truncation import Truncation

SMALLEST = 2.0**-53
"""Minimum share of a block or token that is kept."""
Ends = tuple[tuple[float, float], tuple[float, float]]
"""(low, high) for each of the two uniforms of a draw: low <= u < high."""


class TokenDraw(NamedTuple):
    """One draw: the token, its log p_tau in nats, and whether no error within the tolerance could have changed it."""

    token: int
    logp: float
    certain: bool


class _Tokens(NamedTuple):
    """The K tokens of one block: their ids, running shares of the block, and log p_tau in nats; (K,) each."""

    ids: NDArray[np.int32]
    edges: Values
    logps: Values


class TokenDistribution:
    """One conditional at one temperature.

    level: the precision in which it was computed. shift: the largest error of its log-odds at this temperature, in
    nats; 0 where it defines the chain. A question about a block whose tokens are not known gets None.
    """

    __slots__ = ("_blocks", "_dense", "_edges", "_known", "_old", "level", "shift")

    def __init__(self, masses: Floats, shift: float, level: int) -> None:
        """masses: (K,) the probability of each block."""
        self._blocks, self._edges = _kept(masses)
        self.shift, self.level = shift, level
        self._old: tuple[int, float] | None = None
        self._known: dict[int, _Tokens] = {}
        self._dense: Floats | None = None

    @classmethod
    def of_row(cls, log_probs: Floats, tau: float, tolerance: float, level: int,
               truncation: Truncation | None = None) -> "TokenDistribution | None":
        """The complete distribution of one row; None where the row is not finite.

        log_probs: (V,) at tau = 1, in nats. tolerance: see draws.draw. Where tau is so low that the likeliest token is
        taken, and the second one is within the tolerance, the shift is infinite: no draw is certain. The same holds
        where an error within the tolerance could change which tokens the truncation keeps.

        >>> made = TokenDistribution.of_row(np.log([.5, .3, .2]), 0.5, 0.0, 0)
        >>> made.draw(0.0, 0.7).token, round(float(np.exp(made.logp(0))), 4)
        (1, 0.6579)
        """
        top = log_probs.max()
        if not np.isfinite(top):
            return None
        cold, slack = np.array([tau <= 2 * tolerance]), np.inf
        if truncation is not None:
            truncated = truncation.of(log_probs[None], np.array([tau]), cold)
            log_probs, slack = truncated.rows[0], truncated.slack[0]
        weights = tempered_weights(log_probs[None], np.array([tau]), cold)[0]
        shift = tolerance / tau if not cold[0] else 0.0
        if cold[0] and tolerance and len(log_probs) > 1:
            second, best = np.partition(log_probs, -2)[-2:]
            if best - second < 2 * tolerance + NEGLIGIBLE_GAP * tau:
                shift = np.inf
        if slack < 2 * tolerance:
            shift = np.inf
        dense = np.zeros((-(-len(weights) // BLOCK), BLOCK))
        dense.reshape(-1)[: len(weights)] = weights / weights.sum()
        made = cls(dense.sum(axis=1), shift, level)
        made._dense = dense
        return made

    def learn(self, rows: BlockRows, k: int, old: int) -> None:
        """Add what the k-th row says: the chosen block, the block of the token `old` at the site, and its log p_tau."""
        self._old = old, float(rows.logp_old[k])
        for block, shares in ((int(rows.chosen[k]), rows.inside[k]), (old // BLOCK, rows.beside[k])):
            if block not in self._known:
                self._learn(block, shares)

    @property
    def nbytes(self) -> int:
        """Number of bytes of its arrays."""
        known = sum(part.nbytes for tokens in self._known.values() for part in tokens)
        return self._blocks.nbytes + self._edges.nbytes + known + (0 if self._dense is None else self._dense.nbytes)

    @property
    def complete(self) -> bool:
        """Whether the tokens of all its blocks are known."""
        return self._dense is not None or len(self._known) >= len(self._blocks)

    def compact(self, most: int) -> bool:
        """Keep only what draws need of a complete distribution; False if it has more than `most` blocks."""
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
        """The uniforms that certainly draw a token; None for one that is not known, or is never drawn for certain."""
        place = self._place(token)
        return None if place is None or isinf(self.shift) else self._ends(*place)

    def logp(self, token: int) -> float | None:
        """log p_tau(token) in nats; None for a token that was left out, or whose block is not known."""
        place = self._place(token)
        if place is not None:
            return float(place[1].logps[place[2]])
        return self._old[1] if self._old is not None and self._old[0] == token else None

    def share(self, token: int) -> float:
        """p_tau(token), 0 for a token that was left out."""
        logp = self.logp(token)
        return 0.0 if logp is None else float(np.exp(logp))

    @property
    def largest(self) -> int:
        """An upper bound on the ids of its tokens."""
        return int(self._blocks[-1] + 1) * BLOCK - 1

    def support(self) -> tuple[Ids, Values]:
        """(ids, log p_tau in nats) of the tokens of a complete distribution; -inf where a probability is 0."""
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
        """(place of its block, tokens of the block, place among them) of a token that is known."""
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
        """The uniforms that certainly draw the j-th token of the k-th block."""
        grow = exp(min(self.shift, 700.0))
        return _ends(self._edges, k, grow), _ends(tokens.edges, j, grow)

    def _tokens(self, block: int) -> "_Tokens | None":
        """The tokens of a block, None where they are not known."""
        tokens = self._known.get(block)
        if tokens is None and self._dense is not None:
            self._learn(block, self._dense[block])
            tokens = self._known.get(block)
        return tokens

    def _learn(self, block: int, shares: Floats) -> None:
        """Add the tokens of a block. shares: (BLOCK,) their p_tau."""
        total = float(shares.sum(dtype=np.float64))
        if total <= 0:
            return
        kept, edges = _kept(shares)
        logps = np.log(shares[kept].astype(np.float64))
        self._known[block] = _Tokens((kept + block * BLOCK).astype(np.int32), edges, logps)


def _ends(edges: Values, place: int, grow: float) -> tuple[float, float]:
    """(low, high) of the interval at a place of (K,) running shares, narrowed as in draws.narrowed.

    grow: e^shift. The outermost ends are infinite.
    """
    low, high = -inf, inf
    if place > 0:
        low = float(edges[place - 1])
        low = low * grow / (1 - low + low * grow)
    if place + 1 < len(edges):
        high = float(edges[place])
        high = high / (high + (1 - high) * grow)
    return low, high


def _kept(shares: Floats) -> tuple[NDArray[np.int32], Values]:
    """(places of the shares that are large enough to be drawn, their running sums divided by the whole sum)."""
    kept = np.flatnonzero(shares >= SMALLEST * shares.sum(dtype=np.float64))
    edges = np.cumsum(shares[kept], dtype=np.float64)
    edges /= edges[-1]
    return kept.astype(np.int32), edges
