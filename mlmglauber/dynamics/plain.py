"""The plain engine computes every step anew. It is the reference that the fast engine must equal."""

from collections.abc import Sequence

import numpy as np

from mlmglauber.dynamics.chain import Chain, Event, Move
from mlmglauber.dynamics.draws import draw
from mlmglauber.dynamics.precision import Precision
from mlmglauber.models.conditionals import Draws, Ids, stack


def advance(precision: Precision, chains: Sequence[Chain], rows: int = 64) -> None:
    """Make one step of every chain that is neither at its horizon nor broken.

    precision: of the model. rows: maximum number of conditionals in a call of the model. A draw that rounding could
    have changed is made again in the next better precision, up to the one that defines the chain. A chain whose
    conditional is not finite is marked as broken.
    """
    ready = sorted((c for c in chains if c.step < c.horizon and c.broken is None), key=lambda c: len(c.ids))
    for batch in (ready[k : k + rows] for k in range(0, len(ready), rows)):
        plans = [chain.plan(chain.step, 1) for chain in batch]
        states = stack([chain.ids for chain in batch])
        sites = np.array([int(site[0]) for site, _ in plans])
        uniforms = np.array([uniform[0] for _, uniform in plans])
        taus = np.array([chain.temperatures.at(chain.step + 1) for chain in batch])
        precision.measure(taus.tolist())
        members: Ids = np.arange(len(batch))
        for level, tolerance in enumerate(precision.tolerances):
            cold = precision.cold(taus[members], level)
            only = tuple(batch[k].choices.get(int(sites[k])) for k in members.tolist())
            draws = Draws(states[members], sites[members], taus[members], uniforms[members, 0], cold,
                          only if any(tokens is not None for tokens in only) else None)
            drawn = draw(precision.conditional.weigh(draws, level), uniforms[members], taus[members], cold, tolerance)
            for k, member in enumerate(members.tolist()):
                if not drawn.finite[k]:
                    batch[member].broken = int(sites[member])
                elif drawn.certain[k]:
                    _update(batch[member], int(sites[member]), int(drawn.tokens[k]), float(drawn.logp_old[k]),
                            float(drawn.logp_new[k]))
            members = members[drawn.finite & ~drawn.certain]
            if not len(members):
                break


def _update(chain: Chain, site: int, new: int, logp_old: float, logp_new: float) -> None:
    """Make the step of a chain; a state that is due becomes an event."""
    old = int(chain.ids[site])
    chain.ids[site] = new
    chain.step += 1
    if chain.schedule.due(chain.step, old != new):
        chain.events.append(Event(chain.step, chain.ids.copy(), Move(site, old, new, logp_old, logp_new)))
