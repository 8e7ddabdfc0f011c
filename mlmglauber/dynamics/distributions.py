"""Whole conditionals for chains that move together: computed in shared batches, kept where they have few tokens."""

from collections.abc import Sequence
from time import perf_counter
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
    """A conditional that is wanted: the state, the temperature, the site, the least level of precision."""

    ids: Ids
    tau: float
    site: int
    level: int


class Distributions:
    """Complete token distributions through an engine: its model, its cache, its counters."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def get(self, site: int, tau: float, ids: Ids, level: int) -> TokenDistribution | None:
        """The conditional of a site, with the tokens of all its blocks, in this precision or a better one."""
        found = self.engine.cache.distribution(site, tau, ids)
        return found if found is not None and found.complete and found.level >= level else None

    def compute(self, wanted: Sequence[Wanted]) -> list[TokenDistribution | None]:
        """The conditional of each, from the cache or else from the model, equal ones once; None where it is no law."""
        found = [self.get(each.site, each.tau, each.ids, each.level) for each in wanted]
        missing: dict[tuple[int, float, bytes, int], list[int]] = {}
        for k, each in enumerate(wanted):
            if found[k] is None:
                missing.setdefault((*context_key(each.site, each.tau, each.ids), each.level), []).append(k)
        firsts = [places[0] for places in missing.values()]
        for level in sorted({wanted[k].level for k in firsts}):
            at = sorted((k for k in firsts if wanted[k].level == level), key=lambda k: len(wanted[k].ids))
            for start in range(0, len(at), self.engine.rows):
                batch = at[start : start + self.engine.rows]
                for k, made in zip(batch, self._call([wanted[k] for k in batch], level), strict=True):
                    found[k] = made
        for places in missing.values():
            for k in places[1:]:
                found[k] = found[places[0]]
        return found

    def _call(self, batch: Sequence[Wanted], level: int) -> list[TokenDistribution | None]:
        engine, precision = self.engine, self.engine.precision
        states, sites = stack([each.ids for each in batch]), np.array([each.site for each in batch])
        precision.measure([each.tau for each in batch])
        begin = perf_counter()
        rows = engine.conditional.log_probs_at(states, sites, level)
        taken = perf_counter() - begin
        if level == 0:
            engine.cost.observe(len(batch), taken)
            engine.counters.rows += len(batch)
            engine.counters.calls += 1
            engine.counters.seconds += taken
        else:
            engine.counters.again += len(batch)
            self._compare(batch, states, sites, rows, level)
        made = []
        for each, row in zip(batch, rows, strict=True):
            distribution = TokenDistribution.of_row(row, each.tau, precision.tolerances[level], level)
            if distribution is not None and distribution.compact(MOST_BLOCKS):
                engine.cache.keep(each.site, each.tau, each.ids, distribution)
            made.append(distribution)
        return made

    def check(self, ids: Ids, site: int, tau: float, uniforms: NDArray[np.float64], token: int,
              drawn_from: TokenDistribution) -> None:
        """Compare the draw of a first chain with the best precision, now and then (see Precision.to_check)."""
        if drawn_from.shift and self.engine.precision.to_check(uniforms[None])[0]:
            self.engine.check(ids, site, tau, uniforms, token)

    def _compare(self, batch: Sequence[Wanted], states: Ids, sites: Ids, rows: Floats, level: int) -> None:
        """What the precision before says of the same conditionals: the tolerance is widened where it was too small."""
        before = self.engine.conditional.log_probs_at(states, sites, level - 1)
        taus, old = np.array([each.tau for each in batch]), states[np.arange(len(batch)), sites]
        warm = np.zeros(len(batch), dtype=bool)
        scale = np.where(taus > 0, taus, 1.0)
        fast, exact = (block_rows(each, old, scale, np.full(len(batch), 0.5), warm) for each in (before, rows))
        self.engine.precision.observe(level - 1, fast, exact, scale)
