"""Opens plain BERT checkpoints without importing transformers or sentence-transformers, which takes seconds.

Why: one rectangle of tiny-en took 3.3 s of processor time, of which 2 s were imports of these packages: most of torch's
compiler and of its distributed tensors, scipy, sympy, scikit-learn. The network of BERT needs none of them. Its file
alone cannot be taken out of transformers, since it imports the rest of the package.

When: for a local directory whose configuration, weights and tokenizer are exactly those that bert_network.py and
bert_tokenizer.py know. Every setting must stand in the lists below with the value that it has there. In all other cases
the functions return None, and the libraries open the model or say what is wrong with it.

When a library changes: nothing here uses an internal of transformers or sentence-transformers, so nothing breaks. If
they compute something else from then on, tests/models/test_fast_start.py, which compares both ways bit for bit, fails.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
         "max_position_embeddings", "type_vocab_size")
"""Keys of config.json that must be there: positive integers."""

KNOWN = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False,
         "add_cross_attention": False, "tie_word_embeddings": True, "chunk_size_feed_forward": 0, "auto_map": None}
"""Keys of config.json that change what is computed, and their only value here, which holds where a key is missing."""

WITHOUT_EFFECT = {"architectures", "layer_norm_eps", "attention_probs_dropout_prob", "hidden_dropout_prob",
                  "classifier_dropout", "bos_token_id", "eos_token_id", "pad_token_id", "dtype", "torch_dtype",
                  "gradient_checkpointing", "initializer_range", "transformers_version", "use_cache", "_name_or_path"}
"""Keys of config.json that change no result at inference, or that are checked by themselves."""

NOT_LOADED = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}
"""Weights of checkpoints of sentence embedders that no mean over tokens uses."""

OTHER_FILES = ("adapter_config.json", "model.safetensors.index.json")
"""Files that would make the library load other weights than those of model.safetensors."""

MODULES = [["sentence_transformers.models.Transformer", ""], ["sentence_transformers.models.Pooling", "1_Pooling"],
           ["sentence_transformers.models.Normalize", "2_Normalize"]]
"""Types and folders of the modules of a sentence embedder; the last one may be missing."""

POOLING = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False,
           "pooling_mode_mean_sqrt_len_tokens": False}
"""Settings of a mean over tokens, besides its dimension."""


def masked_lm(folder: str, dtype: str) -> tuple[Any, Any] | None:
    """(model, tokenizer) of a masked language model in a directory, on the CPU; None where the library must open it.

    dtype: float64, float32, bfloat16 or float16.
    """
    try:
        return _masked_lm(Path(folder), dtype)
    except Exception:  # anything unexpected in the files: the library opens them, or says what is wrong
        return None


def sentence_model(folder: str, device: str) -> Any:
    """The sentence embedder in a directory, in float32; None where sentence-transformers must open it."""
    try:
        return _sentence_model(Path(folder), device)
    except Exception:  # as in masked_lm
        return None


def _masked_lm(folder: Path, dtype: str) -> tuple[Any, Any] | None:
    from mlmglauber.models.bert_tokenizer import read

    config = _config(folder, "BertForMaskedLM")
    tokenizer = read(folder) if config is not None else None
    if config is None or tokenizer is None:
        return None
    import torch

    from mlmglauber.models.bert_network import BertForMaskedLM

    state = _weights(folder, dtype)
    head = "cls.predictions"
    state[f"{head}.decoder.bias"] = state.pop(f"{head}.bias")
    state[f"{head}.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"]
    with torch.device("meta"):
        model = BertForMaskedLM(config)
    model.load_state_dict(state, assign=True)  # RuntimeError for a weight that is missing, or of another shape
    model.get_output_embeddings().weight = model.get_input_embeddings().weight
    return model.eval(), tokenizer


def _sentence_model(folder: Path, device: str) -> Any:
    from mlmglauber.models.bert_tokenizer import read

    modules = json.loads((folder / "modules.json").read_bytes())
    listed = [[module["type"], module["path"]] for module in modules]
    settings = json.loads((folder / "sentence_bert_config.json").read_bytes())
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_bytes())
    general = folder / "config_sentence_transformers.json"
    config = _config(folder, "BertModel")
    if (config is None or listed not in (MODULES, MODULES[:2])
            or settings.keys() != {"max_seq_length", "do_lower_case"} or settings["do_lower_case"] is not False
            or not isinstance(settings["max_seq_length"], int)
            or pooling != POOLING | {"word_embedding_dimension": config.hidden_size}
            or (general.exists() and json.loads(general.read_bytes()).keys() != {"__version__"})):
        return None
    tokenizer = read(folder)
    if tokenizer is None:
        return None
    import torch

    from mlmglauber.models.bert_network import BertEncoder, SentenceBert

    state = {key: value for key, value in _weights(folder, "float32").items() if key not in NOT_LOADED}
    with torch.device("meta"):
        encoder = BertEncoder(config)
    encoder.load_state_dict(state, assign=True)
    model = SentenceBert(encoder, tokenizer, settings["max_seq_length"], scaled=len(listed) == len(MODULES))
    return model.to(device).eval()


def _config(folder: Path, architecture: str) -> SimpleNamespace | None:
    """The configuration of a checkpoint; None where it says anything that is not in the lists above."""
    if any((folder / name).exists() for name in OTHER_FILES):
        return None
    raw = json.loads((folder / "config.json").read_bytes())
    if (not raw.keys() <= {*SIZES, *KNOWN, *WITHOUT_EFFECT} or raw.get("architectures") != [architecture]
            or any(raw.get(key, value) != value for key, value in KNOWN.items())
            or not all(type(raw.get(key)) is int and raw[key] > 0 for key in SIZES)
            or not isinstance(raw.get("layer_norm_eps"), float)
            or raw["hidden_size"] % raw["num_attention_heads"]):
        return None
    return SimpleNamespace(**(KNOWN | raw))


def _weights(folder: Path, dtype: str) -> dict[str, Any]:
    """The tensors of model.safetensors by name, in a number format."""
    import torch
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    if not all(tensor.is_floating_point() for name, tensor in tensors.items() if name not in NOT_LOADED):
        raise ValueError("weights of integers")
    return {name: tensor.to(getattr(torch, dtype)) for name, tensor in tensors.items()}
