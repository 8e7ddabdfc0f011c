"""The fast engine for groups of coupled chains: it shares its model, its cache and its counters with an Engine.

A group is one Markov chain on the product of its chains' states. So its steps are skipped and prefetched as those of a
chain (base_engine.py): the stay interval of a site is the region of uniforms that leaves all tokens there as they are.
Only the draw differs. It needs the whole conditional of each distinct state (Distributions), where a single chain needs
one block.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.base_engine import BaseEngine, PlannedDraws
from mlmglauber.dynamics.cache import Key, context_key
from mlmglauber.dynamics.coupled_chains import CoupledChains
from mlmglauber.dynamics.coupling import WORDS, coupled
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.population import Population
from mlmglauber.dynamics.token_distribution import TokenDistribution
from mlmglauber.models.blocks import Floats, block_rows
from mlmglauber.models.conditionals import Ids, masked, stack

MOST_BLOCKS = 16
"""Maximum number of blocks of a conditional that is kept whole."""


class Wanted(NamedTuple):
    """A request for a conditional: the state (n,), the temperature, the site, the least level of precision.

    only: the tokens that may be drawn, None for all.
    """

    ids: Ids
    tau: float
    site: int
    level: int
    only: Ids | None = None

    @property
    def key(self) -> Key:
        """The key of the conditional in the cache."""
        return context_key(self.site, self.tau, self.ids, self.only)


class Distributions:
    """Complete token distributions from the model of an engine, with its cache and its counters."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def get(self, wanted: Wanted) -> TokenDistribution | None:
        """The complete conditional of a request, in its precision or a better one; None where it is not known."""
        known: TokenDistribution | None = self.engine.cache.get(wanted.key)
        return known if known is not None and known.complete and known.level >= wanted.level else None

    def compute(self, wanted: Sequence[Wanted]) -> list[TokenDistribution | None]:
        """The conditional of each request, from the cache or else from the model; None where it is not finite.

        Equal requests are computed once. States of like length share a call.
        """
        distributions = [self.get(each) for each in wanted]
        missing: dict[Key, list[int]] = {}
        for k, each in enumerate(wanted):
            if distributions[k] is None:
                missing.setdefault((*each.key, each.level), []).append(k)
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
            row = row if each.only is None else masked(row, each.only)
            distribution = TokenDistribution.of_row(row, each.tau, precision.tolerances[level], level,
                                                    engine.conditional.truncation)
            if distribution is not None and distribution.compact(MOST_BLOCKS):
                engine.cache.put(each.key, distribution, distribution.nbytes)
            made.append(distribution)
        return made

    def check(self, ids: Ids, site: int, tau: float, uniforms: NDArray[np.float64], token: int,
              drawn_from: TokenDistribution, only: Ids | None) -> None:
        """Make the draw of a first chain again in the best precision, now and then (see Precision.to_check).

        ids: (n,) its state, before or after the draw. uniforms: (2,). token: what was drawn. only: see Wanted.
        """
        if drawn_from.shift and self.engine.precision.to_check(uniforms[None])[0]:
            self.engine.check(ids.copy(), site, tau, uniforms, token, only)

    def _compare(self, batch: Sequence[Wanted], states: Ids, sites: Ids, rows: Floats, level: int) -> None:
        """Compare with the precision before: a tolerance that was too small for the difference is widened."""
        before = self.engine.conditional.log_probs_at(states, sites, level - 1)
        taus, old = np.array([each.tau for each in batch]), states[np.arange(len(batch)), sites]
        warm = np.zeros(len(batch), dtype=bool)
        scale = np.where(taus > 0, taus, 1.0)
        fast, exact = (block_rows(each, old, scale, np.full(len(batch), 0.5), warm) for each in (before, rows))
        self.engine.precision.observe(level - 1, fast, exact, scale)


class CoupledEngine(BaseEngine[CoupledChains, Wanted]):
    """Moves groups of coupled chains through the model of an engine."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(Population[CoupledChains](WORDS), engine.cache, engine.cost)
        self.engine, self.known = engine, Distributions(engine)

    @property
    def rows(self) -> int:
        """Maximum number of conditionals in a call of the model."""
        return self.engine.rows

    def advance(self, members: Sequence[CoupledChains]) -> None:
        """See BaseEngine: moves groups.

        Chains that still run by themselves (coupled_chains.lead_in) are moved by the engine, in a round of their own.
        """
        lead_in = [chain for group in members if not group.ready() for chain in group.chains
                 if chain.step < chain.horizon]
        if lead_in:
            self.engine.advance(lead_in)
        super().advance([group for group in members if group.ready() and not group.finished])

    def draw_known(self, draws: PlannedDraws) -> tuple[PlannedDraws, Ids]:
        """See BaseEngine: draws from whole conditionals in the cache."""
        unknown, went_on = [], []
        for k, (row, site) in enumerate(zip(draws.rows.tolist(), draws.sites.tolist(), strict=True)):
            group = self.population.member(row)
            wanted = self._wanted(group, site, group.level)
            distributions = [known for known in map(self.known.get, wanted) if known is not None]
            if len(distributions) == len(wanted) and self._draw(row, site, distributions, draws.uniforms[k]):
                went_on.append(row)
            else:
                unknown.append(k)
        return draws.at(unknown), np.array(went_on, dtype=np.int64)

    def emit(self, row: int, step: int, site: int) -> None:
        """See BaseEngine: a snapshot."""
        self.population.member(row).take_snapshot(step)

    def state_key(self, row: int) -> Key:
        """See BaseEngine: the coupling, temperature, choices and distinct states; -3 tells it from other keys."""
        group = self.population.member(row)
        states = group.distinct_states
        whole = b"".join(state.tobytes() for state in states)
        return -3, group.coupling, group.tau, *group.choices_key, len(states), whole

    def unknown(self, row: int, step: int, site: int, uniforms: NDArray[np.float64]) -> Iterable[Wanted]:
        """See BaseEngine: the conditionals of the distinct states that are not known."""
        return [each for each in self._wanted(self.population.member(row), site, 0)
                if self.known.get(each) is None]

    def answer(self, waiting: PlannedDraws) -> None:
        """See BaseEngine. A group whose conditional is not finite is broken.

        A draw that rounding could have changed is made in the next round, from better conditionals.
        """
        groups = [self.population.member(row) for row in waiting.rows.tolist()]
        if not groups:
            return
        wanted = [self._wanted(group, site, group.level)
                  for group, site in zip(groups, waiting.sites.tolist(), strict=True)]
        flat = [each for of_group in wanted for each in of_group]
        computed = iter(self.known.compute(flat + self.prefetch(waiting.rows, len(flat))))
        for k, (group, of_group) in enumerate(zip(groups, wanted, strict=True)):
            distributions = [each for _, each in zip(of_group, computed, strict=False) if each is not None]
            row, site = int(waiting.rows[k]), int(waiting.sites[k])
            if len(distributions) < len(of_group):
                group.broken = site
            else:
                self._draw(row, site, distributions, waiting.uniforms[k])

    def _wanted(self, group: CoupledChains, site: int, level: int) -> list[Wanted]:
        """The conditionals of a site in every distinct state of a group."""
        only = group.choices.get(site)
        return [Wanted(state, group.tau, site, level, only) for state in group.distinct_states]

    def _draw(self, row: int, site: int, distributions: list[TokenDistribution],
              uniforms: NDArray[np.float64]) -> bool:
        """Make one step of a group. False where rounding could have changed a token: a better precision is needed."""
        population, group = self.population, self.population.member(row)
        group.step = int(population.step[row])
        coupling = coupled(group.coupling, distributions)
        tokens, certain = coupling.draw(group.noise(uniforms), group.more)
        if not certain:
            group.level = 1 + min(each.level for each in distributions)
            return False
        if group.coupling != "race":
            self.known.check(group.distinct_states[0], site, group.tau, uniforms[:2], tokens[0], distributions[0],
                             group.choices.get(site))
        changed = any(state[site] != token for state, token in zip(group.distinct_states, tokens, strict=True))
        population.rate[row] += (changed - population.rate[row]) / 32
        population.step[row] = group.step = group.step + 1
        group.level = 0
        if changed:
            at = np.array([row])
            self.leave_states(at)
            group.change(site, tokens)
            self.enter_states(at)
        elif not population.known[row, site]:
            region = coupling.acceptance_region(tokens)
            if region is not None:
                population.known[row, site], population.low[row, site], population.high[row, site] = True, *region
        if population.step[row] >= population.next_due[row]:
            group.take_snapshot(group.step)
            population.next_due[row] = group.next_due(group.step)
        if group.meeting is not None:
            population.horizon[row] = min(int(population.horizon[row]), max(group.end, group.step))
        return True
