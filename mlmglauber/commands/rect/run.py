"""A run of mlm-rect: rectangles are named or drawn, measured in shared batches, and written or summarised."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from mlmglauber.commands.rect.names import fragments, named_rectangle, scores_first
from mlmglauber.commands.rect.options import RectOptions
from mlmglauber.commands.rect.record import rectangle_records
from mlmglauber.commands.rect.tally import RectangleTally
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import Input, Inputs, texts_at_once
from mlmglauber.commands.shared.table_output import shown, write_tables
from mlmglauber.dynamics.glauber import NotFiniteError
from mlmglauber.dynamics.randomness import Stream, drawn_seed
from mlmglauber.measures.rectangle.delta import (
    Answers,
    BlockRectangle,
    JointRows,
    Measured,
    Rectangle,
    Rows,
    Values,
    asks,
    has_other_way,
    measure,
    noise,
    quarters,
)
from mlmglauber.measures.rectangle.draw import draw_rectangles, draw_sites
from mlmglauber.models.conditionals import Floats, Ids, TextModel
from mlmglauber.models.opening import open_scorer
from mlmglauber.stream.errors import MixedRecordsError, RecordError
from mlmglauber.stream.records import Record

BLOCK = 512
"""Maximum number of rectangles of one text that are measured together; bounds the conditionals in memory."""
NAMING = ("i", "j", "to_i", "to_j")
MIXED = ("the input has texts and rectangle records, which cannot be summarised together; run mlm-rect --summary on "
         "each kind, or write the rectangle records of the texts first")


class TextBlock:
    """Some rectangles of one text: named ones, or drawn ones whose sites are drawn and whose tokens are not yet."""

    def __init__(self, text: Input, named: Sequence[Rectangle | BlockRectangle], sites: Ids, uniforms: Values) -> None:
        self.text, self.rectangles, self.sites, self.uniforms = text, named, sites, uniforms
        self.ids = np.array(text.ids, dtype=np.int64)
        self.size = len(sites) or len(named)

    def first(self, count: int) -> "TextBlock":
        """A block of the first of its rectangles."""
        return TextBlock(self.text, self.rectangles[:count], self.sites[:count], self.uniforms[:count])


class RectRun:
    """One run of mlm-rect."""

    def __init__(self, io: Filter, options: RectOptions) -> None:
        self.io, self.options = io, options
        self.seed = drawn_seed() if options.seed is None else options.seed
        self.inputs = Inputs(io, options, options.in_run_record(), self.seed, open_scorer, self._pass_through)
        self.tally = RectangleTally()
        self.inputs.needed = not options.summary and options.fail_above is None
        self.head: Record | None = None
        self.read_rectangles = self.read_texts = False
        """Whether the input had rectangle records, and whether it had texts."""

    @property
    def texts_together(self) -> int:
        """Maximum number of texts whose rectangles are measured together."""
        return max(1, texts_at_once(self.options) // (4 * self.options.rectangles))

    def run(self) -> None:
        """Measure the rectangles of every text; with --summary write the summaries at the end."""
        with self.io.bar("rectangles") as progress:
            for batch in self.inputs.batches(self.texts_together):
                rounds = self.blocks(batch)
                progress.plan(sum(block.size for blocks in rounds for block in blocks))
                for blocks in rounds:
                    self.measure(blocks)
                    progress(sum(block.size for block in blocks))
                self.io.output.flush()
        if self.options.summary:
            if self.inputs.model is None and not self.io.types["rectangle"]:
                self.io.report_missing("rectangle and no text", "give what mlm-rect writes, or texts")
            self._summarise()
        limit = self.options.fail_above
        if limit is not None:
            means = self.tally.means()
            for name, mean in means:
                if mean > limit:
                    of = f" of {name}" if len(means) > 1 else ""
                    self.io.reporter.exceeded(f"the mean |delta|{of} is {mean:.6g} nats, above {limit:g}")

    def _pass_through(self, record: Record) -> None:
        """Take a record that is not a text: --summary takes rectangles and leaves others out; else it is written."""
        if self.options.summary or self.options.fail_above is not None:
            with self.io.guard(self.io.place):
                if record.get("type") == "rectangle":
                    if self.options.summary and self.read_texts:
                        self.io.failure = MixedRecordsError(f"{self.io.place}: {MIXED}")
                        return
                    self.tally.take(record)
                    self.read_rectangles = True
                elif record.get("type") == "run":
                    self.tally.take_run(record)
        if not self.options.summary:
            self.io.output.write(record)
        elif record["type"] == "run" and record.get("run") == self.inputs.run:
            self.head = record

    def blocks(self, batch: Sequence[Input]) -> list[list[TextBlock]]:
        """The rectangles of a batch of texts, in rounds of at most BLOCK for each text."""
        rounds: dict[int, list[TextBlock]] = {}
        for text in batch:
            if self.read_rectangles and self.options.summary:
                self.io.failure = MixedRecordsError(f"{text.place}: {MIXED}")
                break
            with self.io.guard(text.place):
                self.read_texts = True
                for k, block in enumerate(self._plan(text)):
                    rounds.setdefault(k, []).append(block)
        return list(rounds.values())

    def _plan(self, text: Input) -> list[TextBlock]:
        options, n, model = self.options, len(text.ids), text.model
        frozen = text.frozen(options.freeze)
        in_record = [text.record.get(key) for key in NAMING]
        named: list[Any]
        if options.site:
            named = [*options.site, *options.to]
        elif any(part is not None for part in in_record):
            named = in_record
        else:
            free = [site for site in range(n) if site not in frozen and model.allowed[text.ids[site]]
                    and (site > 0 or scores_first(model))]
            return self._drawn(text, np.array(free, dtype=np.int64))
        rectangle = named_rectangle(model, text.ids, named, frozen)
        blocks = [tuple(np.atleast_1d(part).tolist()) for part in (rectangle.i, rectangle.j)]
        for sentence in fragments(model, text.ids, blocks):
            self.io.reporter.warn(f"{text.place}: {sentence}")
        return [TextBlock(text, [rectangle], np.empty((0, 2), np.int64), np.empty((0, 4)))]

    def _drawn(self, text: Input, free: Ids) -> list[TextBlock]:
        count = self.options.rectangles
        uniforms = Stream(self.seed, text.name, 0, "rectangle").uniforms(0, 4 * count).reshape(-1, 4)
        try:
            sites = draw_sites(uniforms[:, :2], free, self.options.gap)
        except ValueError as error:
            raise RecordError(f"no rectangle can be drawn: {error}; give a longer text, or another --gap or "
                              "--freeze") from error
        return [TextBlock(text, [], sites[k : k + BLOCK], uniforms[k : k + BLOCK]) for k in range(0, count, BLOCK)]

    def measure(self, blocks: Sequence[TextBlock]) -> int:
        """Measure and write the rectangles of some blocks; the number of conditionals that this took."""
        return sum(self._measure(list(alike)) for _, alike in groupby(blocks, lambda block: id(block.text.model)))

    def _measure(self, blocks: list[TextBlock]) -> int:
        """Draw tokens, compute the four conditionals of all rectangles together and, for noise, once more.

        All blocks share one model: that of the texts, or of chains that may draw the same words.
        """
        model, tau = blocks[0].text.model, self.options.tau
        rows = Rows(model, model.rows)
        for block, rest in zip(blocks, self._alternatives(blocks, rows), strict=True):
            if rest is not None:
                block.rectangles = rest
        blocks = [block for block in blocks if block.rectangles]
        rectangles = [(block.ids, rectangle) for block in blocks for rectangle in block.rectangles]
        if not rectangles:
            return rows.computed
        all_asks = [ask for ids, rectangle in rectangles for ask in asks(ids, rectangle)]
        counts = [count for _, rectangle in rectangles for count in quarters(rectangle)]
        answers: Answers = JointRows(model) if model.has_joint else rows
        first = measure(answers, all_asks, tau, counts=counts)
        moved = None
        if self.measures_noise(model):
            moved = noise(first, measure(answers, all_asks, tau, again=True, counts=counts))
        k = 0
        for block in blocks:
            chosen = slice(k, k + len(block.rectangles))
            with self.io.guard(block.text.place):
                measured = Measured(*(part[chosen] for part in first))
                self._write(block, measured, None if moved is None else moved[chosen])
            k += len(block.rectangles)
        return rows.computed or len(all_asks) * (1 if moved is None else 2)

    def measures_noise(self, model: TextModel) -> bool:
        """Whether each rectangle is computed in a second way."""
        return self.options.noise and has_other_way(model)

    def _alternatives(self, blocks: list[TextBlock], rows: Rows) -> list[list[Rectangle] | None]:
        """The rectangles of each drawn block; None for a block of a named rectangle, or one that cannot be drawn."""
        model, how = blocks[0].text.model, self.options.draw
        drawn = [block for block in blocks if len(block.sites)]
        proposals: dict[tuple[int, int], Floats] = {}
        if how != "uniform":
            wanted = [(k, site) for k, block in enumerate(drawn) for site in np.unique(block.sites).tolist()]
            states, sites = [drawn[k].ids for k, _ in wanted], [site for _, site in wanted]
            proposals = dict(zip(wanted, _propose(model, rows, states, sites), strict=True))
        result: list[list[Rectangle] | None] = [None] * len(blocks)
        for k, block in enumerate(drawn):
            rows_of = {site: proposals[k, site] for site in np.unique(block.sites).tolist() if (k, site) in proposals}
            with self.io.guard(block.text.place):
                result[blocks.index(block)] = self._draw(block, rows_of)
        return result

    def _draw(self, block: TextBlock, rows: dict[int, Floats]) -> list[Rectangle]:
        try:
            return draw_rectangles(self.options.draw, block.ids, block.sites, block.uniforms[:, 2:],
                                   block.text.model.allowed, rows)
        except NotFiniteError as error:
            raise RecordError(f"the model's conditional at site {error.row} is not finite; the text is left "
                              "out") from error
        except ValueError as error:
            raise RecordError(f"{error}; freeze it, or use --draw uniform") from error

    def _write(self, block: TextBlock, measured: Measured, moved: Values | None) -> None:
        for record in self.records(block, measured, moved):
            self.tally.take(record)
            if not self.options.summary:
                self.io.output.write(block.text.answer(record))

    def records(self, block: TextBlock, measured: Measured, moved: Values | None) -> Iterator[Record]:
        """The records of a block, without the fields that a text hands on."""
        options = self.options
        why = None if moved is not None else "not measured" if not options.noise else \
            "a table is computed in one way only"
        drawn = {"draw": options.draw} if len(block.sites) else {}
        head = {"run": self.inputs.run, "tau": options.tau}
        for record in rectangle_records(block.text, block.rectangles, measured, moved):
            yield record | head | drawn | ({} if why is None else {"noise_reason": why})

    def _summarise(self) -> None:
        records = self.tally.summaries()
        for sentence in self.tally.warnings():
            self.io.reporter.warn(sentence)
        for record in records:
            if record["over"] == "model" and record["above_noise"] is None and record["noise_floor"] is not None:
                self.io.reporter.warn(f"{record['model']}: no verdict: {record['noise_reason']}")
        if shown(self.io, self.options.table):
            from mlmglauber.commands.rect.table import rectangle_tables

            write_tables(self.io, self.options.table, rectangle_tables(records))
            return
        for record in [self.head, *records] if self.head else records:
            self.io.output.write(record)


def _propose(model: Any, rows: Rows, states: list[Ids], sites: list[int]) -> Sequence[Floats]:
    """The distributions from which alternatives are drawn: conditionals, or a causal model's own, from the left."""
    if not model.has_joint:
        return rows.keep(states, sites)
    from mlmglauber.models.conditionals import stack

    return list(model.left_log_probs(stack(states), np.array(sites))) if states else []
