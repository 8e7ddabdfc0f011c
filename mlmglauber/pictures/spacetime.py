"""Space-time pictures: the token at each site at each step, how long it has stood, its changes, and traps."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlmglauber.pictures.change_grid import ChainState, ChangeGrid
from mlmglauber.pictures.panel import Axis, Panel, Picture, distinct_labels, shortened
from mlmglauber.pictures.reading import number, perhaps
from mlmglauber.pictures.stripes import StandingTokens, Stripes, TrapBracket, Word
from mlmglauber.pictures.token_words import TokenWords
from mlmglauber.stream.errors import MlmError
from mlmglauber.stream.printable import counted
from mlmglauber.stream.records import chain_key

LIMIT = 0
"""Grids of changes are kept in the place of lists."""
LABELLED = 48
"""Maximum number of sites with words."""
TRAPS = 12
"""Maximum number of traps that are marked in a panel."""
LETTERS = 16
"""Maximum number of letters of a word."""
UNITS = {"age": "steps for which the token has stood", "logp": "log-probability of the token when drawn (nats)"}
"""What the colours mean."""
NEEDED = "it needs a state of every change, as mlm-sample --on-change writes them"


class TrapSpan(NamedTuple):
    """A trap of a chain: its first and last step, its residence, whether the records end before it does."""

    chain: tuple[Any, ...]
    first: float
    last: float
    residence: float
    censored: bool


def items(record: Mapping[str, Any]) -> Iterator[tuple[Hashable, Any]]:
    """A state under the key of its chain, a trap, or the model of a run."""
    chain = chain_key(record)
    if record["type"] == "run":
        yield "models", (record.get("run"), str(record.get("model")))
        return
    if record["type"] == "trap":
        first, last, residence = (number(record, name) for name in ("first", "last", "residence"))
        yield "traps", TrapSpan(chain, first, last, residence, bool(record.get("censored")))
        return
    step, ids, logp, text = number(record, "step"), record["ids"], perhaps(record, "logp_new"), record.get("text")
    if not isinstance(ids, list) or not ids or not all(type(token) is int for token in ids) or step != int(step):
        raise ValueError('"step" or "ids" are not whole numbers')
    yield chain, ChainState(int(step), ids, record.get("site"), np.nan if logp is None else logp,
                            text if isinstance(text, str) else "", perhaps(record, "tau"))


def picture(kept: Mapping[Hashable, Sequence[Any]], threshold: float) -> Picture:
    """A panel for each chain."""
    del threshold
    grids: dict[tuple[Any, ...], ChangeGrid] = {key: found[0] for key, found in kept.items() if isinstance(key, tuple)}
    if not grids:
        return Picture([], [NEEDED])
    models = dict(kept["models"])
    words, color_by = kept["words"][0], kept["color_by"][0]
    for name, grid in zip(_names(grids, models), grids.values(), strict=True):
        if grid.skipped:
            raise MlmError(f"the states of {name} skip changes, and a space-time picture needs each one; sample with "
                           "mlm-sample --on-change")
        if color_by == "logp" and grid.unknown:
            raise MlmError(f'changes of {name} have no "logp_new", which the colours need; colour by age, or give '
                           "states as mlm-sample --on-change writes them")
    notes: list[str] = []
    values = [grid.ages() if color_by == "age" else grid.logps() for grid in grids.values()]
    seen = np.concatenate([each[np.isfinite(each)] for each in values])
    ends = (float(seen.min()), float(seen.max())) if len(seen) else (-1.0, 0.0)
    bounds = (1.0, max(ends[1], 10.0)) if color_by == "age" else (max(ends[0], -12.0), 0.0)
    panels = []
    for (key, grid), value, name in zip(grids.items(), values, _names(grids, models), strict=True):
        spans = sorted((trap for trap in kept["traps"] if trap.chain == key), key=lambda trap: -trap.residence)
        if len(spans) > TRAPS:
            notes.append(f"{name}: the {TRAPS} longest of {len(spans)} traps are marked")
        if grid.width > 1:
            notes.append(f"{name}: {grid.width} steps make one column; {counted(grid.changes, 'change')} stand in "
                         f"{int(grid.changed.sum())} marks")
        stripes = Stripes(grid.edges, value, grid.changed, UNITS[color_by], bounds, log=color_by == "age",
                          missing="" if color_by == "age" else "not drawn yet")
        panels.append(_panel(name, grid, words, spans[:TRAPS], stripes))
    lost = sum(trap.chain not in grids for trap in kept["traps"])
    if lost:
        notes.append(f"{counted(lost, 'trap')} of chains that are not drawn")
    return Picture(panels, notes, stacked=True)


def _panel(name: str, grid: ChangeGrid, words: TokenWords, spans: Sequence[TrapSpan], stripes: Stripes) -> Panel:
    n = len(grid.ids)
    brackets = _brackets(spans, grid.last)
    lanes = max((bracket.lane for bracket in brackets), default=-1) + 1
    x = Axis("step (updates of one site)", low=float(stripes.edges[0]), high=float(stripes.edges[-1]))
    label = "site (token of the text)"
    if n <= LABELLED:
        first, last = ([shortened(words[token], LETTERS) for token in ids] for ids in (grid.first_ids, grid.ids))
        inside = [Word(stay.first, stay.last, stay.site, shortened(words[stay.token], LETTERS))
                  for stay in grid.stays()]
        stripes = stripes._replace(words=inside, right=last)
        y = Axis("site, with its first token", ticks=(list(range(n)), first), downwards=True)
    else:
        y = Axis(label, downwards=True)
    tokens, index = np.unique(grid.tokens(), return_inverse=True)
    standing = StandingTokens(index.reshape(n, -1), [words[token] for token in tokens.tolist()], grid.since(),
                              grid.logps())
    stripes = stripes._replace(brackets=brackets, standing=standing)
    return Panel(name, x, y._replace(low=-0.5 - lanes * stripes.lane, high=n - 0.5), [stripes])


def _brackets(spans: Sequence[TrapSpan], last: int) -> list[TrapBracket]:
    """Brackets of traps; one that overlaps others stands above them."""
    brackets: list[TrapBracket] = []
    for trap in sorted(spans, key=lambda trap: (trap.first, -trap.last)):
        taken = {other.lane for other in brackets if trap.first <= other.last and other.first <= trap.last}
        lane = next(k for k in range(len(taken) + 1) if k not in taken)
        steps = f"{trap.residence:,.0f}"
        brackets.append(TrapBracket(trap.first, trap.last + 1, lane, (f"{steps} steps", steps),
                                trap.censored and trap.last >= last))
    return brackets


def _names(grids: Mapping[tuple[Any, ...], ChangeGrid], models: Mapping[Any, str]) -> list[str]:
    """Names of the chains: the model, the temperature, the id and, where they differ, chain number and run."""
    names = []
    for (run, own, chain), grid in grids.items():
        parts = [models[run]] if run in models else []
        parts += [f"τ = {grid.tau:g}"] if grid.tau is not None else []
        parts += [f"id {own}"] if own is not None else []
        parts += [f"chain {chain}"] if len({key[2] for key in grids if key[1] == own}) > 1 else []
        parts += [f"run {run}"] if len({(key[0], each.tau) for key, each in grids.items()}) > len(
            {each.tau for each in grids.values()}) else []
        names.append(", ".join(parts) or "one chain")
    return distinct_labels(names, 60)
