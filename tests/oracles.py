"""Tables whose answers are known exactly, and the kernel of a small chain written out in full."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.glauber import temper
from mlmglauber.measures.exact.finite_chain import FiniteChain, attractors, local_log_probs
from mlmglauber.measures.exact.solve import rectangles, solve
from mlmglauber.models.conditionals import TableConditional

# Two sites, three letters, incompatible. TABLE_A[0][b] is the law of site 0 given site 1 = b.
TABLE_A = [
    [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]],
    [[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]],
]
STATIONARY_A = [0.221583, 0.090457, 0.030638, 0.049795, 0.224504, 0.042866, 0.067992, 0.075591, 0.196575]
# Two sites, two letters, incompatible.
TABLE_B = [[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.5, 0.5]]]
STATIONARY_B = {
    "random": [0.396842, 0.182105, 0.161053, 0.260000],
    "systematic": [0.347368, 0.231579, 0.210526, 0.210526],  # site 0, then site 1
}
COPIES = [0.02, 0.03, 0.2, 0.75, 0.9, 0.93]
"""The chance of token 1 at a site when 0 ... 5 of the other five hold it: copies beget copies from 3 on."""


def counting_table(given):
    """A table whose conditionals depend on the number of copies of token 1 among the other sites alone."""
    n = len(given)
    others = np.indices((2,) * (n - 1)).sum(axis=0)
    law = np.stack([1 - np.array(given)[others], np.array(given)[others]], axis=-1)
    return TableConditional([law] * n)


def site_kernels(table: TableConditional, tau: float) -> NDArray[np.float64]:
    """(n, S, S): the transition matrix of one update at each site, over table.states()."""
    states = table.states()
    count, n, vocab = len(states), table.sites, table.vocab_size
    kernels = np.zeros((n, count, count))
    places = vocab ** np.arange(n - 1, -1, -1)
    for site in range(n):
        law = np.exp(temper(table.log_probs(states, np.full(count, site)), np.full(count, tau)))
        for token in range(vocab):
            after = states.copy()
            after[:, site] = token
            kernels[site, np.arange(count), after @ places] = law[:, token]
    return kernels


def law_after(table: TableConditional, tau: float, scan: str, start: int, steps: int) -> NDArray[np.float64]:
    """Exact law of the state after some steps from a start state (its place in table.states()).

    Under the permutation scan `steps` must be whole sweeps: the sites of one sweep are not independent.
    """
    kernels = site_kernels(table, tau)
    n = table.sites
    law = np.zeros(kernels.shape[1])
    law[start] = 1.0
    if scan == "permutation":
        from itertools import permutations

        sweep = np.mean([np.linalg.multi_dot([kernels[i] for i in order]) for order in permutations(range(n))], axis=0)
        assert steps % n == 0
        return law @ np.linalg.matrix_power(sweep, steps // n)
    for k in range(steps):
        law = law @ (kernels.mean(axis=0) if scan == "random" else kernels[k % n])
    return law


def stationary(kernel: NDArray[np.float64]) -> NDArray[np.float64]:
    """The left eigenvector of eigenvalue 1."""
    values, vectors = np.linalg.eig(kernel.T)
    law = np.real(vectors[:, np.argmin(abs(values - 1))])
    return np.asarray(law / law.sum())


def chain_of(table, tau=1.0):
    """The finite chain of a table, or of the arrays of one."""
    if not isinstance(table, TableConditional):
        table = TableConditional(table)
    shape = (table.vocab_size,) * table.sites
    base = local_log_probs(shape, lambda site, rows: table.log_probs(rows, np.full(len(rows), site)))
    return FiniteChain(shape, base, tau)


def solved(chain, eps=0.25, start=None):
    """A chain solved, with the basins of its steepest ascents and its rectangles."""
    warm = FiniteChain(chain.shape, chain.base, 1.0)
    return solve(chain, attractors(warm), rectangles(chain.shape, chain.base), eps, start)


def random_chain(generator, shape, strength, tau=1.0):
    """A chain of incompatible conditionals; strength: standard deviation of their logits."""
    size = int(np.prod(shape))
    loose = FiniteChain(shape, strength * generator.standard_normal((len(shape), size)), 1.0)
    return FiniteChain(shape, loose.logp, tau)


def ising(n, coupling):
    """(table, log-weights of its states) of a chain of n spins whose neighbours are coupled."""
    spins = np.array(list(product([-1, 1], repeat=n)))
    energy = coupling * (spins[:, 1:] * spins[:, :-1]).sum(axis=1)
    return TableConditional.from_joint(np.exp(energy).reshape((2,) * n)), energy
