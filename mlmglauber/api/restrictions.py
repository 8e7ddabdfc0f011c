"""The tokens that chains in Python may draw: given words, or the likeliest ones."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mlmglauber.api.checks import check_count, check_model, check_share, check_words, python_errors
from mlmglauber.dynamics.chain import Choices
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.restricted import TruncatedModel, restricted, tokens_of, truncated_model
from mlmglauber.models.truncation import Truncation

Words = Sequence[str]
SiteWords = Mapping[int, Words]
"""For some sites, from 0 on, the only words that may be drawn there."""


def restricted_model(model: TextModel, allow: Words | None, ban: Words | None = None) -> TextModel:
    """The model with probabilities renormalised over some words, or over all but some; the model itself without."""
    def tokens(name: str, words: Words | None) -> list[int] | None:
        return None if words is None else tokens_of(model, check_words(name, words), name)

    check_model(model)
    whole = model.base if isinstance(model, TruncatedModel) else model
    return truncated_model(restricted(whole, tokens("allow", allow), tokens("ban", ban) or ()), model.truncation)


def site_choices(model: TextModel, allow: SiteWords | None, n: int, frozen: Iterable[int]) -> Choices:
    """The tokens of the sites that `allow` names, in a text of n tokens; ValueError for a site that does not move."""
    choices = {}
    for site, words in ({} if allow is None else allow).items():
        if site not in range(n) or site in set(frozen):
            raise ValueError(f"allow names site {site}; give one of the sites 0 to {n - 1} that freeze does not name")
        choices[int(site)] = np.array(sorted(tokens_of(model, check_words("allow", words), "allow")), dtype=np.int64)
    return choices


@python_errors()
def truncate(model: TextModel, *, top_k: int | None = None, top_p: float | None = None,
             min_p: float | None = None) -> TextModel:
    """The model of which only the likeliest tokens are drawn, as with `mlm-sample --top-k`, `--top-p` and `--min-p`.

    top_k keeps the k likeliest tokens of a conditional at its temperature, top_p the fewest likeliest ones whose
    probabilities add up to p or more, min_p those of at least p times the largest probability. Their probabilities are
    renormalised. The chains are others than those of the whole model, with another stationary law: `sample`,
    `meeting_times`, `stationary_mean`, `exact` and `margins` are those of the new chain. `score` and `rectangle` are
    those of the whole model, and `influence` refuses the truncated one.

    ValueError for a top_k below 1, a top_p that is not above 0 and at most 1, and a min_p outside 0 to 1.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> [state.text for state in mg.sample(mg.truncate(model, top_k=1), "a a", steps=4, seed=1)]
    ['a a', 'a a', 'a a', 'a a', 'a a']
    """
    check_model(model)
    if top_k is not None:
        check_count("top_k", top_k, 1)
    check_share("top_p", top_p, zero=False)
    check_share("min_p", min_p)
    whole = model.base if isinstance(model, TruncatedModel) else model
    return truncated_model(whole, Truncation.given(top_k, top_p, min_p))
