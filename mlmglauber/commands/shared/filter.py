"""What every command shares: its options, its record loop, its exit statuses. A command says what it takes and adds."""

import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from mlmglauber import __version__
from mlmglauber.commands.shared.chain_run import Runs
from mlmglauber.commands.shared.command_line import Command
from mlmglauber.commands.shared.options import reading_of
from mlmglauber.commands.shared.process import settle_process
from mlmglauber.commands.shared.reporter import Words
from mlmglauber.stream.errors import (
    ExitStatus,
    InputError,
    MixedRecordsError,
    MlmError,
    MlmWarning,
    RecordError,
)
from mlmglauber.stream.formats import Line, Reading
from mlmglauber.stream.interrupts import TerminatedError, held
from mlmglauber.stream.lines import Lines
from mlmglauber.stream.output import ClosedPipeError, Output
from mlmglauber.stream.printable import counted, were
from mlmglauber.stream.records import BrokenJsonError, Record, check_schema, has_masks, parse

CLOSED_PIPE = 141
"""The status of a program whose reader has gone, as the shell reports a death by SIGPIPE."""


class Filter:
    """The record loop: lines in, records out, bad ones told of and left out.

    An error that ends the input, of a file or under --strict, is kept in `failure`: to the command it looks like the
    end of the input, so that it finishes what is in work. The error is told of after that, see `conclude`.
    """

    def __init__(self, words: Words, files: tuple[str, ...], strict: bool, output: Output,
                 reading: Reading | None = None) -> None:
        self.words, self.strict, self.output = words, strict, output
        self.lines = Lines(files, reading)
        self.lines.before_wait = output.flush
        self.failure: MlmError | None = None
        """The error that ended the input, if one did."""
        self.place = ""
        """Where the record in hand stands, as file:line."""
        self.count = 0
        """Records read so far, bad ones too: a record without an id is called by its place in the input, from 0."""
        self.first: Record | None = None
        """The first record of the whole input, which names a run: also where another process has read it."""
        self.shard: tuple[int, int] | None = None
        """(i, N): only the records i, N + i, 2 N + i, ... are answered, counted from 0."""
        self.runs = Runs()
        """The run records that came so far, those of all shards: what made the chains of the states after them."""
        self.mute = False
        """Bad records are passed over: another process of this run tells of them."""
        self.passed_texts: Counter[str] = Counter()
        self.part = False
        """Whether this is a part of an input that another process reads whole."""
        self.kinds: Counter[str] = Counter()
        """The types of the records read so far."""
        self.unknown: Counter[str] = Counter()
        """Texts with unknown tokens, these, and all tokens of theirs."""
        self.masked: Counter[str] = Counter()
        """States with masked sites that came in, by what became of them."""
        self.ends: Counter[str] = Counter()
        """Chains that ended, those of them that have masked sites then, and these sites."""
        self.warm: dict[Any, Any] = {}
        """What was opened and may be used again: see `once`."""

    def next_line(self, wait: bool = True) -> Line | None:
        """The next line; None at the end, where the input cannot be read further, or when none is at hand."""
        if self.failure is not None:
            return None
        try:
            return self.lines.next(wait)
        except (InputError, RecordError) as error:
            self.failure = error
            return None

    def read(self, plain_text: bool, wait: bool = True) -> Record | None:
        """The next good record; None at the end, or when none is at hand and `wait` is off."""
        while (line := self.next_line(wait)) is not None:
            with self.guard(line.place):
                record = self._parse(line, plain_text)
                if record is not None:
                    return record
        return None

    def each(self, handle: Callable[[Record], None], plain_text: bool = False) -> None:
        """Hand on every good record; a RecordError of `handle` is told of like one of the line itself.

        A MixedRecordsError of `handle` ends the input.
        """
        while (line := self.next_line()) is not None:
            try:
                record = self._parse(line, plain_text)
                if record is not None:
                    handle(record)
            except RecordError as error:
                self.bad(error, line.place)
            except MixedRecordsError as error:
                self.failure = error

    def conclude(self) -> None:
        """Raise the error that ended the input, if one did: after all that stood before it is answered."""
        if self.failure is not None:
            raise self.failure

    def records(self, plain_text: bool = False) -> Iterator[Record]:
        while (record := self.read(plain_text)) is not None:
            yield record

    def batches(self, size: int, plain_text: bool) -> Iterator[list[tuple[str, Record]]]:
        """Records with their places, as many as are at hand, at least one and at most `size` at a time."""
        while (record := self.read(plain_text)) is not None:
            batch = [(self.place, record)]
            while len(batch) < size and (record := self.read(plain_text, wait=False)) is not None:
                batch.append((self.place, record))
            yield batch

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` makes, made once for a key: a worker opens a model for its first block and keeps it."""
        if key not in self.warm:
            self.warm[key] = make()
        return self.warm[key]

    def _parse(self, line: Line, plain_text: bool) -> Record | None:
        """The record of a line; None for a blank line and for one that is another shard's."""
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
        self.kinds[str(record.get("type"))] += 1
        return record if ours else None

    @contextmanager
    def guard(self, place: str) -> Iterator[None]:
        """A RecordError inside is told of with its place; under --strict it ends the input."""
        try:
            yield
        except RecordError as error:
            self.bad(error, place)

    def bad(self, error: RecordError, place: str) -> None:
        """Tell of a bad record; under --strict the input ends with it, and what is in work is finished."""
        if self.mute:
            return
        error.place = error.place or place
        if self.strict and self.failure is None:
            self.failure = error
        else:
            self.words.bad_record(error)

    def pass_on(self, record: Record) -> None:
        """Count a record that is no input of a command; one with a text may have been meant as one."""
        if isinstance(record.get("text"), str):
            self.passed_texts[str(record.get("type"))] += 1

    def leaves_out(self, record: Record, fate: str = "left out") -> bool:
        """Whether a record is a state with masked sites, which is no text; counted for the line at the end."""
        if not has_masks(record):
            return False
        self.masked[fate] += 1
        return True

    def lacks(self, wanted: str, remedy: str, empty: bool = True) -> None:
        """Say that an input held nothing of what was wanted; empty: nor can the output, which is status 65.

        Of an input without a record, and of one with bad records, that is not said.
        """
        if not self.kinds or self.words.bad_records or self.failure or self.part or self.shard:
            return
        found = ", ".join(f"{count} {'of no type' if kind == 'None' else 'of type ' + kind}"
                          for kind, count in self.kinds.items())
        if not self.masked:  # a line of its own tells what was left out
            self.words.say(f"no {wanted} in the input ({found}); {remedy}")
        self.words.empty = empty

    @property
    def counts(self) -> tuple[Counter[str], ...]:
        """What `say_counts` tells of: a worker's are added to those of the client."""
        return self.unknown, self.masked, self.ends, self.passed_texts

    def say_counts(self) -> None:
        """A line each for what `pass_on` counted, for the unknown tokens of texts, and for masked sites."""
        if self.unknown:
            texts = self.unknown["texts"]
            self.words.say(f"{counted(texts, 'text')} with unknown tokens: {self.unknown['unknown']} of "
                           f"{self.unknown['tokens']} tokens stand for what the vocabulary lacks (`unknown`)")
        if self.ends["masked"]:
            self.words.say(f"{self.ends['masked']} of {counted(self.ends['chains'], 'chain')} ended with masked sites, "
                           f"{self.ends['sites']} in all (`masked`): these last states are no texts; run more sweeps")
        for fate, count in self.masked.items():
            what = "is no text," if count == 1 else "are no texts,"
            self.words.say(f"{counted(count, 'state')} with masked sites, which {what} {were(count)} {fate}")
        if self.passed_texts:
            what = ", ".join(f"{count} of type {kind}" for kind, count in self.passed_texts.items())
            self.words.say(f"records with a text passed on as they are, which are no inputs: {what}")


def _shared_options(name: str) -> list[click.Parameter]:
    def version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            click.echo(f"{name} (mlmglauber) {__version__}")
            context.exit()

    return [
        click.Option(["-o", "--output"], metavar="FILE", help="Write to FILE, which appears whole or not at all."),
        click.Option(["--strict"], is_flag=True, help="Stop at the first bad record."),
        click.Option(["-q", "--quiet"], is_flag=True, help="No warnings, counts or progress."),
        click.Option(["-v", "--verbose"], count=True, help="Tracebacks with errors."),
        click.Option(["--progress/--no-progress"], default=None,
                     help="Show progress on standard error; by default on a terminal."),
        click.Option(["--no-color"], is_flag=True, help="No colour; so do NO_COLOR and TERM=dumb."),
        click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=version,
                     help="Show the version and exit."),
    ]


def filter_command(name: str, description: str, examples: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make main(filter, **its options) a command over records: FILE arguments and the options that all share.

    The decorated function's own click.option decorators come first in --help.
    """

    def decorate(function: Callable[..., None]) -> click.Command:
        def callback(files: tuple[str, ...], output: str | None, strict: bool, quiet: bool, verbose: int,
                     progress: bool | None, no_color: bool, **options: Any) -> None:
            color = not (no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb")
            words = Words(name, quiet, verbose, progress, color)
            raise SystemExit(_run(function, name, words, files, strict, output, options))

        own = list(reversed(getattr(function, "__click_params__", [])))
        inputs = click.Argument(["files"], nargs=-1, type=click.Path(), metavar="[FILE]...")
        command = Command(name, callback=callback, help=description, epilog=examples,
                           params=[inputs, *own, *_shared_options(name)],
                           context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
        command.function = function
        return command

    return decorate


def _run(function: Callable[..., None], name: str, words: Words, files: tuple[str, ...], strict: bool,
         path: str | None, options: dict[str, Any]) -> int:
    """Run a command's function over its input; the exit status."""
    settle_process()
    held.heed()
    warnings.showwarning = lambda message, category, *_: (
        words.say(str(message)) if issubclass(category, MlmWarning) else None)
    try:
        with ExitStack() as stack:
            with held:  # a hidden file that is made is also removed
                output = stack.enter_context(Output(path))
            filter = Filter(words, files, strict, output, reading_of(options))
            filter.shard, address = options.pop("shard", None), options.pop("dask", None)
            if address is not None:
                if filter.shard is not None:
                    raise click.UsageError("--shard and --dask exclude each other")
                from mlmglauber.commands.shared.spread.client import distribute

                distribute(filter, name, address, options)
            else:
                try:
                    function(filter, **options)
                except MlmError:
                    filter.conclude()  # an input that is not whole may be why
                    raise
            filter.say_counts()
            filter.conclude()
    except ClosedPipeError:
        _silence(sys.stdout.fileno())
        return CLOSED_PIPE
    except TerminatedError as error:
        words.fail(error, "terminated")
        return 128 + error.number  # as the shell reports a death by this signal
    except KeyboardInterrupt as error:
        words.fail(error, "interrupted")
        return ExitStatus.INTERRUPTED
    except MlmError as error:
        words.fail(error, str(error))
        return error.status
    except OSError as error:
        words.fail(error, f"cannot write: {error.strerror or error}; free some space or choose another place")
        return ExitStatus.CANNOT_WRITE
    except click.UsageError:
        raise
    except Exception as error:  # whatever is left is our mistake, and says so
        words.fail(error, f"a bug of ours: {type(error).__name__}: {error}; run again with -v and report it")
        return ExitStatus.OUR_BUG
    if words.bad_records or words.empty:
        return ExitStatus.BAD_RECORD
    return ExitStatus.FAILED if words.found else ExitStatus.OK


def _silence(descriptor: int) -> None:
    """Point a closed pipe at the null device, so that nothing complains when the interpreter ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
