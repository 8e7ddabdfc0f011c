"""A causal language model as a joint distribution: the control for tests of conditionals.

log P(x) = sum_k log p(x_k | x_<k), after the model's beginning-of-sequence token. The conditionals p_i(v | x_-i) of P
are compatible by construction, so a test of compatibility finds only rounding.
"""

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models import checkpoint
from mlmglauber.models.batch_size import BatchSize, Rows
from mlmglauber.models.conditionals import FILL, Floats, Ids, OneLevel
from mlmglauber.models.devices import format_name, library_versions, pick_device, plain_attention
from mlmglauber.models.token_scores import TokenScores, device_token_scores
from mlmglauber.models.tokenizers import TokenizedModel, beginning
from mlmglauber.stream.errors import ModelError

LOGITS = 1 << 26
"""Maximum number of logits held at once: 256 MiB of float32."""
PADDING = 8
"""Number of columns of padding that each further way of scoring adds."""


class CausalLM(TokenizedModel, OneLevel):
    """A TextModel with `joint` and without log_probs: one single-site conditional would take V forward passes."""

    has_joint = has_second_way = True

    def __init__(self, model: Any, tokenizer: Any, *, name: str, identity: dict[str, Any], rows: Rows,
                 device: str) -> None:
        import torch

        self.name, self.rows, self.device = name, BatchSize(rows).rows, device
        super().__init__(model, tokenizer, int(model.get_output_embeddings().weight.shape[0]))
        self._identity = identity
        self.mask_id: int | None = None
        self.prefix = beginning(tokenizer)
        self.max_sites = self._limit - len(self.prefix)
        self._torch = torch

    @classmethod
    def open(cls, name: str, *, revision: str | None = None, device: str = "auto", dtype: str = "auto",
             rows: Rows = "auto", trust_remote_code: bool = False, allow_pickle: bool = False) -> "CausalLM":
        """Load a checkpoint from a directory or, by name, from the hub and its cache.

        rows: number of states in a forward pass. ModelError and UsageError for a checkpoint or a device that cannot be
        used.
        """
        device = pick_device(device)
        model, tokenizer, identity = checkpoint.load(
            name, name, masked=False, revision=revision, dtype=dtype, trust_remote_code=trust_remote_code,
            allow_pickle=allow_pickle)
        return cls(model.to(device), tokenizer, name=name, identity=identity, rows=rows, device=device)

    def log_probs(self, ids: Ids, sites: Ids) -> Floats:
        """ModelError: a causal model has no single-site conditionals."""
        raise ModelError(f"{self.name}: a causal model has no single-site conditionals; give a masked language model")

    def left_log_probs(self, ids: Ids, sites: Ids) -> NDArray[np.float32]:
        """See Conditional: float32, normalised over the allowed tokens, -inf for the others."""
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
        """(B,) log P(x) in nats over the whole vocabulary; without a beginning token, of all tokens but the first.

        ids: (B, n), shorter states filled up with FILL on the right. way: adds way * PADDING columns of padding; odd
        ways use the plain attention kernel. again: PADDING / 2 more columns, the other kernel, reverse order, other
        batches. The results differ by rounding. Each term is a float32 log-softmax, the sum is float64.
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
            first = len(self.prefix) - 1  # the position whose logits predict the first content token
            if first < 0:
                tokens, first = tokens[:, 1:], 0
            logits = logits[:, first : first + tokens.shape[1]]
            terms = logits.gather(2, tokens[:, :, None])[:, :, 0] - torch.logsumexp(logits, dim=2)
            values = terms.double().cpu().numpy()
            content = (batch != FILL)[:, ids.shape[1] - tokens.shape[1] :]
            result[order[start : start + rows]] = np.where(content, values, 0.0).sum(axis=1)
        return result

    def left_scores(self, ids: Ids) -> TokenScores:
        """See Conditional: over the whole vocabulary, as `joint`, whose value is the sum of `logp` over the sites."""
        torch = self._torch
        scores = TokenScores(np.full(ids.shape, np.nan), np.full(ids.shape, np.nan), np.zeros(ids.shape, np.int64))
        skipped = int(not self.prefix)
        rows = max(1, min(self.rows, LOGITS // (4 * (ids.shape[1] + len(self.prefix)) * self.vocab_size)))
        for start in range(0, len(ids), rows):
            batch = ids[start : start + rows]
            content = batch[:, skipped:] != FILL
            first = len(self.prefix) - 1 + skipped  # the position whose logits predict the first token that is scored
            logits = self._logits(batch, 0)[:, first : first + content.shape[1]][torch.from_numpy(content)]
            if logits.dtype not in (torch.float32, torch.float64):
                logits = logits.float()
            tokens = torch.from_numpy(batch[:, skipped:][content][:, None]).to(logits.device)
            for whole, part in zip(scores, device_token_scores(torch, logits, tokens), strict=True):
                whole[start : start + rows, skipped:][content] = part[:, 0]
        return scores

    def _logits(self, ids: Ids, padding: int) -> Any:
        """(B, width, V) logits. Padding is on the right, where it has no influence in a causal model."""
        torch = self._torch
        tokens = np.zeros((len(ids), len(self.prefix) + ids.shape[1] + padding), dtype=np.int64)
        tokens = tokens[:, : self._limit]
        tokens[:, : len(self.prefix)] = self.prefix
        tokens[:, len(self.prefix) : len(self.prefix) + ids.shape[1]] = np.maximum(ids, 0)
        with torch.inference_mode():
            return self.model(input_ids=torch.from_numpy(tokens).to(self.device)).logits

    def describe(self) -> dict[str, Any]:
        """See TextModel."""
        return {
            **self._identity, "class": type(self.model).__name__, "tokenizer": type(self.tokenizer).__name__,
            "vocab": self.vocab_size, "banned": int((~self.allowed).sum()), "bos": self.prefix,
            "dtype": format_name(self.model.dtype), "device": self.device,
            "threads": self._torch.get_num_threads(), "versions": library_versions(),
        }
