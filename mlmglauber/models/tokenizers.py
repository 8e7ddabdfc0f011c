"""What a model needs to know of its tokenizer: special tokens around a text, maximum length, tokens to draw."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.plain_text import plain_encoder
from mlmglauber.models.vocabulary import placeholders
from mlmglauber.stream.errors import ModelError, RecordError

OFFSET_POSITIONS = frozenset({"camembert", "data2vec-text", "esm", "ibert", "jina_embeddings_v3", "longformer", "luke",
                              "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"})
"""Model families that number positions from the padding id + 1: so many of max_position_embeddings are never used."""


def template(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before a text and after it, found on a text of one letter.

    ModelError where the tokens of the letter change when special tokens are added.
    """
    for text in ("a", "A", "1"):
        bare, full = (tokenizer.encode(text, add_special_tokens=special) for special in (False, True))
        for start in range(len(full) - len(bare) + 1):
            if bare and full[start : start + len(bare)] == bare:
                return full[:start], full[start + len(bare) :]
    raise ModelError("the tokenizer changes a text when it adds its special tokens, so sites cannot be located; report "
                     "this model")


def beginning(tokenizer: Any) -> list[int]:
    """The tokens before a text: those of the tokenizer's template, else its beginning-of-sequence token, else none."""
    before, _ = template(tokenizer)
    if before:
        return before
    return [] if tokenizer.bos_token_id is None else [int(tokenizer.bos_token_id)]


def position_limit(config: Any, tokenizer: Any) -> int:
    """Maximum number of tokens of an input, special tokens included, that positions and tokenizer both allow."""
    limits = [10**6]
    positions = getattr(config, "max_position_embeddings", None)
    if positions and positions > 0:
        offset = (config.pad_token_id or 0) + 1 if config.model_type in OFFSET_POSITIONS else 0
        limits.append(int(positions) - offset)
    if tokenizer.model_max_length < 10**9:
        limits.append(int(tokenizer.model_max_length))
    return min(limits)


def output_size(name: str, model: Any, tokenizer: Any) -> int:
    """Number of rows of the output layer, one per token; ModelError where a token of the tokenizer has no row."""
    layer = model.get_output_embeddings()
    rows = int(layer.weight.shape[0]) if layer is not None else 0
    if rows <= max(tokenizer.get_vocab().values()):
        raise ModelError(f"{name}: the model's last layer has {rows} rows, fewer than the tokenizer has tokens; give "
                         "another model of this family")
    return rows


def allowed_tokens(tokenizer: Any, vocab_size: int) -> NDArray[np.bool_]:
    """(V,) False for special tokens, for placeholders that no text contains, and for rows that belong to no token."""
    allowed = np.zeros(vocab_size, dtype=bool)
    allowed[list(tokenizer.get_vocab().values())] = True
    allowed[[token for token in placeholders(tokenizer) if token < vocab_size]] = False
    return allowed


class TokenizedModel(TextModel):
    """What models with a tokenizer and a neural network share: texts to ids, ids to texts, and the check of ids."""

    def __init__(self, model: Any, tokenizer: Any, vocab_size: int) -> None:
        self.model, self.tokenizer, self.vocab_size = model, tokenizer, vocab_size
        self.unknown_id: int | None = tokenizer.unk_token_id
        self.allowed = allowed_tokens(tokenizer, vocab_size)
        self._encode = plain_encoder(tokenizer)
        self._limit = position_limit(model.config, tokenizer)
        self._forbidden = {int(token) for token in self.special_ids() if token not in (None, tokenizer.unk_token_id)}

    def special_ids(self) -> Iterable[int | None]:
        """The special tokens that a state cannot contain, the unknown token aside."""
        return list(self.tokenizer.all_special_ids)

    def encode(self, text: str) -> list[int]:
        """See TextModel: "[MASK]" in a text is a bracket, a word and a bracket."""
        return self._encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """See TextModel."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """See TextModel."""
        return [str(piece) for piece in self.tokenizer.convert_ids_to_tokens(list(ids))]

    def token_vectors(self) -> NDArray[np.float32]:
        """See TextModel."""
        return np.asarray(self.model.get_input_embeddings().weight.detach().float().cpu().numpy())

    def check_ids(self, ids: Sequence[int]) -> None:
        """See TextModel."""
        for token in ids:
            if not 0 <= token < self.vocab_size:
                raise RecordError(f"token id {token} is outside the model's {self.vocab_size} tokens; give ids of this "
                                  "model")
            if token in self._forbidden:
                piece = self.tokenizer.convert_ids_to_tokens(token)
                raise RecordError(f"token id {token} ({piece}) is a special token, which a state cannot contain; leave "
                                  "it out")
