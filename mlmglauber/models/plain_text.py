"""Tokenises texts so that a special token written in a text is plain text: its characters, not the token."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from mlmglauber.models.vocabulary import marked

HIDDEN = "\U0010ffff"
"""A Unicode noncharacter; before the name of a special token it makes a name that no text contains."""

PART = 1 << 14
"""Number of characters tokenised at a time; a tokenizer needs about 500 bytes of memory for each."""
LONGEST_WORD = 1 << 16
"""Maximum number of characters without a space in a part; a longer run is cut within a word."""
SPACE_AHEAD = re.compile(r"(?<=\S)(?= )")


def parts(text: str) -> Iterator[str]:
    """A text in parts of about PART characters, cut before spaces, so that the parts have the tokens of the text.

    This holds for tokenizers that first divide a text at spaces. Near a cut within a run of more than LONGEST_WORD
    characters without a space, tokens may differ.
    """
    start = 0
    while len(text) - start > PART:
        space = SPACE_AHEAD.search(text, start + PART, start + LONGEST_WORD)
        end = space.start() if space is not None else min(start + LONGEST_WORD, len(text))
        yield text[start:end]
        start = end
    if start < len(text) or not text:
        yield text[start:]


def plain_encoder(tokenizer: Any) -> Callable[[str], list[int]]:
    """A function from a text to its token ids, without special tokens around or in it, the unknown token aside.

    Most tokenizers have an option for this. Two kinds have none. Unigram and word-level models have special tokens
    among their pieces, so these are renamed. Tokenizers written in Python split a text by a list of special tokens, so
    these are removed from the list; a special token that still results becomes the unknown token.
    """
    special = set(tokenizer.all_special_tokens)
    special |= {added.content for added in tokenizer.added_tokens_decoder.values() if added.special}
    if not tokenizer.is_fast:
        return _python_encoder(tokenizer, special | marked(tokenizer))
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    tokenizer.split_special_tokens = True  # else tokenizer.encode() resets the backend
    backend.encode_special_tokens = True
    if json.loads(backend.to_str())["model"]["type"] != "BPE":  # BPE merges never result in one
        backend = _renamed(backend, special)

    def encode(text: str) -> list[int]:
        return list(backend.encode(text, add_special_tokens=False).ids)

    return encode


def _renamed(backend: Any, special: set[str]) -> Any:
    """A copy of a backend tokenizer with the same ids whose special tokens have names that no text contains."""
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
