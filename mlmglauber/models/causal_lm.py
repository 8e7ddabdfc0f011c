"""A causal language model as a joint law: the control for questions that are asked of conditionals.

log P(x) = sum_k log p(x_k | x_<k), behind the model's beginning-of-sequence token. Its conditionals p_i(v | x_-i) are
compatible by construction, so what a test finds on them is what rounding alone gives.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models import checkpoint
from mlmglauber.models.batch_size import BatchSize, Given
from mlmglauber.models.conditionals import FILL, Floats, Ids, OneLevel
from mlmglauber.models.masked_lm import (
    allowed_tokens,
    library_versions,
    pick_device,
    plain_attention,
    position_limit,
    template,
)
from mlmglauber.models.plain_text import plain_encoder
from mlmglauber.stream.errors import ModelError, RecordError

LOGITS = 1 << 26
"""Logits held at once: 256 MiB of float32."""
PADDING = 8
"""Columns of padding from one way of scoring to the next."""


class CausalLM(OneLevel):
    """A TextModel without log_probs: single-site conditionals would take V forward passes each."""

    def __init__(self, model: Any, tokenizer: Any, *, name: str, identity: dict[str, Any], rows: Given,
                 device: str) -> None:
        import torch

        self.name, self.rows, self.device = name, BatchSize(rows).rows, device
        self.model, self.tokenizer, self._identity = model, tokenizer, identity
        self.vocab_size = int(model.get_output_embeddings().weight.shape[0])
        self.mask_id: int | None = None
        self.unknown_id: int | None = tokenizer.unk_token_id
        self.allowed = allowed_tokens(tokenizer, self.vocab_size)
        self.prefix = beginning(tokenizer)
        self._limit = position_limit(model.config, tokenizer)
        self.max_sites = self._limit - len(self.prefix)
        self._encode = plain_encoder(tokenizer)
        special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
        self._forbidden = {int(token) for token in special}
        self._torch = torch

    @classmethod
    def open(cls, name: str, *, revision: str | None = None, device: str = "auto", dtype: str = "auto",
             rows: Given = "auto", trust_remote_code: bool = False, allow_pickle: bool = False) -> "CausalLM":
        """Load a checkpoint from a directory or, by name, from the hub and its cache. rows: states a forward pass."""
        device = pick_device(device)
        model, tokenizer, identity = checkpoint.load(
            name, name, masked=False, revision=revision, dtype=dtype, trust_remote_code=trust_remote_code,
            allow_pickle=allow_pickle)
        return cls(model.to(device), tokenizer, name=name, identity=identity, rows=rows, device=device)

    def encode(self, text: str) -> list[int]:
        return self._encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def check_ids(self, ids: Sequence[int]) -> None:
        for token in ids:
            if not 0 <= token < self.vocab_size:
                raise RecordError(f"token id {token} is outside the model's {self.vocab_size} tokens; these ids are of "
                                  "another model")
            if token in self._forbidden:
                raise RecordError(f"token id {token} is a special token, which no state holds; leave it out")

    def log_probs(self, ids: Ids, sites: Ids) -> Floats:
        """Conditional asks for it; a causal model has none."""
        raise ModelError(f"{self.name}: a causal model has no conditionals at single sites; give a masked one")

    def left_log_probs(self, ids: Ids, sites: Ids) -> NDArray[np.float32]:
        """(B, V) log p(v | x_<i) in nats, what stands left of the site alone; -inf where a token is not allowed."""
        torch = self._torch
        result = np.empty((len(ids), self.vocab_size), dtype=np.float32)
        for start in range(0, len(ids), self.rows):
            batch, wanted = ids[start : start + self.rows], sites[start : start + self.rows]
            logits = self._logits(batch, 0)
            rows = logits[torch.arange(len(batch)), torch.from_numpy(wanted + len(self.prefix) - 1)].float()
            rows[:, torch.from_numpy(np.flatnonzero(~self.allowed)).to(rows.device)] = -torch.inf
            result[start : start + self.rows] = torch.log_softmax(rows, dim=1).cpu().numpy()
        return result

    def joint(self, ids: Ids, way: int = 0, again: bool = False) -> NDArray[np.float64]:
        """(B,) log P(x) in nats, over the model's whole vocabulary; without a beginning token, of all but the first.

        ids: (B, n), shorter states filled up with FILL on the right. way: so many times PADDING columns of padding, and
        the plain attention kernel where it is odd. again: half of PADDING more, the other kernel, reverse order, other
        batches. What differs is rounding. Each term is a float32 log-softmax, their sum float64.
        """
        torch = self._torch
        order = np.arange(len(ids))[::-1] if again else np.arange(len(ids))
        padding = PADDING * way + (PADDING // 2 if again else 0)
        width = ids.shape[1] + len(self.prefix) + padding
        rows = max(1, min(self.rows, LOGITS // (width * self.vocab_size)))
        rows = max(1, rows - 1) if again else rows
        result = np.empty(len(ids))
        for start in range(0, len(ids), rows):
            batch = ids[order[start : start + rows]]
            with plain_attention() if again != (way % 2 == 1) else nullcontext():
                logits = self._logits(batch, padding).float()
            tokens = torch.from_numpy(np.maximum(batch, 0)).to(logits.device)
            first = len(self.prefix) - 1  # the place whose logits are of the first content token
            if first < 0:
                tokens, first = tokens[:, 1:], 0
            logits = logits[:, first : first + tokens.shape[1]]
            terms = logits.gather(2, tokens[:, :, None])[:, :, 0] - torch.logsumexp(logits, dim=2)
            values = terms.double().cpu().numpy()
            content = (batch != FILL)[:, ids.shape[1] - tokens.shape[1] :]
            result[order[start : start + rows]] = np.where(content, values, 0.0).sum(axis=1)
        return result

    def _logits(self, ids: Ids, padding: int) -> Any:
        """(B, width, V) logits; padding stands on the right, where a causal model does not look."""
        torch = self._torch
        tokens = np.zeros((len(ids), len(self.prefix) + ids.shape[1] + padding), dtype=np.int64)
        tokens = tokens[:, : self._limit]
        tokens[:, : len(self.prefix)] = self.prefix
        tokens[:, len(self.prefix) : len(self.prefix) + ids.shape[1]] = np.maximum(ids, 0)
        with torch.inference_mode():
            return self.model(input_ids=torch.from_numpy(tokens).to(self.device)).logits

    def describe(self) -> dict[str, Any]:
        return {
            **self._identity, "class": type(self.model).__name__, "tokenizer": type(self.tokenizer).__name__,
            "vocab": self.vocab_size, "banned": int((~self.allowed).sum()), "bos": self.prefix,
            "dtype": str(self.model.dtype).removeprefix("torch."), "device": self.device,
            "threads": self._torch.get_num_threads(), "versions": library_versions(),
        }


def beginning(tokenizer: Any) -> list[int]:
    """The tokens before a text: what the tokenizer puts there, else its beginning-of-sequence token, else none."""
    before, _ = template(tokenizer)
    if before:
        return before
    return [] if tokenizer.bos_token_id is None else [int(tokenizer.bos_token_id)]
