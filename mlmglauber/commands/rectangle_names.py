"""Rectangles by name: sites and tokens as people write them, on the command line or in a record."""

from collections.abc import Sequence
from typing import Any

from mlmglauber.measures.rectangle import Rectangle
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.words import site_of, token_of
from mlmglauber.stream.errors import RecordError


def named_rectangle(model: TextModel, ids: list[int], names: Sequence[Any], frozen: list[int]) -> Rectangle:
    """The rectangle of two sites (numbers or words) and two alternatives (words or ids); RecordError for none."""
    if not all(isinstance(name, (str, int)) and not isinstance(name, bool) for name in names):
        raise RecordError('"i", "j", "to_i" and "to_j" belong together: sites or words, and words or token ids')
    i, j = (site_of(model, ids, name) for name in names[:2])
    if i == j:
        raise RecordError(f"both sites are {i}; a rectangle needs two")
    to_a, to_b = (_alternative(model, ids, site, word, frozen) for site, word in ((i, names[2]), (j, names[3])))
    return Rectangle(i, j, ids[i], ids[j], to_a, to_b)


def _alternative(model: TextModel, ids: list[int], site: int, word: Any, frozen: list[int]) -> int:
    if site in frozen:
        raise RecordError(f"site {site} is frozen (--freeze); choose another")
    if not scores_first(model) and site == 0:
        raise RecordError("site 0 has no probability under a causal model without a beginning-of-sequence token; "
                          "choose other sites")
    if not model.allowed[ids[site]]:
        raise RecordError(f"the token at site {site} is special or unknown and has no probability; choose another site")
    token = word if isinstance(word, int) else token_of(model, word, ids[site])
    if not 0 <= token < model.vocab_size or not model.allowed[token]:
        raise RecordError(f"token {token} is none that may be drawn; choose another")
    if token == ids[site]:
        raise RecordError(f"{model.decode([token])!r} stands at site {site} already; choose another word")
    return token


def scores_first(model: TextModel) -> bool:
    """Whether the first site has a conditional: in a causal model only behind a beginning-of-sequence token."""
    return not hasattr(model, "joint") or bool(getattr(model, "prefix", ()))
