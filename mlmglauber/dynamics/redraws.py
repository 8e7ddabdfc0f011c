"""Draws that are made again in a better precision: those that rounding could have changed, and checks of others."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.cache import ConditionalCache
from mlmglauber.dynamics.chain import Chain
from mlmglauber.dynamics.cost_model import Counters
from mlmglauber.dynamics.draws import TokenDraws, draw
from mlmglauber.dynamics.precision import Precision
from mlmglauber.models.blocks import BlockRows
from mlmglauber.models.conditionals import Draws, Ids, stack


class Redraw(NamedTuple):
    """A draw that is made again, in precision `level`: its context, and what the level before said.

    chain, row: the chain that is deferred until the draw is made, and its row; None and -1 where a certain draw is
    checked. token: what was drawn before. fast: the level before, None where it is not known.
    only: the tokens that may be drawn, None for all.
    """

    chain: Chain | None
    row: int
    ids: Ids
    site: int
    tau: float
    uniforms: NDArray[np.float64]
    level: int
    token: int
    fast: BlockRows | None
    only: Ids | None = None


def only_of(only: Sequence[Ids | None]) -> tuple[Ids | None, ...] | None:
    """The field `only` of Draws: None where no draw is restricted."""
    return tuple(only) if any(tokens is not None for tokens in only) else None


class Redraws:
    """The draws of deferred chains, and those to be checked, until a call of the model makes them."""

    def __init__(self, precision: Precision, cache: ConditionalCache, counters: Counters) -> None:
        self.precision, self.cache, self.counters = precision, cache, counters
        self.deferred: list[Redraw] = []
        self.checks: list[Redraw] = []

    def run(self, rows: int) -> Iterator[tuple[list[Redraw], TokenDraws]]:
        """Make all deferred draws, and as many checks as fill up a batch: (draws of a call, what they gave).

        rows: maximum number of conditionals in a call. A deferred draw that is not certain in its level is deferred
        again, to the next one.
        """
        best = self.precision.conditional.levels - 1
        deferred, self.deferred = self.deferred, []
        for level in sorted({redraw.level for redraw in deferred} | ({best} if self.checks else set())):
            group = [redraw for redraw in deferred if redraw.level == level]
            if level == best:
                room = max(rows - len(group), 0)
                group, self.checks = group + self.checks[:room], self.checks[room:]
            for start in range(0, len(group), rows):
                part = group[start : start + rows]
                yield part, self._call(level, part)

    def _call(self, level: int, group: list[Redraw]) -> TokenDraws:
        """One call of the model; `precision` counts checks that differ, and widens a tolerance that was too small."""
        precision = self.precision
        taus, uniforms = (np.array([getattr(redraw, name) for redraw in group]) for name in ("tau", "uniforms"))
        draws = Draws(stack([redraw.ids for redraw in group]), np.array([redraw.site for redraw in group]), taus,
                      uniforms[:, 0], precision.cold(taus, level), only_of([redraw.only for redraw in group]))
        tolerance = precision.tolerances[level]
        rows = precision.conditional.weigh(draws, level)
        self.counters.again += len(group)
        drawn = draw(rows, uniforms, taus, draws.cold, tolerance)
        self.cache.keep_drawn(draws, rows, drawn, np.array([redraw.chain is not None for redraw in group]), tolerance,
                              level)
        for k, redraw in enumerate(group):
            if redraw.fast is not None:
                precision.observe(level - 1 if redraw.chain is not None else 0, redraw.fast, rows.row(k),
                                  taus[k : k + 1])
            if redraw.chain is None:
                precision.checked += 1
                precision.differed += int(drawn.tokens[k]) != redraw.token
            elif drawn.finite[k] and not drawn.certain[k]:
                self.deferred.append(redraw._replace(level=level + 1, fast=rows.row(k)))
        return drawn
