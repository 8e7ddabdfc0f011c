"""What the tests of couplings and of lags share: distributions, the exact law of a coupled draw, runs of groups."""

import numpy as np
from oracles import TABLE_A

from mlmglauber.dynamics.coupled_engine import CoupledEngine
from mlmglauber.dynamics.coupling import Maximal
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.token_distribution import TokenDistribution
from mlmglauber.models.conditionals import TableConditional


def law(probabilities, tau=1.0):
    with np.errstate(divide="ignore"):
        return TokenDistribution.of_row(np.log(np.asarray(probabilities, dtype=float)), tau, 0.0, 0)


def joint(coupling, p, q, size):
    """(V, V): the exact law of the two tokens, integrated over the uniforms.

    Of a maximal coupling two tokens that differ come from the first trial or, each trial failing alike, a later one:
    the volume of the first trial's region is divided by the chance of success, the total variation.
    """
    table = np.zeros((size, size))
    apart = 1 - np.minimum(p.whole(size), q.whole(size)).sum()
    for x in range(size):
        for y in range(size):
            found = coupling.acceptance_region((x, y))
            if found is not None:
                table[x, y] = found.volume / (apart if isinstance(coupling, Maximal) and x != y else 1)
    return table


def finish(groups, memory=1 << 20, table=None, rows=64):
    engine = Engine(TableConditional(TABLE_A) if table is None else table, rows, memory)
    coupled_engine = CoupledEngine(engine)
    while working := [each for each in groups if not each.finished]:
        coupled_engine.advance(working)
    return engine
