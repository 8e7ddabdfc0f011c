"""Reads rectangles that are named by sites and tokens, on the command line or in a record."""

from collections.abc import Sequence
from typing import Any

from mlmglauber.measures.rectangle.delta import BlockRectangle, Rectangle
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.words import block_label, block_of, part_of, tokens_of_word
from mlmglauber.stream.errors import RecordError

Block = tuple[int, ...]


def named_rectangle(model: TextModel, ids: list[int], names: Sequence[Any],
                    frozen: list[int]) -> Rectangle | BlockRectangle:
    """The rectangle of two sites or blocks (numbers, ranges or words) and two alternatives (words or token ids).

    RecordError if the names do not make a rectangle.
    """
    if not all(isinstance(name, (str, int)) and not isinstance(name, bool) for name in names[:2]) or not all(
            isinstance(name, (str, int, list)) and not isinstance(name, bool) for name in names[2:]):
        raise RecordError('a rectangle needs "i" and "j", sites or words, and "to_i" and "to_j", words or token '
                          'ids; give all four')
    i, j = (block_of(model, ids, name) for name in names[:2])
    if i == j and len(i) == 1:
        raise RecordError(f"both sites are {i[0]}; give two different sites")
    if set(i) & set(j):
        raise RecordError(f"the blocks {block_label(i)} and {block_label(j)} have sites in common; give two blocks "
                          "without a common site")
    to_a, to_b = (_alternative(model, ids, block, word, frozen) for block, word in ((i, names[2]), (j, names[3])))
    if len(i) == len(j) == 1:
        return Rectangle(i[0], j[0], ids[i[0]], ids[j[0]], to_a[0], to_b[0])
    return BlockRectangle(i, j, tuple(ids[site] for site in i), tuple(ids[site] for site in j), to_a, to_b)


def _alternative(model: TextModel, ids: list[int], block: Block, word: Any, frozen: list[int]) -> Block:
    for site in block:
        if site in frozen:
            raise RecordError(f"site {site} is frozen (--freeze); choose another")
        if not scores_first(model) and site == 0:
            raise RecordError("site 0 has no probability under a causal model without a beginning-of-sequence token; "
                              "choose other sites")
        if not model.allowed[ids[site]]:
            raise RecordError(f"the token at site {site} is special or unknown and has no probability; choose another "
                              "site")
    if isinstance(word, str):
        tokens = tokens_of_word(model, word, ids[block[0]], len(block))
    else:
        tokens = tuple(word) if isinstance(word, list) else (word,)
        if len(tokens) != len(block):
            raise RecordError(f"{len(tokens)} token ids for {len(block)} sites ({block_label(block)}); give one a site")
    for token in tokens:
        if type(token) is not int or not 0 <= token < model.vocab_size or not model.allowed[token]:
            raise RecordError(f"token {token} may not be drawn; choose another")
    if tokens == tuple(ids[site] for site in block):
        word = model.decode(list(tokens)).strip()
        raise RecordError(f"{word!r} is already at {_sites(block)}; choose another word")
    return tokens


def fragments(model: TextModel, ids: list[int], blocks: Sequence[Block]) -> list[str]:
    """A sentence for each block that is only a part of a word."""
    words = [(block, part_of(model, ids, block)) for block in blocks]
    return [f"{_sites(block)} ({model.decode([ids[site] for site in block])!r}) is a piece of the word {word!r}; name "
            "that word to change it whole" for block, word in words if word is not None]


def _sites(block: Block) -> str:
    """The sites of a block, as words."""
    return f"{'site' if len(block) == 1 else 'sites'} {block_label(block)}"


def scores_first(model: TextModel) -> bool:
    """Whether the first site has a conditional: in a causal model only after a beginning-of-sequence token."""
    return not model.has_joint or bool(model.prefix)
