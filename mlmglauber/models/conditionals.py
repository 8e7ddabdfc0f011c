"""The one door to every model: single-site conditionals, and the exact table that tests stand on."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.blocks import BlockRows, block_rows
from mlmglauber.models.blocks import Floats as Floats
from mlmglauber.models.blocks import Ids as Ids

FILL = -1
"""What fills up a shorter state on the right when states of several lengths share one array."""


class Draws(NamedTuple):
    """B conditionals that are to be drawn from, one draw each.

    ids: (B, n) states, shorter ones filled up with FILL. sites: (B,) one site each. taus: (B,) temperatures. uniforms:
    (B,) the first uniform of each draw. cold: (B,) True where the argmax is taken in the place of a draw.
    """

    ids: Ids
    sites: Ids
    taus: NDArray[np.float64]
    uniforms: NDArray[np.float64]
    cold: NDArray[np.bool_]

    @property
    def old(self) -> Ids:
        """(B,) the tokens that stand at the sites."""
        return self.ids[np.arange(len(self.ids)), self.sites]


def stack(states: Sequence[Ids]) -> Ids:
    """States of several lengths as one (B, n) array, shorter ones filled up with FILL on the right."""
    width = max(map(len, states))
    if all(len(ids) == width for ids in states):
        return np.array(states, dtype=np.int64)
    rows = np.full((len(states), width), FILL, dtype=np.int64)
    for row, ids in zip(rows, states, strict=True):
        row[: len(ids)] = ids
    return rows


class Conditional(Protocol):
    """Anything that answers: with site i masked, how likely is each token there?"""

    vocab_size: int
    allowed: NDArray[np.bool_]
    """(V,) True for the tokens that may be drawn; the others have probability 0."""
    levels: int
    """Number of precisions in which it answers, from the fastest, 0, to the one that defines the chain, levels - 1."""

    @property
    def rows(self) -> int:
        """How many states go through it at once; more are cut into batches."""
        ...

    def log_probs(self, ids: Ids, sites: Ids) -> Floats:
        """Log-probabilities at tau = 1, in nats, renormalised over the allowed tokens.

        ids: (B, n) states, content tokens only, shorter ones filled up with FILL on the right.
        sites: (B,) one site for each state; the token that stands there has no influence.
        Returns (B, V), float32 or better, -inf where a token is not allowed.
        """
        ...

    def log_probs_at(self, ids: Ids, sites: Ids, level: int) -> Floats:
        """The same in one of the `levels`; -1 is the one that defines the chain."""
        ...

    def weigh(self, draws: Draws, level: int = 0) -> BlockRows:
        """What draws from these conditionals read, in one of the `levels`; few numbers a row, not V."""
        ...


class TextModel(Conditional, Protocol):
    """A conditional with words: what a command needs to read texts and write them."""

    max_sites: int
    """The longest state that the model takes, in content tokens."""
    mask_id: int | None
    """The token that stands for no token, None for a table."""
    unknown_id: int | None
    """The token that stands for what the vocabulary lacks; None where there is none."""

    def check_ids(self, ids: Sequence[int]) -> None:
        """RecordError for ids that cannot be a state: out of range, or special tokens (an unknown token may stand)."""
        ...

    def encode(self, text: str) -> list[int]:
        """Content token ids of a text; special tokens written in the text are plain text."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """A text for people; not to be tokenised again."""
        ...

    def describe(self) -> dict[str, Any]:
        """What the run record says of the model: name, hash, dtype, device, tokenizer, versions."""
        ...


class OneLevel:
    """A conditional of which log_probs itself defines the chain: what is left to answer, in numpy and float64."""

    levels = 1
    rows = 64

    def log_probs(self, ids: Ids, sites: Ids) -> Floats:
        """See Conditional."""
        raise NotImplementedError

    def log_probs_at(self, ids: Ids, sites: Ids, level: int) -> Floats:
        """See Conditional."""
        return self.log_probs(ids, sites)

    def weigh(self, draws: Draws, level: int = 0) -> BlockRows:
        """See Conditional."""
        rows = self.log_probs(draws.ids, draws.sites)
        return block_rows(rows, draws.old, draws.taus, draws.uniforms, draws.cold)


class TableConditional(OneLevel):
    """Conditionals from tables of numbers: exact, tiny, no torch.

    tables[i] has shape (V,) * n: its first n - 1 axes are the other sites in order, its last is the token at site i.

    >>> table = TableConditional([[[.8, .2], [.3, .7]], [[.6, .4], [.5, .5]]])
    >>> np.exp(table.log_probs(np.array([[0, 1]]), np.array([0]))).round(3)
    array([[0.3, 0.7]])
    """

    def __init__(self, tables: Sequence[Any], allowed: Sequence[bool] | None = None) -> None:
        self.tables = [np.asarray(table, dtype=np.float64) for table in tables]
        self.sites = len(self.tables)
        self.vocab_size = self.tables[0].shape[-1]
        wanted = (self.vocab_size,) * self.sites
        for i, table in enumerate(self.tables):
            if table.shape != wanted:
                raise ValueError(f"the table of site {i} has shape {table.shape}; {self.sites} sites need {wanted}")
            if not (np.isfinite(table).all() and (table >= 0).all() and np.allclose(table.sum(-1), 1, atol=1e-9)):
                raise ValueError(f"the table of site {i} has a row that is no probability law; each must sum to 1")
        self.allowed = np.ones(self.vocab_size, bool) if allowed is None else np.asarray(allowed, bool)
        if self.allowed.shape != (self.vocab_size,) or not self.allowed.any():
            raise ValueError(f"allowed: shape {self.allowed.shape}; one truth value a token is needed, a true one too")

    @classmethod
    def from_joint(cls, joint: Any) -> "TableConditional":
        """The compatible conditionals of a joint law, an array of shape (V,) * n."""
        joint = np.asarray(joint, dtype=np.float64)
        tables = []
        for i in range(joint.ndim):
            moved = np.moveaxis(joint, i, -1)
            tables.append(moved / moved.sum(-1, keepdims=True))
        return cls(tables)

    def log_probs(self, ids: Ids, sites: Ids) -> Floats:
        """See Conditional. float64."""
        ids = np.asarray(ids)
        if ids.ndim != 2 or ids.shape[1] != self.sites:
            raise ValueError(f"states of {self.sites} sites expected, got an array of shape {ids.shape}")
        rows = np.empty((len(ids), self.vocab_size))
        for k, site in enumerate(np.asarray(sites).tolist()):
            rows[k] = self.tables[site][tuple(np.delete(ids[k], site))]
        rows[:, ~self.allowed] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(rows / rows.sum(1, keepdims=True)))

    def states(self) -> Ids:
        """All V ** n states, (V ** n, n), the last site running fastest."""
        return np.array(list(product(range(self.vocab_size), repeat=self.sites)), dtype=np.int64)
