"""Tokens and sites by word: what a person writes in the place of an id."""

from collections.abc import Sequence

from mlmglauber.models.conditionals import TextModel
from mlmglauber.stream.errors import RecordError


def token_of(model: TextModel, word: str, like: int | None = None) -> int:
    """The token that a word is; RecordError with its pieces when it is more than one, or none that may be drawn.

    Where a tokenizer tells "dog" from " dog", the word is taken as it stands in the midst of a text or, given a token
    `like`, as that one does.
    """
    word = word.strip()
    spaced = like is None or model.decode([like]).startswith(" ")
    forms = [" " + word, word] if spaced else [word]
    pieces = [_pieces(model, form) for form in forms]
    single = [form[0] for form in (pieces if like is None else pieces[:1]) if len(form) == 1]
    if not single:
        cut = " ".join(repr(model.decode([piece])) for piece in pieces[0])
        raise RecordError(f"{word!r} is no single piece of the model's vocabulary but {cut or 'nothing'}; choose a "
                          "word that is one piece")
    if not model.allowed[single[0]]:
        raise RecordError(f"{word!r} is a special or unknown token, which is never drawn; choose another word")
    return single[0]


def site_of(model: TextModel, ids: Sequence[int], name: str | int) -> int:
    """The site that a number (from 0 on) or a word names; a word must stand once in the text."""
    if isinstance(name, int) or name.strip().isdecimal():
        site = int(name)
        if not 0 <= site < len(ids):
            raise RecordError(f"there is no site {site}; the text has sites 0 to {len(ids) - 1}")
        return site
    forms = [_pieces(model, form) for form in (name.strip(), " " + name.strip())]
    tokens = {form[0] for form in forms if len(form) == 1}
    sites = [site for site, token in enumerate(ids) if token in tokens]
    if not tokens:
        cut = " ".join(repr(model.decode([piece])) for piece in forms[0])
        raise RecordError(f"{name!r} is no single piece of the model's vocabulary but {cut or 'nothing'}; give the "
                          "number of the site")
    if not sites:
        raise RecordError(f"{name!r} is not in the text; give one of its words, or the number of a site from 0 on")
    if len(sites) > 1:
        raise RecordError(f"{name!r} stands at sites {', '.join(map(str, sites))}; give the number of one")
    return sites[0]


def _pieces(model: TextModel, text: str) -> list[int]:
    return list(model.encode(text))
