"""Reads texts and states as token ids for a command with a model, and writes the run record of the model."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mlmglauber.commands.shared.chain_models import ChainModels
from mlmglauber.commands.shared.chain_run import NO_RUN, ChainRun
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.options import ModelOptions, TextOptions
from mlmglauber.commands.shared.site_allow import checked_choices, site_allow
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
    "text_tokens", "embedding_reason", "drift", "drift_reason", "coupled", "met", "basin", "basin_p", "basin_reason",
    "basin_p_reason",
})
"""Fields of an input that its answers do not inherit: they are computed anew, or describe the old text."""

SCORE_FIELDS = frozenset({
    "scorer", "scored_tokens", "scored_words", "pll", "pll_reason", "pll_within_word", "pll_within_word_reason",
    "pseudo_perplexity", "pseudo_perplexity_reason", "word_pseudo_perplexity", "word_pseudo_perplexity_reason",
    "log_likelihood", "log_likelihood_reason", "perplexity", "perplexity_reason", "word_perplexity",
    "word_perplexity_reason", "margin", "margin_reason", "token_scores", "word_scores",
})
"""Fields that mlm-score writes. Answers do not inherit them from a record with a `scorer`."""

DRAW_VERSION = 2
"""Version of the function from (seed, record, chain, step) to draws; 2 draws tokens in two levels, from float64."""

TEXTS = ("text", "give lines of text, or records with `text` or `ids`", False)
"""Arguments of `Filter.report_missing` for an input without a text."""


class Input(NamedTuple):
    """One text: its place in the input, its name, its token ids, and the fields that its answers inherit.

    chain: the run of a state's chain; NO_RUN for a text. model: the model, restricted to what that chain may draw.
    """

    place: str
    name: str
    ids: list[int]
    inherited: Record
    record: Record
    chain: ChainRun
    model: TextModel

    def frozen(self, freeze: list[int] | None) -> list[int]:
        """The sites that stay fixed: those of --freeze and those of the chain; RecordError if they are all sites."""
        n = len(self.ids)
        check_frozen(freeze or [], n)
        sites = sorted({*(freeze or []), *(site for site in self.chain.law.freeze if site < n)})
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
        """Whether an input without a text causes a warning."""
        self.summed = False
        """Whether the output is a summary or a table: without a text it can only be empty, which is status 65."""

    def batches(self, size: int | Callable[[], int]) -> Iterator[list[Input]]:
        """Lists of the texts that have arrived, 1 to `size` each; other records are passed on in their place.

        size: a number, or a function that gives it for each list.
        """
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
                text = self._input(record)
                if text is not None:
                    batch.append(text)
            if len(batch) >= (size() if callable(size) else size):
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
        elif "allow" in record:
            chain = NO_RUN._replace(allow_at=site_allow(record))
            model = self.chains.of_text(chain)
        name = record_id(record, self.io.count - 1)
        ids = token_ids(self.model, record, self.options.length)
        if ids is None:
            self.too_short += 1
            return None
        tally_unknown(self.io, record, ids)
        checked_choices(self.model, record, len(ids), [])
        return Input(self.io.place, name, ids, inherited(record), record, chain, model)

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


def inherited(record: Record) -> Record:
    """The fields of an input that its answers inherit: all but those that describe the old text."""
    left_out = OWN_FIELDS | SCORE_FIELDS if "scorer" in record else OWN_FIELDS
    return {key: value for key, value in record.items() if key not in left_out}


def texts_at_once(options: ModelOptions) -> int:
    """Number of texts that a command reads together before its model is open: the batch size of the first pass."""
    return BatchSize(options.batch_size).rows


def size_of(path: str | None) -> int:
    """Size of a file in bytes, 0 if it does not exist."""
    return os.path.getsize(path) if path is not None and os.path.exists(path) else 0


def shard_field(shard: tuple[int, int] | None, resumed: str | None) -> Record:
    """The field `shard`, I/N, of the run record of a --resume file, so that no other shard continues the file.

    In a stream it is left out, since all shards must write the same run records there.
    """
    return {} if shard is None or resumed is None else {"shard": f"{shard[0] + 1}/{shard[1]}"}


def report_too_short(io: Filter, count: int, length: int) -> None:
    io.reporter.warn(f"{counted(count, 'text')} of fewer than {length} tokens {were(count)} skipped")


def report_checks(io: Filter, engine: "Engine") -> None:
    """Finish the checks of draws; report their number with -v, and always if one differed."""
    engine.finish_checks()
    precision, again = engine.precision, engine.counters.again
    if io.reporter.verbose or precision.differed:
        io.reporter.warn(f"{engine.counters.rows} conditionals computed, {again} of them again in better precision; "
                         f"{precision.differed} of {precision.checked} checked draws differed")


def run_id(described: dict[str, Any], names: list[Any]) -> str:
    """The id of a run, eight hexadecimal digits: a hash of its model and of `names`, all else that determines it."""
    whole = [described.get("hash") or described["model"], described["dtype"], *names]
    return hashlib.blake2b(to_line(whole)[:-1], digest_size=4).hexdigest()


def chain_fields(tolerances: Sequence[float]) -> Record:
    """The fields of a run record of chains besides those of the model: version of the draw, tolerances.

    tolerances: of each precision, in nats of log-odds at tau = 1, from that of the model's own number format on.
    """
    return {"draw": DRAW_VERSION, "tolerance": list(tolerances[:-1])}


def chain_run_id(described: dict[str, Any], names: list[Any]) -> str:
    """The run id of chains. Number formats that compute the same chains, of one precision, give the same id."""
    return run_id(described | {"dtype": described["precision"]}, [DRAW_VERSION, *names])


def token_ids(model: TextModel, record: Record, length: int | None = None) -> list[int] | None:
    """The ids of a record, or those of its text; RecordError if they are not a state of the model.

    length: number of tokens to keep; the result is None if the text has fewer.
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
        raise RecordError("the text has no token; give a text of at least one token")
    if len(ids) > model.max_sites:
        least = "at least " if text is not None and len(text) > PART else ""  # the rest was not looked at
        raise RecordError(f"the text has {least}{len(ids)} tokens, but the model takes at most {model.max_sites}; "
                          "shorten the text, or use --length")
    model.check_ids(ids)
    return ids


def _mark_unknown(model: TextModel, record: Record, text: str | None, ids: list[int]) -> None:
    """Add `unknown`, the number of unknown tokens, to a record that has any.

    RecordError if all its tokens are unknown.
    """
    record.pop("unknown", None)
    count = 0 if model.unknown_id is None else ids.count(model.unknown_id)
    if not count:
        return
    letters = is_alphabet(model.vocab_size)
    if letters and text is not None and text.startswith(">"):
        raise RecordError("the line is the head of a FASTA sequence; read the input with --format fasta")
    if count == len(ids):
        raise RecordError("all tokens of this text are unknown to the model; " + (
            "write its letters, mostly capitals" if letters else "give a text of its language, or another model"))
    record["unknown"] = count


def tally_unknown(io: Filter, record: Record, ids: list[int]) -> None:
    """Count the unknown tokens of a text for the warning at the end; RecordError under --strict."""
    if "unknown" not in record:
        return
    if io.strict:
        raise RecordError(f"{record['unknown']} of {len(ids)} tokens are unknown to the model; use other words, or "
                          "leave --strict out")
    for counted_as, count in (("texts", 1), ("unknown", record["unknown"]), ("tokens", len(ids))):
        io.unknown[counted_as] += count


def _first_ids(model: TextModel, text: str, enough: int) -> list[int]:
    """The first token ids of a text, at least `enough` if it has so many; the rest of a long text is not tokenised."""
    ids: list[int] = []
    for part in parts(text):
        ids += model.encode(part)
        if len(ids) >= enough:
            break
    return ids


def text_exact(model: TextModel, text: str, ids: list[int]) -> Record:
    """The field `text_exact`, false, if the tokenizer cuts the text into other ids than these; else no field."""
    return {} if model.encode(text) == ids else {"text_exact": False}


def check_frozen(frozen: list[int], n: int) -> None:
    """RecordError if --freeze names a site that the text does not have, or all of its sites."""
    if frozen and frozen[-1] >= n:
        raise RecordError(f"--freeze names site {frozen[-1]}, but the text has sites 0 to {n - 1} only; leave it out")
    if len(frozen) == n:
        raise RecordError("every site is frozen, so no token can change; freeze fewer sites")
