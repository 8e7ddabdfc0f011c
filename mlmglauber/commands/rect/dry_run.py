"""--dry-run of mlm-rect: some rectangles of the first texts are measured, all are counted."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from mlmglauber.commands.rect.run import RectRun, TextBlock
from mlmglauber.commands.shared.dry_run import Bounds, CountedOutput, Timing, output_bounds, write_estimate
from mlmglauber.commands.shared.line_size import NONE, Size, StateSizes, line_size
from mlmglauber.measures.rectangle.delta import Measured, Rectangle, quarters
from mlmglauber.models.words import word_spans

TIMED = 32
"""Maximum number of rectangles of a batch that is timed."""


def write_rectangle_estimate(run: RectRun) -> None:
    """Write the estimate of a run of mlm-rect, at the end of its input."""
    io, options = run.io, run.options
    output, timing = io.output, Timing(io)
    summary, run.options = options.summary, replace(options, summary=False)
    run.inputs.needed = True
    io.output = other = CountedOutput()
    texts = rectangles = least = 0
    conditionals: Counter[int] = Counter()
    fewest: Counter[int] = Counter()
    size = NONE
    sizes: StateSizes | None = None
    for batch in run.inputs.batches(run.texts_together):
        texts += len(batch)
        for blocks in run.blocks(batch):
            for block in blocks:
                model = block.text.model
                sizes = sizes or StateSizes(model)
                ways = 2 if run.measures_noise(model) else 1
                rectangles += block.size
                conditionals[len(block.ids)] += ways * _asked(block)
                size += _size(run, block, sizes).times(block.size, block.size)
            shortest = min(blocks, key=lambda block: len(block.ids))
            fewest[len(shortest.ids)] += 4 * ways
            least += 4 * ways
            if not timing.enough:
                few = _first(blocks, TIMED)
                io.output = CountedOutput()
                length = sum(len(block.ids) * block.size for block in few) / sum(block.size for block in few)
                for _ in range(1 if timing.begun else 2):
                    timing.batch(length, partial(run.measure, few))
                io.output = other
    if texts:
        write_estimate(io, output, options.table, [
            Bounds("texts", texts, texts), Bounds("rectangles", rectangles, rectangles),
            Bounds("conditionals", least, conditionals.total(), "all rectangles of a call equal; none shares one"),
            timing.bounds(fewest, conditionals, "conditional"),
            *([] if summary else output_bounds(other, (rectangles, rectangles), size))])


def _first(blocks: Sequence[TextBlock], count: int) -> list[TextBlock]:
    """The first rectangles of some blocks, so many in all."""
    few: list[TextBlock] = []
    for block in blocks:
        if count > 0:
            few.append(block.first(count))
            count -= few[-1].size
    return few


def _asked(block: TextBlock) -> int:
    """Maximum number of conditionals that the rectangles of a block take in one way."""
    return 4 * len(block.sites) or sum(sum(quarters(rectangle)) for rectangle in block.rectangles)


def _size(run: RectRun, block: TextBlock, sizes: StateSizes) -> Size:
    """The size of one record of a block: of a named rectangle, or of any that may be drawn."""
    text, model = block.text, block.text.model
    zeros = Measured(np.zeros((1, 4, 2)), np.zeros(1), np.zeros(1))
    if len(block.sites):
        i, j = block.sites[0].tolist()
        block = block.first(1)
        block.rectangles = [Rectangle(i, j, text.ids[i], text.ids[j], text.ids[i], text.ids[j])]
    record = text.answer(next(run.records(block, zeros, np.zeros(1) if run.measures_noise(model) else None)))
    if not len(block.sites):
        return line_size(record)
    shortest = {key: value for key, value in record.items() if key != "part_of"} | {
        "i": 0, "j": 0, "tokens": [0] * 4, "pieces": [""] * 4, "words": [""] * 4}
    last, words = len(text.ids) - 1, [model.decode(text.ids[first:end]) for first, end in word_spans(model, text.ids)]
    longest = record | {"i": last, "j": last, "tokens": [sizes.widest_id] * 4, "pieces": [sizes.piece] * 4,
                        "words": [model.decode([sizes.token])] * 4, "part_of": [max(words, key=len, default="")] * 2}
    return Size(line_size(shortest).least, line_size(longest).most)
