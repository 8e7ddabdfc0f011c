"""Conditionals of a masked language model of the Hugging Face library.

p_i(v | x_-i) = softmax_v(l_i(v)), where l_i are the logits at site i of the state with site i masked, between the
model's own special tokens. Only the masked row of each state goes through the language-model head, so (B, n, V) logits
are never held.
"""

import inspect
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from mlmglauber.models import checkpoint
from mlmglauber.models.batch_size import BatchSize, Rows
from mlmglauber.models.blocks import BlockRows, Floats, Ids
from mlmglauber.models.conditionals import FILL, Draws, weigh_rows
from mlmglauber.models.device_draws import as_tensors, device_block_rows
from mlmglauber.models.devices import (
    format_name,
    higher_formats,
    in_format,
    library_versions,
    pick_device,
    plain_attention,
    send,
    slowdown,
)
from mlmglauber.models.masked_inputs import WIDTHS, masked_inputs, padded_widths
from mlmglauber.models.masked_row import MaskedRow
from mlmglauber.models.token_scores import TokenScores, device_token_scores
from mlmglauber.models.tokenizers import TokenizedModel, output_size, template
from mlmglauber.stream.errors import MlmWarning, ModelError

LEAKY = frozenset({"convbert", "fnet", "funnel", "mobilebert", "nystromformer", "yoso"})
"""Model families that attend to padding, which moves log-probabilities by 0.1 to 4 nats: they run without padding."""

EARLY_CUT = {8: 1e-9, 4: 1e-3, 2: 0.2}
"""Maximum difference, in nats, that rounding makes between conditionals with and without the early cut of the last
layer (see masked_row.py), by the number of bytes of the number format."""

TIMED_ROWS, TIMED_SITES = 8, 24
"""Number of states, and of their tokens, in the calls that compare the speed of two number formats."""

Finish = Callable[[Any, Ids], tuple[Any, ...]]
"""Makes arrays, with one row per state, from the logits of a batch and the indices of its states."""


class MaskedLM(TokenizedModel):
    """A TextModel over a checkpoint with a masked-language-model head.

    `levels`: the weights in float64 define a chain. float32, and with `exact` also bfloat16 or float16, are faster ways
    to the same tokens. Without `exact` a model in bfloat16 or float16 defines chains of its own, in one level.
    """

    has_second_way = True

    def __init__(self, model: Any, tokenizer: Any, *, name: str, identity: dict[str, Any], rows: Rows, device: str,
                 exact_width: bool, exact: bool = False, all_tokens: bool = False) -> None:
        import torch

        self.name, self.device, self._batch = name, device, BatchSize(rows)
        self.exact_width = exact_width or model.config.model_type in LEAKY
        super().__init__(model, tokenizer, output_size(name, model, tokenizer))
        self.allowed |= all_tokens
        self._identity = identity
        self.mask_id: int | None = tokenizer.mask_token_id
        self.prefix, self.suffix = template(tokenizer)
        self.max_sites = self._limit - len(self.prefix) - len(self.suffix)
        self._banned = torch.from_numpy(np.flatnonzero(~self.allowed)).to(device)
        arguments = inspect.signature(model.forward).parameters
        self._takes_mask = "attention_mask" in arguments
        self._takes_types = getattr(model.config, "type_vocab_size", 0) > 0 and "token_type_ids" in arguments
        self._halved = False
        self._torch = torch
        self._formats = [model.dtype, *higher_formats(model.dtype, exact)]
        self.levels = len(self._formats)
        self._models = [model]
        """The model in the first number formats; the copies in higher formats are made when they are first needed."""
        self._masked_row = MaskedRow(torch)
        self._hooks = self._try_out(0)
        if device == "cpu" and model.dtype.itemsize == 2:
            self._warn_of_slow_format()

    @classmethod
    def open(cls, name: str, *, label: str | None = None, revision: str | None = None, device: str = "auto",
             dtype: str = "auto", rows: Rows = "auto", exact_width: bool = False, trust_remote_code: bool = False,
             allow_pickle: bool = False, exact: bool = False, all_tokens: bool = False) -> "MaskedLM":
        """Load a checkpoint from a directory or, by name, from the hub and its cache.

        label: the name that messages and records use. rows: number of states in a forward pass; "auto" finds it by
        timing calls (BatchSize). exact_width: do not pad rows to a multiple of WIDTHS, for states of one length.
        exact: with bfloat16 or float16, run the chains of the float64 conditionals. all_tokens: give special tokens
        and placeholders their probabilities too, not 0. ModelError and UsageError for a checkpoint or a device that
        cannot be used.
        """
        label = label or name
        with checkpoint.no_garbage_collection():
            device = pick_device(device)
            model, tokenizer, identity = checkpoint.load(
                name, label, masked=True, revision=revision, dtype=dtype, trust_remote_code=trust_remote_code,
                allow_pickle=allow_pickle)
        return cls(model.to(device), tokenizer, name=label, identity=identity, rows=rows, device=device,
                   exact_width=exact_width, exact=exact, all_tokens=all_tokens)

    def special_ids(self) -> Iterable[int | None]:
        """See TokenizedModel: here only the tokens for padding, for masks and around texts."""
        tokenizer = self.tokenizer
        return [tokenizer.pad_token_id, tokenizer.mask_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id,
                tokenizer.bos_token_id, tokenizer.eos_token_id]

    @property
    def rows(self) -> int:
        """See Conditional."""
        return self._batch.rows

    def log_probs_again(self, ids: Ids, sites: Ids) -> Floats:
        """See Conditional. In reverse order, with WIDTHS more tokens of padding, and with the plain attention kernel.

        Order and padding alone often change no bit on a CPU.
        """
        with plain_attention():
            return self.log_probs(ids[::-1], sites[::-1], 0 if self.model.config.model_type in LEAKY else WIDTHS)[::-1]

    def log_probs(self, ids: Ids, sites: Ids, wider: int = 0, level: int = 0) -> Floats:
        """See Conditional. Rounding, about 1e-6 in float32, depends on the other rows, the threads and the processor.

        wider: number of tokens of padding to add, as far as the model has positions.
        """
        def finish(logits: Any, _: Ids) -> tuple[Floats]:
            return (np.asarray(self._torch.log_softmax(logits, dim=1).cpu().numpy()),)

        if not len(ids):
            return np.empty((0, self.vocab_size), dtype=np.float32)
        return np.asarray(self._answer(ids, sites, level, finish, wider)[0])

    def log_probs_at(self, ids: Ids, sites: Ids, level: int) -> Floats:
        """See Conditional."""
        return self.log_probs(ids, sites, level=level % self.levels)

    def weigh(self, draws: Draws, level: int = 0) -> BlockRows:
        """See Conditional; computed on the model's device, unless draws are restricted."""
        if draws.only is not None:
            return weigh_rows(self.log_probs_at(draws.ids, draws.sites, level), draws)
        def finish(logits: Any, members: Ids) -> BlockRows:
            return device_block_rows(self._torch, logits, *as_tensors(
                self._torch, self.device, draws.old[members], draws.taus[members], draws.uniforms[members],
                draws.cold[members]))

        return BlockRows(*self._answer(draws.ids, draws.sites, level, finish))

    def token_scores(self, ids: Ids, sites: Ids, tokens: Ids) -> TokenScores:
        """See Conditional; computed on the model's device."""
        def finish(logits: Any, members: Ids) -> TokenScores:
            return device_token_scores(self._torch, logits, *as_tensors(self._torch, self.device, tokens[members]))

        return TokenScores(*self._answer(ids, sites, 0, finish))

    def _answer(self, ids: Ids, sites: Ids, level: int, finish: Finish, wider: int = 0) -> tuple[Any, ...]:
        """What `finish` makes of the logits of all states: arrays with B rows. One batch has one padded width."""
        self._make_copies(level)
        lengths = (ids != FILL).sum(axis=1)
        widths = padded_widths(lengths + len(self.prefix) + len(self.suffix), self._limit, self.exact_width, wider)
        if len(ids) <= self.rows and (widths == widths[0]).all():  # the common case needs no copy of the result
            return self._forward(ids, sites, np.arange(len(ids)), lengths, int(widths[0]), level, finish)
        whole: list[Any] = []
        for width in np.unique(widths):
            members = np.flatnonzero(widths == width)
            while len(members):  # self.rows may shrink on the way
                batch, members = members[: self.rows], members[self.rows :]
                part = self._forward(ids, sites, batch, lengths, int(width), level, finish)
                whole = whole or [np.empty((len(ids), *column.shape[1:]), column.dtype) for column in part]
                for column, values in zip(whole, part, strict=True):
                    column[batch] = values
        return tuple(whole)

    def _forward(self, ids: Ids, sites: Ids, members: Ids, lengths: Ids, width: int, level: int,
                 finish: Finish) -> tuple[Any, ...]:
        """What `finish` makes of states of one padded width. Where memory runs out, batches are halved from then on."""
        try:
            begin = perf_counter()
            with self._torch.inference_mode():
                result = finish(self._logits(ids[members], sites[members], lengths[members], width, level), members)
            if level == 0:
                self._batch.observe(len(members), width, perf_counter() - begin)
            return result
        except (MemoryError, RuntimeError) as error:
            if not checkpoint.is_out_of_memory(error):
                raise
            if len(members) == 1:
                raise ModelError(f"{self.name}: out of memory on one text of {lengths[members[0]]} tokens; shorten it, "
                                 "or use a smaller model") from error
        half = len(members) // 2
        self._batch.shrink(half)
        if not self._halved:
            self._halved = True
            warnings.warn(f"out of memory on a batch of {len(members)} states; continuing with smaller batches",
                          MlmWarning, stacklevel=2)
        parts = [self._forward(ids, sites, part, lengths, width, level, finish)
                 for part in (members[:half], members[half:])]
        return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def _logits(self, ids: Ids, sites: Ids, lengths: Ids, width: int, level: int) -> Any:
        """One forward pass: (B, V) logits at the masked sites, float32 or float64, -inf where a token is banned."""
        torch = self._torch
        assert self.mask_id is not None
        masked = masked_inputs(ids, sites, lengths, width, self.prefix, self.suffix, self.mask_id,
                               self.tokenizer.pad_token_id)
        inputs = {"input_ids": send(masked.tokens, self.device)}
        if self._takes_mask:
            inputs["attention_mask"] = send(masked.attention, self.device)
        if self._takes_types:
            inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
        self._masked_row.rows = send(masked.positions, self.device)
        logits = self._models[level](**inputs).logits
        if logits.shape[1:] != (1, self.vocab_size):
            raise ModelError(f"{self.name}: {self.model.config.model_type} models cannot compute the logits of one "
                             "masked site alone; give another masked language model")
        logits = logits[:, 0]
        if logits.dtype not in (torch.float32, torch.float64):
            logits = logits.float()
        return logits.index_fill_(1, self._banned, -torch.inf)

    def _make_copies(self, level: int) -> None:
        """Make the copies of the model in higher number formats, up to `level`; ModelError where memory runs out."""
        while len(self._models) <= level:
            dtype = self._formats[len(self._models)]
            for hook in self._hooks:  # a copy of a hook would cut at sites of its own
                hook.remove()
            try:
                self._models.append(in_format(self.model, dtype))
            except (MemoryError, RuntimeError) as error:
                if not checkpoint.is_out_of_memory(error):
                    raise
                raise ModelError(f"{self.name}: out of memory for a copy of the weights in {format_name(dtype)}; use a "
                                 "smaller model") from error
            self._hooks = self._masked_row.attach(self.model, early=len(self._hooks) > 1)
            self._try_out(len(self._models) - 1)

    def _try_out(self, level: int) -> list[Any]:
        """Run the model on a few tokens, so that a model that cannot be used is refused; the hooks of its MaskedRow.

        The early cut of the last layer is kept if it gives the conditionals of the whole layer.
        """
        if not self.allowed.any():
            raise ModelError(f"{self.name}: no token may be drawn; restore the model's own tokenizer")
        model = self._models[level]
        sites = np.arange(min(3, self.max_sites))
        tokens = np.resize(np.flatnonzero(self.allowed), (len(sites), len(sites)))
        (hook,) = self._masked_row.attach(model, early=False)
        whole = self.log_probs(tokens, sites, level=level)
        hook.remove()
        hooks = self._masked_row.attach(model)
        try:
            same = np.allclose(self.log_probs(tokens, sites, level=level), whole, rtol=0,
                               atol=EARLY_CUT[model.dtype.itemsize])
        except (RuntimeError, ValueError, ModelError):
            same = False
        if not same:
            for hook in hooks:
                hook.remove()
            hooks = self._masked_row.attach(model, early=False)
        return hooks

    def _warn_of_slow_format(self) -> None:
        """Warn where bfloat16 or float16 is slower than float32, as on processors that only emulate it."""
        if self.levels == 1:
            self._formats.append(self._torch.float32)
        self._make_copies(1)
        sites = np.zeros(TIMED_ROWS, dtype=np.int64)
        tokens = np.resize(np.flatnonzero(self.allowed), (TIMED_ROWS, min(TIMED_SITES, self.max_sites)))
        times = slowdown(*(partial(self._seconds, tokens, sites, level) for level in (0, 1)))
        del self._models[self.levels :], self._formats[self.levels :]
        if times is not None:
            warnings.warn(f"{self.name}: {format_name(self.model.dtype)} takes {times:.1f} times as long as float32 on "
                          "this processor; use --dtype float32 for speed", MlmWarning, stacklevel=2)

    def _seconds(self, ids: Ids, sites: Ids, level: int) -> float:
        """Seconds of one call."""
        begin = perf_counter()
        with self._torch.inference_mode():
            self._logits(ids, sites, np.full(len(ids), ids.shape[1]), ids.shape[1] + len(self.prefix)
                         + len(self.suffix), level)
        return perf_counter() - begin

    def describe(self) -> dict[str, Any]:
        """See TextModel."""
        return {
            **self._identity, "class": type(self.model).__name__, "tokenizer": type(self.tokenizer).__name__,
            "vocab": self.vocab_size, "banned": int((~self.allowed).sum()), "dtype": format_name(self.model.dtype),
            "precision": format_name(self._formats[-1]), "device": self.device,
            "threads": self._torch.get_num_threads(), "versions": library_versions()}
