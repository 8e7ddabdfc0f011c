"""A model restricted to a few tokens, whose probabilities are renormalised."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.blocks import BlockRows
from mlmglauber.models.conditionals import Draws, Floats, Ids, TextModel, weigh_rows
from mlmglauber.models.truncation import Truncation
from mlmglauber.models.words import token_of
from mlmglauber.stream.errors import RecordError, UsageError


class RestrictedModel(TextModel):
    """A TextModel over a base model q that draws only `tokens`: p(v | x_-i) is proportional to q(v | x_-i).

    Other tokens may be in a state, as context; once replaced at a free site they never return.
    """

    def __init__(self, base: TextModel, tokens: Sequence[int]) -> None:
        self.levels = base.levels
        self.base, self.tokens = base, np.array(sorted(set(tokens)), dtype=np.int64)
        self.vocab_size, self.max_sites = base.vocab_size, base.max_sites
        self.mask_id, self.unknown_id = base.mask_id, base.unknown_id
        self.allowed = np.zeros(base.vocab_size, dtype=bool)
        self.allowed[self.tokens] = True
        self.allowed &= base.allowed
        self.has_second_way = base.has_second_way
        self.prefix = base.prefix

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

    def log_probs_again(self, ids: Ids, sites: Ids) -> Floats:
        """See Conditional."""
        return self._restricted(self.base.log_probs_again(ids, sites))

    def weigh(self, draws: Draws, level: int = 0) -> BlockRows:
        """See Conditional."""
        return weigh_rows(self.log_probs_at(draws.ids, draws.sites, level), draws)

    def _restricted(self, rows: Floats) -> Floats:
        return renormalised(rows, self.tokens)

    def check_ids(self, ids: Sequence[int]) -> None:
        """See TextModel: tokens outside the restriction may be in a state."""
        self.base.check_ids(ids)

    def encode(self, text: str) -> list[int]:
        """See TextModel."""
        return self.base.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """See TextModel."""
        return self.base.decode(ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """See TextModel."""
        return self.base.pieces(ids)

    def token_vectors(self) -> NDArray[np.float32]:
        """See TextModel."""
        return self.base.token_vectors()

    def describe(self) -> dict[str, Any]:
        """See TextModel: the fields of the base model, with the number of tokens that are never drawn."""
        return self.base.describe() | {"banned": int((~self.allowed).sum())}


class SiteRestrictedModel(RestrictedModel):
    """A TextModel over a base model that draws only the tokens of `choices` at some sites, and all of them elsewhere.

    choices: for some sites their tokens, ascending. The probabilities are renormalised at each site.
    """

    def __init__(self, base: TextModel, choices: Mapping[int, Ids]) -> None:
        super().__init__(base, np.flatnonzero(base.allowed).tolist())
        self.choices = choices

    def log_probs(self, ids: Ids, sites: Ids) -> Floats:
        """See Conditional."""
        return self._at_sites(self.base.log_probs(ids, sites), sites)

    def log_probs_at(self, ids: Ids, sites: Ids, level: int) -> Floats:
        """See Conditional."""
        return self._at_sites(self.base.log_probs_at(ids, sites, level), sites)

    def log_probs_again(self, ids: Ids, sites: Ids) -> Floats:
        """See Conditional."""
        return self._at_sites(self.base.log_probs_again(ids, sites), sites)

    def _at_sites(self, rows: Floats, sites: Ids) -> Floats:
        rows = rows.copy()
        for k, site in enumerate(sites.tolist()):
            if site in self.choices:
                rows[k] = renormalised(rows[k : k + 1], self.choices[site])[0]
        return rows


class TruncatedModel(RestrictedModel):
    """A TextModel over a base model whose draws are truncated; its log-probabilities are those of the base model."""

    def __init__(self, base: TextModel, truncation: Truncation) -> None:
        super().__init__(base, np.flatnonzero(base.allowed).tolist())
        self.truncation = truncation
        self.choices = base.choices if isinstance(base, SiteRestrictedModel) else {}

    def weigh(self, draws: Draws, level: int = 0) -> BlockRows:
        """See Conditional; computed in float64 on the processor, from whole rows."""
        return weigh_rows(self.log_probs_at(draws.ids, draws.sites, level), draws, self.truncation)

    def _restricted(self, rows: Floats) -> Floats:
        return rows


def truncated_model(model: TextModel, truncation: Truncation | None) -> TextModel:
    """The model with truncated draws; the model itself without a truncation."""
    return model if truncation is None else TruncatedModel(model, truncation)


def allowed_at(model: TextModel, site: int) -> Ids:
    """The tokens, ascending, that a model may draw at a site."""
    choices = model.choices if isinstance(model, SiteRestrictedModel | TruncatedModel) else {}
    return choices.get(site, np.flatnonzero(model.allowed))


def renormalised(rows: Floats, tokens: Ids) -> Floats:
    """(B, V) log-probabilities of these tokens, renormalised in float64, and -inf for all others; NaN without one."""
    kept = rows[:, tokens].astype(np.float64)
    with np.errstate(invalid="ignore"):  # without a finite logit the row becomes nan, which the chains report
        kept -= kept.max(axis=1, keepdims=True)
        kept -= np.log(np.exp(kept).sum(axis=1, keepdims=True))
    result = np.full_like(rows, -np.inf)
    result[:, tokens] = kept
    return result


def restricted(model: TextModel, allowed: Sequence[int] | None, banned: Sequence[int] = ()) -> TextModel:
    """The model over the allowed tokens, None for all, without the banned ones; the model itself where that is all.

    UsageError where no token is left.
    """
    if allowed is None and not len(banned):
        return model
    kept = np.flatnonzero(model.allowed) if allowed is None else np.array(sorted(set(allowed)), dtype=np.int64)
    kept = np.setdiff1d(kept, np.asarray(banned, dtype=np.int64))
    if not len(kept):
        raise UsageError("every token that may be drawn is banned; ban fewer")
    return RestrictedModel(model, kept.tolist())


def tokens_of(model: TextModel, words: str, option: str) -> list[int]:
    """The tokens of comma-separated words, the value of an option; UsageError for a word of several tokens."""
    tokens: dict[int, str] = {}
    for word in words.split(","):
        try:
            token = token_of(model, word)
        except RecordError as error:
            raise UsageError(f"{option}: {error.what}") from error
        if token in tokens:
            raise UsageError(f"{option}: {tokens[token].strip()!r} and {word.strip()!r} are the same token; give it "
                             "once")
        tokens[token] = word
    return list(tokens)
