"""Many chains at once, exactly: their conditionals in shared batches, none computed twice, none waited for.

`advance` is the plain engine, one step of every chain a call, the reference for the fast one. `Engine` gives the same
trajectories from two facts: a conditional depends on the site and the masked context alone, and the sites and uniforms
of all steps are known before the states are.

How the fast engine works, on one page:

- What is known of a chain's present state is, for each site, the stretch of [0, 1) in which a uniform leaves its token
  as it is (`Present`). A block of planned steps is compared with these stretches at once; all steps before the first
  one that leaves its stretch, or whose site is not known, are done: nothing changed. A trapped chain costs nothing.
- At a site whose stretch was left the law is asked for a token. The state changes, and the stretches of the new state
  are looked up (a chain that flickers comes back) or begun: known is then the changed site alone, whose context is the
  same as before.
- At a site that is not known the law is looked up in `Memory`, by site, temperature and masked context. Where it is not
  there the chain waits for the model.
- All waiting chains share a batch. With the law that it waits for, a chain asks for those of the steps ahead, as far as
  it is likely to reach them unchanged: with chance (1 - r)^k for k steps ahead, r being its recent rate of change. A
  row is worth its price when that chance is above its marginal cost, b / (a / C + b), where a call of R rows takes
  a + b R seconds (fitted as calls are made) and C chains share it. A hot chain so asks for nothing in vain.

Memory is bounded: laws and stretches are forgotten in the order of their last use. A law that was forgotten is computed
again, bit for bit the same, so no bound and no order changes a trajectory.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.glauber import scan_sites
from mlmglauber.dynamics.law import Law, laws
from mlmglauber.dynamics.randomness import Stream
from mlmglauber.models.conditionals import FILL, Conditional, Ids

AHEAD = 4096
"""Sites and uniforms are drawn for so many steps at a time."""
FIRST_BLOCK = 64
"""Steps that are compared at once after a change; four times more each time nothing changes."""
OVERHEAD = 400
"""Bytes that an entry of the memory takes beside its arrays."""


class Move(NamedTuple):
    """One update of one chain: the site, the tokens before and after, their log-probabilities in nats."""

    site: int
    old: int
    new: int
    logp_old: float
    logp_new: float


class Event(NamedTuple):
    """A state to be told of: the step, the state, and the update that made it (None at the start)."""

    step: int
    ids: Ids
    move: Move | None


class Watch(NamedTuple):
    """Which states of a chain are told of, and where it ends.

    From step burn_in on: that one, every `every`-th after it or, with every = 0, each one that differs from the one
    before; each multiple of `energy`; and the last.
    """

    last: int
    every: int = 1
    burn_in: int = 0
    energy: int = 0

    def due(self, step: int, changed: bool) -> bool:
        if step < self.burn_in:
            return False
        if step in (self.burn_in, self.last) or (self.energy and step % self.energy == 0):
            return True
        return (step - self.burn_in) % self.every == 0 if self.every else changed

    def due_unchanged(self, start: int, end: int) -> Iterator[int]:
        """The due steps in start < step <= end when nothing changes there."""
        steps = {step for step in (self.burn_in, self.last) if start < step <= end}
        low = max(start + 1, self.burn_in)
        if self.every:
            first = low + (self.burn_in - low) % self.every
            steps.update(range(first, end + 1, self.every))
        if self.energy:
            steps.update(range(low + -low % self.energy, end + 1, self.energy))
        return iter(sorted(steps))


class Chain:
    """One chain: its state, its place in time, its streams, and the events that nobody has taken yet."""

    def __init__(self, ids: Sequence[int], *, tau: float, seed: int, record: str, number: int, watch: Watch,
                 scan: str = "random", frozen: Sequence[int] = (), step: int = 0) -> None:
        self.ids = np.array(ids, dtype=np.int64)
        self.tau, self.scan, self.step, self.number, self.watch = tau, scan, step, number, watch
        self.free = np.setdiff1d(np.arange(len(self.ids)), np.asarray(frozen, dtype=np.int64))
        self.horizon = watch.last
        """How far it may run for now."""
        self.events: deque[Event] = deque()
        self.broken: int | None = None
        """The site whose conditional was not finite: the chain cannot go on."""
        self.change_rate = 0.5
        self.present: Present | None = None
        self.answer: tuple[int, Law] | None = None
        """The law that it waited for, at a site of its present state."""
        self.block = FIRST_BLOCK
        self._sites_of, self._tokens_of = Stream(seed, record, number, "site"), Stream(seed, record, number, "token")
        self._start = self._end = step

    def plan(self, count: int) -> tuple[Ids, NDArray[np.float64]]:
        """The sites and uniforms of the next steps, at least one and at most `count`."""
        if not self._start <= self.step < self._end:
            self._start, self._end = self.step, self.step + AHEAD
            self._sites = scan_sites(self.scan, self._sites_of, self._start, AHEAD, self.free)
            self._uniforms = self._tokens_of.uniforms(self._start, AHEAD)
        k = self.step - self._start
        return self._sites[k : k + count], self._uniforms[k : k + count]

    def apply(self, site: int, new: int, logp_old: float, logp_new: float) -> None:
        """One update, told of if it is due."""
        old = int(self.ids[site])
        self.ids[site] = new
        self.step += 1
        if self.watch.due(self.step, old != new):
            self.events.append(Event(self.step, self.ids.copy(), Move(site, old, new, logp_old, logp_new)))


def stack(states: Sequence[Ids]) -> Ids:
    """States of several lengths as one (B, n) array, shorter ones filled up with FILL on the right."""
    width = max(map(len, states))
    rows = np.full((len(states), width), FILL, dtype=np.int64)
    for row, ids in zip(rows, states, strict=True):
        row[: len(ids)] = ids
    return rows


def _exact_logp(conditional: Conditional, law: Law, ids: Ids, site: int, token: int) -> float:
    """log p_tau of a token that may have been left out of the law: then the model is asked again."""
    known = law.logp(token)
    if known is not None:
        return known
    row = conditional.log_probs(ids[None], np.array([site]))[0]
    return law.tempered(float(row[token]))


def advance(conditional: Conditional, chains: Sequence[Chain], rows: int = 64) -> None:
    """The plain engine: one step of every chain that is not at its horizon, at most `rows` conditionals a call."""
    ready = sorted((c for c in chains if c.step < c.horizon and c.broken is None), key=lambda c: len(c.ids))
    for batch in (ready[k : k + rows] for k in range(0, len(ready), rows)):
        plans = [chain.plan(1) for chain in batch]
        sites = np.array([int(site[0]) for site, _ in plans])
        stood = [int(chain.ids[site]) for chain, site in zip(batch, sites, strict=True)]
        rows_found = conditional.log_probs(stack([chain.ids for chain in batch]), sites)
        found = laws(rows_found, [chain.tau for chain in batch], stood)
        for chain, site, (_, uniform), law in zip(batch, sites.tolist(), plans, found, strict=True):
            if law is None:
                chain.broken = site
                continue
            new, old = law.draw(float(uniform[0])), int(chain.ids[site])
            chain.apply(site, new, _exact_logp(conditional, law, chain.ids, site, old), _logp(law, new))


def _logp(law: Law, token: int) -> float:
    known = law.logp(token)
    assert known is not None  # a token that was drawn was kept
    return known


class Present:
    """The stretches of one state: site i keeps its token while low[i] <= uniform * total[i] < high[i].

    A site that is not known yet has an empty stretch: whoever draws there stops.
    """

    __slots__ = ("high", "known", "low", "total")

    def __init__(self, n: int) -> None:
        self.low, self.high = np.full(n, np.inf), np.full(n, np.inf)
        self.total = np.ones(n)
        self.known = np.zeros(n, dtype=bool)

    def learn(self, site: int, law: Law, token: int) -> None:
        self.low[site], self.high[site], self.total[site] = law.stretch(token)
        self.known[site] = True


class Memory:
    """Laws by (site, temperature, masked context) and stretches by state, the least lately used forgotten first."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self._held: OrderedDict[tuple[int, float, bytes], tuple[Law | Present, int]] = OrderedDict()

    def law(self, site: int, tau: float, ids: Ids) -> Law | None:
        found = self._get(self.key(site, tau, ids))
        return found if isinstance(found, Law) else None

    def keep_law(self, site: int, tau: float, ids: Ids, law: Law) -> None:
        self._put(self.key(site, tau, ids), law, law.nbytes)

    def stretches(self, tau: float, ids: Ids) -> Present | None:
        found = self._get((-1, tau, ids.tobytes()))
        return found if isinstance(found, Present) else None

    def keep_stretches(self, tau: float, ids: Ids, present: Present) -> None:
        self._put((-1, tau, ids.tobytes()), present, 25 * len(ids))

    @staticmethod
    def key(site: int, tau: float, ids: Ids) -> tuple[int, float, bytes]:
        """What a conditional depends on: the site, the temperature and the masked context."""
        context = ids.copy()
        context[site] = FILL
        return site, tau, context.tobytes()

    def _get(self, key: tuple[int, float, bytes]) -> "Law | Present | None":
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def _put(self, key: tuple[int, float, bytes], value: "Law | Present", size: int) -> None:
        size += len(key[2]) + OVERHEAD
        before = self._held.pop(key, None)
        self.size += size - (before[1] if before else 0)
        self._held[key] = (value, size)
        while self.size > self.limit and self._held:
            _, (_, forgotten) = self._held.popitem(last=False)
            self.size -= forgotten


class Price:
    """What a call of R rows takes, a + b R seconds, fitted by least squares to the calls so far, old ones fading."""

    FADE = 0.98

    def __init__(self) -> None:
        self._sums = np.zeros(5)

    def saw(self, rows: int, seconds: float) -> None:
        self._sums = self.FADE * self._sums + np.array([1, rows, seconds, rows * rows, rows * seconds])

    def worth(self, chains: int) -> float:
        """The chance of being used from which on one more row is worth computing now."""
        count, r, t, rr, rt = self._sums
        spread = count * rr - r * r
        if count < 3 or spread < 1e-9:
            return 0.3
        b = max((count * rt - r * t) / spread, 1e-12)
        a = max((t - b * r) / count, 0.0)
        return float(min(max(b / (a / chains + b), 0.02), 1.0))


class Ask(NamedTuple):
    """A conditional that is wanted: the state, the temperature, the site."""

    ids: Ids
    tau: float
    site: int


class Counters:
    """What an engine did: steps of all chains, rows and calls of the model, and the seconds that those took."""

    def __init__(self) -> None:
        self.steps = self.rows = self.calls = 0
        self.seconds = 0.0


class Engine:
    """The fast engine over one model. rows: conditionals a call. memory: bytes for what is known."""

    def __init__(self, conditional: Conditional, rows: int = 64, memory: int = 256 << 20) -> None:
        self.conditional, self.rows = conditional, rows
        self.memory = Memory(memory)
        self.price, self.counters = Price(), Counters()

    def advance(self, chains: Sequence[Chain]) -> None:
        """Every chain as far as what is known carries it, then one round of the model for those that wait."""
        waiting = []
        for chain in chains:
            before = chain.step
            if chain.broken is None and self._glide(chain):
                waiting.append(chain)
            self.counters.steps += chain.step - before
        if waiting:
            self._ask(waiting)

    def _glide(self, chain: Chain) -> bool:
        """Run a chain to its horizon or to the first law that is not known; whether it waits for that law."""
        while chain.step < chain.horizon:
            present = chain.present
            if present is None:
                present = chain.present = self._arrive(chain)
            sites, uniforms = chain.plan(min(chain.block, chain.horizon - chain.step))
            scaled = uniforms * present.total[sites]
            leaves = (scaled < present.low[sites]) | (scaled >= present.high[sites])
            k = int(leaves.argmax())
            if not leaves[k]:
                self._pass(chain, sites, len(sites))
                chain.block = min(4 * chain.block, AHEAD)
                continue
            self._pass(chain, sites, k)
            site = int(sites[k])
            law = self._law(chain, site)
            if law is None:
                return True
            if not present.known[site]:
                present.learn(site, law, int(chain.ids[site]))
            self._update(chain, site, float(uniforms[k]), law)
        return False

    def _arrive(self, chain: Chain) -> Present:
        found = self.memory.stretches(chain.tau, chain.ids)
        if found is None:
            found = Present(len(chain.ids))
            self.memory.keep_stretches(chain.tau, chain.ids, found)
        return found

    def _law(self, chain: Chain, site: int) -> Law | None:
        if chain.answer is not None and chain.answer[0] == site:
            return chain.answer[1]
        return self.memory.law(site, chain.tau, chain.ids)

    def _pass(self, chain: Chain, sites: Ids, count: int) -> None:
        """`count` steps in which nothing changed; those that are due are told of."""
        if not count:
            return
        start = chain.step
        for step in chain.watch.due_unchanged(start, start + count):
            site = int(sites[step - start - 1])
            token = int(chain.ids[site])
            law = self._law(chain, site)
            if law is None:  # its stretch is known, the law itself was forgotten
                law = self._compute([Ask(chain.ids, chain.tau, site)])[0]
                assert law is not None
            logp = _logp(law, token)
            chain.events.append(Event(step, chain.ids.copy(), Move(site, token, token, logp, logp)))
        chain.step = start + count
        chain.change_rate *= (1 - 1 / 32) ** min(count, 1000)

    def _update(self, chain: Chain, site: int, uniform: float, law: Law) -> None:
        """One step whose token is drawn; a change begins a new state."""
        new, old = law.draw(uniform), int(chain.ids[site])
        logp_old = _exact_logp(self.conditional, law, chain.ids, site, old)
        chain.apply(site, new, logp_old, _logp(law, new))
        changed = new != old
        chain.change_rate += (changed - chain.change_rate) / 32
        if changed:
            chain.block = FIRST_BLOCK
            chain.present = self._arrive(chain)
            chain.present.learn(site, law, new)  # its context has not changed
            chain.answer = (site, law)

    def _ask(self, waiting: Sequence[Chain]) -> None:
        """The laws that chains wait for, and, in the same batch, those that they are likely to want next."""
        worth = self.price.worth(len(waiting))
        room = max(0, self.rows - len(waiting) % self.rows) if len(waiting) % self.rows else 0
        wanted = [Ask(chain.ids, chain.tau, int(chain.plan(1)[0][0])) for chain in waiting]
        more = [item for chain in waiting for item in self._ahead(chain, worth)] if room else []
        more.sort(key=lambda item: -item[0])
        found = self._compute(wanted + [ask for _, ask in more[:room]])
        for chain, ask, law in zip(waiting, wanted, found, strict=False):
            if law is None:
                chain.broken = ask.site
            else:
                chain.answer = (ask.site, law)

    def _ahead(self, chain: Chain, worth: float) -> Iterator[tuple[float, Ask]]:
        """Sites that are not known, in the order in which the chain will draw there, with the chance that it does."""
        stay = max(1.0 - chain.change_rate, 1e-9)
        reach = int(min(np.log(worth) / np.log(stay), 4 * len(chain.ids))) if stay < 1 else 4 * len(chain.ids)
        if reach < 1:
            return
        sites, _ = chain.plan(1 + reach)
        seen = {int(sites[0])}
        present = chain.present
        assert present is not None
        for k, site in enumerate(sites[1:].tolist(), start=1):
            if site not in seen and not present.known[site]:
                seen.add(site)
                if self.memory.law(site, chain.tau, chain.ids) is None:
                    yield stay**k, Ask(chain.ids, chain.tau, site)

    def laws_for(self, asked: Sequence[Ask]) -> list[Law | None]:
        """The law of each ask, from memory or else from the model, equal asks computed once; None where it is none."""
        found = [self.memory.law(ask.site, ask.tau, ask.ids) for ask in asked]
        missing: dict[tuple[int, float, bytes], list[int]] = {}
        for k, (ask, law) in enumerate(zip(asked, found, strict=True)):
            if law is None:
                missing.setdefault(self.memory.key(ask.site, ask.tau, ask.ids), []).append(k)
        for places, law in zip(missing.values(), self._compute([asked[places[0]] for places in missing.values()]),
                               strict=True):
            for k in places:
                found[k] = law
        return found

    def pll(self, ids: Ids, tau: float) -> float | None:
        """Pseudo-log-likelihood sum_i log p(x_i | x_-i) at tau = 1, in nats, from what is known at tau and the model.

        None when a token of the state can never be drawn, or a conditional is not finite.
        """
        found = {site: self.memory.law(site, tau, ids) for site in range(len(ids))}
        missing = [site for site, law in found.items() if law is None]
        found |= zip(missing, self._compute([Ask(ids, tau, site) for site in missing]), strict=True)
        total = 0.0
        for site, law in found.items():
            token = int(ids[site])
            logp = law.base_logp(token) if law is not None else None
            if logp is None:  # too small a share at tau to be kept
                logp = float(self.conditional.log_probs(ids[None], np.array([site]))[0, token])
            total += logp
        return total if np.isfinite(total) else None

    def _compute(self, asked: Sequence[Ask]) -> list[Law | None]:
        """Laws from the model, kept in memory; states of like length share a call."""
        order = sorted(range(len(asked)), key=lambda k: len(asked[k].ids))
        found: list[Law | None] = [None] * len(asked)
        for start in range(0, len(order), self.rows):
            batch = [asked[k] for k in order[start : start + self.rows]]
            begin = perf_counter()
            rows = self.conditional.log_probs(stack([ask.ids for ask in batch]), np.array([ask.site for ask in batch]))
            taken = perf_counter() - begin
            self.price.saw(len(batch), taken)
            self.counters.rows += len(batch)
            self.counters.calls += 1
            self.counters.seconds += taken
            made = laws(rows, [ask.tau for ask in batch], [int(ask.ids[ask.site]) for ask in batch])
            for k, ask, law in zip(order[start:], batch, made, strict=False):
                found[k] = law
                if law is not None:
                    self.memory.keep_law(ask.site, ask.tau, ask.ids, law)
        return found


def in_step_order(chains: Iterable[Chain]) -> Iterator[tuple[int, Event]]:
    """(place of the chain, event) of all events up to where the slowest chain is, by step and then by chain."""
    chains = list(chains)
    frontier = min(chain.step for chain in chains)
    ready = []
    for k, chain in enumerate(chains):
        while chain.events and chain.events[0].step <= frontier:
            event = chain.events.popleft()
            ready.append((event.step, k, event))
    ready.sort(key=lambda item: item[:2])
    yield from ((k, event) for _, k, event in ready)
