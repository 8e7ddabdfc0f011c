"""Conditionals of a masked language model of the Hugging Face library.

p_i(v | x_-i) = softmax_v(l_i(v)), l_i the logits at site i of the state with site i masked, inside the model's own
special tokens. Only the masked row of each state reaches the language-model head: never (B, n, V) logits.
"""

import math
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber import __version__
from mlmglauber.models import checkpoint
from mlmglauber.models.conditionals import FILL, Ids
from mlmglauber.models.importing import uncollected
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

ROWS_TOGETHER = 4
"""A matrix product of so many rows, or a multiple, gives each row the same bits whatever stands beside it.

Measured on CPU in float32 (MKL; AVX-512, AVX2 and SSE 4.2; 1 to 16 threads): rows go to the threads in blocks of four,
and one, two or three that are left over are summed in another order. With 2 threads that befalls products of 9 to 11
rows too. So rows are filled up, and a conditional does not depend on the company it is computed in.
"""


class MaskedLM:
    """A TextModel over a checkpoint with a masked-language-model head."""

    def __init__(self, model: Any, tokenizer: Any, *, name: str, identity: dict[str, Any], rows: int, device: str,
                 exact_width: bool) -> None:
        import torch

        self.name, self.rows, self.device = name, rows, device
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
        self._wanted: Any = None
        self._halved = False
        self._torch = torch
        model.base_model.register_forward_hook(self._keep_wanted)
        for module in model.modules():
            if type(module).__name__ in ("GELU", "GELUActivation"):
                module.register_forward_pre_hook(_contiguous)
        self._try_out()

    @classmethod
    def open(cls, name: str, *, label: str | None = None, revision: str | None = None, device: str = "auto",
             dtype: str = "auto", rows: int = 64, exact_width: bool = False, trust_remote_code: bool = False,
             allow_pickle: bool = False) -> "MaskedLM":
        """Load a checkpoint from a directory or, by name, from the hub and its cache.

        label: the name that messages and records use. rows: states a forward pass. exact_width: do not pad rows to a
        multiple of WIDTHS, for states that are all of one length. Errors: ModelError and UsageError, each with its
        reason, before a number is computed.
        """
        label = label or name
        with uncollected():
            device = pick_device(device)
            model, tokenizer, identity = checkpoint.load(
                name, label, masked=True, revision=revision, dtype=dtype, trust_remote_code=trust_remote_code,
                allow_pickle=allow_pickle)
        return cls(model.to(device), tokenizer, name=label, identity=identity, rows=rows, device=device,
                   exact_width=exact_width)

    def encode(self, text: str) -> list[int]:
        """See TextModel. "[MASK]" in a text is a bracket, a word and a bracket."""
        return self._encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def check_ids(self, ids: Sequence[int]) -> None:
        for token in ids:
            if not 0 <= token < self.vocab_size:
                raise RecordError(f"token id {token} is outside the model's {self.vocab_size} tokens; these ids are of "
                                  "another model")
            if token in self._forbidden:
                piece = self.tokenizer.convert_ids_to_tokens(token)
                raise RecordError(f"token id {token} ({piece}) is a special token, which no state holds; leave it out")

    def log_probs_again(self, ids: Ids, sites: Ids) -> NDArray[np.float32]:
        """The same conditionals by another way through the hardware; what differs from log_probs is rounding.

        In reverse order, one block of padding wider, and by the plain attention kernel where the model uses a fused
        one: on CPU order and padding alone often change no bit.
        """
        with plain_attention():
            return self.log_probs(ids[::-1], sites[::-1], 0 if self.model.config.model_type in LEAKY else WIDTHS)[::-1]

    def log_probs(self, ids: Ids, sites: Ids, wider: int = 0) -> NDArray[np.float32]:
        """See Conditional. float32; on CPU a row's bits do not depend on the other rows (see ROWS_TOGETHER).

        wider: so many tokens of padding more, as far as there are positions for them.
        """
        lengths = (ids != FILL).sum(axis=1)
        widths = lengths + len(self.prefix) + len(self.suffix)
        if not self.exact_width:
            widths = np.maximum(widths, np.minimum(-(-widths // WIDTHS) * WIDTHS, self._limit))
        if wider:
            widths = np.maximum(widths, np.minimum(widths + wider, self._limit))
        if 0 < len(ids) <= self.rows and (widths == widths[0]).all():  # as nearly always: no copy of the result
            return self._forward(ids, sites, lengths, int(widths[0]))
        result = np.empty((len(ids), self.vocab_size), dtype=np.float32)
        for width in np.unique(widths):
            members = np.flatnonzero(widths == width)
            while len(members):  # rows may become fewer
                batch, members = members[: self.rows], members[self.rows :]
                result[batch] = self._forward(ids[batch], sites[batch], lengths[batch], int(width))
        return result

    def _forward(self, ids: Ids, sites: Ids, lengths: NDArray[np.int64], width: int) -> NDArray[np.float32]:
        """Log-probabilities of states that share a padded width; in halves from now on where memory is short."""
        try:
            return self._compute(ids, sites, lengths, width)
        except (MemoryError, RuntimeError) as error:
            if not checkpoint.is_out_of_memory(error):
                raise
            if len(ids) == 1:
                raise ModelError(f"{self.name}: out of memory on one text of {lengths[0]} tokens; shorten it, or use a "
                                 "smaller model") from error
        half = len(ids) // 2
        self.rows = max(1, min(self.rows, half))
        if not self._halved:
            self._halved = True
            warnings.warn(f"out of memory on {len(ids)} rows; going on with fewer at a time", MlmWarning, stacklevel=2)
        return np.concatenate([self._forward(ids[part], sites[part], lengths[part], width)
                               for part in (slice(half), slice(half, None))])

    def _compute(self, ids: Ids, sites: Ids, lengths: NDArray[np.int64], width: int) -> NDArray[np.float32]:
        """One forward pass."""
        torch = self._torch
        count = len(ids)
        tokens = np.full((count, width), self.tokenizer.pad_token_id, dtype=np.int64)
        places = np.arange(width)
        tokens[:, : len(self.prefix)] = self.prefix
        n = int(lengths.max())
        content = tokens[:, len(self.prefix) : len(self.prefix) + n]
        np.copyto(content, ids[:, :n], where=ids[:, :n] != FILL)
        wanted = sites + len(self.prefix)
        assert self.mask_id is not None
        tokens[np.arange(count), wanted] = self.mask_id
        for k, token in enumerate(self.suffix):
            tokens[np.arange(count), len(self.prefix) + lengths + k] = token
        mask = (places < (lengths + len(self.prefix) + len(self.suffix))[:, None]).astype(np.int64)
        fill = -count % (ROWS_TOGETHER // math.gcd(ROWS_TOGETHER, width))  # whole states; none where 4 divides width
        if fill:
            tokens, mask, wanted = (np.concatenate([rows, np.repeat(rows[-1:], fill, axis=0)])
                                    for rows in (tokens, mask, wanted))
        with torch.inference_mode():
            inputs = {"input_ids": self._send(tokens)}
            if self._takes_mask:
                inputs["attention_mask"] = self._send(mask)
            if self._takes_types:
                inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
            self._wanted = self._send(wanted)
            logits = self.model(**inputs).logits
            if logits.shape[1:] != (1, self.vocab_size):
                raise ModelError(f"{self.name}: {self.model.config.model_type} models give no logits for one row of "
                                 "their last layer; give another masked language model")
            logits = logits[:count, 0].float()
            logits.index_fill_(1, self._banned, -torch.inf)
            return np.asarray(torch.log_softmax(logits, dim=1).cpu().numpy())

    def _try_out(self) -> None:
        """One forward pass of one token, so that a model that cannot be used is refused when it is opened."""
        if not self.allowed.any():
            raise ModelError(f"{self.name}: no token is left to draw; restore the model's own tokenizer")
        self._forward(np.flatnonzero(self.allowed)[None, :1], np.array([0]), np.array([1]),
                      1 + len(self.prefix) + len(self.suffix))

    def _send(self, array: NDArray[np.int64]) -> Any:
        tensor = self._torch.from_numpy(array)
        if self.device.startswith("cuda"):
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor

    def _keep_wanted(self, module: Any, arguments: Any, output: Any) -> Any:
        """Forward hook of the encoder: of its last hidden states (B, width, H) only the masked rows go on, (B, 1, H).

        The head's products then have B rows, filled up to a multiple of ROWS_TOGETHER with copies of the last.
        """
        torch = self._torch
        hidden = output[0]
        rows = hidden[torch.arange(len(hidden), device=hidden.device), self._wanted]
        fill = -len(rows) % ROWS_TOGETHER
        if fill:
            rows = torch.cat([rows, rows[-1:].expand(fill, -1)])
        if isinstance(output, tuple):
            return (rows[:, None], *output[1:])
        output["last_hidden_state"] = rows[:, None]
        return output

    def describe(self) -> dict[str, Any]:
        return {
            **self._identity, "class": type(self.model).__name__, "tokenizer": type(self.tokenizer).__name__,
            "vocab": self.vocab_size, "banned": int((~self.allowed).sum()),
            "dtype": str(self.model.dtype).removeprefix("torch."), "device": self.device,
            "threads": self._torch.get_num_threads(), "versions": library_versions(),
        }


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


def _contiguous(module: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Pre-hook of a GELU: on a slice, as ModernBERT hands it one, it rounds otherwise where a thread's share ends.

    Then a row's bits depend on its place in the batch; seen with 3, 5, 6 and 7 threads.
    """
    return arguments[0].contiguous(), *arguments[1:]


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
