"""--dry-run of mlm-embed: the first texts are embedded, all are counted."""

from collections import Counter
from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np

from mlmglauber.commands.embed.options import EmbedOptions
from mlmglauber.commands.embed.run import OWN_FIELDS, EmbedRun, is_text
from mlmglauber.commands.shared.dry_run import Bounds, CountedOutput, Timing, output_bounds, write_estimate
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.line_size import NONE, Size, line_size
from mlmglauber.stream.records import Record, text_of
from mlmglauber.stream.vectors import pack

MOST_TOKENS = 10**9
"""An integer with as many digits as the number of tokens of a text can have."""
PCA_REASON = 256
"""Maximum number of bytes that the reason for a lack of principal components adds to a record."""

PROJECTED = 4096
"""Maximum number of embeddings that are projected to measure the time of --pca."""


def write_embedding_estimate(io: Filter, options: EmbedOptions) -> None:
    """Read the input to its end and write the estimate. Equal texts are embedded once, if they are near each other."""
    output, timing = io.output, Timing(io)
    io.output = other = CountedOutput()
    run = EmbedRun(io, replace(options, pca=None))
    seen: set[int] = set()
    least: Counter[int] = Counter()
    most: Counter[int] = Counter()
    size = NONE
    for batch in io.batches(options.batch_size, plain_text=True):
        texts: list[tuple[str, Record]] = []
        for place, record in batch:
            with io.guard(place):
                if not is_text(record):
                    run.add([(place, record)])
                    continue
                text_of(record)
                texts.append((place, record))
        if not texts:
            continue
        if not most:
            run.open()
            size = _head_size(run, options.pca)
        new = 0
        for _, record in texts:
            text = record["text"]
            most[len(text)] += 1
            if hash(text) not in seen:
                seen.add(hash(text))
                least[len(text)] += 1
                new += 1
            size += _size(run, record, options)
        if not timing.enough:
            io.output = CountedOutput()
            timing.batch(sum(len(record["text"]) for _, record in texts) / len(texts), partial(_embed, run, texts, new))
            io.output = other
    count = most.total()
    if not count:
        run.finish()  # which reports that there was nothing to embed
        return
    write_estimate(io, output, "", [
        Bounds("texts", least.total(), count, "equal texts are embedded once; each text is embedded"),
        timing.bounds(least, most, "text", _projecting(run, options.pca, count)),
        *output_bounds(other, (1 + count, 1 + count), size)])


def _embed(run: EmbedRun, texts: list[tuple[str, Record]], new: int) -> float:
    """Embed a batch of texts; the number of those that the embedder had not seen before."""
    run.add(texts)
    return new


def _projecting(run: EmbedRun, pca: int | None, count: int) -> float:
    """Seconds to project so many embeddings at the end of the run."""
    if pca is None:
        return 0.0
    from mlmglauber.measures.drift.projection import project

    vectors = np.random.default_rng(0).normal(size=(min(count, PROJECTED), run.open().dims)).astype(np.float32)
    begin = perf_counter()
    project(vectors[:2], pca)  # imports scikit-learn
    imported = perf_counter()
    project(vectors, pca)
    return imported - begin + (perf_counter() - imported) * count / len(vectors)


def _head_size(run: EmbedRun, pca: int | None) -> Size:
    """The size of the run record."""
    if pca is None:
        return line_size(run.run_record({}))
    size = line_size(run.run_record({"pca_explained": [0.0] * pca}))
    return Size(size.least, size.most + PCA_REASON)


def _size(run: EmbedRun, record: Record, options: EmbedOptions) -> Size:
    """The size of a record with its embedding."""
    embedder = run.open()
    record = {key: value for key, value in record.items() if key not in OWN_FIELDS} | {"embedder": embedder.identity}
    cut = {"truncated": True, "text_tokens": MOST_TOKENS}
    if options.pca is None:
        record["embedding"] = pack(np.zeros(embedder.dims, np.float32), options.encoding)
        return Size(line_size(record).least, line_size(record | cut).most)
    longest = pack(np.zeros(options.pca, np.float32), options.encoding)
    record["embedder"] += f"/pca{options.pca}-0000"
    return Size(line_size(record | {"embedding": []}).least,
                line_size(record | cut | {"embedding": longest}).most + PCA_REASON)
