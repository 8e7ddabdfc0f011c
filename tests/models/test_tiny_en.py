"""The bundled model and passages are what their cards say."""

import hashlib
import re

import numpy as np
import orjson
import pytest
from conftest import ROOT

from mlmglauber.models.conditionals import FILL
from mlmglauber.models.opening import open_model

FOLDER = ROOT / "mlmglauber" / "models" / "tiny_en"
IDS = [1002, 2001, 1003, 6943, 1009, 4257, 1670, 31, 2408, 7711, 3281, 6086, 9171, 2645, 8570, 1958, 1, 5]
FILL_INS = [
    ("albert einstein was a german-born theoretical ___ .", "physicist"),
    ("paris is the capital and largest ___ of france .", "city"),
    ("a triangle has three ___ .", "sides"),
    ("world war ___ was a global conflict that lasted from 1939 to 1945 .", "ii"),
    ("she was the first ___ to win the nobel prize .", "woman"),
]
CARD = (FOLDER / "README.md").read_text()


@pytest.fixture(scope="module")
def tiny():
    return open_model("tiny-en")


def test_the_card_names_the_weights():
    digest = hashlib.sha256((FOLDER / "model.safetensors").read_bytes()).hexdigest()
    assert digest in CARD


def test_it_opens_unaided():
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    model, info = AutoModelForMaskedLM.from_pretrained(FOLDER, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    assert len(tokenizer) == model.config.vocab_size == 14_000


def test_pinned_ids(tiny):
    assert tiny.encode("The capital of Jamaica is Kingston; antidisestablishmentarianism \U0001f600!") == IDS
    assert tiny.describe()["model"] == "tiny-en"
    assert (tiny.max_sites, tiny.describe()["banned"]) == (510, 5)


@pytest.mark.parametrize(("text", "expected"), FILL_INS)
def test_fill_ins(tiny, text, expected):
    """The likeliest token at the place of the word `mask`."""
    ids = tiny.encode(text.replace("___", "mask"))
    site = ids.index(tiny.encode("mask")[0])
    law = tiny.log_probs(np.array([ids]), np.array([site]))[0]
    assert tiny.decode([int(law.argmax())]) == expected


def test_every_character_that_minilm_knows_is_known(tiny):
    text = "a é ß 日 Ω Ж # ! 7 \u0905 \u05d0"
    assert tiny.tokenizer.unk_token_id not in tiny.encode(text)


def test_held_out_figures_of_the_card(tiny):
    """One masked token at a time, one site of each of the 200 bundled passages, all of them held out.

    The card's figure is over 10,000 sites; the standard error of 200 is about 0.2 nat, the bound three of them.
    """
    figure = float(re.search(r"NLL \**(\d\.\d+)\** nats", CARD)[1])
    lines = (ROOT / "examples" / "passages.jsonl").read_bytes().splitlines()
    generator, rows = np.random.default_rng(0), np.arange(len(lines))
    ids, sites = np.full((len(lines), 62), FILL), np.zeros(len(lines), int)
    for row, line in enumerate(lines):
        text = tiny.encode(orjson.loads(line)["text"])[:62]
        ids[row, : len(text)], sites[row] = text, generator.integers(len(text))
    truth = ids[rows, sites]
    losses = -tiny.log_probs(ids, sites)[rows, truth]
    assert abs(np.mean(losses[tiny.allowed[truth]]) - figure) < 0.6


def test_passages():
    passages = [orjson.loads(line) for line in (ROOT / "examples" / "passages.jsonl").read_bytes().splitlines()]
    assert len(passages) == len({passage["id"] for passage in passages}) == 200
    assert all(set(passage) == {"id", "title", "text", "topic", "description"} for passage in passages)
    assert "Attribution-ShareAlike 4.0" in (ROOT / "examples" / "PASSAGES.md").read_text()
