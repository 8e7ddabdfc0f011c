"""The fast engine: many chains at once, exactly, their conditionals in shared batches and none computed twice.

It gives the trajectories of the plain engine (plain.py) from two facts: a conditional depends on the site and the
masked context alone, and the sites and uniforms of all steps are known before the states are. On one page:

- What is known of a chain's present state is, for each site, the uniforms that leave its token as it is (its stay
  interval, population.py). Planned steps are compared with these intervals; all steps before the first one that leaves
  its interval, or whose site is not known, are done: nothing changed. A trapped chain costs nothing.
- At the first other step the conditional is looked up in the cache, by site, temperature and masked context, and the
  token is drawn from it. Where it is not there, or its block is not known, the chain waits for the model.
- All waiting chains share a batch. With the conditional that it waits for, a chain asks for those of the steps ahead,
  as far as it is likely to reach them unchanged: with chance (1 - r)^k for k steps ahead, r being its recent rate of
  change. A row is worth its price when that chance is above its marginal cost (cost_model.py). A hot chain so asks for
  nothing in vain.
- A draw that rounding could have changed is made again in the next better precision (precision.py). The chain is held
  meanwhile, until a few such draws share a call, or no other chain is left to run.

The cache is bounded. A conditional that was forgotten is computed again, and gives the same token, so no bound and no
order changes a trajectory.
"""

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.cache import ConditionalCache, context_key
from mlmglauber.dynamics.chain import Chain, Event, Move
from mlmglauber.dynamics.cost_model import CostModel
from mlmglauber.dynamics.draws import Drawn, draw
from mlmglauber.dynamics.population import WINDOW, Population
from mlmglauber.dynamics.precision import Precision
from mlmglauber.dynamics.token_distribution import TokenDistribution
from mlmglauber.models.blocks import BlockRows
from mlmglauber.models.conditionals import FILL, Conditional, Draws, Ids

FIRST_BLOCK = 4
"""Number of steps that are compared at once after a change; four times more each time nothing changes."""
LONG_BLOCK = 4096
"""The same for a chain that has not changed for a whole window."""
ELEMENTS = 1 << 14
"""Maximum number of steps of all chains that are compared at once."""
HELD = 8
"""Number of held chains that share a call in better precision, as long as others can run."""
WORTH_KEEPING = 0.3
"""A conditional is kept where the next draw from it is answered with at least this chance."""


class Counters:
    """What an engine did: steps of all chains, rows and calls of the model, and the seconds that those took.

    again: rows that were computed in a better precision, checks among them.
    """

    def __init__(self) -> None:
        self.steps = self.rows = self.calls = self.again = 0
        self.seconds = 0.0


class _Asked(NamedTuple):
    """R conditionals that are wanted, each with the uniforms of the draw: of which chains, at which sites."""

    rows: Ids
    sites: Ids
    uniforms: NDArray[np.float64]

    def at(self, places: Ids | list[int]) -> "_Asked":
        """Some of them."""
        return _Asked(self.rows[places], self.sites[places], self.uniforms[places])


def _joined(parts: list[_Asked]) -> _Asked:
    return _Asked(np.concatenate([part.rows for part in parts]), np.concatenate([part.sites for part in parts]),
                  np.concatenate([part.uniforms for part in parts]))


class _Repeated(NamedTuple):
    """A draw that is made in a better precision: its context, and what the level before said.

    chain: the chain that is held for it, None where a certain draw is checked.
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


class Engine:
    """The fast engine over one model. rows: conditionals a call, by default the model's. memory: bytes to keep."""

    def __init__(self, conditional: Conditional, rows: int | None = None, memory: int = 256 << 20) -> None:
        self.conditional, self._rows = conditional, rows
        self.cache, self.cost, self.counters = ConditionalCache(memory), CostModel(), Counters()
        self.precision = Precision(conditional)
        self.population = Population()
        self._repeated: list[_Repeated] = []
        self._checks: list[_Repeated] = []

    @property
    def rows(self) -> int:
        """Conditionals a call; that of a model can change from call to call."""
        return self.conditional.rows if self._rows is None else self._rows

    def advance(self, chains: Sequence[Chain]) -> None:
        """Every chain as far as what is known carries it, then one round of the model for those that wait."""
        people = self.population
        rows = people.rows_of(chains)
        people.horizon[rows] = [-1 if chain.broken is not None else chain.horizon for chain in chains]
        before = int(people.step[rows].sum())
        ready = rows[(people.step[rows] < people.horizon[rows]) & ~people.held[rows]]
        waiting = self._run_until_unknown(ready)
        if len(waiting.rows):
            self._answer(waiting)
        if self._repeated and (not len(waiting.rows) or len(self._repeated) >= HELD):
            self._repeat()
        steps = people.step[rows]
        self.counters.steps += int(steps.sum()) - before
        for chain, step in zip(chains, steps.tolist(), strict=True):
            chain.step = step

    def check(self, ids: Ids, site: int, tau: float, uniforms: NDArray[np.float64], token: int) -> None:
        """Draw once more, in the best precision, what was drawn with certainty; `precision` counts what differs."""
        self._checks.append(_Repeated(None, -1, ids, site, tau, uniforms, 1, token, None))
        if len(self._checks) >= self.rows:
            self._repeat()

    def finish_checks(self) -> None:
        """Compute what is left of the draws that are checked."""
        while self._checks:
            self._repeat()

    def _run_until_unknown(self, ready: Ids) -> _Asked:
        """Run chains to their horizons or to a conditional that is not known; those that wait, and for what."""
        people = self.population
        waiting: list[_Asked] = []
        block, passed = FIRST_BLOCK, np.zeros(len(people.step), dtype=np.int64)
        while len(ready):
            places = people.planned(ready)
            room = np.minimum(people.horizon[ready] - people.step[ready], WINDOW - places)
            size = int(min(block, room.max(), max(1, ELEMENTS // len(ready))))
            block *= 4
            ahead = np.arange(size)
            steps = np.minimum(places[:, None] + ahead, WINDOW - 1)
            of = ready[:, None]
            sites, uniforms = people.sites[of, steps], people.uniforms[of, steps]
            stays = ((people.low[of, sites] <= uniforms) & (uniforms < people.high[of, sites])).all(axis=2)
            stops = ~stays & (ahead < room[:, None])
            stop = stops.any(axis=1)
            counts = np.where(stop, stops.argmax(axis=1), np.minimum(size, room))
            self._skip_unchanged(ready, counts)
            passed[ready] = np.where(stop, 0, passed[ready] + counts)
            for row in ready[passed[ready] >= WINDOW].tolist():
                self._run_long(row)
                passed[row] = 0
            at = np.flatnonzero(stop)
            rest = ready[~stop]
            chosen = _Asked(ready[at], sites[at, counts[at]], uniforms[at, counts[at]])
            unknown, went_on = self._draw_from_cache(chosen)
            waiting.append(unknown)
            ready = np.concatenate([went_on, rest])
            ready = ready[people.step[ready] < people.horizon[ready]]
        return _joined(waiting) if waiting else _Asked(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 2)))

    def _run_long(self, row: int) -> None:
        """Pass over the steps of one chain in which nothing changes, many at a time."""
        people = self.population
        chain = people.chain(row)
        assert chain is not None
        while (room := int(people.horizon[row] - people.step[row])) > 0:
            sites, uniforms = chain.plan(int(people.step[row]), min(room, LONG_BLOCK))
            stays = ((people.low[row, sites] <= uniforms) & (uniforms < people.high[row, sites])).all(axis=1)
            count = len(sites) if stays.all() else int(stays.argmin())
            self._skip_unchanged(np.array([row]), np.array([count]), sites)
            if count < len(sites):
                return

    def _skip_unchanged(self, rows: Ids, counts: Ids, sites: Ids | None = None) -> None:
        """So many steps of each chain in which nothing changed; the states that are wanted become events.

        sites: of the steps of a single chain; where they are not given they stand in its window.
        """
        people = self.population
        ends = people.step[rows] + counts
        for k in np.flatnonzero(ends >= people.next_due[rows]).tolist():
            row = int(rows[k])
            chain = people.chain(row)
            assert chain is not None
            while (step := int(people.next_due[row])) <= ends[k]:
                if sites is not None:
                    site = int(sites[step - people.step[row] - 1])
                else:
                    site = int(people.sites[row, step - people.start[row] - 1])
                token, logp = int(people.ids[row, site]), float(people.logp[row, site])
                chain.events.append(Event(step, chain.ids.copy(), Move(site, token, token, logp, logp)))
                people.next_due[row] = chain.schedule.next_due(step)
        people.step[rows] = ends
        people.rate[rows] *= (1 - 1 / 32) ** np.minimum(counts, 1000)

    def _draw_from_cache(self, asked: _Asked) -> tuple[_Asked, Ids]:
        """Draw where the cache has the conditional: (what is not known, the chains that went on)."""
        people = self.population
        contexts = people.ids[asked.rows]
        contexts[np.arange(len(contexts)), asked.sites] = FILL
        unknown, found, columns = [], [], []
        for k, (row, site, n, tau) in enumerate(zip(
                asked.rows.tolist(), asked.sites.tolist(), people.length[asked.rows].tolist(),
                people.tau[asked.rows].tolist(), strict=True)):
            known: TokenDistribution | None = self.cache.get((site, tau, contexts[k, :n].tobytes()))
            drawn = known.draw(*asked.uniforms[k].tolist()) if known is not None else None
            if known is None or (drawn is None and known.level == 0):
                unknown.append(k)
                continue
            logp_old = known.logp(int(people.ids[row, site]))
            if drawn is None or logp_old is None or not drawn.certain:
                level = known.level if drawn is None or logp_old is None else known.level + 1
                self._hold(_Repeated(people.chain(row), row, people.ids[row, :n].copy(), site, tau, asked.uniforms[k],
                                     level, -1, None))
                continue
            ends = known.ends(drawn.token)
            assert ends is not None
            (a, b), (c, d) = ends
            found.append(k)
            columns.append((drawn.token, logp_old, drawn.logp, (a, c), (b, d)))
        went_on = asked.rows[found]
        if found:
            tokens, logp_old_of, logp_new, low, high = (np.array(column) for column in zip(*columns, strict=True))
            self._update(went_on, asked.sites[found], tokens, logp_old_of, logp_new, low, high)
        return asked.at(unknown), went_on

    def _update(self, rows: Ids, sites: Ids, tokens: Ids, logp_old: NDArray[np.float64], logp_new: NDArray[np.float64],
                low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        """One step of each of these chains, at one site each; states that are wanted become events."""
        people = self.population
        old = people.ids[rows, sites]
        changed = old != tokens
        moved = rows[changed]
        self._leave_states(moved)
        people.step[rows] += 1
        people.rate[rows] += (changed - people.rate[rows]) / 32
        people.ids[rows, sites] = tokens
        self._enter_states(moved)
        people.known[rows, sites] = True
        people.low[rows, sites], people.high[rows, sites], people.logp[rows, sites] = low, high, logp_new
        steps = people.step[rows]
        due = (steps >= people.next_due[rows]) | (
            changed & people.on_change[rows] & (steps >= people.burn_in[rows]))
        for k in np.flatnonzero(due).tolist():
            row, step = int(rows[k]), int(steps[k])
            chain = people.chain(row)
            assert chain is not None
            chain.events.append(Event(step, chain.ids.copy(), Move(int(sites[k]), int(old[k]), int(tokens[k]),
                                                                   float(logp_old[k]), float(logp_new[k]))))
            if step >= people.next_due[row]:
                people.next_due[row] = chain.schedule.next_due(step)

    def _leave_states(self, rows: Ids) -> None:
        """Keep what is known of the states that these chains leave: a chain that flickers comes back."""
        people = self.population
        for row in rows[people.known[rows].sum(axis=1) > 1].tolist():
            found = people.stay_intervals(row)
            self.cache.put(self._state_key(row), found, found.nbytes)

    def _enter_states(self, rows: Ids) -> None:
        """Look up what is known of the states that these chains have come to."""
        people = self.population
        people.forget_stay_intervals(rows)
        for row in rows.tolist():
            found = self.cache.get(self._state_key(row))
            if found is not None:
                people.set_stay_intervals(row, found)

    def _state_key(self, row: int) -> tuple[int, float, bytes]:
        people = self.population
        return -1, float(people.tau[row]), people.ids[row, : people.length[row]].tobytes()

    def _answer(self, waiting: _Asked) -> None:
        """The draws that chains wait for and, in the same batch, conditionals that they are likely to want next."""
        people = self.population
        threshold = self.cost.threshold(len(waiting.rows))
        room = -len(waiting.rows) % self.rows
        more = [item for k in np.flatnonzero(1 - people.rate[waiting.rows] > threshold).tolist() if room
                for item in self._prefetch(int(waiting.rows[k]), threshold)]
        more.sort(key=lambda item: -item[0])
        more = more[:room]
        asked = waiting
        if more:
            _, rows, sites, uniforms = zip(*more, strict=True)
            asked = _joined([waiting, _Asked(np.array(rows), np.array(sites), np.array(uniforms))])
        wanted = np.arange(len(asked.rows)) < len(waiting.rows)
        order = np.argsort(people.length[asked.rows], kind="stable")  # states of like length share a call
        for start in range(0, len(order), self.rows):
            part = order[start : start + self.rows]
            self._call(asked.at(part), wanted[part])

    def _prefetch(self, row: int, threshold: float) -> Iterator[tuple[float, int, int, NDArray[np.float64]]]:
        """(chance of being used, row, site, uniforms) of the next steps at sites that are not known."""
        people = self.population
        stay = min(1.0 - float(people.rate[row]), 1 - 1e-9)
        n = int(people.length[row])
        reach = int(min(np.log(threshold) / np.log(stay), 4 * n))
        place = int(people.step[row] - people.start[row])
        seen = {int(people.sites[row, place])}
        for k in range(place + 1, min(place + 1 + reach, WINDOW)):
            site = int(people.sites[row, k])
            if site in seen or people.known[row, site]:
                continue
            seen.add(site)
            if self.cache.get(context_key(site, float(people.tau[row]), people.ids[row, :n])) is None:
                yield stay ** (k - place), row, site, people.uniforms[row, k]

    def _call(self, asked: _Asked, wanted: NDArray[np.bool_]) -> None:
        """One call of the model in its fastest precision; certain draws are made, others wait for a better one."""
        people, precision = self.population, self.precision
        n = int(people.length[asked.rows].max())
        ids, taus = people.ids[asked.rows, :n], people.tau[asked.rows]
        precision.measure(taus.tolist())
        cold = precision.cold(taus, 0)
        begin = perf_counter()
        rows = self.conditional.weigh(Draws(ids, asked.sites, taus, asked.uniforms[:, 0], cold))
        taken = perf_counter() - begin
        self.cost.observe(len(taus), taken)
        self.counters.rows += len(taus)
        self.counters.calls += 1
        self.counters.seconds += taken
        drawn = draw(rows, asked.uniforms, taus, cold, precision.tolerances[0])
        old = ids[np.arange(len(ids)), asked.sites]
        self._keep(rows, drawn, ids, asked.sites, taus, old, ~wanted, 0)
        repeat = wanted & drawn.finite & ~drawn.certain
        checked = wanted & drawn.certain & precision.to_check(asked.uniforms) if self.conditional.levels > 1 else repeat
        for k in np.flatnonzero(repeat | checked).tolist():
            row = int(asked.rows[k])
            again = _Repeated(people.chain(row) if repeat[k] else None, row, ids[k, : people.length[row]].copy(),
                              int(asked.sites[k]), float(taus[k]), asked.uniforms[k], 1, int(drawn.tokens[k]),
                              rows.row(k))
            if repeat[k]:
                self._hold(again)
            else:
                self._checks.append(again)
        self._take(asked.rows, asked.sites, drawn, wanted)

    def _take(self, rows: Ids, sites: Ids, drawn: Drawn, wanted: NDArray[np.bool_]) -> None:
        """Make the draws that are wanted and certain; a chain whose conditional is not finite is broken."""
        for k in np.flatnonzero(wanted & ~drawn.finite).tolist():
            chain = self.population.chain(int(rows[k]))
            if chain is not None:
                chain.broken = int(sites[k])
        made = wanted & drawn.certain
        if made.any():
            self._update(rows[made], sites[made], drawn.tokens[made], drawn.logp_old[made], drawn.logp_new[made],
                         drawn.low[made], drawn.high[made])

    def _keep(self, rows: BlockRows, drawn: Drawn, ids: Ids, sites: Ids, taus: NDArray[np.float64], old: Ids,
              always: NDArray[np.bool_], level: int) -> None:
        """Keep the conditionals that are likely to be asked again, and those that were asked ahead."""
        places = np.arange(len(taus))
        beside = old // len(rows.inside[0])
        mass = rows.masses[places, rows.chosen] + np.where(beside != rows.chosen, rows.masses[places, beside], 0.0)
        cold = self.precision.cold(taus, level)
        tolerance = self.precision.tolerances[level]
        kept = (always | (mass >= WORTH_KEEPING)) & drawn.finite & (drawn.certain | ~cold)
        for k in np.flatnonzero(kept).tolist():
            tau, site = float(taus[k]), int(sites[k])
            shift = 0.0 if cold[k] or not tolerance else tolerance / tau
            state = ids[k][ids[k] != FILL]
            known = self.cache.distribution(site, tau, state)
            if known is None or known.level != level:
                known = TokenDistribution(rows.masses[k], shift, level)
            known.learn(rows, k, int(old[k]))
            self.cache.keep(site, tau, state, known)

    def _hold(self, again: _Repeated) -> None:
        """A chain waits for a draw in a better precision."""
        self.population.held[again.row] = True
        self._repeated.append(again)

    def _repeat(self) -> None:
        """The draws of held chains in better precision, and, where there is room, those that are checked."""
        best = self.conditional.levels - 1
        held, self._repeated = self._repeated, []
        for level in sorted({again.level for again in held} | ({best} if self._checks else set())):
            group = [again for again in held if again.level == level]
            if level == best:
                room = max(self.rows - len(group), 0)
                group, self._checks = group + self._checks[:room], self._checks[room:]
            for start in range(0, len(group), self.rows):
                self._repeat_at(level, group[start : start + self.rows])

    def _repeat_at(self, level: int, group: list[_Repeated]) -> None:
        people, precision = self.population, self.precision
        width = max(len(again.ids) for again in group)
        ids = np.full((len(group), width), FILL, dtype=np.int64)
        for row, again in zip(ids, group, strict=True):
            row[: len(again.ids)] = again.ids
        sites, taus = np.array([again.site for again in group]), np.array([again.tau for again in group])
        uniforms = np.array([again.uniforms for again in group])
        cold = precision.cold(taus, level)
        rows = self.conditional.weigh(Draws(ids, sites, taus, uniforms[:, 0], cold), level)
        self.counters.again += len(group)
        drawn = draw(rows, uniforms, taus, cold, precision.tolerances[level])
        wanted = np.array([again.chain is not None for again in group])
        old = ids[np.arange(len(ids)), sites]
        self._keep(rows, drawn, ids, sites, taus, old, wanted, level)
        for k, again in enumerate(group):
            if again.fast is not None:
                precision.observe(again.level - 1 if again.chain is not None else 0, again.fast,
                                  rows.row(k), taus[k : k + 1])
            if again.chain is None:
                precision.checked += 1
                precision.differed += int(drawn.tokens[k]) != again.token
                continue
            people.held[again.row] = False
            if drawn.finite[k] and not drawn.certain[k]:
                self._hold(again._replace(level=level + 1, fast=rows.row(k)))
        self._take(np.array([again.row for again in group]), sites, drawn, wanted)

    def pll(self, ids: Ids) -> float | None:
        """Pseudo-log-likelihood sum_i log p(x_i | x_-i) at tau = 1, in nats; log-probabilities are kept in the cache.

        None when a token of the state can never be drawn, or a conditional is not finite.
        """
        keys = [(-2, int(token), *context_key(site, 1.0, ids)) for site, token in enumerate(ids)]
        found = [self.cache.get(key) for key in keys]
        missing = np.array([site for site, logp in enumerate(found) if logp is None], dtype=np.int64)
        for start in range(0, len(missing), self.rows):
            sites = missing[start : start + self.rows]
            rows = self.conditional.log_probs(np.repeat(ids[None], len(sites), axis=0), sites)
            for site, row in zip(sites.tolist(), rows, strict=True):
                found[site] = float(row[ids[site]])
                self.cache.put(keys[site], found[site], 0)
        total = float(np.sum(found))
        return total if np.isfinite(total) else None
