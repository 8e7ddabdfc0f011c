"""What every model provides: single-site conditionals p_i(v | x_-i); and exact ones from tables of numbers."""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.blocks import BlockRows, block_rows
from mlmglauber.models.blocks import Floats as Floats
from mlmglauber.models.blocks import Ids as Ids
from mlmglauber.models.token_scores import TokenScores, token_scores
from mlmglauber.models.truncation import Truncation

FILL = -1
"""Fills up shorter states on the right where states of several lengths share one array."""


class Draws(NamedTuple):
    """B draws, one from each of B conditionals.

    ids: (B, n) states, shorter ones filled up with FILL. sites: (B,) one site per state. taus: (B,) temperatures.
    uniforms: (B,) the first uniform of each draw. cold: (B,) True where the argmax is taken instead of a draw. only:
    for each draw the tokens that it may give, ascending, None for all; None where no draw is restricted.
    """

    ids: Ids
    sites: Ids
    taus: NDArray[np.float64]
    uniforms: NDArray[np.float64]
    cold: NDArray[np.bool_]
    only: tuple[Ids | None, ...] | None = None

    @property
    def old(self) -> Ids:
        """(B,) the tokens at the sites."""
        return self.ids[np.arange(len(self.ids)), self.sites]


def stack(states: Sequence[Ids]) -> Ids:
    """One (B, n) array of states of several lengths, shorter ones filled up with FILL on the right."""
    width = max(map(len, states))
    if all(len(ids) == width for ids in states):
        return np.array(states, dtype=np.int64)
    rows = np.full((len(states), width), FILL, dtype=np.int64)
    for row, ids in zip(rows, states, strict=True):
        row[: len(ids)] = ids
    return rows


def weigh_rows(rows: Floats, draws: Draws, truncation: Truncation | None = None) -> BlockRows:
    """What draws from (B, V) log-probabilities need; tokens that a draw may not give get probability 0."""
    if draws.only is not None:
        rows = np.stack([row if tokens is None else masked(row, tokens)
                         for row, tokens in zip(rows, draws.only, strict=True)])
    if truncation is None:
        return block_rows(rows, draws.old, draws.taus, draws.uniforms, draws.cold)
    truncated = truncation.of(rows, draws.taus, draws.cold)
    weighed = block_rows(truncated.rows, draws.old, draws.taus, draws.uniforms, draws.cold)
    return weighed._replace(slack=truncated.slack)


def masked(row: Floats, tokens: Ids) -> Floats:
    """(V,) log-probabilities of these tokens, and -inf for all others; they are not renormalised."""
    result = np.full_like(row, -np.inf)
    result[tokens] = row[tokens]
    return result


class Conditional(Protocol):
    """Anything that answers: how likely is each token at a masked site, given the other tokens?

    Implementations inherit from this class. The optional abilities, which begin at `has_second_way`, have defaults.
    """

    vocab_size: int
    allowed: NDArray[np.bool_]
    """(V,) True for the tokens that may be drawn; the others have probability 0."""
    levels: int
    """Number of precisions that the conditional can be computed in: 0 is the fastest, levels - 1 defines the chain."""
    truncation: Truncation | None = None
    """The rules that cut off tokens at the temperature of a draw; log-probabilities are those before that."""

    @property
    def rows(self) -> int:
        """Number of states in one batch; more states are computed in several batches."""
        ...

    @abstractmethod
    def log_probs(self, ids: Ids, sites: Ids) -> Floats:
        """Log-probabilities at tau = 1, in nats, normalised over the allowed tokens.

        ids: (B, n) states of content tokens, shorter ones filled up with FILL on the right. sites: (B,) one site per
        state; the token at the site has no influence. Returns (B, V), float32 or better, -inf for tokens that are not
        allowed.
        """

    @abstractmethod
    def log_probs_at(self, ids: Ids, sites: Ids, level: int) -> Floats:
        """Like log_probs, in one of the `levels`; -1 is the one that defines the chain."""

    @abstractmethod
    def weigh(self, draws: Draws, level: int = 0) -> BlockRows:
        """What one draw from each of these conditionals needs, in one of the `levels`: few numbers per row, not V."""

    def token_scores(self, ids: Ids, sites: Ids, tokens: Ids) -> TokenScores:
        """The scores of (B, K) tokens at the sites; a row of `tokens` with fewer than K is filled up with FILL."""
        batches = [slice(start, start + self.rows) for start in range(0, len(ids), self.rows)]
        parts = [token_scores(self.log_probs(ids[batch], sites[batch]), tokens[batch]) for batch in batches]
        return TokenScores(*map(np.concatenate, zip(*parts, strict=True)))

    has_second_way: bool = False
    """Whether the same numbers can be computed again by another way through the hardware, which shows the rounding."""

    def log_probs_again(self, ids: Ids, sites: Ids) -> Floats:
        """Like log_probs, by another way through the hardware. TypeError unless `has_second_way`."""
        raise TypeError(f"{type(self).__name__} is computed in one way only")

    has_joint: bool = False
    """Whether the model gives log P(x) of whole states, as a causal model does; it may have no log_probs then."""

    def joint(self, ids: Ids, way: int = 0, again: bool = False) -> NDArray[np.float64]:
        """(B,) log P(x) in nats of (B, n) states. TypeError unless `has_joint`.

        way, again: choose one of several ways through the hardware, whose results differ by rounding.
        """
        raise TypeError(f"{type(self).__name__} has no joint distribution")

    def left_log_probs(self, ids: Ids, sites: Ids) -> Floats:
        """(B, V) log p(v | tokens left of the site), in nats. TypeError unless `has_joint`."""
        raise TypeError(f"{type(self).__name__} has no joint distribution")

    def left_scores(self, ids: Ids) -> TokenScores:
        """Scores of each token of (B, n) states given the tokens left of it, (B, n). TypeError unless `has_joint`.

        NaN and rank 0 where a state has FILL, and at site 0 of a model that has no token to begin a text with.
        """
        raise TypeError(f"{type(self).__name__} has no joint distribution")


class TextModel(Conditional, Protocol):
    """A conditional with a tokenizer: what a command needs to read and to write texts."""

    max_sites: int
    """Maximum number of content tokens of a state."""
    mask_id: int | None
    """The mask token; None for a model without one, such as a table."""
    unknown_id: int | None
    """The unknown token; None where there is none."""
    prefix: Sequence[int] = ()
    """The special tokens that the model puts before each text."""
    model: Any = None
    """The neural network, a torch module; None for a table."""

    @abstractmethod
    def check_ids(self, ids: Sequence[int]) -> None:
        """RecordError for ids that cannot be a state: out of range, or special tokens other than the unknown one."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Content token ids of a text; special tokens written in the text are plain text."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, for people; tokenising it again may give other ids."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The fields of the run record that identify the model: name, hash, number format, device, versions, ..."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Tokens as the vocabulary spells them, for example ##ly; by default what `decode` makes of each."""
        return [self.decode([token]) for token in ids]

    def token_vectors(self) -> NDArray[np.float32]:
        """(V, d) input embeddings of the tokens; by default unit vectors, all equally far from each other."""
        return np.eye(self.vocab_size, dtype=np.float32)


class OneLevel(Conditional):
    """A conditional with one level: log_probs itself defines the chain, and draws are prepared in numpy and float64."""

    levels = 1
    rows = 64

    def log_probs_at(self, ids: Ids, sites: Ids, level: int) -> Floats:
        """See Conditional."""
        return self.log_probs(ids, sites)

    def weigh(self, draws: Draws, level: int = 0) -> BlockRows:
        """See Conditional."""
        return weigh_rows(self.log_probs(draws.ids, draws.sites), draws)


class TableConditional(OneLevel):
    """Exact conditionals from tables of numbers, without torch.

    tables[i] has shape (V,) * n: the first n - 1 axes are the other sites in order, the last is the token at site i.
    ValueError for tables of another shape, and for rows that are not probability distributions.

    >>> import numpy as np
    >>> from mlmglauber import TableConditional
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
                raise ValueError(f"the table of site {i} has a row that is not a probability distribution; each must "
                                 "sum to 1")
        self.allowed = np.ones(self.vocab_size, bool) if allowed is None else np.asarray(allowed, bool)
        if self.allowed.shape != (self.vocab_size,) or not self.allowed.any():
            raise ValueError(f"allowed: shape {self.allowed.shape}; give one truth value per token, at least one of "
                             "them true")

    @classmethod
    def from_joint(cls, joint: Any) -> "TableConditional":
        """The conditionals of a joint distribution, an array of shape (V,) * n."""
        joint = np.asarray(joint, dtype=np.float64)
        tables = []
        for i in range(joint.ndim):
            moved = np.moveaxis(joint, i, -1)
            with np.errstate(invalid="ignore"):  # a row of zeros has no conditional; the constructor refuses it
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
        """(V ** n, n) all states; the token at the last site changes fastest."""
        return np.array(list(product(range(self.vocab_size), repeat=self.sites)), dtype=np.int64)
