"""--dry-run of mlm-influence: a few sites of the first texts are changed, the conditionals of all are counted."""

from collections import Counter
from dataclasses import replace
from functools import partial
from math import isqrt
from time import perf_counter

import numpy as np

from mlmglauber.commands.influence.run import BATCH, InfluenceRun, own_tau
from mlmglauber.commands.shared.dry_run import Bounds, CountedOutput, Timing, output_bounds, write_estimate
from mlmglauber.commands.shared.inputs import Input
from mlmglauber.commands.shared.line_size import NONE, Size, line_size
from mlmglauber.measures.influence.context import Compared
from mlmglauber.measures.influence.crossing import MOST
from mlmglauber.measures.influence.matrix import total_variations
from mlmglauber.measures.influence.replacements import Changes
from mlmglauber.measures.traps.margins import Margins, site_rows
from mlmglauber.models.conditionals import Ids

REASONS = 512
"""Maximum number of bytes that the reasons of values that are null add to a record."""
LARGEST_BOUND = 10**19
"""An integer with as many digits as a mixing bound can have: n / (1 - alpha) ln(n / eps) at alpha = 1 - 1e-16."""


def write_influence_estimate(run: InfluenceRun) -> None:
    """Write the estimate of a run of mlm-influence, at the end of its input."""
    io, options = run.io, run.options
    output, timing = io.output, Timing(io)
    io.output = other = CountedOutput()
    texts = records = 0
    least: Counter[int] = Counter()
    most: Counter[int] = Counter()
    size, search = NONE, 0.0
    for batch in run.inputs.batches(BATCH):
        for text in batch:
            with io.guard(text.place):
                sites = np.setdiff1d(np.arange(len(text.ids)), text.frozen(options.freeze))
                taus = options.tau or [own_tau(text)]
                run.head()
                if not timing.enough:
                    io.output = CountedOutput()
                    for _ in range(1 if timing.begun else 2):
                        timing.batch(len(text.ids), partial(_answer_in_part, run, text, sites))
                    io.output = other
                    if options.summary and options.keep_mb:
                        search = max(search, MOST * _comparing(text, sites))
                texts += 1
                replacements = min(1, int(text.model.allowed.sum()) - 1)
                least[len(text.ids)] += len(sites) * (1 + (len(sites) - 1) * replacements)
                most[len(text.ids)] += run.most_rows(text)
                if not options.summary:
                    records += len(taus)
                    for k in range(len(taus)):
                        size += _size(run, text, taus, k, sites)
    if texts:
        write_estimate(io, output, options.table, [
            Bounds("texts", texts, texts),
            Bounds("conditionals", least.total(), most.total(), "all replacements of a site equal, or none"),
            timing.bounds(least, most, "conditional", search * most.total()),
            *([] if options.summary else output_bounds(other, (records, records), size))])


def _answer_in_part(run: InfluenceRun, text: Input, sites: Ids) -> float:
    """Answer a text at so few free sites that about two batches are computed; the number of conditionals."""
    computed: list[float] = []
    few = 1 + isqrt(2 * text.model.rows // run.options.replacements)
    options = run.options
    run.options = replace(options, freeze=sorted({*range(len(text.ids))} - {*sites[: max(2, few)].tolist()}))
    try:
        run.answer(text, computed.append)
    finally:
        run.options = options
    return sum(computed)


def _comparing(text: Input, sites: Ids) -> float:
    """Seconds to compare one conditional with another at one temperature, as --summary does at the end."""
    rows = site_rows(text.model, np.array(text.ids), sites[:64])
    begin = perf_counter()
    total_variations(rows[0], rows, [1.0])
    return (perf_counter() - begin) / len(rows)


def _size(run: InfluenceRun, text: Input, taus: list[float], k: int, sites: Ids) -> Size:
    """The size of the record of a text at its k-th temperature."""
    n, one = len(sites), np.zeros(1, dtype=np.int64)
    compared = Compared(Changes(one, one, one + 1), np.zeros((len(taus), n, 1)), np.zeros((n, 1)))
    state = Margins(np.zeros(n), 0.0, 1.0, 0, 0.0, 0.0, np.ones(n), 0.0, 0.0, 1.0)
    record = run.record(text, taus, k, sites, compared, state)
    bounds = {"tmix_if_alpha": LARGEST_BOUND, "tmix_if_alpha_column": LARGEST_BOUND}
    longest = record | bounds | {"changes": n * run.options.replacements}
    return Size(line_size(record | dict.fromkeys(bounds, 1)).least, line_size(longest).most + REASONS)
