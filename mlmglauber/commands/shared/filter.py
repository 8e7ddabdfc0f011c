"""The record loop that all commands share: lines in, records out, bad records reported and left out."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from time import perf_counter, process_time
from typing import Any, Protocol

from mlmglauber.commands.shared.chain_run import Runs
from mlmglauber.commands.shared.progress import InputLength, Progress
from mlmglauber.commands.shared.reporter import Reporter
from mlmglauber.stream.errors import InputError, MixedRecordsError, MlmError, RecordError
from mlmglauber.stream.formats import Line, Reading
from mlmglauber.stream.lines import Lines
from mlmglauber.stream.output import Output
from mlmglauber.stream.printable import counted, were
from mlmglauber.stream.records import BrokenJsonError, Record, check_schema, has_masks, objects, parse

TakeStates = Callable[[list[Record], Callable[[int], str]], None]
"""What takes states that follow each other, and a function from the place in this list to FILE:LINE."""


class Filter:
    """Reads records, writes records, and reports bad ones.

    An error that ends the input, of a file or under --strict, is kept in `failure`. To the command it looks like the
    end of the input, so the command finishes the records it has begun; then `conclude` raises the error.
    """

    def __init__(self, reporter: Reporter, files: tuple[str, ...], strict: bool, output: Output,
                 reading: Reading | None = None) -> None:
        self.reporter, self.strict, self.output = reporter, strict, output
        self.lines = Lines(files, reading)
        self.lines.before_wait = output.flush
        self.failure: MlmError | None = None
        """The error that ended the input, if one did."""
        self.place = ""
        """file:line of the current record."""
        self.count = 0
        """Number of records read, bad ones included. A record without an id is named by its place in the input."""
        self.first: Record | None = None
        """The first record of the whole input, which names a run; a worker gets it from its client."""
        self.shard: tuple[int, int] | None = None
        """(i, N): only the records i, N + i, 2 N + i, ... are answered, counted from 0. None: all records."""
        self.runs = Runs()
        """The run records read so far, those of other shards included."""
        self.dry_run = False
        """Whether the command only estimates its work: see dry_run.py."""
        self.began = perf_counter() - process_time()
        """When the command began: the processor time so far is that of starting it."""
        self.mute = False
        """Whether bad records are skipped without a report, because another process of this run reports them."""
        self.passed_texts: Counter[str] = Counter()
        """Number of records with a text that were passed on because they are not inputs, by type."""
        self.part = False
        """Whether this process reads one part of an input that another process reads as a whole."""
        self.types: Counter[str] = Counter()
        """Number of records read, by type."""
        self.unknown: Counter[str] = Counter()
        """Number of texts with unknown tokens, of their unknown tokens, and of all their tokens."""
        self.masked: Counter[str] = Counter()
        """Number of states with masked sites, by what was done with them."""
        self.ends: Counter[str] = Counter()
        """Number of chains that ended, of those that ended with masked sites, and of these sites."""
        self.opened: dict[Any, Any] = {}
        """Cache of opened models, keyed by name and options; a worker keeps it from block to block."""

    def bar(self, unit: str) -> AbstractContextManager[Progress]:
        """The progress of work on the records of this input. See Reporter.bar."""
        return self.reporter.bar(unit, input_length=self.input_length)

    def input_length(self) -> InputLength | None:
        """How long the input is, in records; None while it is not known where it ends."""
        left = 0 if self.failure is not None else self.lines.remaining()
        if left is None:
            return None
        return InputLength((self.count + left) / max(1, self.count), not left)

    def next_line(self, wait: bool = True) -> Line | None:
        """The next line; None at the end, after an error, or when `wait` is off and no line has arrived."""
        if self.failure is not None:
            return None
        try:
            return self.lines.next(wait)
        except (InputError, RecordError) as error:
            self.failure = error
            return None

    def read(self, plain_text: bool, wait: bool = True) -> Record | None:
        """The next good record; None at the end, or when `wait` is off and none has arrived."""
        while (line := self.next_line(wait)) is not None:
            with self.guard(line.place):
                record = self._parse(line, plain_text)
                if record is not None:
                    return record
        return None

    def each(self, handle: Callable[[Record], None], plain_text: bool = False) -> None:
        """Call `handle` with every good record. A RecordError that it raises is reported like one of the line itself;
        a MixedRecordsError ends the input."""
        while (line := self.next_line()) is not None:
            try:
                record = self._parse(line, plain_text)
                if record is not None:
                    handle(record)
            except RecordError as error:
                self.bad(error, line.place)
            except MixedRecordsError as error:
                self.failure = error

    def each_states(self, take: TakeStates, handle: Callable[[Record], None]) -> None:
        """As `each`, several times faster: states that follow each other are given together to `take`.

        take: see TakeStates; it reports bad states itself, with `bad`.
        handle: called with each other record. Integers beyond 64 bits may come as floats. Without shards.
        """
        singly = 0
        """Number of lines that are read one by one, since one of them is bad."""
        while self.failure is None:
            block = None if singly else self.lines.block()
            records = None if block is None else objects(block.lines)
            if block is not None and records is not None:
                self.first = self.first or records[0]
                self.count += len(records)
                self._give(records, block.place, take, handle)
                self.lines.skip(len(records))
                continue
            singly = max(0, singly - 1) if block is None else len(block.lines) - 1
            line = self.next_line()
            if line is None:
                return
            with self.guard(line.place):
                record = self._parse(line, plain_text=False)
                if record is not None and record.get("type") == "state":
                    take([record], partial(_same, line.place))
                elif record is not None:
                    handle(record)

    def _give(self, records: list[Record], place: Callable[[int], str], take: TakeStates,
              handle: Callable[[Record], None]) -> None:
        """Give runs of states to `take` and other records to `handle`."""
        types = [record.get("type") for record in records]
        start = 0
        while start < len(records) and self.failure is None:
            end = start
            while end < len(records) and types[end] == "state":
                end += 1
            if end > start:
                self.types["state"] += end - start
                take(records[start:end], partial(_later, place, start))
                start = end
                continue
            self.place = place(start)
            with self.guard(self.place):
                check_schema(records[start], self.place)
                if types[start] == "run":
                    self.runs.take(records[start])
                self.types[str(types[start])] += 1
                handle(records[start])
            start += 1

    def conclude(self) -> None:
        """Raise the error that ended the input, if there was one: call this after all records are answered."""
        if self.failure is not None:
            raise self.failure

    def records(self, plain_text: bool = False) -> Iterator[Record]:
        while (record := self.read(plain_text)) is not None:
            yield record

    def batches(self, size: int, plain_text: bool) -> Iterator[list[tuple[str, Record]]]:
        """Lists of (place, record): all records that have arrived, at least one and at most `size` in each list."""
        while (record := self.read(plain_text)) is not None:
            batch = [(self.place, record)]
            while len(batch) < size and (record := self.read(plain_text, wait=False)) is not None:
                batch.append((self.place, record))
            yield batch

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """The value that `make` returns, called only the first time that `key` is asked for."""
        if key not in self.opened:
            self.opened[key] = make()
        return self.opened[key]

    def _parse(self, line: Line, plain_text: bool) -> Record | None:
        """The record of a line; None for a blank line or a record of another shard."""
        self.place = line.place
        self.count += 1
        ours = self.shard is None or (self.count - 1) % self.shard[1] == self.shard[0]
        try:
            record = parse(line, plain_text)
            if record is None:
                self.count -= 1
                return None
            check_schema(record, line.place)
        except RecordError as error:
            if isinstance(error, BrokenJsonError):
                self.lines.only_json()
            if ours:
                raise
            return None
        if self.first is None:
            self.first = record
        if record.get("type") == "run":
            self.runs.take(record)
        self.types[str(record.get("type"))] += 1
        return record if ours else None

    @contextmanager
    def guard(self, place: str) -> Iterator[None]:
        """Report a RecordError that is raised inside, with this place; under --strict it ends the input."""
        try:
            yield
        except RecordError as error:
            self.bad(error, place)

    def bad(self, error: RecordError, place: str) -> None:
        """Report a bad record; under --strict the input ends here, and the command finishes what it has begun."""
        if self.mute:
            return
        error.place = error.place or place
        if self.strict and self.failure is None:
            self.failure = error
        else:
            self.reporter.bad_record(error)

    def pass_on(self, record: Record) -> None:
        """Count a record that is passed on because it is not an input; with a text it may have been meant as one."""
        if isinstance(record.get("text"), str):
            self.passed_texts[str(record.get("type"))] += 1

    def leaves_out(self, record: Record, fate: str = "left out") -> bool:
        """Whether a record is a state with masked sites, which has no text; it is counted for `report_counts`."""
        if not has_masks(record):
            return False
        self.masked[fate] += 1
        return True

    def report_missing(self, wanted: str, remedy: str, empty: bool = True) -> None:
        """Warn that the input held none of the records that the command reads.

        empty: whether the output is then empty too, which is exit status 65. There is no warning if the input has no
        record at all, or bad records.
        """
        if not self.types or self.reporter.bad_records or self.failure or self.part or self.shard:
            return
        counts = ", ".join(f"{count} {'of no type' if kind == 'None' else 'of type ' + kind}"
                           for kind, count in self.types.items())
        if not self.masked:  # states with masked sites are reported in a line of their own
            self.reporter.warn(f"no {wanted} in the input ({counts}); {remedy}")
        self.reporter.nothing_found = empty

    @property
    def counts(self) -> tuple[Counter[str], ...]:
        """The counts that `report_counts` writes; the client adds up those of its workers."""
        return self.unknown, self.masked, self.ends, self.passed_texts

    def report_counts(self) -> None:
        """Write one line each about unknown tokens, masked sites and records that were passed on."""
        if self.unknown:
            texts = self.unknown["texts"]
            self.reporter.warn(f"{counted(texts, 'text')} with unknown tokens: {self.unknown['unknown']} of "
                               f"{self.unknown['tokens']} tokens are unknown to the model (`unknown`)")
        if self.ends["masked"]:
            self.reporter.warn(f"{self.ends['masked']} of {counted(self.ends['chains'], 'chain')} ended with masked "
                               f"sites, {self.ends['sites']} in all (`masked`), so their last states have no text; run "
                               "more sweeps")
        for fate, count in self.masked.items():
            have = "it has" if count == 1 else "they have"
            self.reporter.warn(f"{counted(count, 'state')} with masked sites {were(count)} {fate}: {have} no text")
        if self.passed_texts:
            what = ", ".join(f"{count} of type {kind}" for kind, count in self.passed_texts.items())
            self.reporter.warn(f"records with a text were passed on because they are not inputs: {what}")


def _same(place: str, _: int) -> str:
    return place


def _later(place: Callable[[int], str], start: int, number: int) -> str:
    return place(start + number)


class Function(Protocol):
    """The function of a command: reads, answers and writes records. A worker imports it from its module."""

    __name__: str

    def __call__(self, io: Filter, options: Any, /) -> None: ...
