"""Tokens and sites by word: what a person writes in the place of an id, and which sites belong to one word."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from mlmglauber.models.conditionals import TextModel
from mlmglauber.stream.errors import RecordError

LISTED = 60
"""Maximum number of sites that a message lists."""


def token_of(model: TextModel, word: str, like: int | None = None) -> int:
    """The token that a word is; RecordError with its pieces when it is more than one, or none that may be drawn.

    Where a tokenizer tells "dog" from " dog", the word is taken as it stands in the midst of a text or, given a token
    `like`, as that one does.
    """
    forms = _forms(model, word, like)
    single = [form[0] for form in (forms if like is None else forms[:1]) if len(form) == 1]
    if not single:
        raise RecordError(f"{word.strip()!r} is no single piece of the model's vocabulary but {_cut(model, forms[0])}; "
                          "choose a word that is one piece")
    if not model.allowed[single[0]]:
        raise RecordError(f"{word.strip()!r} is a special or unknown token, which is never drawn; choose another word")
    return single[0]


def tokens_of_word(model: TextModel, word: str, like: int, count: int) -> tuple[int, ...]:
    """The tokens of a word that takes the place of a block of `count` sites, written as the token `like` is.

    RecordError where it has another number of pieces, or one that is never drawn.
    """
    if count == 1:
        return (token_of(model, word, like),)
    found = _forms(model, word, like)[0]
    if len(found) != count:
        raise RecordError(f"{word.strip()!r} is {_cut(model, found)}, {len(found)} pieces for a block of {count} "
                          f"sites; choose a word of {count} pieces")
    if not all(model.allowed[token] for token in found):
        raise RecordError(f"{word.strip()!r} has a special or unknown token, which is never drawn; choose another word")
    return tuple(found)


def block_of(model: TextModel, ids: Sequence[int], name: str | int) -> tuple[int, ...]:
    """The sites that a number (from 0 on), a range as in 3-4, or a word names; a word must stand once in the text.

    A word of several pieces names the block of its sites. Occurrences as a whole word go before those in another word.
    """
    numbers = None if isinstance(name, int) else re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", name.strip())
    if isinstance(name, int) or numbers is not None:
        first = name if isinstance(name, int) else int(numbers[1])  # type: ignore[index]
        last = int(numbers[2]) if numbers is not None and numbers[2] else first
        if not 0 <= first <= last < len(ids):
            missing = first if not 0 <= first < len(ids) else last
            raise RecordError(f"there is no site {missing}; the text has {listing(model, ids)}" if first <= last else
                              f"{name!r} runs backwards; give the first site, then the last, as in {last}-{first}")
        return tuple(range(first, last + 1))
    word = name.strip()
    forms = {tuple(form) for form in (model.encode(word), model.encode(" " + word)) if form}
    places = sorted({(start, start + len(form)) for form in forms for start in range(len(ids))
                     if tuple(ids[start : start + len(form)]) == form})
    ends = {end for span in word_spans(model, ids) for end in span}
    places = [place for place in places if set(place) <= ends] or places
    if not places:
        raise RecordError(f"{word!r} is not in the text; give one of its words, or the number of a site: the text has "
                          f"{listing(model, ids)}")
    if len(places) > 1:
        where = ", ".join(sites_told(range(*place)) for place in places)
        raise RecordError(f"{word!r} stands at sites {where}; give the numbers of one")
    return tuple(range(*places[0]))


def word_spans(model: TextModel, ids: Sequence[int]) -> list[tuple[int, int]]:
    """(first, last + 1) of the sites of each word: pieces that the text writes without a space between.

    A mark of punctuation is a word of its own: inside a word two letters or digits meet, or the bytes of one character.
    """
    starts = [0, *(site for site, (left, right) in enumerate(pairwise(ids), 1) if not _joined(model, left, right))]
    return list(pairwise([*starts, len(ids)])) if len(ids) else []


def split_words(model: TextModel, ids: Sequence[int]) -> list[dict[str, Any]]:
    """The words that have several sites: `word`, and its `sites`."""
    return [{"word": model.decode(list(ids[first:last])).strip(), "sites": list(range(first, last))}
            for first, last in word_spans(model, ids) if last - first > 1]


def part_of(model: TextModel, ids: Sequence[int], block: Sequence[int]) -> str | None:
    """The word that a block of sites is a part of; None where the block holds whole words."""
    for first, last in word_spans(model, ids):
        inside = sum(first <= site < last for site in block)
        if 0 < inside < last - first:
            return model.decode(list(ids[first:last])).strip()
    return None


def pieces(model: TextModel, ids: Sequence[int]) -> list[str]:
    """Tokens as the vocabulary writes them: ##ly, and bytes of a character that decode to the replacement character."""
    tokenizer = getattr(getattr(model, "base", model), "tokenizer", None)
    if tokenizer is None:
        return [model.decode([token]) for token in ids]
    return [str(piece) for piece in tokenizer.convert_ids_to_tokens(list(ids))]


def unknown_token(model: TextModel) -> int | None:
    """The token that stands for what the vocabulary lacks; None where there is none."""
    token = getattr(getattr(getattr(model, "base", model), "tokenizer", None), "unk_token_id", None)
    return None if token is None else int(token)


def listing(model: TextModel, ids: Sequence[int]) -> str:
    """The sites of a text with their pieces, for a message: sites 0 'the', 1 'cat'."""
    shown = ", ".join(f"{site} {piece!r}" for site, piece in enumerate(pieces(model, ids[:LISTED])))
    return f"sites {shown}" + (f" and so on to {len(ids) - 1} (mlm-tokens lists them)" if len(ids) > LISTED else "")


def sites_told(block: Sequence[int]) -> str:
    """A block of neighbouring sites as --site takes it: 3 or 3-4."""
    return str(block[0]) if len(block) == 1 else f"{block[0]}-{block[-1]}"


def _forms(model: TextModel, word: str, like: int | None) -> list[list[int]]:
    """The pieces of a word as it stands in the midst of a text and at its beginning; first as the token `like` does."""
    word = word.strip()
    spaced = like is None or model.decode([like]).startswith(" ")
    return [list(model.encode(form)) for form in ([" " + word, word] if spaced else [word])]


def _cut(model: TextModel, tokens: Sequence[int]) -> str:
    return " ".join(repr(model.decode([token])) for token in tokens) or "nothing"


def _joined(model: TextModel, left: int, right: int) -> bool:
    """Whether two neighbouring tokens are pieces of one word."""
    before, both = model.decode([left]).strip(), model.decode([left, right]).strip()
    if not before or any(character.isspace() for character in both):
        return False
    if not both.startswith(before):  # bytes that are a character only together
        return True
    rest = both[len(before) :]
    return bool(rest) and all(character.isalnum() or character == "\ufffd" for character in (before[-1], rest[0]))
