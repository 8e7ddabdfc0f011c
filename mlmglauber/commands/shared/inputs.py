"""What a command with a model reads: texts and states as token ids, and the run record that tells of the model."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mlmglauber.commands.shared.chain_models import ChainModels
from mlmglauber.commands.shared.chain_run import NO_RUN, ChainRun
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.options import ModelOptions, TextOptions
from mlmglauber.models.batch_size import BatchSize
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.opening import open_model
from mlmglauber.models.plain_text import PART, parts
from mlmglauber.models.vocabulary import is_alphabet
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.printable import counted, were
from mlmglauber.stream.records import SCHEMA, Record, is_input, record_id, text_or_ids, to_line

if TYPE_CHECKING:
    from mlmglauber.dynamics.engine import Engine

OWN_FIELDS = frozenset({
    "type", "run", "id", "chain", "step", "tau", "n", "text", "ids", "site", "old", "new", "changed", "logp_old",
    "logp_new", "reason", "text_exact", "masked", "pll", "pll_reason", "embedding", "embedder", "truncated",
    "text_tokens", "embedding_reason", "drift", "drift_reason", "coupled", "basin", "basin_p", "basin_reason",
    "basin_p_reason",
})
"""Fields of an input that what is made of it does not inherit: they are made anew, or tell of the text that was."""

DRAW_VERSION = 2
"""Which draws make a chain of its key: 2 since tokens are drawn in two levels, from float64 conditionals."""

TEXTS = ("text", "give lines of text, or records with `text` or `ids`", False)
"""What a command lacks whose input has no text; the records of other types are passed on."""


class Input(NamedTuple):
    """One text: where it stands, what it is called, its token ids, and the fields that its answers inherit.

    chain: the run of a state's chain, and model: the model as that chain has it; for a text, NO_RUN and the model.
    """

    place: str
    name: str
    ids: list[int]
    inherited: Record
    record: Record
    chain: ChainRun
    model: TextModel

    def frozen(self, own: list[int] | None) -> list[int]:
        """The sites that do not move: those of --freeze and those of the chain; RecordError where none is left."""
        n = len(self.ids)
        check_frozen(own or [], n)
        sites = sorted({*(own or []), *(site for site in self.chain.law.freeze if site < n)})
        check_frozen(sites, n)
        return sites

    def answer(self, answer: Record) -> Record:
        """A record made of this text, with the fields that it inherits."""
        return answer | {key: value for key, value in self.inherited.items() if key not in answer}


class Inputs:
    """The texts of a command's input, their model, and the run record, written when the first text comes.

    recorded: the command's own options, as the run record holds them. seed: that of what is drawn, None where nothing
    is. write: takes the run record and the records that are passed on; by default the output does.
    """

    def __init__(self, io: Filter, options: TextOptions, recorded: dict[str, Any], seed: int | None = None,
                 opener: Callable[..., TextModel] = open_model,
                 write: Callable[[Record], None] | None = None) -> None:
        self.io, self.options, self._recorded, self._seed, self._opener = io, options, recorded, seed, opener
        self._write = write or io.output.write
        self.model: TextModel | None = None
        self.chains: ChainModels | None = None
        self.run = ""
        self.too_short = 0
        self.needed = True
        """Whether an input without a text is worth a word."""
        self.summed = False
        """Whether the output is a summary or a table: without a text it can only be empty, which is status 65."""

    def batches(self, size: int) -> Iterator[list[Input]]:
        """Texts that are at hand, at least one and at most `size`; records of other types pass in their place."""
        batch: list[Input] = []
        while True:
            record = self.io.read(plain_text=True, wait=not batch)
            if record is None and not batch:
                if self.model is None and self.needed:
                    self.io.report_missing(*TEXTS[:2], empty=self.summed)
                if self.too_short:
                    assert self.options.length is not None
                    report_too_short(self.io, self.too_short, self.options.length)
                return
            if batch and (record is None or not is_input(record)):
                yield batch
                batch = []
            if record is None:
                continue
            if not is_input(record):
                if self.needed:
                    self.io.pass_on(record)
                self._write(record)
                continue
            with self.io.guard(self.io.place):
                found = self._input(record)
                if found is not None:
                    batch.append(found)
            if len(batch) == size:
                yield batch
                batch = []

    def _input(self, record: Record) -> Input | None:
        if self.io.leaves_out(record):
            return None
        if self.model is None:
            self.model = self._open(record)
            self.chains = ChainModels(self.io, self.model)
        assert self.chains is not None
        chain, model = NO_RUN, self.model
        if record.get("type") == "state":
            chain = self.io.runs.of(record)
            model = self.chains.of(chain)
        name = record_id(record, self.io.count - 1)
        ids = token_ids(self.model, record, self.options.length)
        if ids is None:
            self.too_short += 1
            return None
        tally_unknown(self.io, record, ids)
        inherited = {key: value for key, value in record.items() if key not in OWN_FIELDS}
        return Input(self.io.place, name, ids, inherited, record, chain, model)

    def _open(self, first: Record) -> TextModel:
        options = self.options
        model: TextModel = self.io.once(("model", options.model, *options.opening.values()),
                                        lambda: self._opener(options.model, **options.opening))
        described, command = model.describe(), self.io.reporter.command
        self.run = run_id(described, [command, self._seed, self._recorded, self.io.first or first])
        seed = {} if self._seed is None else {"seed": self._seed}
        self._write({"type": "run", "schema": SCHEMA, "run": self.run, "command": command, **seed, **described,
                     "options": self._recorded | {"batch_size": options.batch_size}})
        return model


def texts_at_once(options: ModelOptions) -> int:
    """How many texts a command takes in together, before its model is open: --batch-size, or that of the first call."""
    return BatchSize(options.batch_size).rows


def size_of(path: str | None) -> int:
    """Bytes of a file, 0 where there is none."""
    return os.path.getsize(path) if path is not None and os.path.exists(path) else 0


def shard_field(shard: tuple[int, int] | None, resumed: str | None) -> Record:
    """The field `shard`, I/N, of the run record of a file that --resume goes on with: it is refused to another shard.

    In a stream it is left out: there all shards have the same run records.
    """
    return {} if shard is None or resumed is None else {"shard": f"{shard[0] + 1}/{shard[1]}"}


def report_too_short(io: Filter, count: int, length: int) -> None:
    io.reporter.warn(f"{counted(count, 'text')} of fewer than {length} tokens {were(count)} skipped")


def report_checks(io: Filter, engine: "Engine") -> None:
    """Finish the checks of draws; say with -v, and whenever one differed, how many were made."""
    engine.finish_checks()
    precision, again = engine.precision, engine.counters.again
    if io.reporter.verbose or precision.differed:
        io.reporter.warn(f"{engine.counters.rows} conditionals computed, {again} of them again in better precision; of "
                         f"{precision.checked} certain draws that were checked {precision.differed} differed")


def run_id(described: dict[str, Any], names: list[Any]) -> str:
    """Eight hexadecimal digits for a model and what else makes a run what it is."""
    whole = [described.get("hash") or described["model"], described["dtype"], *names]
    return hashlib.blake2b(to_line(whole)[:-1], digest_size=4).hexdigest()


def chain_fields(tolerances: Sequence[float]) -> Record:
    """What the run record of chains tells beside the model: the draw's version, and the tolerance of each precision.

    tolerances: in nats of log-odds at tau = 1, the first one that of the model's own number format.
    """
    return {"draw": DRAW_VERSION, "tolerance": list(tolerances[:-1])}


def chain_run_id(described: dict[str, Any], names: list[Any]) -> str:
    """The run id of chains: those of two number formats that are defined by one precision are the same chains."""
    return run_id(described | {"dtype": described["precision"]}, [DRAW_VERSION, *names])


def token_ids(model: TextModel, record: Record, length: int | None = None) -> list[int] | None:
    """The token ids of a record's text, or its own; RecordError for what cannot be a state of the model.

    length: keep the first so many tokens; None for a text that has fewer.
    """
    text, ids = text_or_ids(record)
    if ids is None:
        assert text is not None
        ids = _first_ids(model, text, max(length or 0, model.max_sites) + 1)
    if length is not None:
        if len(ids) < length:
            return None
        ids = ids[:length]
    _mark_unknown(model, record, text, ids)
    if not ids:
        raise RecordError("the text has no token; give one of at least one token")
    if len(ids) > model.max_sites:
        least = "at least " if text is not None and len(text) > PART else ""  # the rest was not looked at
        raise RecordError(f"{least}{len(ids)} tokens, the model takes {model.max_sites}; shorten the text, or use "
                          "--length")
    model.check_ids(ids)
    return ids


def _mark_unknown(model: TextModel, record: Record, text: str | None, ids: list[int]) -> None:
    """Write into a record how many of its tokens stand for what the vocabulary lacks, `unknown`, where there are any.

    RecordError for a text of nothing else.
    """
    record.pop("unknown", None)
    count = 0 if model.unknown_id is None else ids.count(model.unknown_id)
    if not count:
        return
    letters = is_alphabet(model.vocab_size)
    if letters and text is not None and text.startswith(">"):
        raise RecordError("the head of a FASTA sequence; read the input with --format fasta")
    if count == len(ids):
        raise RecordError("the model's vocabulary has none of this text; " + (
            "write its letters, mostly capitals" if letters else "give a text of its language, or another model"))
    record["unknown"] = count


def tally_unknown(io: Filter, record: Record, ids: list[int]) -> None:
    """Count the unknown tokens of a start for the line that is said at the end; RecordError under --strict."""
    if "unknown" not in record:
        return
    if io.strict:
        raise RecordError(f"{record['unknown']} of {len(ids)} tokens are unknown to the model; write them otherwise, "
                          "or leave --strict out")
    for counted_as, count in (("texts", 1), ("unknown", record["unknown"]), ("tokens", len(ids))):
        io.unknown[counted_as] += count


def _first_ids(model: TextModel, text: str, enough: int) -> list[int]:
    """The token ids of a text, at least the first so many where it has more: the rest of a book is not tokenised."""
    ids: list[int] = []
    for part in parts(text):
        ids += model.encode(part)
        if len(ids) >= enough:
            break
    return ids


def text_exact(model: TextModel, text: str, ids: list[int]) -> Record:
    """The field `text_exact`, false, of a state whose text is cut into other ids than its own; else no field."""
    return {} if model.encode(text) == ids else {"text_exact": False}


def check_frozen(frozen: list[int], n: int) -> None:
    """RecordError where --freeze names a site that the text does not have, or leaves none free."""
    if frozen and frozen[-1] >= n:
        raise RecordError(f"--freeze names site {frozen[-1]}, the text has sites 0 to {n - 1}")
    if len(frozen) == n:
        raise RecordError("every site is frozen, none can move; freeze fewer")
