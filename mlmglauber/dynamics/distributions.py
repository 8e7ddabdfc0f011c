"""Whole conditionals for chains that move together: computed in shared batches, kept where they have few blocks."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.cache import context_key
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.token_distribution import TokenDistribution
from mlmglauber.models.blocks import Floats, block_rows
from mlmglauber.models.conditionals import Ids, stack

MOST_BLOCKS = 16
"""Maximum number of blocks of a conditional that is kept whole."""


class Wanted(NamedTuple):
    """A request for a conditional: the state (n,), the temperature, the site, the least level of precision."""

    ids: Ids
    tau: float
    site: int
    level: int


class Distributions:
    """Complete token distributions from the model of an engine, with its cache and its counters."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def get(self, wanted: Wanted) -> TokenDistribution | None:
        """The complete conditional of a request, in its precision or a better one; None where it is not known."""
        known: TokenDistribution | None = self.engine.cache.get(context_key(wanted.site, wanted.tau, wanted.ids))
        return known if known is not None and known.complete and known.level >= wanted.level else None

    def compute(self, wanted: Sequence[Wanted]) -> list[TokenDistribution | None]:
        """The conditional of each request, from the cache or else from the model; None where it is not finite.

        Equal requests are computed once. States of like length share a call.
        """
        distributions = [self.get(each) for each in wanted]
        missing: dict[tuple[int, float, bytes, int], list[int]] = {}
        for k, each in enumerate(wanted):
            if distributions[k] is None:
                missing.setdefault((*context_key(each.site, each.tau, each.ids), each.level), []).append(k)
        firsts = [places[0] for places in missing.values()]
        for level in sorted({wanted[k].level for k in firsts}):
            at = sorted((k for k in firsts if wanted[k].level == level), key=lambda k: len(wanted[k].ids))
            for start in range(0, len(at), self.engine.rows):
                batch = at[start : start + self.engine.rows]
                for k, made in zip(batch, self._call([wanted[k] for k in batch], level), strict=True):
                    distributions[k] = made
        for places in missing.values():
            for k in places[1:]:
                distributions[k] = distributions[places[0]]
        return distributions

    def _call(self, batch: Sequence[Wanted], level: int) -> list[TokenDistribution | None]:
        """One call of the model in one precision."""
        engine, precision = self.engine, self.engine.precision
        states, sites = stack([each.ids for each in batch]), np.array([each.site for each in batch])
        precision.measure([each.tau for each in batch])
        if level == 0:
            rows = engine.cost.timed(len(batch), lambda: engine.conditional.log_probs_at(states, sites, level))
        else:
            rows = engine.conditional.log_probs_at(states, sites, level)
            engine.counters.again += len(batch)
            self._compare(batch, states, sites, rows, level)
        made = []
        for each, row in zip(batch, rows, strict=True):
            distribution = TokenDistribution.of_row(row, each.tau, precision.tolerances[level], level)
            if distribution is not None and distribution.compact(MOST_BLOCKS):
                engine.cache.put(context_key(each.site, each.tau, each.ids), distribution, distribution.nbytes)
            made.append(distribution)
        return made

    def check(self, ids: Ids, site: int, tau: float, uniforms: NDArray[np.float64], token: int,
              drawn_from: TokenDistribution) -> None:
        """Make the draw of a first chain again in the best precision, now and then (see Precision.to_check).

        ids: (n,) its state, before or after the draw. uniforms: (2,). token: what was drawn.
        """
        if drawn_from.shift and self.engine.precision.to_check(uniforms[None])[0]:
            self.engine.check(ids.copy(), site, tau, uniforms, token)

    def _compare(self, batch: Sequence[Wanted], states: Ids, sites: Ids, rows: Floats, level: int) -> None:
        """Compare with the precision before: a tolerance that was too small for the difference is widened."""
        before = self.engine.conditional.log_probs_at(states, sites, level - 1)
        taus, old = np.array([each.tau for each in batch]), states[np.arange(len(batch)), sites]
        warm = np.zeros(len(batch), dtype=bool)
        scale = np.where(taus > 0, taus, 1.0)
        fast, exact = (block_rows(each, old, scale, np.full(len(batch), 0.5), warm) for each in (before, rows))
        self.engine.precision.observe(level - 1, fast, exact, scale)
