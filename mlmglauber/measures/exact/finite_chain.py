"""Glauber chains on a finite product space: all states, all conditionals, and the kernel of one random-scan step.

n sites, where site k takes one of m_k tokens, have S = m_0 ... m_{n-1} states, ordered such that the last site changes
fastest. One array, logp[k, x] = log p_k(x_k | x_-k), defines the dynamics: the kernel of an update at site k is

    K_k(x, y) = p_k(y_k | x_-k) where y equals x except at k, else 0,      P = (K_0 + ... + K_{n-1}) / n,

so a distribution or a function is multiplied by P with a sum along each axis, in O(n S) whatever the m_k.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.dynamics.glauber import temper
from mlmglauber.models.truncation import Truncation, cut

Values = NDArray[np.float64]
Places = NDArray[np.int64]

SPARSE = 1 << 22
"""Maximum number of entries of a sparse kernel (100 MB with its transpose); larger chains use sums along the axes."""

BLOCK = 1 << 22
"""Number of array entries that are processed at a time, 32 MB."""


class FiniteChain:
    """The random-scan Glauber chain of S states at one temperature.

    shape: (m_0, ..., m_{n-1}). base: (n, S) log-probabilities at tau = 1 in nats. truncation: of the conditionals at
    tau. p, logp: (n, S) those at tau, truncated.

    >>> chain = FiniteChain((2, 2), np.log([[.8, .3, .2, .7], [.6, .4, .5, .5]]), 1.0)  # Table B of the tests
    >>> chain.forward(np.array([1., 0., 0., 0.]))
    array([0.7, 0.2, 0.1, 0. ])
    """

    def __init__(self, shape: Sequence[int], base: Values, tau: float, truncation: Truncation | None = None) -> None:
        self.shape, self.tau, self.base, self.truncation = tuple(shape), tau, base, truncation
        self.n, self.states = len(self.shape), prod(self.shape)
        if base.shape != (self.n, self.states):
            raise ValueError(f"{self.n} sites of {self.states} states expected, got an array of shape {base.shape}")
        self.logp = np.stack([self._tempered(k) for k in range(self.n)])
        self.p = np.exp(self.logp)
        self._matrices: tuple[Any, Any] | None = None

    def axes(self, site: int) -> tuple[int, int, int]:
        """(left, m, right): the shape of an array of S states whose middle axis is the token of a site."""
        return prod(self.shape[:site]), self.shape[site], prod(self.shape[site + 1 :])

    def digits(self, site: int) -> Places:
        """(S,) the index of each state's token among the tokens of the site."""
        left, m, right = self.axes(site)
        return np.tile(np.repeat(np.arange(m), right), left)

    def neighbours(self, site: int, token: int) -> Places:
        """(S,) the index of each state after its token at the site is replaced."""
        return np.arange(self.states) + (token - self.digits(site)) * self.axes(site)[2]

    def _tempered(self, site: int) -> Values:
        """(S,) log p_tau of each state's own token at a site; at tau = 0 ties go to the first token of the site."""
        folded = self.base[site].reshape(self.axes(site))
        rows = np.moveaxis(folded, 1, 2).reshape(-1, self.shape[site])
        tempered = temper(cut(rows, self.truncation, self.tau), np.full(len(rows), self.tau))
        left, m, right = self.axes(site)
        return np.moveaxis(tempered.reshape(left, right, m), 2, 1).ravel()

    def update(self, laws: Values, site: int) -> Values:
        """(..., S) distributions after one update at a site: law K_site."""
        folded = laws.reshape(*laws.shape[:-1], *self.axes(site))
        return np.asarray((self.p[site].reshape(self.axes(site)) * folded.sum(-2, keepdims=True)).reshape(laws.shape))

    def forward(self, laws: Values) -> Values:
        """(..., S) distributions after one random-scan step: law P."""
        if self._sparse():
            return np.ascontiguousarray((self._matrices[1] @ laws.T).T)  # type: ignore[index]
        return np.asarray(sum(self.update(laws, site) for site in range(self.n)) / self.n)

    def backward(self, functions: Values) -> Values:
        """(..., S) expectations of functions after one random-scan step from each state: P f."""
        if self._sparse():
            return np.ascontiguousarray((self._matrices[0] @ functions.T).T)  # type: ignore[index]
        total = np.zeros_like(functions)
        for site in range(self.n):
            folded = (self.p[site] * functions).reshape(*functions.shape[:-1], *self.axes(site))
            means = np.broadcast_to(folded.sum(-2, keepdims=True), folded.shape)
            total += means.reshape(functions.shape)
        return total / self.n

    def sweep(self, laws: Values) -> Values:
        """(..., S) distributions after one systematic sweep from the first site to the last: law K_0 ... K_{n-1}."""
        for site in range(self.n):
            laws = self.update(laws, site)
        return laws

    def sweep_backward(self, functions: Values) -> Values:
        """(..., S) expectations of functions after one systematic sweep from each state: K_0 ... K_{n-1} f."""
        for site in reversed(range(self.n)):
            folded = (self.p[site] * functions).reshape(*functions.shape[:-1], *self.axes(site))
            functions = np.broadcast_to(folded.sum(-2, keepdims=True), folded.shape).reshape(functions.shape)
        return functions

    def entries(self) -> int:
        """Number of entries of P that can differ from 0."""
        return self.states * (1 + sum(m - 1 for m in self.shape))

    def _sparse(self) -> bool:
        if self.entries() > SPARSE:
            return False
        if self._matrices is None:
            matrix = self.matrix()
            self._matrices = matrix, matrix.T.tocsr()
        return True

    def matrix(self) -> Any:
        """P as a sparse matrix (scipy CSR), O(S (1 + sum_k (m_k - 1))) entries."""
        from scipy.sparse import csr_array

        rows = np.arange(self.states)
        moves = [(self.neighbours(k, token), k) for k in range(self.n) for token in range(self.shape[k])]
        columns = np.concatenate([after for after, _ in moves])
        data = np.concatenate([self.p[k][after] for after, k in moves]) / self.n
        return csr_array((data, (np.tile(rows, len(moves)), columns)), shape=(self.states, self.states))

    def dense(self, systematic: bool = False) -> Values:
        """(S, S) P or, if `systematic`, the kernel of a sweep, as a dense array of 8 S^2 bytes."""
        if systematic:
            return self.sweep(np.eye(self.states))
        whole = np.zeros((self.states, self.states))
        rows = np.arange(self.states)
        for site in range(self.n):
            for token in range(self.shape[site]):
                after = self.neighbours(site, token)
                whole[rows, after] += self.p[site][after] / self.n
        return whole

    def sweep_flow(self, law: Values, labels: Places, count: int) -> Values:
        """(count, count) flow between sets of states under one systematic sweep, see `flow`."""
        total = np.zeros((count, count))
        for block in np.array_split(np.arange(count), -(-count * self.states // BLOCK)):
            after = self.sweep(np.where(labels == block[:, None], law, 0.0))
            for row, moved in zip(block, after, strict=True):
                total[row] = np.bincount(labels, weights=moved, minlength=count)
        return total

    def leaving(self) -> Values:
        """(n, S) 1 - p_k(x_k | x_-k), summed from the other tokens' probabilities: 1e-30 is not lost against 1."""
        rows = []
        for site in range(self.n):
            folded = self.p[site].reshape(self.axes(site))
            before, after = np.zeros_like(folded), np.zeros_like(folded)
            before[:, 1:] = np.cumsum(folded[:, :-1], axis=1)
            after[:, :-1] = np.cumsum(folded[:, :0:-1], axis=1)[:, ::-1]
            rows.append((before + after).ravel())
        return np.stack(rows)

    def flow(self, law: Values, labels: Places, count: int) -> Values:
        """(count, count) flow between different sets of states: F[a, b] = sum over x in a and y in b of law(x) P(x, y).

        labels: (S,) the set of each state. The diagonal is 0.
        """
        total = np.zeros(count * count)
        for site in range(self.n):
            for token in range(self.shape[site]):
                after = self.neighbours(site, token)
                crossing = np.flatnonzero(labels != labels[after])
                there = after[crossing]
                np.add.at(total, labels[crossing] * count + labels[there], law[crossing] * self.p[site][there])
        return total.reshape(count, count) / self.n

    def graph(self) -> Any:
        """The moves of positive probability as a sparse graph of O(n S) edges.

        Its first S nodes are the states. Each masked context is a further node, which connects the states that share
        it.
        """
        from scipy.sparse import csr_array

        states, heads, tails = np.arange(self.states), [], []
        offset = self.states
        for site in range(self.n):
            left, m, right = self.axes(site)
            context = offset + (states // (m * right)) * right + states % right
            offset += left * right
            possible = self.p[site] > 0
            heads += [states, context[possible]]
            tails += [context, states[possible]]
        head, tail = np.concatenate(heads), np.concatenate(tails)
        return csr_array((np.ones(len(head), np.int8), (head, tail)), shape=(offset, offset))


def local_log_probs(shape: Sequence[int], conditional: Callable[[int, Places], Values]) -> Values:
    """(n, S) log p_k(x_k | x_-k) of every state; each masked context is computed once.

    conditional: takes a site and (B, n) indices of tokens (that at the site has no influence) and returns (B, m_k)
    log-probabilities in nats at the site.
    """
    shape, rows = tuple(shape), []
    for site, m in enumerate(shape):
        contexts = np.indices((*shape[:site], 1, *shape[site + 1 :])).reshape(len(shape), -1).T
        answers = conditional(site, np.ascontiguousarray(contexts))
        folded = answers.reshape(prod(shape[:site]), prod(shape[site + 1 :]), m)
        rows.append(np.moveaxis(folded, 2, 1).ravel())
    return np.stack(rows)


def attractors(chain: FiniteChain) -> Places:
    """(S,) the basin of attraction of each state: the lowest state of the fixed point or cycle where ascent ends.

    Steepest ascent replaces x_i by v at the site where log p(v | rest) - log p(x_i | rest) at tau = 1 is largest (ties:
    first site, first token), until every token is its conditional's argmax. With incompatible conditionals it may end
    in a cycle.
    """
    best, following = np.zeros(chain.states), np.arange(chain.states)
    for site in range(chain.n):
        present = chain.base[site]
        for token in range(chain.shape[site]):
            after = chain.neighbours(site, token)
            with np.errstate(invalid="ignore"):
                gain = present[after] - present
            better = gain > best
            best[better], following[better] = gain[better], after[better]
    # After S steps every state has reached its cycle, whose name is the lowest state of the next S steps.
    least = np.arange(chain.states)
    ahead = following
    for _ in range(chain.states.bit_length()):
        least, ahead = np.minimum(least, least[ahead]), ahead[ahead]
    return np.asarray(least[ahead], dtype=np.int64)


def closed_classes(chain: FiniteChain) -> tuple[int, Places]:
    """(count, (S,) the closed communicating class of each state, -1 for a transient one).

    There is one stationary distribution if there is one class. There are several classes only at tau = 0 or with
    probabilities of 0; probabilities below 1e-323 are 0 in double precision.
    """
    if (chain.p > 0).all():
        return 1, np.zeros(chain.states, dtype=np.int64)
    from scipy.sparse.csgraph import connected_components

    graph = chain.graph()
    count, labels = connected_components(graph, directed=True, connection="strong")
    head, tail = graph.nonzero()
    closed = np.ones(count, dtype=bool)
    closed[labels[head[labels[head] != labels[tail]]]] = False
    names = np.where(closed, np.cumsum(closed) - 1, -1)
    return int(closed.sum()), np.asarray(names[labels[: chain.states]], dtype=np.int64)

