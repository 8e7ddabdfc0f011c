"""Reads records of any mixture and keeps what a page shows of them."""

from collections import Counter
from typing import Any

from mlmglauber.commands.couple.summary import pair_of, summarise
from mlmglauber.commands.drift.series import AllSeries
from mlmglauber.commands.exact.table import exact_tables
from mlmglauber.commands.rect.tally import RectangleTally
from mlmglauber.commands.report import texts
from mlmglauber.commands.report.options import ReportOptions
from mlmglauber.commands.report.pictures import PagePictures
from mlmglauber.commands.report.runs import RunTable
from mlmglauber.commands.report.summaries import FAULTS, SummaryRecords
from mlmglauber.commands.sample.table import WrittenChains
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.tokens.table import tokens_tables
from mlmglauber.measures.meeting.times import Pair
from mlmglauber.pictures.kinds import summary_of
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import (
    SUITE_TYPES,
    Record,
    chain_key,
    has_masks,
    has_vector,
    tau_and_n,
    tokens_of_pll,
)

LIMIT = 200
"""Maximum number of records of mlm-exact and of mlm-tokens that are kept."""
STAY = ("first", "last", "residence", "radius", "min_steps")
"""Fields of a trap that are numbers of steps or sites."""
BUDGETS, EPS = [3.0, 5.0, 10.0], [0.25]
"""The defaults of mlm-couple --summary."""


class ReportRecords:
    """What a page shows of its records."""

    def __init__(self, io: Filter, options: ReportOptions) -> None:
        self.io, self.options = io, options
        self.types: Counter[str] = Counter()
        """Number of good records of the suite, by type."""
        self.counts: Counter[str] = Counter()
        """Number of states by what is special about them, and of records of other programs."""
        self.files: dict[str, dict[str, None]] = {}
        """The files with records of each type, with embeddings, and with summaries of each type."""
        self.runs, self.summaries, self.pictures = RunTable(), SummaryRecords(), PagePictures()
        self.chains, self.series = WrittenChains(), AllSeries(io, fixed=False)
        self.pairs: dict[Any, Pair] = {}
        self.rectangles = RectangleTally()
        self.exact: list[Record] = []
        self.tokens: list[Record] = []
        most = options.texts
        self.chain_texts = texts.ChainTexts(options.threshold, most)
        self.traps, self.fixed_points, self.deltas = texts.BestOf(most), texts.BestOf(most), texts.BestOf(most)
        self.likely, self.unlikely = texts.BestOf(min(most, 3)), texts.BestOf(min(most, 3))

    def take(self, record: Record) -> None:
        """Keep what the page shows of a record; RecordError for one that its command did not write."""
        what = record.get("type")
        if not isinstance(what, str) or what not in SUITE_TYPES:
            self.counts["others"] += 1
            return
        try:
            getattr(self, f"_{what}")(record)
        except FAULTS as error:
            raise RecordError(f"a record of type {what} lacks fields; give records as their command wrote "
                              "them") from error
        file = self.io.place.rpartition(":")[0]
        if not has_masks(record):
            self.pictures.take(record, file)
        self.types[what] += 1
        key = f"summary of {summary_of(record)}" if what == "summary" else what
        self.files.setdefault("embedded" if has_vector(record) else key, {})[file] = None

    def _run(self, record: Record) -> None:
        self.runs.take(record)
        self.rectangles.take_run(record)

    def _state(self, record: Record) -> None:
        tau_and_n(record)
        key = chain_key(record)
        if (type(record["step"]) is not int or not isinstance(record["text"], str) or record["n"] < 1
                or type(record["ids"]) is not list or len(record["ids"]) != record["n"]
                or not all(type(token) is int and abs(token) < 1 << 62 for token in record["ids"])):
            raise ValueError
        for field, low, high in (("drift", 0, 2), ("pll", -1e100, 1)):
            value = record.get(field)
            if value is not None and (type(value) not in (int, float) or not low <= value <= high):
                raise ValueError
        self.counts["unknown"] += bool(record.get("unknown"))
        self.counts["truncated"] += bool(record.get("truncated"))
        self.counts["without run"] += not self.io.runs.of(record).known
        if has_masks(record):
            self.counts["masked"] += 1
            return
        self.counts["embedded"] += has_vector(record)
        self.counts["named"] += "basin" in record
        if "drift" in record:
            self.series.add(key, record, None)
            self.counts["drift"] += 1
        self.chains.take(record)
        self.chain_texts.take(record)
        if record.get("pll") is not None and (tokens := tokens_of_pll(record)):
            value = record["pll"] / tokens
            self.likely.take(value, record["text"], record)
            self.unlikely.take(-value, record["text"], record)

    def _pair(self, record: Record) -> None:
        key, pair = pair_of(record)
        self.pairs[key] = pair

    def _rectangle(self, record: Record) -> None:
        self.rectangles.take(record)
        if record["delta"] is not None:
            texts.rectangle_text(record)
            self.deltas.take(abs(record["delta"]), (record.get("id"), record["i"], record["j"]), record)

    def _trap(self, record: Record) -> None:
        counts = ("basin_count",) if "found" in record else STAY
        if not all(type(record[name]) is int and 0 <= record[name] < 1 << 62
                   for name in (*counts, *(name for name in STAY if name in record))):
            raise ValueError
        if "found" in record:
            texts.fixed_point_text(record)
            self.fixed_points.take(record["basin_count"], record["text"], record)
            self.counts["fixed points"] += 1
        else:
            texts.trap_text(record)
            self.traps.take(record["residence"], record["text"], record)
            self.counts["traps"] += 1
            self.counts["censored traps"] += bool(record["censored"])

    def _exact(self, record: Record) -> None:
        exact_tables([record])[0].cells()
        if len(self.exact) < LIMIT:
            self.exact.append(record)

    def _tokens(self, record: Record) -> None:
        for table in tokens_tables([record]):
            table.cells()
        if len(self.tokens) < LIMIT:
            self.tokens.append(record)

    def _influence(self, record: Record) -> None:
        """The picture shows it; a table needs the summary of mlm-influence."""

    def _summary(self, record: Record) -> None:
        self.summaries.take(record)

    def complete(self) -> list[str]:
        """Add the summaries that are missing and that the records suffice for; what they are of."""
        from mlmglauber.commands.drift.summary import summarise as summarise_drift

        made = {
            "state": lambda: summarise_drift(self.series.all(), [self.options.threshold]),
            "pair": lambda: summarise(list(self.pairs.values()), BUDGETS, EPS),
            "rectangle": self.rectangles.summaries,
        }
        there = {"state": self.counts["drift"], "pair": self.types["pair"], "rectangle": self.types["rectangle"]}
        added = [what for what in made if there[what] and not self.summaries.by_kind.get(what)]
        for what in added:
            for summary in made[what]():
                self.summaries.take(summary)
                self.pictures.take(summary, None)
        return added
