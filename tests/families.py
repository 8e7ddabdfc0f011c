"""A tiny random model of every family, with a real tokenizer trained on a few sentences, as checkpoints on disk."""

from pathlib import Path

import torch
import transformers as tf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SENTENCES = [
    "the cat sat on the mat and the dog sat on the log",
    "a quick brown fox jumps over the lazy dog and then it sleeps in the sun",
    "The capital of the country is a large city on the river.",
    "she read the paper while he made tea; they talked of politics, food and sports!",
    "Numbers: 0 1 2 3 4 5 6 7 8 9 (and signs) [in] {many} <kinds> / |",
    "MASK mask SEP sep CLS cls unused s pad unk",
] * 4

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
BERT_SPECIALS = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
                 "mask_token": "[MASK]"}
ROBERTA_SPECIALS = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>",
                    "bos_token": "<s>", "eos_token": "</s>", "mask_token": "<mask>"}


def wordpiece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"]
    tokenizer.train_from_iterator(SENTENCES, trainers.WordPieceTrainer(vocab_size=300, special_tokens=specials[:5]))
    tokenizer.add_tokens(specials[5:])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("[CLS]", "[SEP]")])
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **BERT_SPECIALS)


def byte_level(limit=512):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=specials,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=limit, **ROBERTA_SPECIALS)


def unigram(specials):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    names = list(dict.fromkeys(specials.values()))
    trainer = trainers.UnigramTrainer(vocab_size=250, special_tokens=names, unk_token=specials["unk_token"])
    tokenizer.train_from_iterator(SENTENCES, trainer)
    cls, sep = specials["cls_token"], specials["sep_token"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}", special_tokens=[(t, tokenizer.token_to_id(t)) for t in (cls, sep)])
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **specials)


def letters(folder="."):
    """A tokenizer written in Python, of a protein model: a letter a token, no merges to spell a special one with."""
    path = Path(folder) / "letters.txt"
    path.write_text("\n".join(["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>",
                               "<mask>"]))
    return tf.EsmTokenizer(str(path), model_max_length=512)


def _build():
    return {
        "bert": (wordpiece, tf.BertForMaskedLM, tf.BertConfig, SMALL, 510),
        "distilbert": (wordpiece, tf.DistilBertForMaskedLM, tf.DistilBertConfig,
                       {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}, 510),
        "roberta": (byte_level, tf.RobertaForMaskedLM, tf.RobertaConfig,
                    {**SMALL, "max_position_embeddings": 514, "type_vocab_size": 1}, 510),
        "xlm-roberta": (lambda: unigram(ROBERTA_SPECIALS), tf.XLMRobertaForMaskedLM, tf.XLMRobertaConfig,
                        {**SMALL, "max_position_embeddings": 514, "type_vocab_size": 1}, 510),
        "albert": (lambda: unigram(BERT_SPECIALS), tf.AlbertForMaskedLM, tf.AlbertConfig,
                   {**SMALL, "embedding_size": 16}, 510),
        "electra": (wordpiece, tf.ElectraForMaskedLM, tf.ElectraConfig, {**SMALL, "embedding_size": 16}, 510),
        "deberta-v2": (lambda: unigram(BERT_SPECIALS), tf.DebertaV2ForMaskedLM, tf.DebertaV2Config,
                       {**SMALL, "relative_attention": True, "position_buckets": 16, "pos_att_type": ["p2c", "c2p"],
                        "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False}, 510),
        "modernbert": (lambda: byte_level(8192), tf.ModernBertForMaskedLM, tf.ModernBertConfig,
                       {**SMALL, "max_position_embeddings": 8192, "global_attn_every_n_layers": 2,
                        "local_attention": 16}, 8190),
        "esm": (letters, tf.EsmForMaskedLM, tf.EsmConfig,
                {**SMALL, "max_position_embeddings": 514, "position_embedding_type": "absolute", "mask_token_id": 32},
                510),
        "convbert": (wordpiece, tf.ConvBertForMaskedLM, tf.ConvBertConfig, {**SMALL, "embedding_size": 32}, 510),
        "fnet": (wordpiece, tf.FNetForMaskedLM, tf.FNetConfig, {**SMALL, "use_tpu_fourier_optimizations": False}, 510),
    }


NAMES = ("bert", "distilbert", "roberta", "xlm-roberta", "albert", "electra", "deberta-v2", "modernbert")
"""The families that every test of a model runs on; beside them esm, and convbert and fnet, which padding would move."""


def save(name, folder, seed=0, **changes):
    """Write one family's checkpoint; (folder, the model itself, its limit in content tokens)."""
    tokenizer_of, model_class, config_class, sizes, limit = _build()[name]
    tokenizer = tokenizer_of(folder) if name == "esm" else tokenizer_of()
    ids = {key: getattr(tokenizer, key) for key in
           ("pad_token_id", "cls_token_id", "sep_token_id", "bos_token_id", "eos_token_id")}
    config = config_class(vocab_size=len(tokenizer), **{**sizes, **ids, **changes})
    torch.manual_seed(seed)
    model = model_class(config).eval()
    for parameter in model.parameters():  # far from uniform: a wrong row would show
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    model.tie_weights()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Path(folder), model, limit


def save_causal(folder):
    tokenizer = byte_level()
    config = tf.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=128)
    tf.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Path(folder)
