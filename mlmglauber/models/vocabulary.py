"""Finds the placeholders of a vocabulary, tokens that no text contains, and vocabularies whose tokens are letters."""

import json
import re
from typing import Any

UNUSED = re.compile(r"\[unused\d+\]|<unused\d+>|madeupword\d+|<extra_id_\d+>|<\|.*\|>", re.IGNORECASE)
"""Names of reserved tokens, which a tokenizer would take as one token if a text contained them."""
LETTERS = 1000
"""Vocabularies of fewer tokens are alphabets, for example of amino acids, whose tokens are letters."""


def placeholders(tokenizer: Any) -> set[int]:
    """The tokens that no text contains: special and reserved tokens, and pieces that the tokenizer never produces.

    Each piece is tokenised as a text. If the result lacks the piece, it is a placeholder, for example "<null_1>" of
    ESM, "madeupword0001" of RoBERTa, "<s>NOTUSED" of CamemBERT. Pieces that occur only within words are not tested:
    results of merges (BPE), continuations (WordPiece), and all but bracketed pieces of Unigram models.
    """
    special = set(tokenizer.all_special_ids)
    special |= {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
    pieces = {piece: token for piece, token in tokenizer.get_vocab().items() if token not in special}
    placeholder_ids = special | {token for piece, token in pieces.items() if UNUSED.fullmatch(piece)}
    known = set(tokenizer.added_tokens_decoder) | placeholder_ids
    rest = {piece: token for piece, token in pieces.items() if token not in known}
    if not tokenizer.is_fast:  # it splits at every piece of its vocabulary, so no test is possible
        return placeholder_ids | {rest[piece] for piece in marked(tokenizer) & rest.keys()}
    backend = tokenizer.backend_tokenizer
    model = json.loads(backend.to_str())["model"]
    kind = model["type"]
    if kind == "BPE":
        made = {"".join(merge.split(" ") if isinstance(merge, str) else merge) for merge in model["merges"]}
        tested = [piece for piece in rest if len(piece) > 1 and piece not in made
                 and not (model.get("byte_fallback") and re.fullmatch(r"<0x[0-9A-F]{2}>", piece))]
    elif kind == "WordPiece":
        tested = [piece for piece in rest if not piece.startswith(model["continuing_subword_prefix"])]
    else:
        names = [piece for piece in map(str, tokenizer.all_special_tokens) if not piece.isalnum()]
        placeholder_ids |= {token for piece, token in rest.items() if any(name in piece for name in names)}
        tested = [piece for piece in marked(tokenizer) & rest.keys() if rest[piece] not in placeholder_ids]
    texts = [tokenizer.convert_tokens_to_string([piece]) if kind == "BPE" else piece.replace("\u2581", " ")
             for piece in tested]
    for piece, encoding in zip(tested, backend.encode_batch(texts, add_special_tokens=False), strict=True):
        if rest[piece] not in encoding.ids:
            placeholder_ids.add(rest[piece])
    return placeholder_ids


def marked(tokenizer: Any) -> set[str]:
    """The pieces in brackets like those of the special tokens."""
    names = [str(piece) for piece in tokenizer.all_special_tokens]
    brackets = {(name[0], name[-1]) for name in names if len(name) > 2 and not (name[0] + name[-1]).isalnum()}
    return {piece for piece in tokenizer.get_vocab() if len(piece) > 2 and (piece[0], piece[-1]) in brackets}


def is_alphabet(size: int) -> bool:
    """Whether a vocabulary of this size is an alphabet, for example of amino acids."""
    return size < LETTERS
