"""Placeholders that no text gives, and texts that a vocabulary lacks."""

import json

import families
import numpy as np
import pytest
import transformers as tf
from conftest import ROOT
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from mlmglauber.models.masked_lm import MaskedLM
from mlmglauber.models.plain_text import parts, plain_encoder
from mlmglauber.models.vocabulary import placeholders

pytestmark = pytest.mark.in_process


def with_pieces(tokenizer, specials, **pieces):
    """A copy of a tokenizer with more pieces in its own vocabulary: their scores, where it has such."""
    whole = json.loads(tokenizer.backend_tokenizer.to_str())
    vocabulary = whole["model"]["vocab"]
    for piece, score in pieces.items():
        if isinstance(vocabulary, dict):
            vocabulary[piece] = len(vocabulary)
        else:
            vocabulary.append([piece, score])
    return tf.PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(whole)), **specials)


def named(tokenizer):
    plain_encoder(tokenizer)  # as every model does first
    names = {token: piece for piece, token in tokenizer.get_vocab().items()}
    return {names[token] for token in placeholders(tokenizer)} - set(tokenizer.all_special_tokens)


@pytest.mark.parametrize(("made", "found"), [
    (lambda: with_pieces(families.wordpiece(), families.BERT_SPECIALS, **{"...": 0, "<null_1>": 0, "##zq": 0}),
     {"...", "<null_1>", "[unused0]", "[unused1]"}),
    (lambda: with_pieces(families.byte_level(), families.ROBERTA_SPECIALS, madeup=0, spareroom7=0),
     {"madeup", "spareroom7"}),
    (lambda: with_pieces(families.unigram(families.ROBERTA_SPECIALS), families.ROBERTA_SPECIALS,
                         **{"<s>NOTUSED": 0.0, "<unk>NOTUSED": -100.0, "<never>": -100.0}),
     {"<s>NOTUSED", "<unk>NOTUSED", "<never>"}),
])
def test_placeholders_are_found_by_asking_the_tokenizer(made, found):
    assert named(made()) == found


def test_the_null_token_of_esm_is_never_drawn_and_no_text_spells_it(tmp_path):
    lm = MaskedLM.open(str(families.save("esm", tmp_path)[0]))
    null = lm.tokenizer.get_vocab()["<null_1>"]
    assert not lm.allowed[null]
    assert [lm.decode([token]) for token in np.flatnonzero(lm.allowed)] == list("LAGVSERTIDPKQNFYMHWCXBUZO.-")
    assert null not in lm.encode("M<null_1>K")


@pytest.mark.parametrize("name", ["wordpiece", "byte_level"])
def test_words_and_their_pieces_stay(name):
    """Every piece of the training text may be drawn; so may every byte."""
    tokenizer = getattr(families, name)()
    banned = placeholders(tokenizer)
    encode = plain_encoder(tokenizer)
    assert not banned & {token for sentence in families.SENTENCES for token in encode(sentence)}


def test_of_tiny_en_the_special_tokens_alone_are_banned():
    tokenizer = AutoTokenizer.from_pretrained(ROOT / "mlmglauber" / "models" / "tiny_en")
    assert placeholders(tokenizer) == set(tokenizer.all_special_ids)


@pytest.mark.parametrize("name", ["bert", "roberta", "albert", "esm"])
def test_a_text_in_parts_has_the_ids_of_the_whole(tmp_path, name):
    folder, _, _ = families.save(name, tmp_path)
    encode = MaskedLM.open(str(folder)).encode
    words = ["MKTAYIAKQR", "", "\n"] if name == "esm" else ["the", "cat", "sat\ton", "", "mat;", "\n\n", "sleeps"]
    random = np.random.default_rng(0)
    text = " ".join(random.choice(words, 40_000))
    pieces = list(parts(text))
    assert "".join(pieces) == text
    assert len(pieces) > 3
    assert max(map(len, pieces)) < 20_000
    assert [token for piece in pieces for token in encode(piece)] == encode(text)
    assert list(parts("")) == [""]


COUNT = "1 text with unknown tokens: 2 of 6 tokens are unknown to the model (`unknown`)"


@pytest.mark.parametrize("command", [
    "mlm-sample --steps 1 --seed 1", "mlm-rect --rectangles 1 --seed 1", "mlm-influence --seed 1",
    "mlm-exact --top 2 --sites 1", "mlm-couple --start random --seed 1 --max-steps 2", "mlm-traps --find"])
def test_unknown_tokens_are_counted_marked_and_refused_under_strict(sh, command):
    (sh.folder / "f").write_text("the cat \U0001f600 sat \U0001f600 .\n\U0001f600 \U0001f601\nthe dog sat .\n")
    done = sh(f"{command} f")
    assert done.status == 65
    name = command.split()[0]
    assert done.err.splitlines() == [
        f"{name}: f:2: all tokens of this text are unknown to the model; give a text of its language, or another model",
        f"{name}: {COUNT}"]
    own = [record for record in done.records if record["type"] != "run"]
    if "--find" not in command:  # what texts have in common has no text of its own
        assert {record["id"]: record.get("unknown") for record in own} == {"0": 2, "2": None}
    strict = sh(f"{command} --strict f")
    assert strict.status == 65
    assert "f:1: 2 of 6 tokens are unknown to the model" in strict.err
    assert "unknown" not in sh(f"echo 'the dog sat on a mat' | {command}").err


def test_proteins_say_what_is_wrong_with_their_letters(sh):
    (sh.folder / "esm").mkdir()
    families.save("esm", sh.folder / "esm")
    done = sh("mlm-sample -m esm --steps 1 --seed 1", stdin=b">sp|P1 a protein\nmktayiakqrqisfvkshfsrq\n")
    assert done.status == 65
    assert "stdin:1: the line is the head of a FASTA sequence; read the input with --format fasta" in done.err
    assert "stdin:2: all tokens of this text are unknown to the model; write its letters, mostly capitals" in done.err
    told = sh("mlm-sample -m esm --steps 1 --seed 1 --format fasta --upper",
              stdin=b">sp|P1 a protein\nmktayia\nkqr\n>P2\nMKT*\n")
    assert told.status == 0
    assert [(state["id"], state["n"]) for state in told.states if state["step"] == 0] == [("sp|P1", 10), ("P2", 3)]
    assert told.states[0]["description"] == "a protein"
