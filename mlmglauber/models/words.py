"""Finds the token of a word, the sites that a word or number names, and the sites that belong to one word."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from mlmglauber.models.conditionals import TextModel
from mlmglauber.stream.errors import RecordError

LISTED = 60
"""Maximum number of sites that a message lists."""


def token_of(model: TextModel, word: str, like: int | None = None) -> int:
    """The token of a word; RecordError where the word has several tokens, or one that is never drawn.

    Where a tokenizer has different tokens for "dog" and " dog", the word is taken as within a text, after a space; with
    a token `like`, it begins with a space if that token does.
    """
    forms = _forms(model, word, like)
    single = [form[0] for form in (forms if like is None else forms[:1]) if len(form) == 1]
    if not single:
        raise RecordError(f"{word.strip()!r} is not one token of the model but {_spelled(model, forms[0])}; choose a "
                          "word of one token")
    if not model.allowed[single[0]]:
        raise RecordError(f"{word.strip()!r} is a special or unknown token, which is never drawn; choose another word")
    return single[0]


def named_token(model: TextModel, name: str) -> int:
    """The token of a word or, for a piece that is not a word, of id:NUMBER."""
    if not name.startswith("id:"):
        return token_of(model, name)
    number = name.removeprefix("id:")
    if not (number.isdecimal() and int(number) < model.vocab_size and model.allowed[int(number)]):
        raise RecordError(f"{name!r} is not the id of a token that may be drawn; give another id")
    return int(number)


def tokens_of_word(model: TextModel, word: str, like: int, count: int) -> tuple[int, ...]:
    """The tokens of a word that replaces a block of `count` sites; `like` as in token_of.

    RecordError where the word has another number of tokens, or one that is never drawn.
    """
    if count == 1:
        return (token_of(model, word, like),)
    tokens = _forms(model, word, like)[0]
    if len(tokens) != count:
        raise RecordError(f"{word.strip()!r} has {len(tokens)} tokens ({_spelled(model, tokens)}), the block has "
                          f"{count} sites; choose a word of {count} tokens")
    if not all(model.allowed[token] for token in tokens):
        raise RecordError(f"{word.strip()!r} has a special or unknown token, which is never drawn; choose another word")
    return tuple(tokens)


def block_of(model: TextModel, ids: Sequence[int], name: str | int) -> tuple[int, ...]:
    """The sites that `name` names: a site number, counted from 0; a range such as 3-4; or a word of the text.

    A word of several tokens names all of its sites. An occurrence within another word counts only if there is none as
    a whole word. RecordError for a site that is not in the text, and for a word that occurs never or several times.
    """
    numbers = None if isinstance(name, int) else re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", name.strip())
    if isinstance(name, int) or numbers is not None:
        first = name if isinstance(name, int) else int(numbers[1])  # type: ignore[index]
        last = int(numbers[2]) if numbers is not None and numbers[2] else first
        if not 0 <= first <= last < len(ids):
            missing = first if not 0 <= first < len(ids) else last
            raise RecordError(f"there is no site {missing}; the text has {listing(model, ids)}" if first <= last else
                              f"{name!r} is reversed; give the first site, then the last: {last}-{first}")
        return tuple(range(first, last + 1))
    word = name.strip()
    forms = {tuple(form) for form in (model.encode(word), model.encode(" " + word)) if form}
    places = sorted({(start, start + len(form)) for form in forms for start in range(len(ids))
                     if tuple(ids[start : start + len(form)]) == form})
    ends = {end for span in word_spans(model, ids) for end in span}
    places = [place for place in places if set(place) <= ends] or places
    if not places:
        raise RecordError(f"{word!r} is not in the text; give one of its words, or a site number: the text has "
                          f"{listing(model, ids)}")
    if len(places) > 1:
        where = ", ".join(block_label(range(*place)) for place in places)
        raise RecordError(f"{word!r} is at sites {where}; give the site numbers of one of them")
    return tuple(range(*places[0]))


def word_spans(model: TextModel, ids: Sequence[int]) -> list[tuple[int, int]]:
    """(first, last + 1) of the sites of each word.

    Two neighbouring tokens belong to one word where a letter or digit follows another without a space, or where they
    are bytes of one character. So punctuation marks are words of their own. A space that is a token of its own belongs
    to the word that follows.
    """
    starts = [0, *(site for site, (left, right) in enumerate(pairwise(ids), 1) if not _joined(model, left, right))]
    return list(pairwise([*starts, len(ids)])) if len(ids) else []


def split_words(model: TextModel, ids: Sequence[int]) -> list[dict[str, Any]]:
    """The words of several sites, as objects with `word` and `sites`."""
    return [{"word": model.decode(list(ids[first:last])).strip(), "sites": list(range(first, last))}
            for first, last in word_spans(model, ids) if last - first > 1]


def part_of(model: TextModel, ids: Sequence[int], block: Sequence[int]) -> str | None:
    """The word that a block of sites is only a part of; None for a block of complete words."""
    for first, last in word_spans(model, ids):
        inside = sum(first <= site < last for site in block)
        if 0 < inside < last - first:
            return model.decode(list(ids[first:last])).strip()
    return None


def listing(model: TextModel, ids: Sequence[int]) -> str:
    """The sites of a text with their tokens, for a message: sites 0 'the', 1 'cat'."""
    shown = ", ".join(f"{site} {piece!r}" for site, piece in enumerate(model.pieces(ids[:LISTED])))
    return f"sites {shown}" + (f" and so on to {len(ids) - 1} (mlm-tokens lists them)" if len(ids) > LISTED else "")


def block_label(block: Sequence[int]) -> str:
    """A block of neighbouring sites as --site takes it: 3 or 3-4."""
    return str(block[0]) if len(block) == 1 else f"{block[0]}-{block[-1]}"


def _forms(model: TextModel, word: str, like: int | None) -> list[list[int]]:
    """The tokens of a word with a space before it and without; with `like`, only the form that resembles that token."""
    word = word.strip()
    spaced = like is None or model.decode([like]).startswith(" ")
    return [list(model.encode(form)) for form in ([" " + word, word] if spaced else [word])]


def _spelled(model: TextModel, tokens: Sequence[int]) -> str:
    """Tokens in quotes, for a message."""
    return " ".join(repr(model.decode([token])) for token in tokens) or "nothing"


def _joined(model: TextModel, left: int, right: int) -> bool:
    """Whether two neighbouring tokens belong to one word."""
    first, both = model.decode([left]), model.decode([left, right])
    before, blanks = first.strip(), len(both) - len(both.lstrip(" "))
    both = both.strip()
    if not first.strip(" "):  # a space that is a token of its own
        return bool(both) and blanks <= len(first)
    if not before or any(character.isspace() for character in both):
        return False
    if not both.startswith(before):  # bytes that form a character only together
        return True
    rest = both[len(before) :]
    return bool(rest) and all(character.isalnum() or character == "\ufffd" for character in (before[-1], rest[0]))
