"""What must be true of a checkpoint before a number is computed with it; each refusal says why and what to do."""

import hashlib
import os
from pathlib import Path
from typing import Any

from mlmglauber.stream.errors import MlmError, ModelError, UsageError

PROBE = "The quick brown fox jumps over the lazy dog and then it sleeps in the sun"
"""A plain sentence: a tokenizer that cuts it into three pieces a word or more is not the model's own."""
DTYPES = ("auto", "float64", "float32", "bfloat16", "float16")
LETTERS = 1000
"""Vocabularies below this size are alphabets, of proteins say, where a piece is a letter by intent."""


def load(name: str, label: str, *, masked: bool, revision: str | None, dtype: str, trust_remote_code: bool,
         allow_pickle: bool) -> tuple[Any, Any, dict[str, Any]]:
    """(model, tokenizer, identity) of a checkpoint with a masked or a causal language-model head, on the CPU.

    label: the name that messages and records use. dtype: auto is float32. Errors: ModelError and UsageError, each with
    its reason, before a number is computed.
    """
    if dtype not in DTYPES:
        raise UsageError(f"--dtype {dtype}: no such type; {', '.join(DTYPES)}")
    place, is_directory = locate(name)
    quiet_libraries()
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer, PretrainedConfig
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    if not is_directory:
        offline_without_network()
    where: dict[str, Any] = {"revision": revision, "local_files_only": is_directory}
    try:
        raw, _ = PretrainedConfig.get_config_dict(place, **where)
        check_remote_code(label, [raw, get_tokenizer_config(place, **where)], trust_remote_code)
        where["trust_remote_code"] = trust_remote_code
        config = AutoConfig.from_pretrained(place, **where)
        if "auto_map" not in raw and masked:
            check_masked(label, config)
        tokenizer = AutoTokenizer.from_pretrained(place, **where)
        check_tokenizer(label, tokenizer, config.vocab_size, masked)
        if is_directory and not allow_pickle:
            check_format(label, place)
        auto: Any = AutoModelForMaskedLM if masked else AutoModelForCausalLM
        model, info = auto.from_pretrained(
            place, config=config, dtype=getattr(torch, "float32" if dtype == "auto" else dtype),
            output_loading_info=True, ignore_mismatched_sizes=True,  # check_weights refuses them in one line
            use_safetensors=None if allow_pickle else True, **where)
    except MlmError:
        raise
    except Exception as error:  # a checkpoint is somebody's files: the library fails on them in any way
        if is_directory:
            reason = str(error).strip().split("\n")[0][:200]
            raise ModelError(f"{label}: cannot be opened ({reason}); restore its files") from error
        raise not_available(label, error) from error
    check_weights(label, model, info)
    identity: dict[str, Any] = {"model": label}
    if is_directory:
        identity["hash"] = weight_hash(place)
    else:
        identity["revision"] = getattr(config, "_commit_hash", None) or revision
    return model.eval(), tokenizer, identity


def is_causal(name: str, revision: str | None = None) -> bool:
    """Whether a checkpoint's configuration names a causal language model; False where there is no configuration."""
    place, is_directory = locate(name)
    quiet_libraries()
    from transformers import PretrainedConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    if not is_directory:
        offline_without_network()
    try:
        raw, _ = PretrainedConfig.get_config_dict(place, revision=revision, local_files_only=is_directory)
    except Exception:  # load says what is wrong with it
        return False
    names = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    return any(kind in names for kind in raw.get("architectures") or [])


def quiet_libraries() -> None:
    """No progress bars or log lines of the libraries between our words; no warning about forks."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def offline_without_network() -> None:
    """Ask the hub once, for at most 3 seconds; where it does not answer, only its cache is looked at.

    The library itself would try each file six times, half a minute in all.
    """
    from huggingface_hub import constants, utils

    utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    if constants.HF_HUB_OFFLINE:
        return
    try:
        utils.get_session().head(constants.ENDPOINT, timeout=3)  # type: ignore[attr-defined]
    except Exception:  # whatever it is, it is no answer
        constants.HF_HUB_OFFLINE = True


def locate(name: str) -> tuple[str, bool]:
    """(place, whether it is a directory). A directory is never looked for anywhere else."""
    if os.path.isdir(name):
        return name, True
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or not name:
        raise ModelError(f"{name!r}: no such directory; check the path")
    return name, False


def not_available(name: str, error: Exception) -> ModelError:
    """One line for a name that is neither a directory nor, as far as can be known, on the hub or in its cache."""
    reason = str(error).strip().split("\n")[0][:200]
    return ModelError(f"{name}: neither a directory here nor to be had from the hub ({reason}); give a local "
                      "directory, or fetch the model first where there is a network")


def check_remote_code(name: str, configs: list[dict[str, Any]], trusted: bool) -> None:
    """A model that brings code of its own would load as something else without it: with the same names, silently."""
    if not trusted and any("auto_map" in config for config in configs):
        raise ModelError(f"{name}: the model needs code of its own; read it, then allow it with --trust-remote-code")


def check_masked(name: str, config: Any) -> None:
    """Refuse causal models, encoders of other tasks, and anything else without a masked-language-model head."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    known = MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if config.model_type not in known:
        raise ModelError(f"{name}: {config.model_type} models have no masked-LM head; give a masked language model")
    if getattr(config, "is_decoder", False):
        raise ModelError(f"{name}: the model is a causal decoder (is_decoder); give a masked language model")
    kinds = config.architectures or []
    if kinds and not any(kind in known.values() or kind.endswith(("ForMaskedLM", "ForPreTraining")) for kind in kinds):
        raise ModelError(f"{name}: the checkpoint is a {kinds[0]}, without a trained masked-LM head; give a checkpoint "
                         "of a masked language model")


def check_format(name: str, folder: str) -> None:
    """Pickles can run code when they are read."""
    if any(Path(folder).glob("*.bin")) and not any(Path(folder).glob("*.safetensors")):
        raise ModelError(f"{name}: its weights are pickles, which can run code; save the model again as safetensors, "
                         "or give --allow-pickle if you trust whoever made it")


def check_tokenizer(name: str, tokenizer: Any, embeddings: int, masked: bool = True) -> None:
    """The tokenizer has a mask token if one is needed, fits the embedding and cuts plain English as the model's own."""
    if masked and tokenizer.mask_token_id is None:
        raise UsageError(f"{name}: its tokenizer has no mask token; give a masked language model")
    tokens = 1 + max(tokenizer.get_vocab().values())  # not its length: a vocabulary may have holes
    if tokens > embeddings:
        raise ModelError(f"{name}: its tokenizer has {tokens} tokens, the model {embeddings}; they do not "
                         "belong together, restore the model's own tokenizer")
    pieces, words = len(tokenizer.encode(PROBE, add_special_tokens=False)), len(PROBE.split())
    if len(tokenizer) >= LETTERS and pieces >= 3 * words:
        raise ModelError(f"{name}: its tokenizer cuts {words} plain words into {pieces} pieces; tokenizer files are "
                         "missing (tokenizer.json, tokenizer_config.json), restore them")


def check_weights(name: str, model: Any, info: dict[str, Any]) -> None:
    """Every weight came from the file, in its own shape, and is a number: a random head would look like a model."""
    missing = sorted(key for key in info["missing_keys"] if not key.endswith("position_ids"))
    if missing:
        some = ", ".join(missing[:4]) + (" ..." if len(missing) > 4 else "")
        raise ModelError(f"{name}: the weights {some} are missing and would be random; give a checkpoint that has "
                         "them, with the head of its task")
    if info["mismatched_keys"]:
        key = sorted(info["mismatched_keys"])[0]
        raise ModelError(f"{name}: the weight {key[0] if isinstance(key, tuple) else key} has another shape than the "
                         "configuration says; restore the model's own files")
    check_finite(name, model)


def check_finite(name: str, model: Any) -> None:
    """Every weight is a number."""
    import torch

    for key, weight in model.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise ModelError(f"{name}: the weight {key} holds values that are not finite; fetch the checkpoint again")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a computation failed for want of memory, on a GPU or on the CPU."""
    import torch

    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)


def weight_hash(folder: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 over a directory's weight files, in the order of their names."""
    digest = hashlib.sha256()
    files = sorted(Path(folder).glob("*.safetensors")) or sorted(Path(folder).glob("pytorch_model*.bin"))
    for path in files:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:16]
