"""A model whose vocabulary is restricted to a few tokens, the rest renormalised."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlmglauber.models.blocks import BlockRows, block_rows
from mlmglauber.models.conditionals import Draws, Floats, Ids, TextModel
from mlmglauber.models.words import token_of
from mlmglauber.stream.errors import RecordError, UsageError


class RestrictedModel:
    """A TextModel over another one: only `tokens` are ever drawn, p(v | x_-i) = q(v | x_-i) / sum_{w in tokens} q(w).

    Other tokens may stand in a state, as context; at a free site they are left and never come back. The base model
    cuts what it is asked into batches as it does alone.
    """

    def __init__(self, base: TextModel, tokens: Sequence[int]) -> None:
        self.levels = base.levels
        self.base, self.tokens = base, np.array(sorted(set(tokens)), dtype=np.int64)
        self.vocab_size, self.max_sites = base.vocab_size, base.max_sites
        self.mask_id, self.unknown_id = base.mask_id, base.unknown_id
        self.allowed = np.zeros(base.vocab_size, dtype=bool)
        self.allowed[self.tokens] = True
        self.allowed &= base.allowed

        if hasattr(base, "log_probs_again"):
            self.log_probs_again = lambda ids, sites: self._restricted(base.log_probs_again(ids, sites))

    @property
    def rows(self) -> int:
        """See Conditional."""
        return self.base.rows

    def log_probs(self, ids: Ids, sites: Ids) -> Floats:
        """See Conditional. In the base model's dtype; the sums are float64."""
        return self._restricted(self.base.log_probs(ids, sites))

    def log_probs_at(self, ids: Ids, sites: Ids, level: int) -> Floats:
        """See Conditional."""
        return self._restricted(self.base.log_probs_at(ids, sites, level))

    def weigh(self, draws: Draws, level: int = 0) -> BlockRows:
        """See Conditional."""
        rows = self.log_probs_at(draws.ids, draws.sites, level)
        return block_rows(rows, draws.old, draws.taus, draws.uniforms, draws.cold)

    def _restricted(self, rows: Floats) -> Floats:
        kept = rows[:, self.tokens].astype(np.float64)
        with np.errstate(invalid="ignore"):  # where no token is left the row is no law, and is seen to be none
            kept -= kept.max(axis=1, keepdims=True)
            kept -= np.log(np.exp(kept).sum(axis=1, keepdims=True))
        found = np.full_like(rows, -np.inf)
        found[:, self.tokens] = kept
        return found

    def check_ids(self, ids: Sequence[int]) -> None:
        """See TextModel: what the base model takes, tokens outside the restriction too."""
        self.base.check_ids(ids)

    def encode(self, text: str) -> list[int]:
        """See TextModel."""
        return self.base.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """See TextModel."""
        return self.base.decode(ids)

    def describe(self) -> dict[str, Any]:
        """What the base model says of itself, and how many tokens are never drawn."""
        return self.base.describe() | {"banned": int((~self.allowed).sum())}


def tokens_of(model: TextModel, words: str, option: str) -> list[int]:
    """The tokens of words with commas between, for an option; UsageError for a word that is no single piece."""
    tokens: dict[int, str] = {}
    for word in words.split(","):
        try:
            token = token_of(model, word)
        except RecordError as error:
            raise UsageError(f"{option}: {error.what}") from error
        if token in tokens:
            raise UsageError(f"{option}: {tokens[token].strip()!r} and {word.strip()!r} are one token; name it once")
        tokens[token] = word
    return list(tokens)
