"""Influences: matrices of which token moves which conditional, and alpha by temperature."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.palette import BLACK, category, ordered
from mlmglauber.pictures.panel import (
    SERIES,
    Axis,
    Curve,
    Heat,
    Panel,
    Picture,
    Points,
    Rule,
    Values,
    beside,
    chosen,
    shortened,
    tau_axis,
)
from mlmglauber.pictures.reading import BROKEN, number, perhaps

LIMIT = 2_000
MATRICES = 2
"""Maximum number of matrices."""
LABELLED = 40
"""Maximum number of tokens on a side of a matrix with labels."""


class Context(NamedTuple):
    """One context at one temperature.

    name: its id and text. alpha: largest row sum of its influences. certified: the upper bound of alpha that the
    model's head proves. matrix: the influences, None where the record has none. labels: of the sites.
    """

    name: str
    tau: float
    n: int
    alpha: float
    certified: float | None
    matrix: Values | None
    labels: Sequence[str]
    whole: bool
    """Whether it is a summary over contexts."""


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """The context of an influence record, or all contexts of a summary."""
    rows_of_matrix, whole = record.get("matrix"), record["type"] == "summary"
    n = int(number(record, "n"))
    name = f"largest over {record['count']} contexts" if whole else f"id {record['id']}: {record.get('text', '')}"
    matrix = None
    if rows_of_matrix is not None:
        matrix = np.array(rows_of_matrix, dtype=np.float64)
        if matrix.shape != (len(record["sites"]),) * 2 or not np.isfinite(matrix).all():
            raise ValueError('"matrix" is not a square of numbers')
    yield n, Context(name, number(record, "tau"), n, number(record, "alpha_row"), perhaps(record, "certified_alpha"),
                     matrix, labels(record), whole)


def labels(record: Mapping[str, Any]) -> list[str]:
    """Labels of the sites: the record's `words`, else the words of its text if they match the tokens, else numbers.

    A word that is blank or has undecodable bytes is replaced by its piece or, where the record has no pieces, its site.

    >>> labels({"n": 3, "sites": [0, 2], "text": "hello, world"})
    ['hello', 'world']
    >>> labels({"n": 4, "sites": [0, 2], "text": "hello, world"})
    ['0', '2']
    >>> labels({"n": 2, "sites": [0, 1], "words": ["a", "\ufffd"], "pieces": ["a", "\u0120\u00ee"]})
    ['a', 'Ġî']
    >>> labels({"n": 2, "sites": [0, 1], "words": ["a", "\ufffd"]})
    ['a', 'site 1']
    """
    n, sites, words, text, pieces = (record.get(key) for key in ("n", "sites", "words", "text", "pieces"))
    assert sites is not None
    if not (isinstance(words, list) and len(words) == n):
        words = re.findall(r"\w+|[^\w\s]", text) if isinstance(text, str) else []
    if len(words) != n:
        return [str(site) for site in sites]
    other = pieces if isinstance(pieces, list) and len(pieces) == n else [f"site {site}" for site in range(len(words))]
    clear = [BROKEN not in str(word) and bool(str(word).strip()) for word in words]
    return [shortened(str(words[site] if clear[site] else other[site]), 24) for site in sites]


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """The matrices of the first context that has them, one for each temperature; alpha of all against temperature."""
    del threshold
    notes: list[str] = []
    every: list[Context] = [context for found in kept.values() for context in found]
    with_matrix = [context for context in every if context.matrix is not None]
    panels = []
    if with_matrix:
        first = with_matrix[0]
        mine = {context.tau: context for context in with_matrix if (context.name, context.n) == (first.name, first.n)}
        others = {(context.name, context.n) for context in with_matrix}
        if len(others) > 1:
            notes.append(f"of the matrices those of {shortened(first.name, 60)} are drawn, one of {len(others)} "
                         "contexts; select records for the others")
        panels = [_matrix(mine[tau]) for tau in chosen(sorted(mine), MATRICES, "temperatures", notes)]
    if not with_matrix or len({context.tau for context in every}) > 1:
        panels.append(_alphas(kept, notes))
    return Picture(panels, notes)


def _matrix(context: Context) -> Panel:
    assert context.matrix is not None
    places = np.arange(len(context.matrix), dtype=np.float64)
    labelled = (places.tolist(), list(context.labels)) if len(places) <= LABELLED else None
    return Panel(f"{shortened(context.name)}, τ = {context.tau:g}", Axis("token that is changed", ticks=labelled),
                 Axis("token whose law moves", ticks=labelled, downwards=True),
                 [Heat(places, places, context.matrix, "influence c (TV), at least", bounds=(0.0, 1.0))])


def _alphas(kept: Mapping[Hashable, Sequence[Context]], notes: list[str]) -> Panel:
    axis = tau_axis([context.tau for contexts in kept.values() for context in contexts])
    layers: list[Any] = []
    lengths: list[Any] = chosen(sorted(kept, key=lambda n: (str(type(n)), n)), SERIES - 1, "lengths", notes)
    for k, (n, look) in enumerate(zip(lengths, ordered(len(lengths)) if len(lengths) > 1 else [category(0)],
                                      strict=True)):
        contexts = kept[n]
        taus = sorted({context.tau for context in contexts})
        largest = np.array([max(c.alpha for c in contexts if c.tau == tau) for tau in taus])
        layers.append(Curve(np.array(taus), largest, f"n = {n}: largest seen", look.color))
        x = beside(np.array([context.tau for context in contexts]), axis, k, len(lengths))
        alphas = np.array([context.alpha for context in contexts])
        layers.append(Points(x, alphas, "", look.color, look.mark, faint=True))
        proved = sorted({(c.tau, c.certified) for c in contexts if c.certified is not None})
        if proved:
            layers.append(Curve(np.array([tau for tau, _ in proved]), np.array([alpha for _, alpha in proved]),
                                "at most, by the head" if k == 0 else "", look.color, dashed=True))
    layers.append(Rule(1.0, "1: below it α would prove fast mixing", BLACK))
    return Panel("", axis, Axis("α (largest row sum), at least", log=True), layers)
