"""A text restricted to a few tokens at each free site: a model's conditionals become those of a finite chain."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from mlmglauber.dynamics.glauber import NotFiniteError
from mlmglauber.measures.exact.finite_chain import Places, Values, local_log_probs
from mlmglauber.models.conditionals import Conditional, Floats, Ids


class Restriction:
    """The states of a restricted text: `sites` take one of their `choices` (token ids), other sites keep their token.

    >>> space = Restriction(np.array([7, 8, 9]), [0, 2], [[7, 1], [9, 4]])
    >>> space.shape, space.ids(2), space.place([7, 8, 4]), space.place([5, 8, 4])
    ((2, 2), [7, 8, 4], 2, None)
    """

    def __init__(self, ids: Ids, sites: Sequence[int], choices: Sequence[Sequence[int]]) -> None:
        self.text, self.sites = np.asarray(ids, dtype=np.int64), list(sites)
        # Ascending: at tau = 0 ties go to the lowest id, as in every chain.
        self.choices = [np.array(sorted(tokens), dtype=np.int64) for tokens in choices]
        self.shape = tuple(map(len, self.choices))
        self.states = prod(self.shape)
        self.rows = sum(self.states // m for m in self.shape)
        """Number of masked contexts; each is one conditional of the model."""
        self._digits = [{int(token): k for k, token in enumerate(tokens)} for tokens in self.choices]

    def ids(self, state: int) -> list[int]:
        """The token ids of the whole text in a state."""
        whole = self.text.copy()
        whole[self.sites] = [tokens[k] for tokens, k in
                             zip(self.choices, np.unravel_index(state, self.shape), strict=True)]
        return [int(token) for token in whole]

    def place(self, ids: Sequence[int]) -> int | None:
        """The index of the state that a text is in; None where it is in none."""
        whole = np.asarray(ids)
        if len(whole) != len(self.text) or (np.delete(whole, self.sites) != np.delete(self.text, self.sites)).any():
            return None
        digits = [digit_of.get(int(whole[site])) for digit_of, site in zip(self._digits, self.sites, strict=True)]
        known = [digit for digit in digits if digit is not None]
        return None if len(known) < len(digits) else int(np.ravel_multi_index(known, self.shape))

    def log_probs(self, conditional: Conditional, rows: int,
                  advance: Callable[[float], None] = lambda _: None) -> Values:
        """(n, S) log p_k(x_k | x_-k) at tau = 1 in nats, renormalised over the choices: `base` of FiniteChain.

        Those of a conditional that is truncated are computed in the precision that says which tokens are kept.
        rows: maximum number of conditionals per call. advance: called with the number of conditionals that are done.
        NotFiniteError for a conditional that is 0 or not finite on all choices; its `row` is the site in the text.
        """
        def answer(site: int, contexts: Places) -> Values:
            answers = np.empty((len(contexts), self.shape[site]))
            for start in range(0, len(contexts), rows):
                batch = contexts[start : start + rows]
                states = np.repeat(self.text[None], len(batch), axis=0)
                for k, place in enumerate(self.sites):
                    states[:, place] = self.choices[k][batch[:, k]]
                sites = np.full(len(batch), self.sites[site])
                log_probs = conditional.log_probs(states, sites) if conditional.truncation is None else \
                    conditional.log_probs_at(states, sites, -1)
                answers[start : start + rows] = renormalised(log_probs[:, self.choices[site]])
                if not np.isfinite(answers[start : start + rows].max(axis=1)).all():
                    raise NotFiniteError(self.sites[site])
                advance(len(batch))
            return answers

        return local_log_probs(self.shape, answer)


def renormalised(log_probs: Floats) -> Values:
    """Rows of log-probabilities, renormalised in float64; a row of -inf alone becomes NaN."""
    from scipy.special import log_softmax

    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(log_softmax(np.asarray(log_probs, dtype=np.float64), axis=1))


def likeliest(conditional: Conditional, ids: Ids, sites: Sequence[int], count: int) -> list[list[int]]:
    """For each site the `count` likeliest tokens given the rest of the text, with the present token among them.

    The present token takes the last place where it is less likely, unless the model never draws it.
    """
    chosen = []
    for site in sites:
        row = conditional.log_probs(ids[None], np.array([site]))[0]
        order = np.argsort(-row, kind="stable")[: min(count, int(conditional.allowed.sum()))]
        tokens, present = [int(token) for token in order], int(ids[site])
        if conditional.allowed[present] and present not in tokens:
            tokens[-1] = present
        chosen.append(tokens)
    return chosen
