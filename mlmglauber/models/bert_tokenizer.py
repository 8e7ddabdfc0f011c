"""The tokenizer of BERT checkpoints, read with the library `tokenizers` alone, without the package transformers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

NAMES = ("unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The special tokens that a tokenizer of this class has, in the order in which it lists them."""

USUAL = {"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True}
"""Settings of how a text is cut, with the values that hold where the configuration does not name them."""

WITHOUT_EFFECT = {"backend", "name_or_path", "tokenizer_class", "model_max_length", "do_basic_tokenize", "never_split",
                  "clean_up_tokenization_spaces", "special_tokens_map_file"}
"""Other keys of a configuration: none changes the token ids of a text, or `standard_config` checks its value."""


class BertTokenizer:
    """What this package uses of a tokenizer of transformers, with the same names and the same results."""

    is_fast = True
    bos_token_id = eos_token_id = None
    model_input_names = ("input_ids", "token_type_ids", "attention_mask")
    split_special_tokens = False

    def __init__(self, backend: Tokenizer, names: Sequence[str], model_max_length: int) -> None:
        self.backend_tokenizer, self.model_max_length = backend, model_max_length
        backend.no_truncation()
        backend.no_padding()
        self.all_special_tokens = list(names)
        self.all_special_ids = [backend.token_to_id(name) for name in names]
        (self.unk_token_id, self.sep_token_id, self.pad_token_id, self.cls_token_id,
         self.mask_token_id) = self.all_special_ids

    @property
    def added_tokens_decoder(self) -> dict[int, Any]:
        """The special tokens by id, with their settings."""
        added: dict[int, Any] = self.backend_tokenizer.get_added_tokens_decoder()
        return added

    def __len__(self) -> int:
        return self.backend_tokenizer.get_vocab_size()

    def get_vocab(self) -> dict[str, int]:
        """All tokens with their ids."""
        vocabulary: dict[str, int] = self.backend_tokenizer.get_vocab()
        return vocabulary

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The token ids of a text."""
        return list(self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens).ids)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False,
               clean_up_tokenization_spaces: bool = False) -> str:
        """The text of token ids. clean_up_tokenization_spaces: accepted because callers give it; must be False."""
        assert not clean_up_tokenization_spaces
        return str(self.backend_tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def convert_ids_to_tokens(self, ids: Any) -> Any:
        """The token of an id, or the list of those of several ids."""
        if isinstance(ids, int):
            return self.backend_tokenizer.id_to_token(ids)
        return [self.backend_tokenizer.id_to_token(int(token)) for token in ids]


def read(folder: Path) -> BertTokenizer | None:
    """The tokenizer of a checkpoint's folder; None where its files say anything that this class does not know.

    transformers builds such a tokenizer from the vocabulary of tokenizer.json and from tokenizer_config.json. Here
    tokenizer.json is used as it is, which is the same if its other parts are those that the configuration describes.
    """
    config = json.loads((folder / "tokenizer_config.json").read_bytes())
    if not standard_config(config) or (folder / "added_tokens.json").exists():
        return None
    names = [config[name] for name in NAMES]
    extra = folder / "special_tokens_map.json"
    if extra.exists() and json.loads(extra.read_bytes()) != dict(zip(NAMES, names, strict=True)):
        return None
    text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    if not standard_parts(json.loads(text), USUAL | config, names):
        return None
    return BertTokenizer(Tokenizer.from_str(text), names, config["model_max_length"])


def standard_config(config: dict[str, Any]) -> bool:
    """Whether a tokenizer_config.json is that of a BertTokenizer without anything beyond its usual settings."""
    return (config.keys() <= {*NAMES, *USUAL, *WITHOUT_EFFECT}
            and config.get("tokenizer_class") in ("BertTokenizer", "BertTokenizerFast")
            and config.get("backend", "tokenizers") == "tokenizers"
            and all(isinstance(config.get(name), str) for name in NAMES)
            and len({config[name] for name in NAMES}) == len(NAMES)
            and isinstance(config.get("model_max_length"), int)
            and config.get("do_basic_tokenize", True) is True and config.get("never_split") is None)


def standard_parts(whole: dict[str, Any], config: dict[str, Any], names: Sequence[str]) -> bool:
    """Whether a tokenizer.json cuts texts as `config` says: its special tokens are `names` and nothing else is added."""
    model = whole["model"]
    vocabulary, rest = model["vocab"], {key: value for key, value in model.items() if key != "vocab"}
    around = [{"SpecialToken": {"id": config["cls_token"], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
              {"SpecialToken": {"id": config["sep_token"], "type_id": 0}}]
    ends = {name: {"id": name, "ids": [vocabulary[name]], "tokens": [name]}
            for name in (config["cls_token"], config["sep_token"])}
    plain = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = {token["content"]: token for token in whole["added_tokens"]}
    return (rest == {"type": "WordPiece", "unk_token": config["unk_token"], "continuing_subword_prefix": "##",
                     "max_input_chars_per_word": 100}
            and whole["normalizer"] == {
                "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": config["tokenize_chinese_chars"],
                "strip_accents": config["strip_accents"], "lowercase": config["do_lower_case"]}
            and whole["pre_tokenizer"] == {"type": "BertPreTokenizer"}
            and whole["decoder"] == {"type": "WordPiece", "prefix": "##", "cleanup": True}
            and whole["post_processor"]["type"] == "TemplateProcessing"
            and whole["post_processor"]["single"] == around and whole["post_processor"]["special_tokens"] == ends
            and added.keys() == set(names)
            and all(added[name] == plain | {"id": vocabulary[name], "content": name} for name in names))
