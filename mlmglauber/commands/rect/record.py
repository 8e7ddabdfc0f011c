"""The records of the rectangles of one text."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlmglauber.commands.shared.inputs import Input, text_exact
from mlmglauber.measures.rectangle.delta import BlockRectangle, Measured, Rectangle, Values, rounding
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.words import word_spans
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record

ORIGIN = ("run", "id", "chain", "step")
"""Fields that name a state; rectangles of the states of one text depend on each other."""


def rectangle_records(text: Input, rectangles: Sequence[Rectangle | BlockRectangle], measured: Measured,
                      moved: Values | None) -> Iterator[Record]:
    """Rectangle records without the fields that a run shares; RecordError if conditionals are not finite."""
    if np.isnan(measured.logp).any():
        raise RecordError("the model's conditionals are not finite; the text is left out")
    model = text.model
    described = model.describe()
    floor = rounding(measured.size, described["dtype"])
    whole = model.decode(text.ids)
    exact = text_exact(model, whole, text.ids)
    of_state = {"of_state": {key: text.record.get(key) for key in ORIGIN}} if text.record.get("type") == "state" else {}
    words = {site: (first, last) for first, last in word_spans(model, text.ids) if last - first > 1
             for site in range(first, last)}
    for k, rectangle in enumerate(rectangles):
        values = [[None if value == -np.inf else value for value in pair] for pair in measured.logp[k].tolist()]
        record: Record = {
            "type": "rectangle", "run": None, "id": text.name, "model": described["model"], "n": len(text.ids),
            "tau": None, **_named(model, text.ids, rectangle, words), "logp_i": values[:2], "logp_j": values[2:],
            "delta": float(measured.delta[k]), "noise": None if moved is None else float(moved[k]),
            "rounding": float(floor[k]), **of_state, "text": whole, **exact,
        }
        if not np.isfinite(measured.delta[k]):
            why = "a token has probability 0" if np.isinf(measured.logp[k]).any() else "delta is beyond all floats"
            record |= {"delta": None, "noise": None, "rounding": None, "reason": why}
        yield record


def _named(model: TextModel, ids: list[int], rectangle: Rectangle | BlockRectangle,
           words: dict[int, tuple[int, int]]) -> Record:
    """The fields of sites, tokens, pieces and words; lists of them if a block has several sites."""
    i, j, *tokens = (np.atleast_1d(part).tolist() for part in rectangle)
    fields: Record = {"i": i[0], "j": j[0]}
    if isinstance(rectangle, BlockRectangle):
        fields |= {"blocks": [i, j], "tokens": tokens, "pieces": [model.pieces(part) for part in tokens]}
    else:
        fields |= {"tokens": [token for token, in tokens], "pieces": model.pieces([token for token, in tokens])}
    fields["words"] = [model.decode(part) for part in tokens]
    parts: list[Any] = [_word(model, ids, block, words) for block in (i, j)]
    return fields | ({"part_of": parts} if parts != [None, None] else {})


def _word(model: TextModel, ids: list[int], block: list[int], words: dict[int, tuple[int, int]]) -> str | None:
    """The word of which a block is only a part; None if there is none."""
    for first, last in {words[site] for site in block if site in words}:
        if not set(range(first, last)) <= set(block):
            return model.decode(ids[first:last]).strip()
    return None
