"""Texts to content ids, where a special token written out in a text is plain text: its characters, not the token."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from mlmglauber.models.vocabulary import marked

HIDDEN = "\U0010ffff"
"""Put before a special token's name it makes a name that no text holds: a noncharacter of Unicode."""

PART = 1 << 14
"""Characters that are tokenised at a time: a tokenizer holds some 500 bytes for each."""
LONGEST_WORD = 1 << 16
"""A longer run without a space is cut where that many characters end, wherever that is in a word."""
SPACE_AHEAD = re.compile(r"(?<=\S)(?= )")


def parts(text: str) -> Iterator[str]:
    """A text in parts of about PART characters, which begin with a space: the ids of the parts are those of the text.

    That holds for tokenizers that cut a text into words at spaces first, and but for the neighbourhood of the cut also
    within a run of more than LONGEST_WORD characters without a space.
    """
    start = 0
    while len(text) - start > PART:
        found = SPACE_AHEAD.search(text, start + PART, start + LONGEST_WORD)
        end = found.start() if found is not None else min(start + LONGEST_WORD, len(text))
        yield text[start:end]
        start = end
    if start < len(text) or not text:
        yield text[start:]


def plain_encoder(tokenizer: Any) -> Callable[[str], list[int]]:
    """A function from a text to its ids, without the model's special tokens around it or, but for unk, inside it.

    Most tokenizers can be told to leave special tokens alone. Two kinds cannot. A Unigram or a word-level model has
    them among its own pieces: there the pieces are renamed. The tokenizers written in Python split by a list of their
    own: there they are taken off it, and one that still comes out, as a word, is the unknown token.
    """
    special = set(tokenizer.all_special_tokens)
    special |= {added.content for added in tokenizer.added_tokens_decoder.values() if added.special}
    if not tokenizer.is_fast:
        return _python_encoder(tokenizer, special | marked(tokenizer))
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    tokenizer.split_special_tokens = True  # without it the next tokenizer.encode() sets the backend's switch back
    backend.encode_special_tokens = True
    if json.loads(backend.to_str())["model"]["type"] != "BPE":  # whose pieces come from merges, and none merges to one
        backend = _renamed(backend, special)

    def encode(text: str) -> list[int]:
        return list(backend.encode(text, add_special_tokens=False).ids)

    return encode


def _renamed(backend: Any, special: set[str]) -> Any:
    """A copy of a backend tokenizer, for encoding only, with the same ids, where no text spells a special token."""
    from tokenizers import Tokenizer

    whole = json.loads(backend.to_str())
    model = whole["model"]
    for added in whole["added_tokens"]:
        added["content"] = _hide(added["content"], special)
    if isinstance(model["vocab"], dict):
        model["vocab"] = {_hide(piece, special): token for piece, token in model["vocab"].items()}
    else:
        model["vocab"] = [[_hide(piece, special), score] for piece, score in model["vocab"]]
    if model.get("unk_token") is not None:
        model["unk_token"] = _hide(model["unk_token"], special)
    whole["post_processor"] = None
    copy = Tokenizer.from_str(json.dumps(whole))
    copy.encode_special_tokens = True
    return copy


def _hide(piece: str, special: set[str]) -> str:
    return HIDDEN + piece if piece in special else piece


def _python_encoder(tokenizer: Any, special: set[str]) -> Callable[[str], list[int]]:
    from transformers.tokenization_python import Trie

    tokenizer.tokens_trie = Trie(set(tokenizer.tokens_trie._tokens) - special)  # type: ignore[no-untyped-call]
    unknown = {tokenizer.convert_tokens_to_ids(piece): tokenizer.unk_token_id for piece in special}

    def encode(text: str) -> list[int]:
        ids = tokenizer.encode(text, add_special_tokens=False)
        return [unknown.get(token, token) for token in ids]

    return encode
