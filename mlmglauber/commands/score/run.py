"""A run of mlm-score: texts that have arrived are scored together and written in their order."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from cachetools import LRUCache

from mlmglauber.commands.score.inputs import ScoreInputs
from mlmglauber.commands.score.options import ScoreOptions
from mlmglauber.commands.score.records import masked_fields, score_fields, scored
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import Input
from mlmglauber.commands.shared.options import TABLE_FORMS
from mlmglauber.commands.shared.progress import Progress
from mlmglauber.commands.shared.table_output import write_tables
from mlmglauber.measures.score.scoring import Advance, conditionals_of, score_texts
from mlmglauber.measures.score.text_score import Spans, TextScore
from mlmglauber.models.conditionals import Ids, TextModel
from mlmglauber.models.opening import open_scorer
from mlmglauber.models.words import word_spans
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record

TOGETHER = 32
"""Number of texts that are scored together; half the rows of a batch of the model if these are more."""
CACHED = 1 << 18
"""Maximum number of tokens of all texts whose scores are kept: a chain that stays in a state is scored once."""

Key = tuple[int, bytes]
"""Names a score: the model, and the token ids of the text."""


class _Work:
    """Texts of one model that are scored together, no two of them equal, and the sites of their words."""

    def __init__(self, model: TextModel) -> None:
        self.model = model
        self.texts: dict[Key, Ids] = {}
        self.words: dict[Key, Spans] = {}


class ScoreRun:
    """One run of mlm-score."""

    def __init__(self, io: Filter, options: ScoreOptions) -> None:
        self.io, self.options = io, options
        self.as_table = options.table in TABLE_FORMS
        self.inputs = ScoreInputs(io, options, options.in_run_record(), opener=open_scorer,
                                  write=self._pass)
        self.inputs.summed = self.as_table
        self.rows: list[tuple[str, Record]] = []
        """The name of each text and the fields of its score, for a table."""
        self._kept: LRUCache[Key, TextScore] = LRUCache(CACHED, getsizeof=lambda score: len(score.rank))

    def run(self) -> None:
        """Score every text."""
        with self.io.bar("conditionals") as progress:
            for batch in self.inputs.batches(self.together):
                self.score(batch, progress)
                self.io.output.flush()
        if self.as_table:
            from mlmglauber.commands.score.table import score_tables

            write_tables(self.io, self.options.table, score_tables(self.rows))

    def _pass(self, record: Record) -> None:
        """Write the run record and the records that are no inputs, unless the output is a table."""
        if not self.as_table:
            self.io.output.write(record)

    def together(self) -> int:
        """Number of texts that are scored together."""
        model = self.inputs.model
        return TOGETHER if model is None else max(TOGETHER, model.rows // 2)

    def score(self, batch: Sequence[Input], progress: Progress) -> None:
        """Score the texts of a batch, and write them."""
        scores, works = self._divide(batch)
        for work in works:
            planned = sum(conditionals_of(work.model, words, self.options.within_word) for words in work.words.values())
            progress.plan(planned)
            before = progress.done
            scores |= self._compute(work, partial(_advance, progress))
            progress(planned - (progress.done - before))  # equal contexts were computed once
        for text in batch:
            with self.io.guard(text.place):
                self._write(text, scores)

    def _divide(self, batch: Sequence[Input]) -> tuple[dict[Key, TextScore], list[_Work]]:
        """The scores of a batch that are known, and the texts of each model that have none."""
        scores: dict[Key, TextScore] = {}
        works: dict[int, _Work] = {}
        for text in batch:
            key = key_of(text)
            if not text.ids or key in scores:
                continue
            if key in self._kept:
                scores[key] = self._kept[key]
                continue
            work = works.setdefault(id(text.model), _Work(text.model))
            if key not in work.texts:
                work.texts[key] = np.array(text.ids)
                work.words[key] = word_spans(text.model, text.ids)
        return scores, list(works.values())

    def _compute(self, work: _Work, advance: Advance) -> dict[Key, TextScore]:
        found = score_texts(work.model, list(work.texts.values()), list(work.words.values()), self.options.within_word,
                            advance)
        new = dict(zip(work.texts, found, strict=True))
        self._kept.update(new)
        return new

    def _write(self, text: Input, scores: dict[Key, TextScore]) -> None:
        options, run = self.options, self.inputs.run
        if not text.ids:
            fields = masked_fields(run, text.model.has_joint)
        else:
            score = scores[key_of(text)]
            if score.broken is not None:
                raise RecordError(f"the model's conditional at site {score.broken} is not finite; the text is left out")
            fields = score_fields(run, text.model, text.ids, score, options.by, options.within_word)
        if self.as_table:
            self.rows.append((text.name, fields))
        else:
            self.io.output.write(scored(text.record, fields))


def key_of(text: Input) -> Key:
    """The name of the score of a text."""
    return id(text.model), np.array(text.ids, dtype=np.int64).tobytes()


def _advance(progress: Progress, count: int) -> None:
    progress(count)
    progress.made = (progress.made or 0) + count
