"""Conditionals of a masked language model of the Hugging Face library.

p_i(v | x_-i) = softmax_v(l_i(v)), l_i the logits at site i of the state with site i masked, inside the model's own
special tokens. Only the masked row of each state reaches the language-model head: never (B, n, V) logits.
"""

import copy
import re
import warnings
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber import __version__
from mlmglauber.models import checkpoint
from mlmglauber.models.batch_size import BatchSize, Given
from mlmglauber.models.blocks import BlockRows, Floats, Ids
from mlmglauber.models.conditionals import FILL, Draws
from mlmglauber.models.device_draws import as_tensors, device_block_rows
from mlmglauber.models.importing import uncollected
from mlmglauber.models.masked_row import MaskedRow
from mlmglauber.models.plain_text import plain_encoder
from mlmglauber.models.vocabulary import placeholders
from mlmglauber.stream.errors import MlmWarning, ModelError, RecordError, UsageError

OFFSET_POSITIONS = frozenset({"camembert", "data2vec-text", "esm", "ibert", "jina_embeddings_v3", "longformer", "luke",
                              "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"})
"""Families whose positions start after the padding id: that many of max_position_embeddings are no positions."""

LEAKY = frozenset({"convbert", "fnet", "funnel", "mobilebert", "nystromformer", "yoso"})
"""Families that look past the attention mask: padding moves their log-probabilities by 0.1 to 4 nats. They get none."""

WIDTHS = 8
"""Rows are padded to a multiple of so many tokens, so that texts of many lengths share forward passes."""

EARLY_CUT = {8: 1e-9, 4: 1e-3, 2: 0.2}
"""Maximum difference, in nats, that rounding makes between conditionals with and without the early cut of the last
layer, by the bytes of a number."""

TIMED_ROWS, TIMED_SITES, TIMED_CALLS = 8, 24, 3
"""Size and number of the calls that compare two number formats."""
SLOWER = 1.2
"""A format that takes so many times as long is told to be slower."""

Finish = Callable[[Any, Ids], tuple[Any, ...]]
"""Makes arrays with a row for each member of a batch from the batch's logits and its members."""


class MaskedLM:
    """A TextModel over a checkpoint with a masked-language-model head.

    `levels`: a chain is defined by the weights in float64; float32, and bfloat16 before it where `exact` asks for that,
    are faster ways to the same tokens. A model in bfloat16 or float16 alone has chains of its own, in one level.
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str, identity: dict[str, Any], rows: Given, device: str,
                 exact_width: bool, exact: bool = False) -> None:
        import torch

        self.name, self.device, self._batch = name, device, BatchSize(rows)
        self.exact_width = exact_width or model.config.model_type in LEAKY
        self.model, self.tokenizer, self._identity = model, tokenizer, identity
        self.vocab_size = output_size(name, model, tokenizer)
        self.mask_id: int | None = tokenizer.mask_token_id
        self.unknown_id: int | None = tokenizer.unk_token_id
        self.allowed = allowed_tokens(tokenizer, self.vocab_size)
        self.prefix, self.suffix = template(tokenizer)
        self._encode = plain_encoder(tokenizer)
        self._limit = position_limit(model.config, tokenizer)
        self.max_sites = self._limit - len(self.prefix) - len(self.suffix)
        forbidden = {tokenizer.pad_token_id, tokenizer.mask_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id,
                     tokenizer.bos_token_id, tokenizer.eos_token_id} - {None, tokenizer.unk_token_id}
        self._forbidden = {int(token) for token in forbidden}
        self._banned = torch.from_numpy(np.flatnonzero(~self.allowed)).to(device)
        arguments = _arguments(model)
        self._takes_mask = "attention_mask" in arguments
        self._takes_types = getattr(model.config, "type_vocab_size", 0) > 0 and "token_type_ids" in arguments
        self._halved = False
        self._torch = torch
        self._models = [model, *(copy.deepcopy(model).to(dtype) for dtype in _better(torch, model.dtype, exact))]
        self.levels = len(self._models)
        self._masked_row = MaskedRow(torch)
        timed = device == "cpu" and model.dtype.itemsize == 2
        if timed and self.levels == 1:
            self._models.append(copy.deepcopy(model).float())
        self._try_out()
        if timed:
            self._warn_of_slow_format()
            del self._models[self.levels :]

    @classmethod
    def open(cls, name: str, *, label: str | None = None, revision: str | None = None, device: str = "auto",
             dtype: str = "auto", rows: Given = "auto", exact_width: bool = False, trust_remote_code: bool = False,
             allow_pickle: bool = False, exact: bool = False) -> "MaskedLM":
        """Load a checkpoint from a directory or, by name, from the hub and its cache.

        label: the name that messages and records use. rows: states a forward pass, "auto" for
        what timed calls find (BatchSize). exact_width: do not pad rows to a
        multiple of WIDTHS, for states that are all of one length. exact: with bfloat16 or float16, the chains of the
        float64 conditionals. Errors: ModelError and UsageError, each with its reason, before a number is computed.
        """
        label = label or name
        with uncollected():
            device = pick_device(device)
            model, tokenizer, identity = checkpoint.load(
                name, label, masked=True, revision=revision, dtype=dtype, trust_remote_code=trust_remote_code,
                allow_pickle=allow_pickle)
        return cls(model.to(device), tokenizer, name=label, identity=identity, rows=rows, device=device,
                   exact_width=exact_width, exact=exact)

    @property
    def rows(self) -> int:
        """See Conditional."""
        return self._batch.rows

    def encode(self, text: str) -> list[int]:
        """See TextModel. "[MASK]" in a text is a bracket, a word and a bracket."""
        return self._encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """See TextModel."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def check_ids(self, ids: Sequence[int]) -> None:
        """See TextModel."""
        for token in ids:
            if not 0 <= token < self.vocab_size:
                raise RecordError(f"token id {token} is outside the model's {self.vocab_size} tokens; these ids are of "
                                  "another model")
            if token in self._forbidden:
                piece = self.tokenizer.convert_ids_to_tokens(token)
                raise RecordError(f"token id {token} ({piece}) is a special token, which no state holds; leave it out")

    def log_probs_again(self, ids: Ids, sites: Ids) -> Floats:
        """The same conditionals by another way through the hardware; what differs from log_probs is rounding.

        In reverse order, one block of padding wider, and by the plain attention kernel where the model uses a fused
        one: on CPU order and padding alone often change no bit.
        """
        with plain_attention():
            return self.log_probs(ids[::-1], sites[::-1], 0 if self.model.config.model_type in LEAKY else WIDTHS)[::-1]

    def log_probs(self, ids: Ids, sites: Ids, wider: int = 0, level: int = 0) -> Floats:
        """See Conditional. Rounding depends on the rows beside, the threads and the processor: about 1e-6 in float32.

        wider: so many tokens of padding more, as far as there are positions for them.
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
        """See Conditional. Computed on the model's device."""
        def finish(logits: Any, members: Ids) -> BlockRows:
            return device_block_rows(self._torch, logits, *as_tensors(
                self._torch, self.device, draws.old[members], draws.taus[members], draws.uniforms[members],
                draws.cold[members]))

        return BlockRows(*self._answer(draws.ids, draws.sites, level, finish))

    def _answer(self, ids: Ids, sites: Ids, level: int, finish: Finish, wider: int = 0) -> tuple[Any, ...]:
        """What `finish` makes of the logits of all states, those of one padded width together: arrays with B rows."""
        lengths = (ids != FILL).sum(axis=1)
        widths = lengths + len(self.prefix) + len(self.suffix)
        if not self.exact_width:
            widths = np.maximum(widths, np.minimum(-(-widths // WIDTHS) * WIDTHS, self._limit))
        if wider:
            widths = np.maximum(widths, np.minimum(widths + wider, self._limit))
        if len(ids) <= self.rows and (widths == widths[0]).all():  # as nearly always: no copy of the result
            return self._forward(ids, sites, np.arange(len(ids)), lengths, int(widths[0]), level, finish)
        whole: list[Any] = []
        for width in np.unique(widths):
            members = np.flatnonzero(widths == width)
            while len(members):  # rows may become fewer
                batch, members = members[: self.rows], members[self.rows :]
                part = self._forward(ids, sites, batch, lengths, int(width), level, finish)
                whole = whole or [np.empty((len(ids), *column.shape[1:]), column.dtype) for column in part]
                for column, found in zip(whole, part, strict=True):
                    column[batch] = found
        return tuple(whole)

    def _forward(self, ids: Ids, sites: Ids, members: Ids, lengths: Ids, width: int, level: int,
                 finish: Finish) -> tuple[Any, ...]:
        """The answer for states that share a padded width; in halves from now on where memory is short."""
        try:
            begin = perf_counter()
            with self._torch.inference_mode():
                found = finish(self._logits(ids[members], sites[members], lengths[members], width, level), members)
            if level == 0:
                self._batch.observe(len(members), width, perf_counter() - begin)
            return found
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
            warnings.warn(f"out of memory on {len(members)} rows; going on with fewer at a time", MlmWarning,
                          stacklevel=2)
        parts = [self._forward(ids, sites, part, lengths, width, level, finish)
                 for part in (members[:half], members[half:])]
        return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def _logits(self, ids: Ids, sites: Ids, lengths: Ids, width: int, level: int) -> Any:
        """One forward pass: (B, V) logits at the masked sites, float32 or float64, -inf where a token is banned."""
        torch = self._torch
        count = len(ids)
        tokens = np.full((count, width), self.tokenizer.pad_token_id, dtype=np.int64)
        tokens[:, : len(self.prefix)] = self.prefix
        n = int(lengths.max())
        content = tokens[:, len(self.prefix) : len(self.prefix) + n]
        np.copyto(content, ids[:, :n], where=ids[:, :n] != FILL)
        wanted = sites + len(self.prefix)
        assert self.mask_id is not None
        tokens[np.arange(count), wanted] = self.mask_id
        for k, token in enumerate(self.suffix):
            tokens[np.arange(count), len(self.prefix) + lengths + k] = token
        whole = lengths + len(self.prefix) + len(self.suffix)
        inputs = {"input_ids": self._send(tokens)}
        if self._takes_mask:
            inputs["attention_mask"] = self._send((np.arange(width) < whole[:, None]).astype(np.int64))
        if self._takes_types:
            inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
        self._masked_row.rows = self._send(wanted)
        logits = self._models[level](**inputs).logits
        if logits.shape[1:] != (1, self.vocab_size):
            raise ModelError(f"{self.name}: {self.model.config.model_type} models give no logits for one row of "
                             "their last layer; give another masked language model")
        logits = logits[:, 0]
        if logits.dtype not in (torch.float32, torch.float64):
            logits = logits.float()
        return logits.index_fill_(1, self._banned, -torch.inf)

    def _try_out(self) -> None:
        """One forward pass of a few tokens, so that a model that cannot be used is refused when it is opened.

        The early cut of the last layer is kept where it gives the conditionals of the whole layer.
        """
        if not self.allowed.any():
            raise ModelError(f"{self.name}: no token is left to draw; restore the model's own tokenizer")
        sites = np.arange(min(3, self.max_sites))
        tokens = np.resize(np.flatnonzero(self.allowed), (len(sites), len(sites)))
        for level, model in enumerate(self._models):
            hooks = self._masked_row.attach(model, early=False)
            whole = self.log_probs(tokens, sites, level=level)
            for hook in hooks:
                hook.remove()
            early = self._masked_row.attach(model)
            try:
                same = np.allclose(self.log_probs(tokens, sites, level=level), whole, rtol=0,
                                   atol=EARLY_CUT[model.dtype.itemsize])
            except (RuntimeError, ValueError, ModelError):
                same = False
            if not same:
                for hook in early:
                    hook.remove()
                self._masked_row.attach(model, early=False)

    def _warn_of_slow_format(self) -> None:
        """Warn where a call in bfloat16 or float16 takes longer than in float32: few processors compute in them."""
        sites = np.zeros(TIMED_ROWS, dtype=np.int64)
        tokens = np.resize(np.flatnonzero(self.allowed), (TIMED_ROWS, min(TIMED_SITES, self.max_sites)))
        own, single = (min(self._timed(tokens, sites, level) for _ in range(TIMED_CALLS)) for level in (0, 1))
        if own > SLOWER * single:
            warnings.warn(f"{self.name}: {str(self.model.dtype).removeprefix('torch.')} takes {own / single:.1f} times "
                          "as long as float32 on this processor", MlmWarning, stacklevel=2)

    def _timed(self, ids: Ids, sites: Ids, level: int) -> float:
        """Seconds of one call."""
        begin = perf_counter()
        with self._torch.inference_mode():
            self._logits(ids, sites, np.full(len(ids), ids.shape[1]), ids.shape[1] + len(self.prefix)
                         + len(self.suffix), level)
        return perf_counter() - begin

    def _send(self, array: NDArray[np.int64]) -> Any:
        tensor = self._torch.from_numpy(array)
        if self.device.startswith("cuda"):
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor

    def describe(self) -> dict[str, Any]:
        """See TextModel."""
        return {
            **self._identity, "class": type(self.model).__name__, "tokenizer": type(self.tokenizer).__name__,
            "vocab": self.vocab_size, "banned": int((~self.allowed).sum()),
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "precision": str(self._models[-1].dtype).removeprefix("torch."), "device": self.device,
            "threads": self._torch.get_num_threads(), "versions": library_versions(),
        }


def _better(torch: Any, dtype: Any, exact: bool) -> list[Any]:
    """The number formats behind a model's own, ending with the one that defines its chains."""
    if dtype == torch.float32:
        return [torch.float64]
    return [torch.float32, torch.float64] if exact and dtype != torch.float64 else []


def plain_attention() -> Any:
    """A context in which scaled dot products are computed step by step: the reference kernel of the library."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel([SDPBackend.MATH])


def library_versions() -> dict[str, str]:
    """The versions of what a model's numbers are computed with."""
    import tokenizers
    import torch
    import transformers

    return {"mlmglauber": __version__, "torch": torch.__version__, "transformers": transformers.__version__,
            "tokenizers": tokenizers.__version__, "numpy": np.__version__}


def output_size(name: str, model: Any, tokenizer: Any) -> int:
    """The rows of the output layer, one for each token; ModelError for a model without such a layer."""
    layer = model.get_output_embeddings()
    rows = int(layer.weight.shape[0]) if layer is not None else 0
    if rows <= max(tokenizer.get_vocab().values()):
        raise ModelError(f"{name}: the model's last layer has {rows} rows, fewer than the tokenizer has tokens; give "
                         "another model of this family")
    return rows


def allowed_tokens(tokenizer: Any, vocab_size: int) -> NDArray[np.bool_]:
    """(V,) False for special tokens, placeholders that no text gives, and rows of the embedding without a token."""
    allowed = np.zeros(vocab_size, dtype=bool)
    allowed[list(tokenizer.get_vocab().values())] = True
    allowed[[token for token in placeholders(tokenizer) if token < vocab_size]] = False
    return allowed


def template(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before and behind a text."""
    for text in ("a", "A", "1"):
        bare, full = (tokenizer.encode(text, add_special_tokens=whole) for whole in (False, True))
        for start in range(len(full) - len(bare) + 1):
            if bare and full[start : start + len(bare)] == bare:
                return full[:start], full[start + len(bare) :]
    raise ModelError("the tokenizer changes a text when it adds its special tokens; report this model")


def position_limit(config: Any, tokenizer: Any) -> int:
    """The longest input in tokens, special ones included: what the positions and the tokenizer both allow."""
    limits = [10**6]
    positions = getattr(config, "max_position_embeddings", None)
    if positions and positions > 0:
        offset = (config.pad_token_id or 0) + 1 if config.model_type in OFFSET_POSITIONS else 0
        limits.append(int(positions) - offset)
    if tokenizer.model_max_length < 10**9:
        limits.append(int(tokenizer.model_max_length))
    return min(limits)


def _arguments(model: Any) -> frozenset[str]:
    import inspect

    return frozenset(inspect.signature(model.forward).parameters)


def pick_device(device: str) -> str:
    """auto, cpu, cuda or cuda:N as torch names it; auto is the GPU where there is one. UsageError for any other."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise UsageError(f"--device {device}: no such device; auto, cpu, cuda or cuda:N")
    if device != "cpu" and (not torch.cuda.is_available() or int((device + ":0").split(":")[1])
                            >= torch.cuda.device_count()):
        raise UsageError(f"--device {device}: no such GPU on this machine; use --device cpu")
    return device
