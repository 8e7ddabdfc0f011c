"""Sentence embeddings of texts, computed with the sentence-transformers library."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber import __version__
from mlmglauber.models import checkpoint, embedder_loading
from mlmglauber.models.devices import pick_device
from mlmglauber.models.plain_text import parts, plain_encoder
from mlmglauber.models.tokenizers import position_limit, template
from mlmglauber.stream.errors import UsageError

MEMORY, MEMORY_CHARACTERS = 4096, 16 << 20
"""Maximum number of remembered texts, and of their characters together."""

WIDTHS = 4
"""Rows are padded to a multiple of this number of tokens. A multiple of 8 would make texts of one length up to a fifth
slower."""


class Embedded(NamedTuple):
    """Embeddings of B texts.

    vectors: (B, d) float32. tokens: (B,) number of tokens of each text with its special tokens. truncated: (B,) True
    for texts longer than the model takes.
    """

    vectors: NDArray[np.float32]
    tokens: NDArray[np.int64]
    truncated: NDArray[np.bool_]


class Embedder:
    """A sentence-transformers model, and the vectors of the texts that it embedded last.

    On a CPU the bits of a vector do not depend on the other texts of its batch: the width of a row depends on its own
    length only.
    """

    def __init__(self, model: Any, *, name: str, digest: str, settings: list[Any], rows: int, device: str,
                 normalize: bool, prompt: str, dims: int | None, cache: int = MEMORY) -> None:
        import torch

        self._torch, self.model, self.name, self.rows, self.device = torch, model, name, rows, device
        self.normalize, self.prompt, self._digest = normalize, prompt, digest
        self.tokenizer = model.tokenizer
        self._prefix, self._suffix = template(self.tokenizer)
        self._encode = plain_encoder(self.tokenizer)
        limits = [position_limit(embedder_loading.encoder_of(model).config, self.tokenizer)]
        if model.max_seq_length:
            limits.append(int(model.max_seq_length))
        self.max_tokens = min(limits)
        self._cache = cache
        self._memory: OrderedDict[str, tuple[NDArray[np.float32], int]] = OrderedDict()
        self._characters = 0
        first, second = (torch.from_numpy(self._embed(self._tokens([checkpoint.PROBE])[0])) for _ in range(2))
        checkpoint.check_equal(name, first, second)
        full = first.shape[1]
        if dims is not None and dims > full:
            raise UsageError(f"--dims {dims}: the model has {full} dimensions; give at most {full}")
        self.dims = dims or full
        names = [digest, settings, self.dims, normalize, prompt, self.max_tokens]
        self.identity = hashlib.blake2b(json.dumps(names, sort_keys=True).encode(), digest_size=4).hexdigest()

    @classmethod
    def open(cls, name: str, *, revision: str | None = None, device: str = "auto", rows: int = 64,
             trust_remote_code: bool = False, allow_pickle: bool = False, normalize: bool = False,
             prompt: str | None = None, prompt_name: str | None = None, dims: int | None = None,
             cache: int = MEMORY) -> "Embedder":
        """Load a model; the default one from its wheel where that is installed.

        rows: number of texts in a forward pass. dims: number of leading dimensions to keep. cache: maximum number of
        remembered texts. prompt: put before each text as it is; prompt_name: the name of a prompt of the model; without
        either, the model's default prompt. ModelError and UsageError for a model that cannot be used.
        """
        place = str(embedder_loading.wheel_folder() or name) if name in embedder_loading.DEFAULT_NAMES else name
        place, is_directory = checkpoint.locate(place)
        with checkpoint.no_garbage_collection():
            device = pick_device(device)
            model, folder = embedder_loading.load(name, place, is_directory, revision, device, trust_remote_code,
                                                  allow_pickle)
        digest, settings = embedder_loading.digest(name, folder)
        prefix = embedder_loading.prompt_of(name, model, prompt, prompt_name)
        return cls(model.eval(), name=name, digest=digest, settings=settings, rows=rows, device=device,
                   normalize=normalize, prompt=prefix, dims=dims, cache=cache)

    def encode(self, texts: Sequence[str]) -> Embedded:
        """Embeddings of B texts, in their order. A text that is remembered or repeated is not computed again."""
        if not texts:
            return Embedded(np.empty((0, self.dims), np.float32), np.empty(0, np.int64), np.empty(0, np.bool_))
        new = [text for text in dict.fromkeys(texts) if text not in self._memory]
        fresh: dict[str, tuple[NDArray[np.float32], int]] = {}
        if new:
            tokens, counts = self._tokens([self.prompt + text for text in new])
            for text, vector, count in zip(new, self._finish(self._embed(tokens)), counts, strict=True):
                fresh[text] = (vector.copy(), count)  # a view would keep its whole batch in memory
        results = [fresh[text] if text in fresh else self._recall(text) for text in texts]
        for text, value in fresh.items():
            self._remember(text, value)
        vectors = np.stack([vector for vector, _ in results])
        lengths = np.array([length for _, length in results])
        return Embedded(vectors, lengths, lengths > self.max_tokens)

    def _recall(self, text: str) -> tuple[NDArray[np.float32], int]:
        self._memory.move_to_end(text)
        return self._memory[text]

    def _remember(self, text: str, value: tuple[NDArray[np.float32], int]) -> None:
        self._memory[text] = value
        self._characters += len(text)
        while len(self._memory) > self._cache or (self._characters > MEMORY_CHARACTERS and self._memory):
            forgotten, _ = self._memory.popitem(last=False)
            self._characters -= len(forgotten)

    def _tokens(self, texts: list[str]) -> tuple[list[list[int]], list[int]]:
        """(token ids of each text, truncated to max_tokens; number of tokens of each text before truncation).

        Both include the model's special tokens. A special token written in a text is plain text.
        """
        around = len(self._prefix) + len(self._suffix)
        rows, counts = [], []
        for text in texts:
            kept: list[int] = []
            count = around
            for part in parts(text):
                ids = self._encode(part)
                count += len(ids)
                kept += ids[: self.max_tokens - around - len(kept)]
            rows.append(self._prefix + kept + self._suffix)
            counts.append(count)
        return rows, counts

    def _embed(self, tokens: list[list[int]]) -> NDArray[np.float32]:
        """Vectors of tokenised texts; one batch has one padded width."""
        lengths = np.array([len(ids) for ids in tokens])
        widths = np.minimum(-(-lengths // WIDTHS) * WIDTHS, np.maximum(lengths, self.max_tokens))
        result: NDArray[np.float32] | None = None
        for width in np.unique(widths):
            members = np.flatnonzero(widths == width)
            for start in range(0, len(members), self.rows):
                batch = members[start : start + self.rows]
                vectors = self._forward([tokens[k] for k in batch], int(width))
                if result is None:
                    result = np.empty((len(tokens), vectors.shape[1]), dtype=np.float32)
                result[batch] = vectors
        assert result is not None
        return result

    def _forward(self, tokens: list[list[int]], width: int) -> NDArray[np.float32]:
        torch = self._torch
        ids = np.full((len(tokens), width), self.tokenizer.pad_token_id or 0, dtype=np.int64)
        mask = np.zeros((len(tokens), width), dtype=np.int64)
        for k, row in enumerate(tokens):
            ids[k, : len(row)] = row
            mask[k, : len(row)] = 1
        features = {"input_ids": torch.from_numpy(ids).to(self.device),
                    "attention_mask": torch.from_numpy(mask).to(self.device)}
        if "token_type_ids" in self.tokenizer.model_input_names:
            features["token_type_ids"] = torch.zeros_like(features["input_ids"])
        with torch.inference_mode():
            vectors = self.model(features)["sentence_embedding"].float().cpu().numpy()
        return np.asarray(vectors[: len(tokens)])

    def _finish(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        vectors = vectors[:, : self.dims].copy()
        if self.normalize:
            norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
            vectors = (vectors / np.where(norms == 0, 1.0, norms)).astype(np.float32)
        return vectors

    def describe(self) -> dict[str, Any]:
        """The fields of the run record that identify the embedder."""
        return {
            "embedder": self.name, "hash": self._digest, "dims": self.dims, "normalize": self.normalize,
            "prompt": self.prompt, "max_tokens": self.max_tokens, "dtype": "float32", "device": self.device,
            "threads": self._torch.get_num_threads(),
            "versions": {"mlmglauber": __version__, "torch": self._torch.__version__,
                         "transformers": version("transformers"),
                         "sentence-transformers": version("sentence-transformers")},
        }
