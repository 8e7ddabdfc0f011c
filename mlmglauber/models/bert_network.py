"""The network of BERT as modules of torch, without the packages transformers and sentence-transformers.

Names of modules and parameters are those of the checkpoints. Each operation is the one of torch that transformers calls
too, in the same order, so the numbers are equal bit for bit (tests/models/test_fast_start.py). Only inference: there is
no dropout. This file is imported when such a model is opened, since it needs torch.

Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, normalize, scaled_dot_product_attention

SMALLEST_COUNT = 1e-9
"""Minimum number of tokens by which a mean is divided, as in sentence-transformers."""


class MaskedLogits(NamedTuple):
    """What BertForMaskedLM returns. logits: (B, n, V)."""

    logits: Tensor


class BertProjection(nn.Module):
    """A linear layer whose output is added to the residual input, then normalised."""

    def __init__(self, config: SimpleNamespace, inputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, hidden_states: Tensor, input_tensor: Tensor) -> Tensor:
        """hidden_states: (B, n, inputs). input_tensor: (B, n, H), the residual input. The result is (B, n, H)."""
        output: Tensor = self.LayerNorm(self.dense(hidden_states) + input_tensor)
        return output


class BertSelfAttention(nn.Module):
    """Attention of every site to all sites that the mask allows."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(config.hidden_size, config.hidden_size) for _ in range(3))
        self.width = config.hidden_size // config.num_attention_heads

    def forward(self, hidden: Tensor, allowed: Tensor | None) -> Tensor:
        """hidden: (B, n, H). allowed: (B, 1, n, n) True where a site may be attended to, None for all sites."""
        heads = [layer(hidden).view(*hidden.shape[:2], -1, self.width).transpose(1, 2)
                 for layer in (self.query, self.key, self.value)]
        mixed = scaled_dot_product_attention(*heads, attn_mask=allowed, scale=self.width**-0.5)
        return mixed.transpose(1, 2).reshape(hidden.shape)


class BertLayer(nn.Module):
    """Attention and a feed-forward layer, each with a residual connection."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.attention = nn.ModuleDict({"self": BertSelfAttention(config),
                                        "output": BertProjection(config, config.hidden_size)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(config.hidden_size, config.intermediate_size)})
        self.output = BertProjection(config, config.intermediate_size)

    def forward(self, hidden: Tensor, allowed: Tensor | None) -> Tensor:
        """hidden: (B, n, H). allowed: as in BertSelfAttention."""
        attended = self.attention["output"](self.attention["self"](hidden, allowed), hidden)
        output: Tensor = self.output(gelu(self.intermediate["dense"](attended)), attended)
        return output


def _embedding(count: int, width: int) -> nn.Embedding:
    """An embedding without values; to draw values on the device "meta" torch would import its whole compiler."""
    return nn.Embedding.from_pretrained(torch.empty(count, width))  # type: ignore[no-untyped-call, no-any-return]


class BertEncoder(nn.Module):
    """Embeddings of tokens, positions and token types, and all layers."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config
        self.embeddings = nn.ModuleDict({
            "word_embeddings": _embedding(config.vocab_size, config.hidden_size),
            "position_embeddings": _embedding(config.max_position_embeddings, config.hidden_size),
            "token_type_embeddings": _embedding(config.type_vocab_size, config.hidden_size),
            "LayerNorm": nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)})
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(BertLayer(config)
                                                             for _ in range(config.num_hidden_layers))})

    def get_input_embeddings(self) -> nn.Module:
        """The embeddings of tokens."""
        return self.embeddings["word_embeddings"]

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None,
                token_type_ids: Tensor | None = None) -> tuple[Tensor]:
        """All arguments are (B, n); attention_mask is 0 at padding. The last hidden states (B, n, H), in a tuple."""
        parts = self.embeddings
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        hidden = parts["word_embeddings"](input_ids) + parts["token_type_embeddings"](types)
        hidden = parts["LayerNorm"](hidden + parts["position_embeddings"](positions))
        allowed = None
        if attention_mask is not None and not bool(attention_mask.all()):  # without a mask a faster kernel runs
            count, width = input_ids.shape
            allowed = attention_mask.bool()[:, None, None, :].expand(count, 1, width, width)
        for layer in self.encoder["layer"]:  # type: ignore[union-attr]
            hidden = layer(hidden, allowed)
        return (hidden,)


class BertForMaskedLM(nn.Module):
    """BERT with its masked-language-model head, whose decoder shares the embeddings of tokens."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config
        self.bert = BertEncoder(config)
        head = nn.Module()
        head.transform = nn.ModuleDict({"dense": nn.Linear(config.hidden_size, config.hidden_size),
                                        "LayerNorm": nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)})
        head.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.cls = nn.ModuleDict({"predictions": head})

    @property
    def base_model(self) -> BertEncoder:
        """The model without its head."""
        return self.bert

    @property
    def dtype(self) -> torch.dtype:
        """The number format of the weights."""
        return next(self.parameters()).dtype

    def get_input_embeddings(self) -> nn.Module:
        """The embeddings of tokens."""
        return self.bert.get_input_embeddings()

    def get_output_embeddings(self) -> Any:
        """The last layer, from hidden states to logits."""
        return self.cls["predictions"].decoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None,
                token_type_ids: Tensor | None = None) -> MaskedLogits:
        """All arguments are (B, n), as in BertEncoder."""
        hidden = self.bert(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)[0]
        head: Any = self.cls["predictions"]
        hidden = head.transform["LayerNorm"](gelu(head.transform["dense"](hidden)))
        return MaskedLogits(head.decoder(hidden))


class SentenceBert(nn.Module):
    """A sentence embedder: BERT, the mean over the tokens of a text, and optionally a scaling to length 1."""

    def __init__(self, auto_model: BertEncoder, tokenizer: Any, max_seq_length: int, scaled: bool) -> None:
        super().__init__()
        self.auto_model, self.tokenizer, self.max_seq_length, self.scaled = (
            auto_model, tokenizer, max_seq_length, scaled)
        self.prompts: dict[str, str] = {}
        self.default_prompt_name = None

    def __iter__(self) -> Iterator[nn.Module]:
        return self.children()

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """features: the arguments of BertEncoder by name. The result holds `sentence_embedding`, (B, H)."""
        hidden = self.auto_model(**features)[0]
        mask = features["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=SMALLEST_COUNT)
        return {"sentence_embedding": normalize(mean, dim=-1) if self.scaled else mean}
