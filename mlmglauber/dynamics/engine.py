"""The fast engine: many chains at once, exactly, with shared batches, a cache and prefetching.

It gives the same trajectories as the plain engine (plain.py). Two facts make that possible: a conditional depends on
the site and the masked context alone, and the sites and uniforms of all steps are known before the states are.

- Steps in which nothing changes are skipped in blocks, by the stay intervals of the present state (base_engine.py).
- At the first other step the conditional is looked up in the cache, by site, temperature and masked context, and the
  token is drawn from it. Where the conditional, or the block of the token, is not known the chain waits for the model.
- All waiting chains share a batch. The room that they leave in it goes to conditionals of the steps ahead that are
  likely to be used (BaseEngine.prefetch).
- A draw that rounding could have changed is made again in the next better precision (precision.py). The chain is
  deferred meanwhile, until a few such draws share a call, or no other chain is left to run.

The cache is bounded. A conditional that it has lost is computed again and gives the same token. So neither the bound
nor the order of the calls changes a trajectory.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.base_engine import BaseEngine, PlannedDraws, joined
from mlmglauber.dynamics.cache import ConditionalCache, Key, conditional_key, context_key
from mlmglauber.dynamics.chain import Chain, Event, Move
from mlmglauber.dynamics.cost_model import CostModel
from mlmglauber.dynamics.draws import TokenDraws, draw
from mlmglauber.dynamics.population import ChainPopulation
from mlmglauber.dynamics.precision import Precision
from mlmglauber.dynamics.redraws import Redraw, Redraws, only_of
from mlmglauber.dynamics.token_distribution import TokenDistribution
from mlmglauber.models.conditionals import FILL, Conditional, Draws, Ids

DEFERRED = 8
"""Maximum number of deferred chains that wait for a call in better precision while others can run."""

Ahead = tuple[int, int, float, NDArray[np.float64]]
"""A draw of a step ahead: row, site, temperature, uniforms."""


class Engine(BaseEngine[Chain, Ahead]):
    """The fast engine over one model.

    rows: maximum number of conditionals in a call of the model, by default the model's own. memory: maximum number of
    bytes in the cache.
    """

    population: ChainPopulation

    def __init__(self, conditional: Conditional, rows: int | None = None, memory: int = 256 << 20) -> None:
        super().__init__(ChainPopulation(), ConditionalCache(memory), CostModel())
        self.conditional, self._rows = conditional, rows
        self.precision = Precision(conditional)
        self._redraws = Redraws(self.precision, self.cache, self.counters)

    @property
    def rows(self) -> int:
        """Maximum number of conditionals in a call; the model's own can change from call to call."""
        return self.conditional.rows if self._rows is None else self._rows

    def check(self, ids: Ids, site: int, tau: float, uniforms: NDArray[np.float64], token: int,
              only: Ids | None = None) -> None:
        """Make a draw that was certain once more in the best precision; `precision` counts those that differ.

        ids: (n,). uniforms: (2,). token: what was drawn. only: the tokens that may be drawn, None for all.
        """
        self._redraws.checks.append(Redraw(None, -1, ids, site, tau, uniforms, 1, token, None, only))
        if len(self._redraws.checks) >= self.rows:
            self._redraw()

    def finish_checks(self) -> None:
        """Make the checks that are left."""
        while self._redraws.checks:
            self._redraw()

    def draw_known(self, draws: PlannedDraws) -> tuple[PlannedDraws, Ids]:
        """See BaseEngine: draws from distributions in the cache."""
        population = self.population
        contexts = population.ids[draws.rows]
        contexts[np.arange(len(contexts)), draws.sites] = FILL
        unknown, made, columns = [], [], []
        for k, (row, site, n, tau) in enumerate(zip(
                draws.rows.tolist(), draws.sites.tolist(), population.length[draws.rows].tolist(),
                population.tau[draws.rows].tolist(), strict=True)):
            only = population.only(row, site) if population.restricted else None
            key = conditional_key(site, tau, contexts[k, :n].tobytes(), only)
            known: TokenDistribution | None = self.cache.get(key)
            drawn = known.draw(*draws.uniforms[k].tolist()) if known is not None else None
            if known is None or (drawn is None and known.level == 0):
                unknown.append(k)
                continue
            logp_old = known.logp(int(population.ids[row, site]))
            if drawn is None or logp_old is None or not drawn.certain:
                level = known.level if drawn is None or logp_old is None else known.level + 1
                self._defer(Redraw(population.member(row), row, population.ids[row, :n].copy(), site, tau,
                                   draws.uniforms[k], level, -1, None, only))
                continue
            ends = known.ends(drawn.token)
            assert ends is not None
            (a, b), (c, d) = ends
            made.append(k)
            columns.append((drawn.token, logp_old, drawn.logp, (a, c), (b, d)))
        went_on = draws.rows[made]
        if made:
            tokens, logp_old_of, logp_new, low, high = (np.array(column) for column in zip(*columns, strict=True))
            self._update(went_on, draws.sites[made], tokens, logp_old_of, logp_new, low, high)
        return draws.at(unknown), went_on

    def _update(self, rows: Ids, sites: Ids, tokens: Ids, logp_old: NDArray[np.float64], logp_new: NDArray[np.float64],
                low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        """One step of each of these chains, at one site each; states that are due become events."""
        population = self.population
        old = population.ids[rows, sites]
        changed = old != tokens
        moved = rows[changed]
        self.leave_states(moved)
        population.step[rows] += 1
        population.rate[rows] += (changed - population.rate[rows]) / 32
        population.ids[rows, sites] = tokens
        self.enter_states(moved)
        population.known[rows, sites] = True
        population.low[rows, sites], population.high[rows, sites], population.logp[rows, sites] = low, high, logp_new
        steps = population.step[rows]
        due = (steps >= population.next_due[rows]) | (
            changed & population.on_change[rows] & (steps >= population.burn_in[rows]))
        for k in np.flatnonzero(due).tolist():
            row, step = int(rows[k]), int(steps[k])
            chain = population.member(row)
            chain.events.append(Event(step, chain.ids.copy(), Move(int(sites[k]), int(old[k]), int(tokens[k]),
                                                                   float(logp_old[k]), float(logp_new[k]))))
            if step >= population.next_due[row]:
                population.next_due[row] = chain.next_due(step)

    def emit(self, row: int, step: int, site: int) -> None:
        """See BaseEngine: an event whose move keeps the token."""
        population = self.population
        chain = population.member(row)
        token, logp = int(population.ids[row, site]), float(population.logp[row, site])
        chain.events.append(Event(step, chain.ids.copy(), Move(site, token, token, logp, logp)))

    def state_key(self, row: int) -> Key:
        """See BaseEngine: the temperature, the choices and the state; -1 tells it from the keys of conditionals."""
        population = self.population
        choices = population.member(row).choices_key if population.restricted else ()
        return -1, float(population.tau[row]), *choices, population.ids[row, : population.length[row]].tobytes()

    def unknown(self, row: int, step: int, site: int, uniforms: NDArray[np.float64]) -> Iterable[Ahead]:
        """See BaseEngine."""
        population = self.population
        tau = population.tau_at(row, step)
        key = context_key(site, tau, population.ids[row, : population.length[row]], population.only(row, site))
        return [(row, site, tau, uniforms)] if self.cache.get(key) is None else []

    def change_temperatures(self, rows: Ids) -> None:
        """See BaseEngine: what is known of a state at its old temperature goes to the cache."""
        population = self.population
        rows = rows[population.step[rows] >= population.turn[rows]]
        self.leave_states(rows)
        for row in rows.tolist():
            population.set_temperature(row, population.member(row))
        self.enter_states(rows)

    def answer(self, waiting: PlannedDraws) -> None:
        """See BaseEngine: the draws that wait, and in the same batch conditionals of steps ahead; then redraws."""
        count = len(waiting.rows)
        if count:
            population = self.population
            draws, taus = waiting, population.tau[waiting.rows]
            ahead = self.prefetch(waiting.rows, count)
            if ahead:
                rows, sites, more, uniforms = zip(*ahead, strict=True)
                draws = joined([waiting, PlannedDraws(np.array(rows), np.array(sites), np.array(uniforms))])
                taus = np.concatenate([taus, more])
            wanted = np.arange(len(draws.rows)) < count
            order = np.argsort(population.length[draws.rows], kind="stable")  # states of like length share a call
            for start in range(0, len(order), self.rows):
                part = order[start : start + self.rows]
                self._call(draws.at(part), taus[part], wanted[part])
        deferred = len(self._redraws.deferred)
        if deferred and (not count or deferred >= DEFERRED):
            self._redraw()

    def _call(self, planned: PlannedDraws, taus: NDArray[np.float64], wanted: NDArray[np.bool_]) -> None:
        """One call of the model in its fastest precision.

        taus: (R,). wanted: (R,) the draws that chains wait for; the others are prefetched. A wanted draw is made if it
        is certain, else its chain is deferred.
        """
        population, precision = self.population, self.precision
        n = int(population.length[planned.rows].max())
        uniforms = planned.uniforms
        precision.measure(taus.tolist())
        only = None
        if population.restricted:
            only = only_of([population.only(row, site) for row, site in
                            zip(planned.rows.tolist(), planned.sites.tolist(), strict=True)])
        draws = Draws(population.ids[planned.rows, :n], planned.sites, taus, uniforms[:, 0], precision.cold(taus, 0),
                      only)
        tolerance = precision.tolerances[0]
        rows = self.cost.timed(len(taus), lambda: self.conditional.weigh(draws))
        drawn = draw(rows, uniforms, taus, draws.cold, tolerance)
        self.cache.keep_drawn(draws, rows, drawn, ~wanted, tolerance, 0)
        repeat = wanted & drawn.finite & ~drawn.certain
        checked = wanted & drawn.certain & precision.to_check(uniforms) if self.conditional.levels > 1 else repeat
        for k in np.flatnonzero(repeat | checked).tolist():
            row = int(planned.rows[k])
            ids = draws.ids[k, : population.length[row]].copy()
            redraw = Redraw(population.member(row) if repeat[k] else None, row, ids, int(planned.sites[k]),
                            float(taus[k]), uniforms[k], 1, int(drawn.tokens[k]), rows.row(k),
                            None if only is None else only[k])
            if repeat[k]:
                self._defer(redraw)
            else:
                self._redraws.checks.append(redraw)
        self._take(planned.rows, planned.sites, drawn, wanted)

    def _take(self, rows: Ids, sites: Ids, drawn: TokenDraws, wanted: NDArray[np.bool_]) -> None:
        """Make the steps of draws that are wanted and certain; a chain whose conditional is not finite is broken."""
        for k in np.flatnonzero(wanted & ~drawn.finite).tolist():
            self.population.member(int(rows[k])).broken = int(sites[k])
        made = wanted & drawn.certain
        if made.any():
            self._update(rows[made], sites[made], drawn.tokens[made], drawn.logp_old[made], drawn.logp_new[made],
                         drawn.low[made], drawn.high[made])

    def _defer(self, redraw: Redraw) -> None:
        """Let a chain wait for a draw in a better precision."""
        self.population.deferred[redraw.row] = True
        self._redraws.deferred.append(redraw)

    def _redraw(self) -> None:
        """Make the draws of deferred chains in better precision, and checks where the batch has room."""
        for redraws, drawn in self._redraws.run(self.rows):
            wanted = np.array([redraw.chain is not None for redraw in redraws])
            rows, sites = (np.array([getattr(redraw, name) for redraw in redraws]) for name in ("row", "site"))
            self.population.deferred[rows[wanted]] = (drawn.finite & ~drawn.certain)[wanted]
            self._take(rows, sites, drawn, wanted)

    def pll(self, ids: Ids) -> float | None:
        """Pseudo-log-likelihood sum_i log p(x_i | x_-i) at tau = 1, in nats; log-probabilities are kept in the cache.

        ids: (n,) the state x. None when a token of the state can never be drawn, or a conditional is not finite.
        """
        keys = [(-2, int(token), *context_key(site, 1.0, ids)) for site, token in enumerate(ids)]
        logps = [self.cache.get(key) for key in keys]
        missing = np.array([site for site, logp in enumerate(logps) if logp is None], dtype=np.int64)
        for start in range(0, len(missing), self.rows):
            sites = missing[start : start + self.rows]
            rows = self.conditional.log_probs(np.repeat(ids[None], len(sites), axis=0), sites)
            for site, row in zip(sites.tolist(), rows, strict=True):
                logps[site] = float(row[ids[site]])
                self.cache.put(keys[site], logps[site], 0)
        total = float(np.sum(logps))
        return total if np.isfinite(total) else None
