"""The rectangles of mlm-rect: named or drawn, measured in shared batches, written as records or summed up."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlmglauber.commands.base import Filter
from mlmglauber.commands.inputs import Input, Inputs, check_frozen
from mlmglauber.commands.rectangle_names import named_rectangle, scores_first
from mlmglauber.commands.rectangle_tally import Tally
from mlmglauber.commands.tables import shown, write_tables
from mlmglauber.dynamics.randomness import Stream, drawn_seed
from mlmglauber.measures.rectangle import Ask, Rectangle, Rows, Values, asks, from_conditionals, from_joint
from mlmglauber.measures.rectangle_draw import draw_sites, draw_tokens
from mlmglauber.models.conditionals import Floats, Ids, TextModel
from mlmglauber.models.opening import open_scorer
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record

BLOCK = 512
"""Rectangles of one text measured at a time: what is held of the model does not grow with --rectangles."""
NAMING = ("i", "j", "to_i", "to_j")


class _Block:
    """Some rectangles of one text: named, or drawn as far as their sites."""

    def __init__(self, text: Input, named: list[Rectangle], sites: Ids, uniforms: Values) -> None:
        self.text, self.rectangles, self.sites, self.uniforms = text, named, sites, uniforms
        self.ids = np.array(text.ids, dtype=np.int64)


class Rectangles:
    """One run of mlm-rect."""

    def __init__(self, filter: Filter, options: dict[str, Any]) -> None:
        self.filter, self.options = filter, options
        if options["seed"] is None:
            options["seed"] = drawn_seed()
        told = {key: value for key, value in options.items() if key not in ("summary", "table", "fail_above")}
        self.inputs = Inputs(filter, "mlm-rect", told, open_scorer, self._pass)
        self.kept = Tally()
        self.head: Record | None = None

    def run(self) -> None:
        size = max(1, self.options["batch_size"] // (4 * self.options["rectangles"]))
        with self.filter.words.bar("records") as progress:
            for batch in self.inputs.batches(1 if size == 1 else size):
                for blocks in self._blocks(batch):
                    self._measure(blocks)
                progress(len(batch))
                self.filter.output.flush()
        if self.options["summary"]:
            self._summarise()
        mean, limit = self.kept.mean(), self.options["fail_above"]
        if limit is not None and mean is not None and mean > limit:
            self.filter.words.finding(f"the mean |delta| is {mean:.6g} nats, above {limit:g}")

    def _pass(self, record: Record) -> None:
        """A record that is no text: under --summary rectangles are summed up, and others left out."""
        if record.get("type") == "rectangle" and (self.options["summary"] or self.options["fail_above"] is not None):
            with self.filter.guard(self.filter.place):
                self.kept.take(record)
        if not self.options["summary"]:
            self.filter.output.write(record)
        elif record["type"] == "run" and record.get("run") == self.inputs.run:
            self.head = record

    def _blocks(self, batch: Sequence[Input]) -> list[list[_Block]]:
        """The rectangles of a batch of texts, in rounds of at most BLOCK for each text."""
        rounds: dict[int, list[_Block]] = {}
        for text in batch:
            with self.filter.guard(text.place):
                for k, block in enumerate(self._plan(text)):
                    rounds.setdefault(k, []).append(block)
        return list(rounds.values())

    def _plan(self, text: Input) -> list[_Block]:
        options, n = self.options, len(text.ids)
        model = self._model()
        frozen = options["freeze"] or []
        check_frozen(frozen, n)
        given = [text.record.get(key) for key in NAMING]
        if options["site"]:
            named = [*options["site"], *options["to"]]
        elif any(part is not None for part in given):
            named = given
        else:
            free = [site for site in range(n) if site not in frozen and model.allowed[text.ids[site]]
                    and (site > 0 or scores_first(model))]
            return self._drawn(text, np.array(free, dtype=np.int64))
        rectangle = named_rectangle(model, text.ids, named, frozen)
        return [_Block(text, [rectangle], np.empty((0, 2), np.int64), np.empty((0, 4)))]

    def _drawn(self, text: Input, free: Ids) -> list[_Block]:
        count = self.options["rectangles"]
        uniforms = Stream(self.options["seed"], text.name, 0, "rectangle").uniforms(0, 4 * count).reshape(-1, 4)
        try:
            sites = draw_sites(uniforms[:, :2], free, self.options["gap"])
        except ValueError as error:
            raise RecordError(f"no rectangle can be drawn: {error}; give a longer text or other options") from error
        return [_Block(text, [], sites[k : k + BLOCK], uniforms[k : k + BLOCK]) for k in range(0, count, BLOCK)]

    def _measure(self, blocks: list[_Block]) -> None:
        """Draw what is to be drawn, then the four conditionals of all rectangles together, then, for noise, again."""
        model, tau = self._model(), self.options["tau"]
        rows = Rows(model, self.options["batch_size"])
        for block, rest in zip(blocks, self._alternatives(blocks, rows), strict=True):
            if rest is not None:
                block.rectangles = rest
        blocks = [block for block in blocks if block.rectangles]
        asked = [ask for block in blocks for rectangle in block.rectangles for ask in asks(block.ids, rectangle)]
        if not asked:
            return
        logp, deltas = _answer(model, rows, asked, tau, again=False)
        noise = None
        if self.options["noise"]:
            with np.errstate(invalid="ignore"):
                noise = np.abs(_answer(model, rows, asked, tau, again=True)[1] - deltas)
        k = 0
        for block in blocks:
            count = len(block.rectangles)
            chosen = slice(k, k + count)
            with self.filter.guard(block.text.place):
                self._write(block, logp[chosen], deltas[chosen], noise[chosen] if noise is not None else None)
            k += count

    def _alternatives(self, blocks: list[_Block], rows: Rows) -> list[list[Rectangle] | None]:
        """The rectangles of each drawn block; None for a block whose rectangle is named, or that cannot be drawn."""
        model, how = self._model(), self.options["draw"]
        drawn = [block for block in blocks if len(block.sites)]
        found: dict[tuple[int, int], Floats] = {}
        if how != "uniform":
            wanted = [(k, site) for k, block in enumerate(drawn) for site in np.unique(block.sites).tolist()]
            states, sites = [drawn[k].ids for k, _ in wanted], [site for _, site in wanted]
            found = dict(zip(wanted, _propose(model, rows, states, sites), strict=True))
        result: list[list[Rectangle] | None] = [None] * len(blocks)
        for k, block in enumerate(drawn):
            with self.filter.guard(block.text.place):
                result[blocks.index(block)] = self._draw(block, {site: found.get((k, site)) for site in
                                                                 np.unique(block.sites).tolist()})
        return result

    def _draw(self, block: _Block, rows: dict[int, Floats | None]) -> list[Rectangle]:
        ids, pairs = block.text.ids, block.sites
        tokens = np.empty(pairs.shape, dtype=np.int64)
        for site, row in rows.items():
            if row is not None and not np.isfinite(row.max()):
                raise RecordError(f"the model's conditional at site {site} is not finite; the text is left out")
            where = pairs == site
            try:
                tokens[where] = draw_tokens(self.options["draw"], ids[site], block.uniforms[:, 2:][where].tolist(),
                                            self._model().allowed, row)
            except ValueError as error:
                what = f"no alternative at site {site}: {error}; freeze it, or use --draw uniform"
                raise RecordError(what) from error
        return [Rectangle(i, j, ids[i], ids[j], to_a, to_b) for i, j, to_a, to_b in np.hstack([pairs, tokens]).tolist()]

    def _write(self, block: _Block, logp: Values, deltas: Values, noise: Values | None) -> None:
        model, options = self._model(), self.options
        text = model.decode(block.text.ids)
        name = model.describe()["model"]
        drawn = {"draw": options["draw"]} if len(block.sites) else {}
        if np.isnan(logp).any():
            raise RecordError("the model's conditionals are not finite; the text is left out")
        for k, rectangle in enumerate(block.rectangles):
            tokens = [rectangle.a, rectangle.b, rectangle.to_a, rectangle.to_b]
            values = [[None if value == -np.inf else value for value in pair] for pair in logp[k].tolist()]
            record: Record = {
                "type": "rectangle", "run": self.inputs.run, "id": block.text.name, "model": name,
                "n": len(block.text.ids), "tau": options["tau"], "i": rectangle.i, "j": rectangle.j, "tokens": tokens,
                "words": [model.decode([token]) for token in tokens], "logp_i": values[:2], "logp_j": values[2:],
                "delta": float(deltas[k]), "noise": None if noise is None else float(noise[k]), **drawn, "text": text,
            }
            if noise is None:
                record["noise_reason"] = "not measured"
            if not np.isfinite(deltas[k]):
                why = "a token has probability 0" if np.isinf(logp[k]).any() else "delta is beyond all floats"
                record |= {"delta": None, "noise": None, "reason": why}
            self.kept.take(record)
            if not options["summary"]:
                self.filter.output.write(block.text.answer(record))

    def _model(self) -> TextModel:
        assert self.inputs.model is not None
        return self.inputs.model

    def _summarise(self) -> None:
        records = self.kept.summaries()
        if shown(self.filter, self.options["table"]):
            from mlmglauber.commands.rect_table import rectangle_tables

            write_tables(self.filter, self.options["table"], rectangle_tables(records))
            return
        for record in [self.head, *records] if self.head else records:
            self.filter.output.write(record)


def _propose(model: Any, rows: Rows, states: list[Ids], sites: list[int]) -> Sequence[Floats]:
    """The laws that alternatives are drawn from: conditionals, or what a causal model says from the left."""
    if not hasattr(model, "joint"):
        return rows.keep(states, sites)
    from mlmglauber.models.conditionals import stack

    return list(model.left_log_probs(stack(states), np.array(sites))) if states else []


def _answer(model: Any, rows: Rows, asked: Sequence[Ask], tau: float, again: bool) -> tuple[Values, Values]:
    if hasattr(model, "joint"):
        return from_joint(model, asked, tau, again)
    return from_conditionals(rows, asked, tau, again)
