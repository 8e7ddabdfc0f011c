"""Scores of texts in Python."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlmglauber.api.chains import Text, token_ids
from mlmglauber.api.checks import check_model, python_errors
from mlmglauber.api.progress import Progress, advancing
from mlmglauber.models.conditionals import TextModel

if TYPE_CHECKING:
    from mlmglauber.measures.score.text_score import TextScore


@python_errors()
def score(model: TextModel, texts: Sequence[Text], *, within_word: bool = True,
          progress: Progress = None) -> "list[TextScore]":
    """Scores of texts at temperature 1, without a chain, as `mlm-score` computes them.

    For each text the log-probability of each token given all others, or under a causal model (open_model(...,
    causal=True)) given those before it; the rank and the margin of each token; and the sum of the log-probabilities,
    the pseudo-log-likelihood, with pseudo-perplexities (see TextScore). Equal texts and equal contexts are computed
    once, and texts of similar length share forward passes.

    texts: texts, or lists of token ids. within_word: also compute the within-word variant of Kauf and Ivanova (2023),
    in which the later tokens of a word are masked with the token. progress: True for a bar, or a function that is
    called with numbers of conditionals. ValueError for one text in the place of a list, for a text that the model
    cannot take, and for a conditional that is not finite.

    >>> import numpy as np
    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> same, different = mg.score(model, ["a a", "a b"])
    >>> [round(float(p), 6) for p in np.exp(same.logp)], round(same.perplexity, 6)
    ([0.8, 0.8], 1.25)
    >>> round(different.total, 6), different.rank.tolist()  # 2 log 0.2
    (-3.218876, [2, 2])
    """
    from mlmglauber.measures.score.scoring import different_conditionals, score_texts
    from mlmglauber.models.words import word_spans

    check_model(model)
    if isinstance(texts, str):
        raise ValueError("texts is one text; give a list of texts")
    ids = [np.array(token_ids(model, text), dtype=np.int64) for text in texts]
    words = [word_spans(model, text.tolist()) for text in ids]
    with advancing(progress, "conditionals", different_conditionals(model, ids, words, within_word)) as advance:
        scores = score_texts(model, ids, words, within_word, advance)
    for k, found in enumerate(scores):
        if found.broken is not None:
            raise ValueError(f"text {k}: the model's conditional at site {found.broken} is not finite; leave the text "
                             "out")
    return scores
