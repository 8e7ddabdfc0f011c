"""Loads a checkpoint and checks that it is a trained model of the right kind before a number is computed with it.

Every refusal names the reason and the next step.
"""

import gc
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlmglauber.models import fast_start
from mlmglauber.models.vocabulary import is_alphabet
from mlmglauber.stream.errors import MlmError, ModelError, UsageError

PROBE = "The quick brown fox jumps over the lazy dog and then it sleeps in the sun"
"""A plain sentence: a tokenizer that cuts it into three pieces per word or more is not the model's own."""
PROBED = 8
"""Number of tokens of PROBE that a model is tried with: some models take only short inputs."""
REPEATED = 1e-3
"""Maximum difference of two equal calls, as a share of the largest number: rounding of half precision stays below it,
dropout does not."""
DTYPES = ("auto", "float64", "float32", "bfloat16", "float16")
"""The values of --dtype: number formats of a model; auto is float32."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Switch the garbage collector off while torch and a first model are loaded, which saves a third of that time.

    Loading makes 700,000 objects that live as long as the process. Afterwards they are frozen: the collector never
    visits them again, nor at exit. Where torch is loaded already, nothing is done.
    """
    if "torch" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def load(name: str, label: str, *, masked: bool, revision: str | None, dtype: str, trust_remote_code: bool,
         allow_pickle: bool) -> tuple[Any, Any, dict[str, Any]]:
    """(model, tokenizer, identity) of a checkpoint with a masked or a causal language-model head, on the CPU.

    name: a directory or a name on the hub. label: the name that messages and records use. dtype: auto is float32.
    ModelError and UsageError for a checkpoint that is missing, damaged, unsafe or of another kind.
    """
    if dtype not in DTYPES:
        raise UsageError(f"--dtype {dtype}: no such type; {', '.join(DTYPES)}")
    place, is_directory = locate(name)
    quiet_tokenizers()
    plain = fast_start.masked_lm(place, "float32" if dtype == "auto" else dtype) if masked and is_directory else None
    if plain is not None:
        model, tokenizer = plain
        check_tokenizer(label, tokenizer, model.config.vocab_size)
        check_finite(label, model)
        check_repeats(label, model, tokenizer)
        return model, tokenizer, {"model": label, "hash": weight_hash(place)}
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
            output_loading_info=True, ignore_mismatched_sizes=True,  # check_weights reports them in one line
            use_safetensors=None if allow_pickle else True, **where)
    except MlmError:
        raise
    except Exception as error:  # the library raises errors of any class on damaged files
        if is_directory:
            reason = str(error).strip().split("\n")[0][:200]
            raise ModelError(f"{label}: cannot be opened ({reason}); restore its files") from error
        raise not_available(label, error) from error
    check_weights(label, model, info)
    check_repeats(label, model.eval(), tokenizer)
    identity: dict[str, Any] = {"model": label}
    if is_directory:
        identity["hash"] = weight_hash(place)
    else:
        identity["revision"] = getattr(config, "_commit_hash", None) or revision
    return model.eval(), tokenizer, identity


def is_causal(name: str, revision: str | None = None) -> bool:
    """Whether a checkpoint's configuration names a causal language model; False where there is no configuration."""
    place, is_directory = locate(name)
    if is_directory and _names_masked_lm(Path(place)):
        return False
    quiet_libraries()
    from transformers import PretrainedConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    if not is_directory:
        offline_without_network()
    try:
        raw, _ = PretrainedConfig.get_config_dict(place, revision=revision, local_files_only=is_directory)
    except Exception:  # `load` reports what is wrong
        return False
    names = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    return any(kind in names for kind in raw.get("architectures") or [])


def _names_masked_lm(folder: Path) -> bool:
    """Whether a configuration names nothing but masked language models, which is seen without the library's lists."""
    try:
        kinds = json.loads((folder / "config.json").read_bytes())["architectures"]
        return bool(kinds) and all(kind.endswith("ForMaskedLM") for kind in kinds)
    except Exception:  # `load` reports what is wrong
        return False


def quiet_tokenizers() -> None:
    """Let a tokenizer work in one thread: with several it warns when the process forks."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def quiet_libraries() -> None:
    """Switch off progress bars, log lines and fork warnings of the libraries: stderr is for this program's messages."""
    quiet_tokenizers()
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def offline_without_network() -> None:
    """Ask the hub once, for at most 3 seconds; if it does not answer, use its local cache only.

    The library itself would try each file six times, which takes half a minute.
    """
    from huggingface_hub import constants, utils

    utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    if constants.HF_HUB_OFFLINE:
        return
    try:
        utils.get_session().head(constants.ENDPOINT, timeout=3)  # type: ignore[attr-defined]
    except Exception:  # any error means that the hub cannot be reached
        constants.HF_HUB_OFFLINE = True


def locate(name: str) -> tuple[str, bool]:
    """(place, whether it is a local directory); ModelError for a path that does not exist or holds no model."""
    if os.path.isdir(name):
        if not any(os.path.exists(os.path.join(name, file)) for file in ("config.json", "modules.json")):
            raise ModelError(f"{name}: the folder has no config.json, so it holds no model; give the folder that "
                             "save_pretrained wrote")
        return name, True
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or not name:
        raise ModelError(f"{name!r}: no such directory; check the path")
    return name, False


def not_available(name: str, error: Exception) -> ModelError:
    """The error for a name that is not a directory and that neither the hub nor its cache provides."""
    reason = str(error).strip().split("\n")[0][:200]
    return ModelError(f"{name}: not a local directory, and not available from the hub ({reason}); give a local "
                      "directory, or fetch the model first where there is a network")


def check_remote_code(name: str, configs: list[dict[str, Any]], trusted: bool) -> None:
    """Refuse a model that needs code of its own: without the code it would load, silently, as another model."""
    if not trusted and any("auto_map" in config for config in configs):
        raise ModelError(f"{name}: the model needs code of its own; read it, then allow it with --trust-remote-code")


def check_masked(name: str, config: Any) -> None:
    """Refuse causal models, encoders for other tasks, and all other models without a masked-language-model head."""
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
    """Refuse weights in pickles, which can run code when they are loaded."""
    if any(Path(folder).glob("*.bin")) and not any(Path(folder).glob("*.safetensors")):
        raise ModelError(f"{name}: its weights are pickles, which can run code; save the model again as safetensors, "
                         "or give --allow-pickle if you trust its author")


def check_tokenizer(name: str, tokenizer: Any, embeddings: int, masked: bool = True) -> None:
    """Refuse a tokenizer without a needed mask token, with more tokens than the model, or that splits plain words."""
    if masked and tokenizer.mask_token_id is None:
        raise UsageError(f"{name}: its tokenizer has no mask token; give a masked language model")
    tokens = 1 + max(tokenizer.get_vocab().values())  # not len(): ids may have gaps
    if tokens > embeddings:
        raise ModelError(f"{name}: its tokenizer has {tokens} tokens, the model has {embeddings}; restore "
                         "the model's own tokenizer")
    pieces, words = len(tokenizer.encode(PROBE, add_special_tokens=False)), len(PROBE.split())
    if not is_alphabet(len(tokenizer)) and pieces >= 3 * words:
        raise ModelError(f"{name}: its tokenizer cuts {words} plain words into {pieces} pieces; tokenizer files are "
                         "missing (tokenizer.json, tokenizer_config.json), restore them")


def check_weights(name: str, model: Any, info: dict[str, Any]) -> None:
    """Refuse weights that are missing (they would be random), have another shape, or are not finite."""
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
    """ModelError where a weight holds a value that is not finite."""
    import torch

    for key, weight in model.named_parameters():
        extremes = torch.aminmax(weight.detach()) if weight.numel() else ()  # NaN where a value is NaN
        if not all(bool(torch.isfinite(extreme)) for extreme in extremes):
            raise ModelError(f"{name}: the weight {key} holds values that are not finite; fetch the checkpoint again")


def check_repeats(name: str, model: Any, tokenizer: Any) -> None:
    """ModelError where two calls on one text differ, as with a dropout that the model's own code leaves on."""
    import torch

    tokens = torch.tensor([tokenizer.encode(PROBE)[:PROBED]])
    with torch.inference_mode():
        first, second = (model(tokens)[0].float() for _ in range(2))
    check_equal(name, first, second)


def check_equal(name: str, first: Any, second: Any) -> None:
    """ModelError where the results of two calls differ by more than rounding."""
    difference = float((first - second).abs().max())
    if difference > REPEATED * max(1.0, float(first.abs().max())):
        raise ModelError(f"{name}: two calls on the same input differ by up to {difference:.2g}; switch off what is "
                         "random in the model, most likely a dropout")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a computation failed because memory ran out, on a GPU or on the CPU."""
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
