"""--dry-run of mlm-score: the first texts are scored, all are counted."""

from collections import Counter
from collections.abc import Iterable
from functools import partial

import numpy as np

from mlmglauber.commands.score.options import ScoreOptions
from mlmglauber.commands.score.records import masked_fields, score_fields, scored
from mlmglauber.commands.score.run import ScoreRun, key_of
from mlmglauber.commands.shared.dry_run import Bounds, CountedOutput, Timing, output_bounds, write_estimate
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import Input
from mlmglauber.commands.shared.line_size import NONE, Size, line_size
from mlmglauber.commands.shared.progress import Progress
from mlmglauber.measures.score.scoring import conditionals_of, different_conditionals
from mlmglauber.measures.score.text_score import Spans, TextScore
from mlmglauber.models.words import word_spans

TIMED = 2
"""Number of texts in a batch that is timed."""
REASONS = 512
"""Maximum number of bytes that the reasons for numbers that are null add to a record."""


def write_score_estimate(io: Filter, options: ScoreOptions) -> None:
    """Read the input to its end and write the estimate. Texts that are scored together share their equal contexts."""
    output, timing = io.output, Timing(io)
    io.output = other = CountedOutput()
    run = ScoreRun(io, options)
    least: Counter[int] = Counter()
    most: Counter[int] = Counter()
    seen: set[int] = set()
    count = texts = 0
    size = NONE
    for batch in run.inputs.batches(run.together):
        new: dict[int, tuple[Input, Spans]] = {}
        for text in batch:
            spans = word_spans(text.model, text.ids)
            count += 1
            size += _size(run, text)
            if text.ids:
                texts += 1
                most[len(text.ids)] += conditionals_of(text.model, spans, options.within_word)
                if hash(key_of(text)) not in seen:
                    seen.add(hash(key_of(text)))
                    new[hash(key_of(text))] = text, spans
        if new:
            least[min(len(text.ids) for text, _ in new.values())] += _different(new.values(), options.within_word)
        for start in range(0, len(batch), TIMED):
            if not timing.enough:
                io.output = CountedOutput()
                some = [text for text in batch[start : start + TIMED] if text.ids]
                if some:
                    timing.batch(sum(len(text.ids) for text in some) / len(some), partial(_score, run, some))
                io.output = other
    if not texts:
        return
    if run.as_table:
        count, size = 0, NONE
    write_estimate(io, output, options.table, [
        Bounds("texts", len(seen), texts, "equal texts are scored once; each text is scored"),
        Bounds("conditionals", least.total(), most.total(), "equal contexts are computed once; those of each text are"),
        timing.bounds(least, most, "conditional"),
        *output_bounds(other, (count, count), size)])


def _different(texts: Iterable[tuple[Input, Spans]], within_word: bool) -> int:
    """Number of different conditionals of texts, by model."""
    of_model: dict[int, list[tuple[Input, Spans]]] = {}
    for text, spans in texts:
        of_model.setdefault(id(text.model), []).append((text, spans))
    return sum(different_conditionals(members[0][0].model, [np.array(text.ids) for text, _ in members],
                                      [spans for _, spans in members], within_word)
               for members in of_model.values())


def _score(run: ScoreRun, some: list[Input]) -> float:
    """Score a few texts; the number of their conditionals."""
    progress = Progress("conditionals")
    run.score(some, progress)
    return progress.made or 0.0


def _size(run: ScoreRun, text: Input) -> Size:
    """The size of the record of a text, whatever its scores."""
    if not text.ids:
        return line_size(scored(text.record, masked_fields(run.inputs.run, text.model.has_joint)))
    zeros, n = np.zeros(len(text.ids)), len(text.ids)
    spans = word_spans(text.model, text.ids)
    within = zeros if run.options.within_word and not text.model.has_joint else None
    sizes = []
    for rank in (1, text.model.vocab_size):
        score = TextScore(zeros, within, zeros, np.full(n, rank), spans)
        fields = score_fields(run.inputs.run, text.model, text.ids, score, run.options.by, run.options.within_word)
        sizes.append(line_size(scored(text.record, fields)))
    return Size(sizes[0].least, sizes[1].most + REASONS)
