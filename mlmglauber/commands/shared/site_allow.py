"""The field `allow` of an input, {"SITE": ["WORD", ...]}: the only words that its chains may draw at these sites."""

from typing import TYPE_CHECKING

from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import as_json, loads, to_line
from mlmglauber.stream.records import Record

if TYPE_CHECKING:
    from mlmglauber.dynamics.chain import Choices
    from mlmglauber.models.conditionals import TextModel


def site_allow(record: Record) -> str | None:
    """The field `allow` as JSON with its sites and words in order; None without one. RecordError for another form."""
    allow = record.get("allow")
    if allow is None:
        return None
    if not isinstance(allow, dict) or not all(
            site.isascii() and site.isdecimal() and len(site) <= 6 and type(words) is list and words
            and all(isinstance(word, str) and word.strip() for word in words) for site, words in allow.items()):
        raise RecordError(f'"allow" is {as_json(allow)}; give the words of some sites, as in '
                          '{"1": ["cat", "dog"]}')
    if len({int(site) for site in allow}) < len(allow):
        raise RecordError('"allow" names a site twice; name it once')
    ordered = {str(int(site)): sorted({word.strip() for word in allow[site]}) for site in sorted(allow, key=int)}
    return to_line(ordered)[:-1].decode() if ordered else None


def choices_of(model: "TextModel", allow: str | None) -> "Choices":
    """The tokens of each site that site_allow names; RecordError for a word that is not one token of the model."""
    import numpy as np

    from mlmglauber.models.words import named_token

    choices = {}
    for site, words in ({} if allow is None else loads(allow.encode())).items():
        try:
            choices[int(site)] = np.array(sorted({named_token(model, word) for word in words}), dtype=np.int64)
        except RecordError as error:
            raise RecordError(f'"allow" of site {site}: {error.what}') from error
    return choices


def checked_choices(model: "TextModel", record: Record, n: int, frozen: list[int]) -> "Choices":
    """The tokens of the sites of a text of n tokens that its `allow` names; RecordError for sites that do not move."""
    choices = choices_of(model, site_allow(record))
    for site in choices:
        if site >= n:
            raise RecordError(f'"allow" names site {site}, but the text has sites 0 to {n - 1} only; leave it out')
        if site in frozen:
            raise RecordError(f'"allow" names site {site}, which is frozen; leave one of the two out')
    return choices
