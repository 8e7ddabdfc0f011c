"""Influence records and their summaries: the fields of one context, and of all contexts together."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.commands.influence.options import InfluenceOptions
from mlmglauber.commands.shared.chain_run import ChainLaw
from mlmglauber.commands.shared.inputs import Input
from mlmglauber.commands.shared.nullable import nullable, optional_reason
from mlmglauber.commands.traps.margins import bound_fields
from mlmglauber.measures.influence.context import Compared
from mlmglauber.measures.influence.crossing import Crossing, Room
from mlmglauber.measures.influence.matrix import (
    Matrix,
    alphas,
    certified_alpha,
    certified_tau,
    mean_over,
    mixing_bound,
    oscillation_bound,
)
from mlmglauber.measures.influence.replacements import TYPICAL
from mlmglauber.measures.traps.margins import Margins
from mlmglauber.models.conditionals import Ids
from mlmglauber.models.head_bound import HeadBound
from mlmglauber.stream.records import Record, chain_key

ABOVE = "alpha is 1 or above"


def context_fields(options: InfluenceOptions, taus: list[float], sites: Ids, compared: Compared, k: int,
                   head: HeadBound, state: Margins) -> Record:
    """The fields of one context at its k-th temperature."""
    tau, n, draw = taus[k], len(sites), options.draw
    matrix, moved = compared.matrix(k), compared.oscillation_matrix()
    drawn: Record = {"sites": sites.tolist(), "estimate": "lower", "draw": draw,
                     **({"draw_tau": taus[0]} if draw == "conditional" else {}),
                     "changes": len(compared.changes.places)}
    return {**drawn, **sizes(matrix, moved, tau, options.eps), "row_sums": matrix.sum(axis=1).tolist(),
            "column_sums": matrix.sum(axis=0).tolist(), **typical(draw, compared.mean_contraction(k)),
            **certified(head, n, tau, options.eps), **margin_fields(state),
            **(matrices(matrix, moved) if options.matrix else {})}


def sizes(matrix: Matrix, moved: Matrix, tau: float, eps: float) -> Record:
    """The fields of a matrix of sampled influences: its alphas, the bounds if they were alpha, and the D_ij."""
    n, size = len(matrix), alphas(matrix)
    above = oscillation_bound(moved, tau)
    record: Record = {
        "alpha_row": size.row, "alpha_column": size.column, "alpha_spectral": size.spectral, "eps": eps,
        "tmix_if_alpha": mixing_bound(size.row, n, eps), "tmix_if_alpha_column": mixing_bound(size.column, n, eps),
    }
    if min(record["tmix_if_alpha"] or 0, record["tmix_if_alpha_column"] or 0) == 0:
        record["tmix_reason"] = ABOVE
    return record | nullable("oscillation", float(moved.max()), "a token has probability 0 in one of two contexts") | {
        "alpha_oscillation": alphas(above).row}


def typical(draw: str, value: float | None) -> Record:
    """The contraction of the pairs of one context; null if the replacements are chosen, not drawn."""
    if draw not in TYPICAL:
        return {"contraction": None, "contraction_reason": f"the replacements of --draw {draw} are chosen, not typical"}
    return nullable("contraction", value, "there is no other token to draw")


def certified(head: HeadBound, n: int, tau: float | None, eps: float) -> Record:
    """The bounds that the model's head proves for every text of n free sites."""
    if head.oscillation is None:
        record: Record = {"head_oscillation": None, "certified_tau": None, "certified_reason": head.reason}
        return record if tau is None else record | {"certified_alpha": None, "certified_tmix": None}
    record = {"head_oscillation": head.oscillation, "certified_tau": certified_tau(head.oscillation, n)}
    if tau is None:
        return record
    alpha = certified_alpha(head.oscillation, n, tau)
    record |= {"certified_alpha": alpha, "certified_tmix": mixing_bound(alpha, n, eps)}
    return record if alpha < 1 else record | {"certified_reason": "certified_tmix: certified_alpha is 1 or above"}


def margin_fields(state: Margins) -> Record:
    """Margins, escape and residence of a state at a temperature."""
    never = "the token of a site is never drawn, or none but it"
    gamma = [value if np.isfinite(value) else None for value in state.gamma.tolist()]
    return {"gamma": gamma, **nullable("margin", state.margin, never), "escape": state.escape,
            **bound_fields("escape_bound", state.bound),
            **nullable("residence", state.residence, "the state is never left at this tau")}


def matrices(matrix: Matrix, moved: Matrix) -> Record:
    """The fields of c_ij and D_ij; row i is the site whose conditional moves, column j the site that is changed."""
    whole = [[value if np.isfinite(value) else None for value in row] for row in moved.tolist()]
    return {"matrix": matrix.tolist(), "oscillations": whole}


class _ContextKey(NamedTuple):
    """What the contexts of one summary have in common: length, free sites, the law of the words that may be drawn."""

    n: int
    sites: tuple[int, ...]
    law: ChainLaw

    @classmethod
    def of(cls, text: Input, sites: Ids) -> "_ContextKey":
        return cls(len(text.ids), tuple(sites.tolist()),
                   ChainLaw(allow=text.chain.law.allow, ban=text.chain.law.ban))


class _Group:
    """Sums over the contexts of one temperature and key."""

    def __init__(self, sites: Ids) -> None:
        self.sites, self.count = sites, 0
        self.matrix, self.moved = np.zeros((len(sites), len(sites))), np.zeros((len(sites), len(sites)))
        self.contractions: list[float] = []
        self.texts: list[Any] = []
        self.chains: list[Any] = []


def _order(key: _ContextKey) -> tuple[int, tuple[int, ...], tuple[str, ...], tuple[str, ...]]:
    return key.n, key.sites, key.law.allow or (), key.law.ban


class InfluenceTally:
    """What --summary keeps: entrywise largest matrices, contractions, and the conditionals for crossings."""

    def __init__(self, options: InfluenceOptions) -> None:
        self.options = options
        self.room = Room(options.keep_mb << 20)
        self.groups: dict[tuple[float, _ContextKey], _Group] = {}
        self.crossings: dict[_ContextKey, Crossing] = {}

    def crossing(self, text: Input, sites: Ids) -> Crossing:
        """The crossing of texts like this one with these free sites."""
        key = _ContextKey.of(text, sites)
        if key not in self.crossings:
            self.crossings[key] = Crossing(len(sites), self.room)
        return self.crossings[key]

    def take(self, tau: float, sites: Ids, compared: Compared, k: int, text: Input) -> None:
        """Take one context at its k-th temperature."""
        group = self.groups.setdefault((tau, _ContextKey.of(text, sites)), _Group(sites))
        group.count += 1
        group.matrix = np.maximum(group.matrix, compared.matrix(k))
        group.moved = np.maximum(group.moved, compared.oscillation_matrix())
        contraction, record = compared.mean_contraction(k), text.record
        if contraction is not None:
            state = record.get("type") == "state"
            chain = chain_key(record) if state else text.name
            group.contractions.append(contraction)
            group.chains.append(chain)
            group.texts.append(chain[1] if state else text.name)

    def summaries(self, run: str, head: HeadBound | None, advance: Callable[[float], None]) -> Iterator[Record]:
        """A summary for each temperature and key of contexts, then one for each key."""
        if head is None:
            return
        eps = self.options.eps
        for (tau, key), group in sorted(self.groups.items(), key=lambda item: (item[0][0], *_order(item[0][1]))):
            yield {"type": "summary", "of": "influence", "over": "group", "run": run, "tau": tau, "n": key.n,
                   **key.law.vocabulary(), "sites": group.sites.tolist(), "count": group.count,
                   "estimate": "lower", "draw": self.options.draw, **sizes(group.matrix, group.moved, tau, eps),
                   "row_sums": group.matrix.sum(axis=1).tolist(), "column_sums": group.matrix.sum(axis=0).tolist(),
                   **self._typical(group), **certified(head, len(group.sites), tau, eps),
                   **(matrices(group.matrix, group.moved) if self.options.matrix else {})}
        for key, crossing in sorted(self.crossings.items(), key=lambda item: _order(item[0])):
            crossing.advance = advance
            brackets: Record | None = None
            if self.options.keep_mb:
                brackets = {name: crossing.bracket(k)._asdict() for k, name in enumerate(("row", "column", "spectral"))}
            yield {"type": "summary", "of": "influence", "over": "length", "run": run, "n": key.n, "estimate": "lower",
                   **key.law.vocabulary(), "sites": list(key.sites), "draw": self.options.draw,
                   **nullable("crossing", brackets, "not looked for with --keep-mb 0"),
                   **certified(head, crossing.n, None, eps)}

    def _typical(self, group: _Group) -> Record:
        """The mean contraction and its interval, over texts or, for one text, over its chains."""
        draw = self.options.draw
        if draw not in TYPICAL or not group.contractions:
            return typical(draw, None)
        over, names = "texts", group.texts
        if len(set(names)) < 2 and len(set(group.chains)) > 1:
            over, names = "chains", group.chains
        mean, count = mean_over(names, group.contractions)
        return {"contraction": mean.value, "contraction_low": mean.low, "contraction_high": mean.high,
                "contraction_over": over, "contraction_count": count,
                **optional_reason("contraction_reason", mean.reason)}
